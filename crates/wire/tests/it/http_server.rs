//! A server for tests: it answers each request by a function of the request's number and text.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use netstead_model::{Call, CallObserver};
use netstead_settings::{BuildContext, Secret, SecretValue};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, UnixListener},
};
use tokio_rustls::TlsAcceptor;

/// The answer to the request with this number, from 1 on. An empty one closes the connection.
pub type Answer = fn(usize, &str) -> String;

/// The requests that came.
pub type Seen = Arc<Mutex<Vec<String>>>;

pub async fn tcp(answer: Answer, tls: Option<TlsAcceptor>) -> (String, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let (seen, count) = (Seen::default(), Arc::<AtomicUsize>::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, count, tls) = (Arc::clone(&shared), Arc::clone(&count), tls.clone());
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, answer, &seen, &count).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, answer, &seen, &count).await;
                        }
                    }
                }
            });
        }
    });
    (format!("{scheme}://{address}"), seen)
}

pub fn unix(path: &std::path::Path, answer: Answer) -> Seen {
    let listener = UnixListener::bind(path).unwrap();
    let (seen, count) = (Seen::default(), AtomicUsize::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream, answer, &shared, &count).await;
        }
    });
    seen
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    seen: &Seen,
    count: &AtomicUsize,
) {
    let mut bytes = Vec::new();
    let text = loop {
        let mut more = [0; 4096];
        let Ok(length @ 1..) = stream.read(&mut more).await else { return };
        bytes.extend(&more[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let wanted = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= wanted.unwrap_or(0) {
            break text;
        }
    };
    let said = answer(count.fetch_add(1, Ordering::SeqCst) + 1, &text);
    seen.lock().unwrap().push(text);
    if said == "silence" {
        tokio::time::sleep(Duration::from_mins(10)).await;
    }
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}

pub fn reply(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n{body}", body.len())
}

/// Every call that ended, as `GET answered`.
#[derive(Debug, Default)]
pub struct Calls(Mutex<Vec<String>>);

impl Calls {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl CallObserver for Calls {
    fn called(&self, call: Call) {
        self.0.lock().unwrap().push(format!("{} {}", call.operation, call.outcome.as_str()));
    }
}

pub fn context() -> BuildContext {
    BuildContext::new("it".parse().unwrap())
}

pub fn secret(text: &str) -> SecretValue {
    Secret::new(text).reveal(&context()).unwrap()
}
