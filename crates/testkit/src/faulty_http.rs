//! [`FaultyHttp`]: a small HTTP server for fakes of other programs, which fails when a test wants it to.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// A request as a fake sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeRequest {
    pub method: String,
    /// Still encoded, without the query.
    pub path: String,
    /// Decoded.
    pub query: BTreeMap<String, String>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// An answer of a fake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeReply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// The fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    /// Nothing is done, and this status is the answer; 429 and 503 ask to wait so many seconds.
    Status(u16, Option<u64>),
    /// It is done, and no answer comes.
    Lost,
    /// Nothing is done, and no answer comes.
    Dropped,
    /// It is done, and half of the answer comes.
    Cut,
}

type Handler = dyn Fn(&FakeRequest) -> FakeReply + Send + Sync;

/// A server on a port of loopback. Dropping it ends it.
pub struct FaultyHttp {
    address: SocketAddr,
    inside: Arc<Inside>,
}

struct Inside {
    handler: Box<Handler>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The beginning of `METHOD /path`, how many such requests still pass before, and the fault.
    faults: Vec<(String, usize, HttpFault)>,
    seen: Vec<String>,
    /// Counts starts; connections of an earlier one are closed.
    life: usize,
    up: bool,
    open: Vec<TcpStream>,
}

impl FaultyHttp {
    pub fn start(handler: impl Fn(&FakeRequest) -> FakeReply + Send + Sync + 'static) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let inside = Arc::new(Inside { handler: Box::new(handler), state: Mutex::default() });
        let fake = Self { address, inside };
        fake.listen(listener);
        Ok(fake)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets the request after `passing` others go wrong, once, among those that begin with `METHOD /path`.
    pub fn fail(&self, beginning: &str, passing: usize, fault: HttpFault) {
        self.inside.state().faults.push((beginning.to_owned(), passing, fault));
    }

    /// The requests since this was last called, as `METHOD /path`.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.inside.state().seen)
    }

    /// Ends all connections and listens no more, until [`FaultyHttp::resume`].
    pub fn stop(&self) {
        let mut state = self.inside.state();
        state.up = false;
        state.life += 1;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        // Wakes the listener, which then goes away.
        let _ = TcpStream::connect(self.address);
    }

    /// Listens again at the same address.
    pub fn resume(&self) -> io::Result<()> {
        let listener = crate::wait_until(Duration::from_secs(10), || TcpListener::bind(self.address).ok());
        let listener = listener.ok_or_else(|| io::Error::other("the port is taken"))?;
        self.listen(listener);
        Ok(())
    }

    fn listen(&self, listener: TcpListener) {
        let inside = Arc::clone(&self.inside);
        let mut state = inside.state();
        state.up = true;
        let life = state.life;
        drop(state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut state = inside.state();
                if !state.up || state.life != life {
                    return;
                }
                state.open.extend(stream.try_clone());
                drop(state);
                let inside = Arc::clone(&inside);
                // A client that goes away in the middle is no concern of the fake.
                thread::spawn(move || inside.serve(&stream, life).ok());
            }
        });
    }
}

impl Drop for FaultyHttp {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for FaultyHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyHttp").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Inside {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream, life: usize) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader)? {
            if self.state().life != life {
                break;
            }
            let (reply, fault) = self.answer(&request);
            let text = reply.map(|reply| reply.text()).unwrap_or_default();
            let sent = if fault == Some(HttpFault::Cut) { text.len() / 2 } else { text.len() };
            (&*stream).write_all(text.as_bytes().get(..sent).unwrap_or_default())?;
            if matches!(fault, Some(HttpFault::Lost | HttpFault::Dropped | HttpFault::Cut)) {
                break;
            }
        }
        stream.shutdown(Shutdown::Both)
    }

    fn answer(&self, request: &FakeRequest) -> (Option<FakeReply>, Option<HttpFault>) {
        let line = format!("{} {}", request.method, request.path);
        let fault = self.note(line);
        let reply = match fault {
            Some(HttpFault::Dropped) => None,
            Some(HttpFault::Status(status, wait)) => {
                let headers = wait.map(|wait| ("Retry-After", wait.to_string())).into_iter().collect();
                Some(FakeReply { status, headers, body: "it was told to fail".into() })
            }
            None | Some(HttpFault::Lost | HttpFault::Cut) => Some((self.handler)(request)),
        };
        (reply.filter(|_| fault != Some(HttpFault::Lost)), fault)
    }

    /// Records the request and finds the fault that it meets.
    fn note(&self, line: String) -> Option<HttpFault> {
        let mut state = self.state();
        let mut met = None;
        for (at, (beginning, passing, _)) in state.faults.iter_mut().enumerate() {
            if line.starts_with(beginning.as_str()) {
                match passing.checked_sub(1) {
                    Some(left) => *passing = left,
                    None => met = met.or(Some(at)),
                }
            }
        }
        state.seen.push(line);
        met.map(|at| state.faults.remove(at).2)
    }
}

impl FakeReply {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn text(&self) -> String {
        let headers =
            self.headers.iter().fold(String::new(), |all, (name, value)| all + name + ": " + value + "\r\n");
        let length = format!("Content-Length: {}\r\n", self.body.len());
        let length = if self.status == 204 { String::new() } else { length };
        format!("HTTP/1.1 {} Fake\r\n{headers}{length}\r\n{}", self.status, self.body)
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<FakeRequest>> {
    let bad = || io::Error::other("this is no HTTP request");
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(bad()) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = FakeRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: pairs(query),
        headers: BTreeMap::new(),
        body: String::new(),
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(bad)?;
        request.headers.insert(name.trim().to_lowercase(), value.trim().to_owned());
    }
    let length = request.headers.get("content-length").map_or(Ok(0), |text| text.parse());
    let mut body = vec![0; length.map_err(|_| bad())?];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8(body).map_err(|_| bad())?;
    Ok(Some(request))
}

/// The pairs of a query or a form.
pub fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(&name.replace('+', " ")), percent_decoded(&value.replace('+', " ")))
        })
        .collect()
}

/// A piece of a path, decoded. A `%` that begins no two digits stays.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (front, back) = rest.split_at(at);
        bytes.extend(front.bytes());
        let digits = back.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(digits.unwrap_or(b'%'));
        rest = back.get(if digits.is_some() { 3 } else { 1 }..).unwrap_or_default();
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(url: &str, target: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
        write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")?;
        stream.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn it_answers_fails_once_and_comes_back() {
        let fake = FaultyHttp::start(|request| FakeReply::new(200, format!("{:?}", request.query))).unwrap();
        let whole = "HTTP/1.1 200 Fake\r\nContent-Length: 12\r\n\r\n{\"a\": \"b c\"}";
        assert_eq!(ask(&fake.url(), "/x?a=b%20c").unwrap(), whole);
        fake.fail("GET /x", 1, HttpFault::Lost);
        fake.fail("GET /x", 2, HttpFault::Status(429, Some(7)));
        assert_eq!(ask(&fake.url(), "/x?a=b+c").unwrap(), whole);
        assert_eq!(ask(&fake.url(), "/x").unwrap(), "");
        let busy = ask(&fake.url(), "/x").unwrap();
        assert!(busy.starts_with("HTTP/1.1 429 Fake\r\nRetry-After: 7\r\n"), "{busy}");
        assert_eq!(fake.seen(), ["GET /x"; 4]);
        fake.stop();
        assert!(ask(&fake.url(), "/x").is_err());
        fake.resume().unwrap();
        assert_eq!(ask(&fake.url(), "/x?a=b+c").unwrap(), whole);
    }
}
