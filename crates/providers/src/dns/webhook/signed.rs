//! [`SignedHttp`]: requests that carry a signature over everything in them.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use aws_lc_rs::hmac;
use data_encoding::HEXLOWER;
use netstead_model::{Clock, ProviderError};
use netstead_settings::SecretValue;
use netstead_wire::http::{Effect, Http, HttpError, Method, Reply};

use crate::{BuildContext, dns::refused_login::RefusedLogin};

/// The first line of what is signed.
const VERSION: &str = "netstead-webhook-1";

pub(crate) struct SignedHttp {
    http: Http,
    key: hmac::Key,
    clock: Arc<dyn Clock>,
    refused: RefusedLogin,
}

impl SignedHttp {
    pub(crate) fn new(http: Http, secret: &SecretValue, context: &BuildContext) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        let clock = Arc::clone(&context.clock);
        Self { http, key, refused: RefusedLogin::new(Arc::clone(&clock)), clock }
    }

    pub(crate) fn server(&self) -> &str {
        self.http.server()
    }

    /// A read. `path` lies below the address of the receiver.
    pub(crate) async fn get(&self, path: &str) -> Result<Reply, ProviderError> {
        self.send(Method::GET, path, None).await
    }

    /// A change, with a key by which the receiver recognises a repetition.
    pub(crate) async fn post(&self, path: &str, body: Vec<u8>) -> Result<Reply, ProviderError> {
        self.send(Method::POST, path, Some(body)).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Vec<u8>>) -> Result<Reply, ProviderError> {
        self.refused.check()?;
        let time = self.clock.wall().as_second().to_string();
        let repeat_key = body.as_ref().map(|_| new_key()).unwrap_or_default();
        let content = body.as_deref().unwrap_or_default();
        let signature = sign(&self.key, [method.as_str(), path, &time, &repeat_key], content);
        let mut request = self.http.request(method, path);
        request = request
            .header("netstead-timestamp", &time)
            .header("netstead-signature", &format!("sha256={signature}"));
        if let Some(body) = body {
            request = request
                .header("idempotency-key", &repeat_key)
                .body("application/json", body)
                // The receiver carries out one key once.
                .effect(Effect::Idempotent);
        }
        self.refused.note(request.send().await.map_err(ProviderError::from))
    }

    pub(crate) fn malformed(&self, reason: &str) -> ProviderError {
        HttpError::Malformed { server: self.server().to_owned(), reason: reason.to_owned() }.into()
    }
}

/// The signature over the lines and the body, in hexadecimal.
fn sign(key: &hmac::Key, lines: [&str; 4], body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(VERSION.as_bytes());
    for line in lines {
        context.update(b"\n");
        context.update(line.as_bytes());
    }
    context.update(b"\n");
    context.update(body);
    HEXLOWER.encode(context.sign().as_ref())
}

/// 128 random bits.
fn new_key() -> String {
    let random = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", random(), random())
}

impl std::fmt::Debug for SignedHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SignedHttp({})", self.server())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in `docs/reference/webhook.md`, made with `openssl dgst -sha256 -hmac`.
    #[test]
    fn the_documented_example_has_this_signature() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"correct horse battery staple");
        let lines = ["GET", "/v1/zones", "1790000000", ""];
        let document = include_str!("../../../../../docs/reference/webhook.md");
        let signature = sign(&key, lines, b"");
        assert!(document.contains(&format!("Netstead-Signature: sha256={signature}\n")), "{signature}");
    }

    #[test]
    fn no_two_keys_are_alike() {
        assert_ne!(new_key(), new_key());
        assert_eq!(new_key().len(), 32);
    }
}
