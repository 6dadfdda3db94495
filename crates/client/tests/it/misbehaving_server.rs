//! A server that answers from a script, one entry per request.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// The behaviour of the server for one request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Reads it and hangs up without a word.
    HangUp,
    /// Reads it and never answers.
    Silence,
    Answer(u16, String),
    /// Takes its time, then answers with this problem.
    Late(Duration, u16, &'static str),
    /// Says that it answers with this many bytes.
    Long(u64),
    /// Sends this as an event stream, then hangs up.
    Stream(String),
}

pub(crate) fn problem(status: u16, slug: &str) -> Act {
    let body = serde_json::json!({
        "type": format!("urn:netstead:{slug}"), "title": slug, "status": status, "detail": format!("because of {slug}"),
    });
    Act::Answer(status, body.to_string())
}

/// Plays `script` and keeps the heads of all requests.
#[derive(Debug)]
pub(crate) struct Misbehaving {
    pub(crate) url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Misbehaving {
    pub(crate) async fn playing(script: impl Into<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        let mut script = script.into().into_iter();
        tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let head = read_head(&mut socket).await;
                kept.lock().unwrap().push(head);
                let mut act = script.next().expect("more requests than the script has");
                if let Act::Late(time, status, slug) = act {
                    tokio::time::sleep(time).await;
                    act = problem(status, slug);
                }
                match act {
                    Act::HangUp | Act::Late(..) => drop(socket),
                    Act::Silence => silent.push(socket),
                    Act::Long(bytes) => {
                        let head = format!("HTTP/1.1 200 X\r\ncontent-length: {bytes}\r\n\r\n");
                        let _ = socket.write_all(head.as_bytes()).await;
                        silent.push(socket);
                    }
                    Act::Answer(status, body) => answer(socket, status, "application/json", &body).await,
                    Act::Stream(body) => answer(socket, 200, "text/event-stream", &body).await,
                }
            }
        });
        Self { url, heads }
    }

    /// The requests so far, each as its first line and headers.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    pub(crate) fn first_lines(&self) -> Vec<String> {
        self.heads().iter().map(|head| head.lines().next().unwrap().to_owned()).collect()
    }
}

async fn read_head(socket: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = socket.read(&mut buffer).await.unwrap_or(0);
        seen.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&seen).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(n > 0, "half a request: {text}");
            continue;
        };
        let mut length = head
            .lines()
            .filter_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.next_back().unwrap_or(0) {
            return head.to_owned();
        }
    }
}

async fn answer(mut socket: TcpStream, status: u16, kind: &str, body: &str) {
    let length = if kind == "text/event-stream" {
        String::new()
    } else {
        format!("content-length: {}\r\n", body.len())
    };
    let text =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n{length}\r\n{body}");
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.shutdown().await;
}
