//! A question over HTTP, in as few bytes as it takes.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

/// The status and the JSON of `path` on a port of this machine; `headers` are whole lines. None if nothing answers.
pub(crate) fn try_get(port: u16, path: &str, headers: &[&str]) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let host = format!("Host: 127.0.0.1:{port}");
    let lines = [&[host.as_str()], headers].concat().join("\r\n");
    write!(stream, "GET {path} HTTP/1.0\r\n{lines}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).unwrap_or_else(|_| Value::from(body))))
}

pub(crate) fn get(port: u16, path: &str, headers: &[&str]) -> (u16, Value) {
    try_get(port, path, headers).unwrap_or_else(|| panic!("nothing answers on port {port}"))
}
