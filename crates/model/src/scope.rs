//! [`Scope`]: a part of a source that is seen, or not seen, as a whole.

use std::str::FromStr;

use smol_str::SmolStr;

use crate::{
    ParseError,
    parse::{Piece, checked_text},
};

/// The name of a part of a source: a Kubernetes kind in a cluster, a Docker host, a Proxmox cluster. A source that has no
/// parts has one scope, whose name is empty. At most 253 printable characters.
#[derive(Clone, Default)]
pub struct Scope(SmolStr);

impl Scope {
    /// The most characters it can have.
    pub const MAX: usize = 253;

    /// The scope of a source that has no parts.
    pub const WHOLE: Self = Self(SmolStr::new_static(""));

    /// Whether it stands for a source without parts.
    pub fn is_whole(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Scope {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let piece = Piece::new("scope", text);
        let length = text.chars().count();
        if length > Self::MAX {
            return Err(piece.refuse(format!("it has {length} characters, the most is {}", Self::MAX)));
        } else if text.trim().len() != text.len() {
            return Err(piece.refuse("it begins or ends with white space"));
        }
        match piece.find(char::is_control) {
            Some(wrong) => Err(wrong.blame("", "cannot be printed")),
            None => Ok(Self(text.into())),
        }
    }
}

checked_text!(Scope, "a scope of at most 253 printable characters");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_any_printable_text_and_may_be_empty() {
        for text in ["", "tcp://nas:2376", "pods@prod", "node 1"] {
            assert_eq!(text.parse::<Scope>().unwrap().as_str(), text);
        }
        for text in [" a", "a\n", "a\u{7}b", &"x".repeat(254)] {
            assert!(text.parse::<Scope>().is_err(), "{text:?}");
        }
        assert_eq!(serde_json::from_str::<Scope>("\"\"").unwrap(), Scope::WHOLE);
        assert!(Scope::default().is_whole());
    }
}
