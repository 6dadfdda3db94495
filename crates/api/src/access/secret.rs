//! A token as its holder writes it.

use std::fmt;

use rand::{Rng, distr::Alphanumeric};

/// Kinds of secrets. Each begins with letters of its own, so that a scanner for leaked secrets can find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Token,
    Session,
    Link,
}

impl Kind {
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Token => "nst_",
            Self::Session => "nss_",
            Self::Link => "nsl_",
        }
    }
}

const ID_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 40;

/// `nst_<id>_<secret>`. It never shows itself; [`Secret::expose`] is for the one moment its holder gets it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one: 40 letters and digits are 238 bits.
    pub(super) fn generate() -> Self {
        Self::generate_as(Kind::Token)
    }

    pub(super) fn generate_as(kind: Kind) -> Self {
        let mut random = rand::rng();
        let mut letters =
            |count| -> String { (0..count).map(|_| char::from(random.sample(Alphanumeric))).collect() };
        let id = letters(ID_LENGTH).to_ascii_lowercase();
        Self(format!("{}{id}_{}", kind.prefix(), letters(SECRET_LENGTH)))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The id and the secret part of a presented token.
    pub(super) fn split(text: &str) -> Option<(&str, &str)> {
        Self::split_as(Kind::Token, text)
    }

    pub(super) fn split_as(kind: Kind, text: &str) -> Option<(&str, &str)> {
        let (id, secret) = text.strip_prefix(kind.prefix())?.split_once('_')?;
        let plain = |part: &str| {
            !part.is_empty() && part.len() <= 128 && part.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        (plain(id) && plain(secret)).then_some((id, secret))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_splits_into_its_parts_and_never_shows_itself() {
        let secret = Secret::generate();
        let (id, rest) = Secret::split(secret.expose()).unwrap();
        assert_eq!((id.len(), rest.len()), (12, 40));
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(Secret::generate(), secret);
    }

    #[test]
    fn what_is_no_token_does_not_split() {
        for text in
            ["", "nst_", "nst_a", "nst__b", "nst_a_", "nst_a_b_c", "nst_a/../b_c", "abc_a_b", "nst_ä_b"]
        {
            assert_eq!(Secret::split(text), None, "{text}");
        }
    }
}
