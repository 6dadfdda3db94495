//! Puts many objects into the etcd of an API server at once: through the API they would take minutes.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);
/// etcd takes no more writes in one transaction.
const AT_ONCE: usize = 128;

/// Writes objects under the keys that the API server has for them. It sees them by its own watch of etcd.
pub(super) fn put(etcd: SocketAddr, objects: &[(String, Value)]) -> io::Result<()> {
    for chunk in objects.chunks(AT_ONCE) {
        let puts = chunk.iter().map(|(key, object)| {
            let (key, value) = (base64(key.as_bytes()), base64(object.to_string().as_bytes()));
            json!({ "requestPut": { "key": key, "value": value } })
        });
        let body = json!({ "success": puts.collect::<Vec<_>>() }).to_string();
        let answer = post(etcd, "/v3/kv/txn", &body)?;
        if !answer.contains("\"succeeded\":true") {
            return Err(io::Error::other(format!("etcd answers {answer}")));
        }
    }
    Ok(())
}

fn post(etcd: SocketAddr, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&etcd, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {etcd}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let all =
            three.iter().fold(0_u32, |all, byte| (all << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = usize::try_from((all >> (18 - 6 * place)) & 63).unwrap_or_default();
            let digit = ALPHABET.get(digit).copied().unwrap_or(b'=');
            out.push(char::from(if place <= three.len() { digit } else { b'=' }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_its_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("~~~?", "fn5+Pw=="),
        ] {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
    }
}
