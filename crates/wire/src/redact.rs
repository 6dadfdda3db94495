//! Secrets of ours, taken out of what a server says before people or logs see it.

use std::{borrow::Cow, fmt, fmt::Write as _, sync::Arc};

/// Stands where a secret stood.
const REDACTED: &str = "(redacted)";
/// A shorter text is found everywhere, and is no secret.
const SHORTEST: usize = 4;

/// Knows the secrets that are sent to one server.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Each secret in every form it may come back in, the longest first.
    forms: Arc<[String]>,
}

impl Redactor {
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        Self::default().with(secrets)
    }

    /// The same, knowing one secret more.
    #[must_use]
    pub fn and(&self, secret: &str) -> Self {
        self.with([secret])
    }

    fn with<'s>(&self, secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let new = secrets
            .into_iter()
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST)
            .flat_map(|secret| [secret.to_owned(), json_escaped(secret), percent_encoded(secret)]);
        let mut forms: Vec<String> = self.forms.iter().cloned().chain(new).collect();
        forms.sort_unstable_by(|one, other| (other.len(), other).cmp(&(one.len(), one)));
        forms.dedup();
        Self { forms: forms.into() }
    }

    /// The text without the secrets.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.forms.iter().fold(Cow::Borrowed(text), |text, form| {
            if text.contains(form.as_str()) {
                Cow::Owned(text.replace(form.as_str(), REDACTED))
            } else {
                text
            }
        })
    }

    /// The same for the bytes of an answer, which stay as they are unless they hold a secret.
    pub fn redact_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        let redacted = match self.redact(&String::from_utf8_lossy(&bytes)) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        };
        redacted.map_or(bytes, String::into_bytes)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

/// As it stands in a JSON string.
fn json_escaped(secret: &str) -> String {
    secret.replace('\\', "\\\\").replace('"', "\\\"").replace('/', "\\/")
}

/// As it stands in a URL.
fn percent_encoded(secret: &str) -> String {
    secret.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing into a String cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_taken_out_in_every_form() {
        let redactor = Redactor::new(["hunter2/+\"x", "abc"]).and("hunter2");
        for (said, shown) in [
            ("bad key hunter2!", "bad key (redacted)!"),
            ("hunter2/+\"x and hunter2", "(redacted) and (redacted)"),
            (r#"{"key":"hunter2\/+\"x"}"#, r#"{"key":"(redacted)"}"#),
            ("GET /?key=hunter2%2F%2B%22x", "GET /?key=(redacted)"),
            ("abc is too short to be one", "abc is too short to be one"),
        ] {
            assert_eq!(redactor.redact(said), shown);
        }
        assert_eq!(format!("{redactor:?}"), "Redactor");
    }

    #[test]
    fn bytes_without_a_secret_stay_as_they_are() {
        let redactor = Redactor::new(["hunter2"]);
        assert_eq!(redactor.redact_bytes(vec![0xff, b'a']), [0xff, b'a']);
        assert_eq!(redactor.redact_bytes(b"<hunter2>".to_vec()), b"<(redacted)>");
    }
}
