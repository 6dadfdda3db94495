//! The key of external-dns' encrypted marks.
//!
//! Such a mark is base64 of a nonce and what AES-256-GCM makes of the compressed text.

use std::{fmt, io::Read as _};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use data_encoding::{BASE64, BASE64URL};
use flate2::read::GzDecoder;

const LENGTH: usize = 32;
/// The most of a text, in bytes: a TXT record has less than 64 KiB.
const MOST: u64 = 64 << 10;

/// The value of external-dns' `--txt-encrypt-aes-key`.
#[derive(Clone, PartialEq, Eq)]
pub struct MarkKey([u8; LENGTH]);

impl fmt::Debug for MarkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MarkKey(…)")
    }
}

impl MarkKey {
    /// 32 bytes, as they are or in base64.
    ///
    /// # Errors
    ///
    /// Why it is no key. The text is not part of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let decoded = || BASE64.decode(text.as_bytes()).or_else(|_| BASE64URL.decode(text.as_bytes())).ok();
        let bytes = if text.len() == LENGTH { Some(text.as_bytes().to_vec()) } else { decoded() };
        let bytes = bytes.and_then(|bytes| <[u8; LENGTH]>::try_from(bytes).ok());
        bytes.map(Self).ok_or("it has to be 32 bytes long, as it is or in base64")
    }

    /// The text of a mark that was encrypted with this key.
    pub(super) fn decrypt(&self, mark: &str) -> Option<String> {
        let mut sealed = BASE64.decode(mark.as_bytes()).ok()?;
        let nonce: [u8; NONCE_LEN] = sealed.get(..NONCE_LEN)?.try_into().ok()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &self.0).ok()?);
        let sealed = sealed.get_mut(NONCE_LEN..)?;
        let opened = key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::empty(), sealed).ok()?;
        let mut text = Vec::new();
        // What is not compressed is the text itself.
        if GzDecoder::new(&*opened).take(MOST).read_to_end(&mut text).is_err() {
            text = opened.to_vec();
        }
        String::from_utf8(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    /// Made by external-dns' rules with Go's own library: gzip, AES-256-GCM, base64.
    const MARK: &str = "bm9uY2Utbm9uY2UhQQ/SdISqafTVPP6m8BNnl4PZ0NsYslzh1ShFg4+UVckALivUSNnYbJR+F9ES0cW5d5KPxcqZMru2WFjgDjzqhsWfOm/3o5WiIKOHZDOHfuJvGthQJLzOTsc9YoaHO+jk3JUdXCiHuTk=";

    #[test]
    fn a_mark_that_external_dns_encrypted_is_read() {
        let text = "heritage=external-dns,external-dns/owner=blue,external-dns/resource=ingress/web/app";
        assert_eq!(MarkKey::parse(KEY).unwrap().decrypt(MARK).unwrap(), text);
        for key in [BASE64.encode(KEY.as_bytes()), BASE64URL.encode(KEY.as_bytes())] {
            assert_eq!(MarkKey::parse(&key).unwrap().decrypt(MARK).unwrap(), text);
        }
    }

    #[test]
    fn what_is_encrypted_otherwise_is_no_text() {
        let other = MarkKey::parse("fedcba98765432100123456789abcdef").unwrap();
        assert_eq!(other.decrypt(MARK), None);
        let own = MarkKey::parse(KEY).unwrap();
        for text in ["", "heritage=external-dns", "AAAA", &MARK[4..], &MARK[..MARK.len() - 8]] {
            assert_eq!(own.decrypt(text), None, "{text}");
        }
        assert!(MarkKey::parse("too short").is_err());
        assert_eq!(format!("{own:?}"), "MarkKey(…)");
    }
}
