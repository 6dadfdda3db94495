//! One connection: HTTP/1.1 with bodies of a known length.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write},
    thread,
};

use super::{
    HttpFault, HttpRequest, HttpResponse, Shared,
    message::{decoded, pairs},
};

pub(super) fn serve(stream: impl Read + Write, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read(&mut reader) {
        let fault = shared.fault(&request);
        let delay = shared.state().delay;
        if !delay.is_zero() && request.method != "GET" {
            thread::sleep(delay);
        }
        let response = match &fault {
            Some(HttpFault::Dropped) => break,
            Some(HttpFault::Silent) => {
                let _ = reader.read(&mut [0]);
                break;
            }
            Some(HttpFault::Answer(response)) => response.clone(),
            Some(HttpFault::Lost) => {
                (shared.answer)(&request);
                break;
            }
            Some(HttpFault::Half) | None => (shared.answer)(&request),
        };
        let closes = response.headers.iter().any(|(name, value)| name == "connection" && value == "close");
        let text = written(&response);
        let half = fault == Some(HttpFault::Half);
        let end = if half { text.len() / 2 } else { text.len() };
        let sent = reader.get_mut().write_all(text.as_bytes().get(..end).unwrap_or_default());
        if half || closes || sent.is_err() {
            break;
        }
    }
}

fn written(response: &HttpResponse) -> String {
    let HttpResponse { status, reason, headers, body } = response;
    let reason = reason.as_deref().unwrap_or(".");
    let headers =
        headers.iter().fold(String::new(), |text, (name, value)| text + name + ": " + value + "\r\n");
    let length = if *status == 204 { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("HTTP/1.1 {status} {reason}\r\n{length}{headers}\r\n{body}")
}

/// The next request; none at the end of the connection.
fn read(reader: &mut BufReader<impl Read>) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let (method, target) = (method.to_owned(), target.to_owned());
    let (path, query) = (decoded(path), pairs(query));
    let mut request = HttpRequest { method, path, target, query, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}
