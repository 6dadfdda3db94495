//! [`ParseError`], and a piece of text that knows its position: shared by all parsers of this crate.

use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr};

use serde::de;

/// How much of somebody's input a message repeats.
const SHOWN: usize = 80;

/// Why a text is not what it should be.
///
/// It reads "`10.0.3.999` is not an IPv4 address: the part `999` at character 8 is over 255". Long inputs are
/// shortened and control characters escaped when it is displayed, so it is safe in a log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}` is not {} {what}: {reason}", shown(input), article(what))]
pub struct ParseError {
    /// The expected thing, without an article: `MAC address`.
    pub what: &'static str,
    /// The complete input.
    pub input: String,
    /// Byte offset of the trouble in `input`, where one place is to blame; `reason` names it for people, as a
    /// character counted from 1.
    pub at: Option<usize>,
    /// The rest of the sentence.
    pub reason: String,
}

impl ParseError {
    /// An error about `input`. If one place is to blame, its byte offset `at` adds "(at character 3)" to `reason`.
    pub fn new(what: &'static str, input: &str, at: Option<usize>, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        if let Some(at) = at {
            reason = format!("{reason} (at character {})", character(input, at));
        }
        Self { what, input: input.into(), at, reason }
    }
}

/// Which character, counted from 1, stands at a byte offset.
fn character(input: &str, at: usize) -> usize {
    input.char_indices().take_while(|(start, _)| *start < at).count() + 1
}

fn article(what: &str) -> &'static str {
    if what.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) { "an" } else { "a" }
}

/// `text` as a message may repeat it: at most 80 characters, nothing that moves a cursor.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let long = text.chars().nth(SHOWN).is_some();
    if !long && text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().take(if long { SHOWN - 1 } else { SHOWN });
    let mut out: String = kept.flat_map(harmless).collect();
    if long {
        out.push('…');
    }
    Cow::Owned(out)
}

fn harmless(c: char) -> impl Iterator<Item = char> {
    let keep = c.is_ascii_graphic();
    keep.then_some(c).into_iter().chain((!keep).then(|| c.escape_debug()).into_iter().flatten())
}

/// A stretch of an input. Parsers cut pieces from pieces, and an error about the smallest still names its place
/// in the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    what: &'static str,
    whole: &'a str,
    start: usize,
    pub(crate) text: &'a str,
}

impl<'a> Piece<'a> {
    /// All of `whole`, which should become a `what`.
    pub(crate) fn new(what: &'static str, whole: &'a str) -> Self {
        Self { what, whole, start: 0, text: whole }
    }

    /// The piece `text`, which must be a slice of this one.
    pub(crate) fn cut(self, text: &'a str) -> Self {
        let start = text.as_ptr().addr().saturating_sub(self.whole.as_ptr().addr());
        Self { start, text, ..self }
    }

    pub(crate) fn split(self, separators: &'a [char]) -> impl Iterator<Item = Self> {
        self.text.split(separators).map(move |text| self.cut(text))
    }

    /// The first character that is `wrong`.
    pub(crate) fn find(self, wrong: impl Fn(char) -> bool) -> Option<Self> {
        let at = self.text.find(wrong)?;
        self.slice(at, self.text.get(at..)?.chars().next()?.len_utf8())
    }

    /// The `len` bytes at `at`.
    pub(crate) fn slice(self, at: usize, len: usize) -> Option<Self> {
        self.text.get(at..at.checked_add(len)?).map(|text| self.cut(text))
    }

    /// An error about the input as a whole.
    pub(crate) fn refuse(self, reason: impl Into<String>) -> ParseError {
        ParseError::new(self.what, self.whole, None, reason)
    }

    /// An error about this piece: "{subject} `{piece}` at character {n} {problem}", or "it {problem}" if the piece
    /// is all there is.
    pub(crate) fn blame(self, subject: &str, problem: impl fmt::Display) -> ParseError {
        if self.whole.is_empty() {
            return self.refuse("it is empty");
        } else if self.text == self.whole && self.text.chars().nth(1).is_some() {
            return self.refuse(format!("it {problem}"));
        }
        let mut reason = String::from(subject);
        if !self.text.is_empty() {
            if !reason.is_empty() {
                reason.push(' ');
            }
            reason = reason + "`" + &shown(self.text) + "`";
        }
        let reason = format!("{reason} at character {} {problem}", character(self.whole, self.start));
        ParseError { what: self.what, input: self.whole.into(), at: Some(self.start), reason }
    }
}

/// Reads any type from its text, with the error of its parser.
pub(crate) struct TextVisitor<T>(pub(crate) &'static str, PhantomData<fn() -> T>);

impl<T> TextVisitor<T> {
    pub(crate) fn new(expecting: &'static str) -> Self {
        Self(expecting, PhantomData)
    }
}

impl<T: FromStr<Err = ParseError>> de::Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Serialises a type by its `Display` and `FromStr`, so that no way in goes round the parser.
macro_rules! serde_as_text {
    ($type:ty, $expecting:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(crate::parse::TextVisitor::new($expecting))
            }
        }
    };
}
pub(crate) use serde_as_text;

/// Implements a checked text that is shared or inline: it is cheap to clone and reads like a `str`.
macro_rules! checked_text {
    ($type:ident, $expecting:literal) => {
        impl $type {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($type), "({})"), self.0)
            }
        }

        // Most comparisons are of a text with a clone of itself: those need not look at it.
        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                std::ptr::eq(self.as_str(), other.as_str()) || self.0 == other.0
            }
        }

        impl Eq for $type {}

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                if std::ptr::eq(self.as_str(), other.as_str()) {
                    return std::cmp::Ordering::Equal;
                }
                self.0.cmp(&other.0)
            }
        }

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl TryFrom<&str> for $type {
            type Error = crate::ParseError;

            fn try_from(text: &str) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        crate::parse::serde_as_text!($type, $expecting);
    };
}
pub(crate) use checked_text;
