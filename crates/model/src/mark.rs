//! Marks: ownership, mirrored on the server.
//!
//! The engine knows one form of them, a TXT set, in what it reads and in what it writes. A provider whose server keeps marks as
//! comments turns them into that form and back.
//!
//! The mark of `web.example.com` is a TXT record at `_netstead-<owner>.web.example.com`: type and a short digest for each
//! value that is ours, many in one string. A `*` is written `_wildcard`. Where that name cannot be had (the set is a
//! delegation, or the name is too long) it is `<digest of the name>._netstead-<owner>.<zone>`.

use crate::{Digest, Name, OwnerId, RecordData, RecordType};

const PREFIX: &str = "_netstead-";
const VERSION: &str = "netstead/1";
const WILDCARD: &str = "_wildcard";
const MOST_OF_STRING: usize = 255;
const MOST_OF_NAME: usize = 253;

/// The content of a mark: types and digests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark(Vec<(RecordType, String)>);

/// The name of the mark of `name` in `zone`. `delegation`: ours there is an NS set that is not the zone's own.
pub fn mark_name(owner: &OwnerId, name: &Name, zone: &Name, delegation: bool) -> String {
    let text = name.as_str();
    let inner = match text.strip_prefix("*.") {
        Some(rest) => format!("{PREFIX}{owner}.{WILDCARD}.{rest}"),
        None => format!("{PREFIX}{owner}.{text}"),
    };
    if delegation || inner.len() > MOST_OF_NAME {
        return format!("{}.{PREFIX}{owner}.{zone}", Digest::of([text]).short());
    }
    inner
}

/// Whether the mark of `name` stands right below it, whatever its zone.
pub fn is_below(owner: &OwnerId, name: &Name) -> bool {
    !name.is_wildcard() && mark_prefix_len(owner) + name.as_str().len() <= MOST_OF_NAME
}

/// How many characters the mark of such a name has before the name itself.
pub fn mark_prefix_len(owner: &OwnerId) -> usize {
    PREFIX.len() + owner.as_str().len() + 1
}

/// Whether records at `name` are marks, and whose.
pub fn is_mark(name: &str) -> Option<&str> {
    let mut labels = name.split('.');
    let first = labels.next()?;
    if let Some(owner) = first.strip_prefix(PREFIX) {
        return Some(owner);
    }
    let owner = labels.next()?.strip_prefix(PREFIX)?;
    let digest = first.len() == 12 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    digest.then_some(owner)
}

/// The digest of one value in a mark.
pub fn digest_of(name: &Name, data: &RecordData) -> String {
    digest(name, data).short()
}

fn digest(name: &Name, data: &RecordData) -> Digest {
    Digest::written(format_args!("{name}\0{}\0{data}\0", data.kind()))
}

/// Whether `mark` is what [`render`] makes of these values. The mark of one value is compared without being made.
pub fn is_mark_of<'a>(
    mark: &RecordData,
    name: &Name,
    values: impl IntoIterator<Item = &'a RecordData>,
) -> bool {
    let mut values = values.into_iter();
    let (first, second) = (values.next(), values.next());
    if let (Some(only), None, RecordData::Txt(strings)) = (first, second, mark)
        && let [string] = strings.as_slice()
    {
        let rest = string.strip_prefix(VERSION.as_bytes()).and_then(|rest| rest.strip_prefix(b" "));
        let rest = rest.and_then(|rest| rest.strip_prefix(only.kind().as_str().as_bytes()));
        let said = rest.and_then(|rest| rest.strip_prefix(b":"));
        return said.is_some_and(|said| said == digest(name, only).short_digits());
    }
    render(name, first.into_iter().chain(second).chain(values)).as_ref() == Some(mark)
}

/// The mark of `name` when these values there are ours; none when there are none.
pub fn render<'a>(name: &Name, values: impl IntoIterator<Item = &'a RecordData>) -> Option<RecordData> {
    render_tokens(values.into_iter().map(|data| (data.kind().as_str(), digest_of(name, data))).collect())
}

fn render_tokens(mut tokens: Vec<(&'static str, String)>) -> Option<RecordData> {
    tokens.sort();
    tokens.dedup();
    if tokens.is_empty() {
        return None;
    }
    let mut strings = Vec::with_capacity(1);
    let mut string = String::with_capacity(40);
    string.push_str(VERSION);
    for (kind, digest) in tokens {
        if string.len() + 2 + kind.len() + digest.len() > MOST_OF_STRING {
            strings.push(std::mem::take(&mut string).into_bytes());
        }
        if !string.is_empty() {
            string.push(' ');
        }
        string.extend([kind, ":", &digest]);
    }
    strings.push(string.into_bytes());
    Some(RecordData::Txt(strings))
}

impl Mark {
    /// Reads a mark; none if the value is something else.
    pub fn parse(data: &RecordData) -> Option<Self> {
        let RecordData::Txt(strings) = data else { return None };
        let mut tokens = Vec::new();
        for (index, string) in strings.iter().enumerate() {
            let mut words = std::str::from_utf8(string).ok()?.split(' ');
            if index == 0 && words.next() != Some(VERSION) {
                return None;
            }
            for word in words {
                let (kind, digest) = word.split_once(':')?;
                tokens.push((kind.parse().ok()?, digest.to_owned()));
            }
        }
        Some(Self(tokens))
    }

    /// A mark that says the same as all of these tokens.
    pub fn of_tokens(tokens: impl IntoIterator<Item = (RecordType, String)>) -> Self {
        Self(tokens.into_iter().collect())
    }

    /// Type and digest of each value that is the owner's.
    pub fn tokens(&self) -> &[(RecordType, String)] {
        &self.0
    }

    /// The mark in its usual form; none if it says nothing.
    pub fn to_data(&self) -> Option<RecordData> {
        render_tokens(self.0.iter().map(|(kind, digest)| (kind.as_str(), digest.clone())).collect())
    }

    /// The mark in a form that says the same and is not the usual one, so that the next plan puts it right. None if it says
    /// nothing.
    pub fn to_unusual_data(&self) -> Option<RecordData> {
        let (Some(RecordData::Txt(mut strings)), Some((kind, digest))) = (self.to_data(), self.0.first())
        else {
            return None;
        };
        strings.push(format!("{kind}:{digest}").into_bytes());
        Some(RecordData::Txt(strings))
    }

    /// Whether the mark says that this value is the owner's.
    pub fn covers(&self, name: &Name, data: &RecordData) -> bool {
        let kind = data.kind();
        let mut of_kind = self.0.iter().filter(|(other, _)| *other == kind).peekable();
        if of_kind.peek().is_none() {
            return false;
        }
        let digest = digest_of(name, data);
        of_kind.any(|(_, other)| *other == digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unusual_form_of_a_mark_says_the_same() {
        let name: Name = "web.example.com".parse().unwrap();
        let values = ["192.0.2.1", "192.0.2.2"].map(|text| RecordData::A(text.parse().unwrap()));
        let usual = render(&name, &values).unwrap();
        let mark = Mark::parse(&usual).unwrap();
        assert_eq!(mark.to_data(), Some(usual.clone()));
        let unusual = mark.to_unusual_data().unwrap();
        assert_ne!(unusual, usual);
        assert!(!is_mark_of(&unusual, &name, &values) && !is_mark_of(&unusual, &name, &values[..1]));
        let read = Mark::parse(&unusual).unwrap();
        assert!(values.iter().all(|value| read.covers(&name, value)));
        assert_eq!(read.to_data(), Some(usual));
        assert_eq!((Mark::default().to_data(), Mark::default().to_unusual_data()), (None, None));
    }
}
