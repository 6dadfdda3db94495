//! [`Marks`]: our keys in a field of an address, beside what people write there.
//!
//! `[netstead OWNER KEY]` is the mark of an object of the IPAM pass, `[netstead-claim KEY]` that of a claim out of a pool
//! backend. One address may have both. Every character that phpIPAM, PHP or a filter could change is written as `%XX`.

use std::fmt::Write as _;

use netstead_model::{ObjectKey, ObjectMark};
use netstead_settings::SettingsError;

use super::text::clean;

/// One mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Object(ObjectMark),
    Claim(String),
}

impl Mark {
    /// The mark as it stands in the field; also what a filter looks for.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Object(mark) => {
                format!("[netstead {} {}]", encoded(&mark.owner), encoded(&mark.key.to_string()))
            }
            Self::Claim(key) => format!("[netstead-claim {}]", encoded(key)),
        }
    }

    fn read(inside: &str) -> Option<Self> {
        if let Some(key) = inside.strip_prefix("netstead-claim ") {
            return Some(Self::Claim(decoded(key)?));
        }
        let (owner, key) = inside.strip_prefix("netstead ")?.split_once(' ')?;
        let key: ObjectKey = decoded(key)?.parse().ok()?;
        Some(Self::Object(ObjectMark { owner: decoded(owner)?, key }))
    }
}

/// The marks of a field, and the text around them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) object: Option<ObjectMark>,
    pub(crate) claim: Option<String>,
    /// The text of others, clean.
    pub(crate) rest: String,
}

impl Marks {
    /// Takes a field apart. Of two marks of one sort the first counts; the other stays a part of the text.
    pub(crate) fn read(field: &str) -> Self {
        let (mut marks, mut around, mut rest) = (Self::default(), String::new(), field);
        while let Some(at) = rest.find("[netstead") {
            let (before, from) = rest.split_at(at);
            around.push_str(before);
            let Some((inside, after)) = from.strip_prefix('[').and_then(|from| from.split_once(']')) else {
                rest = from;
                break;
            };
            match Mark::read(inside) {
                Some(Mark::Object(mark)) if marks.object.is_none() => marks.object = Some(mark),
                Some(Mark::Claim(key)) if marks.claim.is_none() => marks.claim = Some(key),
                _ => {
                    let _ = write!(around, "[{inside}]");
                }
            }
            around.push(' ');
            rest = after;
        }
        around.push_str(rest);
        marks.rest = clean(&around);
        marks
    }

    /// The field with its marks, and the text behind them.
    pub(crate) fn field(&self) -> String {
        let object = self.object.clone().map(|mark| Mark::Object(mark).text());
        let claim = self.claim.clone().map(|key| Mark::Claim(key).text());
        let rest = Some(self.rest.clone()).filter(|rest| !rest.is_empty());
        object.into_iter().chain(claim).chain(rest).collect::<Vec<_>>().join(" ")
    }
}

/// The field that has our marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyField(String);

impl KeyField {
    /// `note`, or a custom field.
    pub(crate) fn new(name: &str) -> Result<Self, SettingsError> {
        let custom = name.strip_prefix("custom_").is_some_and(|rest| !rest.is_empty());
        if name == "note" || custom {
            return Ok(Self(name.to_owned()));
        }
        Err(SettingsError::new("key_field", format!("`{name}` cannot have our keys"))
            .hint("write `note`, or a custom field of addresses as the API calls it: `custom_netstead`"))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_note(&self) -> bool {
        self.0 == "note"
    }

    /// The sentence for addresses that do not have the field.
    pub(crate) fn missing(&self) -> String {
        format!(
            "addresses have no field `{}` for our keys: add it in Administration, Custom fields, IP addresses, with the \
             type `text`, or leave out `key_field`",
            self.0
        )
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/@+".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(key: &str) -> ObjectMark {
        ObjectMark { owner: "blue".into(), key: key.parse().unwrap() }
    }

    #[test]
    fn marks_and_the_text_of_people_share_a_field() {
        let marks = Marks {
            object: Some(object("address:office:10.0.3.7@web <1> & co]")),
            claim: Some("own/lan/a b\"ä".into()),
            rest: "rack 7".into(),
        };
        let field = marks.field();
        assert_eq!(
            field,
            "[netstead blue address:office:10.0.3.7@web%20%3C1%3E%20%26%20co%5D] [netstead-claim own/lan/a%20b%22%C3%A4] rack 7"
        );
        assert_eq!(Marks::read(&field), marks);
        assert_eq!(Marks::read(&format!("before\n{field}")).rest, "before rack 7");
        assert_eq!(Marks::default().field(), "");
    }

    #[test]
    fn what_only_looks_like_a_mark_stays_a_text() {
        for text in ["[netstead]", "[netstead blue nothing]", "[netstead", "[netstead-claim %ZZ]", "[net]"] {
            assert_eq!(Marks::read(text), Marks { rest: text.into(), ..Marks::default() }, "{text}");
        }
        let twice = "[netstead-claim a] [netstead-claim b]";
        let read = Marks::read(twice);
        assert_eq!((read.claim.as_deref(), read.rest.as_str()), (Some("a"), "[netstead-claim b]"));
    }
}
