//! A proxy before a real server, with all the failures of a [`FakeHttp`].

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::{FakeHttp, HttpRequest, HttpResponse};

const PATIENCE: Duration = Duration::from_secs(30);
/// Headers that belong to a connection.
const OF_CONNECTION: [&str; 5] =
    ["host", "content-length", "connection", "accept-encoding", "transfer-encoding"];

impl FakeHttp {
    /// Starts a proxy before `server`. `edit` sees each request first and may change it.
    ///
    /// # Panics
    ///
    /// If loopback has no free port.
    pub fn before(server: SocketAddr, edit: impl Fn(&mut HttpRequest) + Send + Sync + 'static) -> Self {
        Self::start(move |request| {
            let mut request = request.clone();
            edit(&mut request);
            pass_on(server, &request).unwrap_or_else(|error| HttpResponse::new(502, error.to_string()))
        })
    }
}

/// The status that a server answers with to a GET without credentials.
pub(crate) fn status_of(server: SocketAddr, path: &str) -> io::Result<u16> {
    let (method, path) = ("GET".to_owned(), path.to_owned());
    let (target, query, headers, body) = (path.clone(), Vec::new(), Vec::new(), Vec::new());
    Ok(pass_on(server, &HttpRequest { method, path, target, query, headers, body })?.status)
}

/// Sends the request as one of HTTP 1.0, so that the answer ends with the connection.
fn pass_on(server: SocketAddr, request: &HttpRequest) -> io::Result<HttpResponse> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{} {} HTTP/1.0\r\nhost: {server}\r\n", request.method, request.target);
    for (name, value) in request.headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str())) {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.extend(["content-length: ", &request.body.len().to_string(), "\r\n\r\n"]);
    stream.write_all(head.as_bytes())?;
    stream.write_all(&request.body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    taken_apart(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::other("the server's answer is no HTTP"))
}

fn taken_apart(answer: &str) -> Option<HttpResponse> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut response = HttpResponse::new(status, body);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = name.to_ascii_lowercase();
        if !OF_CONNECTION.contains(&name.as_str()) {
            response = response.header(&name, value.trim());
        }
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_through_with_its_headers_and_an_edited_request_arrives() {
        let server = FakeHttp::start(|request| {
            let secret = request.header("authorization").unwrap_or("none");
            HttpResponse::json(
                201,
                format!("{} {} {secret} {}", request.method, request.target, request.text()),
            )
            .header("connection", "close")
        });
        let address = server.url().trim_start_matches("http://").parse().unwrap();
        let proxy =
            FakeHttp::before(address, |request| request.headers.retain(|(name, _)| name != "authorization"));
        let mut stream = TcpStream::connect(proxy.url().trim_start_matches("http://")).unwrap();
        let request =
            "POST /a?b=c HTTP/1.1\r\nauthorization: x\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(
            answer.starts_with("HTTP/1.1 201") && answer.contains("content-type: application/json"),
            "{answer}"
        );
        assert!(answer.ends_with("POST /a?b=c none hi"), "{answer}");
    }
}
