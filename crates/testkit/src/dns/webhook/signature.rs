//! The signature of Netstead's protocol, as a receiver would compute it.

use sha2::{Digest as _, Sha256};

use crate::fake_http::HttpRequest;

/// The size of SHA-256's block.
const BLOCK: usize = 64;
/// How many seconds a request may be old, or early.
const MOST_AGE: i64 = 300;

/// Why a request is not to be trusted; none if it is.
pub(crate) fn problem(secret: &str, request: &HttpRequest, base: &str, now: i64) -> Option<&'static str> {
    let time = request.header("netstead-timestamp").unwrap_or_default();
    let Ok(seconds) = time.parse::<i64>() else { return Some("there is no timestamp") };
    if (now - seconds).abs() > MOST_AGE {
        return Some("the timestamp is too old or too new");
    }
    let path = request.target.strip_prefix(base).unwrap_or(&request.target);
    let head = format!(
        "netstead-webhook-1\n{}\n{path}\n{time}\n{}\n",
        request.method,
        request.header("idempotency-key").unwrap_or_default()
    );
    let wanted = hmac(secret.as_bytes(), &[head.as_bytes(), &request.body].concat());
    let hex = wanted.iter().fold("sha256=".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    (request.header("netstead-signature") != Some(hex.as_str())).then_some("the signature is wrong")
}

/// HMAC with SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = if key.len() > BLOCK { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block.resize(BLOCK, 0);
    let pad = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second case of RFC 4231.
    #[test]
    fn hmac_is_that_of_the_standard() {
        let mac = hmac(b"Jefe", b"what do ya want for nothing?");
        let hex = mac.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
