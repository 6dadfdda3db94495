//! [`FakeHttp`]: a small HTTP server on loopback whose answers a test writes, and that fails when the test wants it to.

mod connection;
mod message;
mod proxy;
mod tls;

use std::{
    fmt, io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

pub use self::message::{HttpRequest, HttpResponse};
use self::tls::FakeTls;
pub(crate) use self::{message::decoded, proxy::status_of};

/// A failure of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpFault {
    /// This answer instead; the request is not carried out.
    Answer(HttpResponse),
    /// The connection ends before the request is carried out.
    Dropped,
    /// The request is carried out, and the connection ends without an answer.
    Lost,
    /// The request is carried out, and half of the answer is written.
    Half,
    /// The request is not carried out, and the connection is silent until the client ends it.
    Silent,
}

impl HttpFault {
    /// This status instead of the answer; with `wait`, the client is asked to come back after so many seconds.
    pub fn status(status: u16, wait: Option<u64>) -> Self {
        let response = HttpResponse::new(status, "it was told to fail");
        Self::Answer(match wait {
            Some(seconds) => response.header("retry-after", &seconds.to_string()),
            None => response,
        })
    }
}

/// A running server. It ends with its value.
pub struct FakeHttp {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Shared {
    answer: Box<dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync>,
    state: Mutex<State>,
    /// None for plain HTTP.
    tls: Option<FakeTls>,
}

#[derive(Default)]
struct State {
    down: bool,
    open: Vec<TcpStream>,
    faults: Vec<PlannedFault>,
    requests: Vec<HttpRequest>,
    count: usize,
    failed: usize,
    /// How long a request that changes something is on its way before it takes effect.
    delay: Duration,
}

struct PlannedFault {
    applies: Box<dyn Fn(&HttpRequest) -> bool + Send>,
    /// So many requests it applies to pass first.
    after: usize,
    times: usize,
    fault: HttpFault,
}

impl FakeHttp {
    /// Starts a server that answers every request with what `answer` makes of it.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    pub fn start(answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, answer)
    }

    /// The same at another address of this machine.
    ///
    /// # Panics
    ///
    /// If the address has no free port.
    pub fn start_at(
        host: Ipv4Addr,
        answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(host, None, Box::new(answer))
    }

    /// The same over TLS, with a certificate that it signed itself.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn start_tls(answer: impl Fn(&HttpRequest) -> HttpResponse + Send + Sync + 'static) -> Self {
        let tls = FakeTls::new().unwrap_or_else(|error| panic!("no certificate is made: {error}"));
        Self::start_with(Ipv4Addr::LOCALHOST, Some(tls), Box::new(answer))
    }

    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn start_with(
        host: Ipv4Addr,
        tls: Option<FakeTls>,
        answer: Box<dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync>,
    ) -> Self {
        let shared = Arc::new(Shared { answer, state: Mutex::default(), tls });
        let listen = || -> io::Result<(TcpListener, SocketAddr)> {
            let listener = TcpListener::bind((host, 0))?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            listen().unwrap_or_else(|error| panic!("the fake server does not start: {error}"));
        shared.accept(listener);
        Self { shared, address }
    }

    pub fn url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The SHA-256 fingerprint of its certificate, `AA:BB:…`; none without TLS.
    pub fn fingerprint(&self) -> Option<&str> {
        self.shared.tls.as_ref().map(|tls| tls.fingerprint.as_str())
    }

    /// The next `times` requests that `applies` accepts fail, after the first `after` of them.
    pub fn fail(
        &self,
        after: usize,
        times: usize,
        fault: HttpFault,
        applies: impl Fn(&HttpRequest) -> bool + Send + 'static,
    ) {
        let applies = Box::new(applies);
        self.shared.state().faults.push(PlannedFault { applies, after, times, fault });
    }

    /// Lets the request after `passing` others fail, once, among those that begin with `METHOD /path`.
    pub fn fail_at(&self, beginning: &str, passing: usize, fault: HttpFault) {
        let beginning = beginning.to_owned();
        let applies = move |request: &HttpRequest| {
            format!("{} {}", request.method, request.path).starts_with(&beginning)
        };
        self.fail(passing, 1, fault, applies);
    }

    /// Forgets every failure that is planned.
    pub fn heal(&self) {
        self.shared.state().faults.clear();
    }

    /// Requests that are no GET take so long from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.state().delay = delay;
    }

    /// How many requests there were in all.
    pub fn count(&self) -> usize {
        self.shared.state().count
    }

    /// How many requests met a failure that was planned.
    pub fn failed(&self) -> usize {
        self.shared.state().failed
    }

    /// All requests since this was last called.
    pub fn requests(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut self.shared.state().requests)
    }

    /// Refuses connections and ends those that are open.
    pub fn stop(&self) {
        let mut state = self.shared.state();
        state.down = true;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the thread that accepts, which then drops its listener.
        let _ = TcpStream::connect(self.address);
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }

    /// Listens again on the port it had.
    ///
    /// # Panics
    ///
    /// If another process has the port now.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn restart(&self) {
        let listener = TcpListener::bind(self.address)
            .unwrap_or_else(|error| panic!("the fake server does not come back: {error}"));
        self.shared.state().down = false;
        self.shared.accept(listener);
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for FakeHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeHttp").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: TcpListener) {
        let shared = Arc::clone(self);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut state = shared.state();
                if state.down {
                    break;
                }
                state.open.extend(stream.try_clone());
                drop(state);
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    match &shared.tls {
                        None => connection::serve(&stream, &shared),
                        Some(tls) => drop(tls.open(&stream).map(|stream| connection::serve(stream, &shared))),
                    }
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
    }

    /// The failure that is planned for `request`.
    fn fault(&self, request: &HttpRequest) -> Option<HttpFault> {
        let mut state = self.state();
        state.requests.push(request.clone());
        state.count += 1;
        let State { faults, failed, .. } = &mut *state;
        for planned in faults {
            if planned.times == 0 || !(planned.applies)(request) {
                continue;
            }
            if planned.after > 0 {
                planned.after -= 1;
                continue;
            }
            planned.times -= 1;
            *failed += 1;
            return Some(planned.fault.clone());
        }
        None
    }
}
