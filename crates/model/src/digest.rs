//! Short hashes.

use std::{
    fmt::{self, Write},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use crate::ParseError;

/// The first bytes of a SHA-256, as people type it: 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(u64);

impl Digest {
    /// Of parts that cannot run into each other.
    pub fn of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.as_ref());
            hash.update([0]);
        }
        Self::first(hash)
    }

    /// Of a text that need not be put together first; a `\0` after each part makes it equal to [`Digest::of`].
    pub fn written(text: fmt::Arguments<'_>) -> Self {
        let mut hash = Hashing(Sha256::new());
        // Hashing cannot fail.
        let _ = hash.write_fmt(text);
        Self::first(hash.0)
    }

    fn first(hash: Sha256) -> Self {
        let mut first = [0; 8];
        first.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(u64::from_be_bytes(first))
    }

    /// Its first 12 digits, for marks.
    pub fn short(self) -> String {
        self.short_digits().map(char::from).into_iter().collect()
    }

    pub fn short_digits(self) -> [u8; 12] {
        let mut rest = self.0 >> 16;
        let mut digits = [b'0'; 12];
        for digit in digits.iter_mut().rev() {
            let value = u8::try_from(rest & 15).unwrap_or_default();
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
            rest >>= 4;
        }
        digits
    }
}

struct Hashing(Sha256);

impl Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016x}", self.0))
    }
}

impl FromStr for Digest {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("hash", text, None, "it has 16 hexadecimal digits");
        if text.len() != 16 || text.starts_with('+') {
            return Err(wrong());
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| wrong())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
