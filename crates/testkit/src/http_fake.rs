//! A small HTTP server for servers that only pretend.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// The most bytes of a request's body.
const MOST_OF_BODY: usize = 64 << 20;

/// A request, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// With its query, as it was sent.
    pub(crate) path: String,
    /// By names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) sent: Sent,
}

/// How much of an answer reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Whole,
    Half,
    Nothing,
}

impl HttpRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

impl HttpAnswer {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes(), sent: Sent::Whole }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), sent: Sent::Whole }
    }
}

type Handler = Arc<dyn Fn(&HttpRequest) -> HttpAnswer + Send + Sync>;

/// A running server on loopback.
pub(crate) struct HttpFake {
    address: SocketAddr,
    handler: Handler,
    /// Ends the threads of the server that runs now.
    running: Mutex<Arc<AtomicBool>>,
}

impl HttpFake {
    pub(crate) fn start(
        handler: impl Fn(&HttpRequest) -> HttpAnswer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let handler: Handler = Arc::new(handler);
        let running = serve(listener, &handler);
        Ok(Self { address, handler, running: Mutex::new(running) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Refuses connections from now on.
    pub(crate) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.store(false, Ordering::SeqCst);
        // Wakes the thread that accepts, which then closes the listener.
        let _ = TcpStream::connect(self.address);
        let closed = || TcpStream::connect(self.address).is_err().then_some(());
        let _ = crate::wait_until(std::time::Duration::from_secs(20), closed);
    }

    /// Listens again at the same address.
    pub(crate) fn restart(&self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address)?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = serve(listener, &self.handler);
        Ok(())
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(listener: TcpListener, handler: &Handler) -> Arc<AtomicBool> {
    let running = Arc::new(AtomicBool::new(true));
    let (inside, handler) = (Arc::clone(&running), Arc::clone(handler));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if !inside.load(Ordering::SeqCst) {
                break;
            }
            let (inside, handler) = (Arc::clone(&inside), Arc::clone(&handler));
            thread::spawn(move || answer_all(&stream, &inside, &handler));
        }
    });
    running
}

/// Answers the requests of one connection. An error is a client that has gone.
fn answer_all(stream: &TcpStream, running: &AtomicBool, handler: &Handler) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        if !running.load(Ordering::SeqCst) {
            return Ok(());
        }
        let HttpAnswer { status, headers, body, sent } = handler(&request);
        let mut bytes = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            // Writing to a string cannot fail.
            let _ = write!(bytes, "{name}: {value}\r\n");
        }
        bytes.push_str("\r\n");
        let mut bytes = bytes.into_bytes();
        bytes.extend(body);
        match sent {
            Sent::Whole => (&*stream).write_all(&bytes)?,
            Sent::Half => return (&*stream).write_all(bytes.get(..bytes.len() - 3).unwrap_or_default()),
            Sent::Nothing => return Ok(()),
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "no request");
    let mut words = line.split_whitespace();
    let (method, path) = words.next().zip(words.next()).ok_or_else(odd)?;
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_usize);
    if length > MOST_OF_BODY {
        return Err(odd());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(HttpRequest { method, path, headers, body }))
}
