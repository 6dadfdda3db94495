//! [`Ident`]: the short names that people give to pools, providers, sources and owners.

use std::str::FromStr;

use smol_str::SmolStr;

use crate::{
    ParseError,
    parse::{Piece, checked_text},
};

/// The name of a pool, a VRF, a source or a provider, or a part of a token's subject: 1 to 63 characters, a lower
/// case letter or digit and then those, `.`, `_` and `-`. Cheap to clone: up to 23 bytes lie in the value itself, so that
/// most clones count nothing, and every claim has several.
#[derive(Clone)]
pub struct Ident(SmolStr);

impl Ident {
    /// The most characters it can have.
    pub const MAX: usize = 63;

    /// The VRF of pools that name none.
    /// A word of the program itself, which must be a name.
    pub fn from_static(word: &'static str) -> Self {
        debug_assert!(word.parse::<Self>().is_ok(), "{word} is no name");
        Self(SmolStr::new_static(word))
    }

    pub fn default_vrf() -> Self {
        Self(SmolStr::new_static("default"))
    }
}

impl FromStr for Ident {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let piece = Piece::new("identifier", text);
        if text.is_empty() {
            return Err(piece.refuse("it is empty"));
        }
        let length = text.chars().count();
        if length > Self::MAX {
            return Err(piece.refuse(format!("it has {length} characters, the most is {}", Self::MAX)));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if let Some(wrong) = piece.find(|c| !plain(c) && !matches!(c, '.' | '_' | '-')) {
            let lower = text.to_ascii_lowercase();
            if wrong.text.bytes().all(|byte| byte.is_ascii_uppercase()) && lower.parse::<Self>().is_ok() {
                return Err(wrong.blame("", format!("is upper case; write `{lower}`")));
            }
            return Err(wrong.blame("", "is none of `a` to `z`, `0` to `9`, `.`, `_` and `-`"));
        }
        match piece.find(|_| true).filter(|first| !first.text.chars().all(plain)) {
            Some(first) => Err(first.blame("", "cannot begin it; a letter or digit can")),
            None => Ok(Self(text.into())),
        }
    }
}

checked_text!(Ident, "an identifier: lower case letters, digits, `.`, `_` and `-`");
