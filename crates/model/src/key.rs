//! [`Key`]: the name of a claim, chosen by its owner.

use std::str::FromStr;

use smol_str::SmolStr;

use crate::{
    ParseError,
    parse::{Piece, checked_text},
};

/// The key of a claim in its pool: 1 to 253 printable characters, without white space at either end. A `/` is fine,
/// so a Kubernetes `namespace/name` is a key as it stands. Cheap to clone, and up to 23 bytes lie in the value itself: a
/// claim has one, and there may be millions.
#[derive(Clone)]
pub struct Key(SmolStr);

impl Key {
    /// The most characters it can have.
    pub const MAX: usize = 253;

    /// Whether it is `.` or `..`, which no path of a URL can hold: clients take it for a step in the path, also when it is
    /// written as `%2E`. What is new gets no such key; what has one is still read, and can be released.
    pub fn is_path_step(&self) -> bool {
        matches!(self.as_str(), "." | "..")
    }
}

impl FromStr for Key {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let piece = Piece::new("key", text);
        let length = text.chars().count();
        if text.is_empty() {
            return Err(piece.refuse("it is empty"));
        } else if length > Self::MAX {
            return Err(piece.refuse(format!("it has {length} characters, the most is {}", Self::MAX)));
        } else if text.trim().len() != text.len() {
            return Err(piece.refuse("it begins or ends with white space"));
        }
        match piece.find(unprintable) {
            Some(wrong) => Err(wrong.blame("", "cannot be printed")),
            None => Ok(Self(text.into())),
        }
    }
}

/// Control characters, line ends, and what changes the direction or hides: two keys that look alike should be alike.
fn unprintable(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..)
}

checked_text!(Key, "a key of 1 to 253 printable characters");
