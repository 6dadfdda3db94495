//! The hash of a token's secret, which is all that is stored of it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    /// The hash of nothing anybody has.
    pub(super) const NONE: Self = Self([0; 32]);

    pub(super) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Compares in a time that does not depend on where the two differ.
    pub(super) fn matches(&self, other: &Self) -> bool {
        let differences = self.0.iter().zip(&other.0).fold(0, |all, (one, two)| all | (one ^ two));
        std::hint::black_box(differences) == 0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(…)")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.map(|byte| format!("{byte:02x}")).concat())
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return Err(de::Error::custom("a SHA-256 has 64 hexadecimal digits"));
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * place..2 * place + 2).filter(|d| !d.starts_with('+'));
            let parsed = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            *byte = parsed.ok_or_else(|| de::Error::custom("a SHA-256 is hexadecimal"))?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_survives_json_and_refuses_what_is_none() {
        let digest = Digest::of("secret");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, "\"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"");
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        for wrong in ["", "2bb8", &"g".repeat(64), &"é".repeat(32)] {
            assert!(serde_json::from_str::<Digest>(&format!("\"{wrong}\"")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_same_digest_matches() {
        assert!(Digest::of("a").matches(&Digest::of("a")));
        assert!(!Digest::of("a").matches(&Digest::of("b")));
        assert!(!Digest::of("").matches(&Digest::NONE));
    }
}
