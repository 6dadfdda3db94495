//! external-dns' marks: TXT with `heritage=external-dns,external-dns/owner=<id>,external-dns/resource=<kind>/<ns>/<name>`.
//!
//! Its name is that of the record with the type in front of the first label (`a-app.example.com`), between the prefix and
//! suffix external-dns was told; old versions wrote no type, so that the mark may stand at the name itself. Encrypted
//! marks are read with their key.

mod key;

use netstead_model::{Name, RecordData, RecordType};

pub use self::key::MarkKey;

/// How external-dns was told to name its marks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// `--txt-prefix`; may have `%{record_type}`.
    pub prefix: String,
    /// `--txt-suffix`; may have `%{record_type}`.
    pub suffix: String,
    /// `--txt-wildcard-replacement`.
    pub wildcard: String,
    /// `--txt-encrypt-aes-key`.
    pub key: Option<MarkKey>,
}

/// One mark of external-dns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub name: Name,
    /// Missing in old marks, which mean every type at the name.
    pub kind: Option<RecordType>,
    pub owner: String,
    pub resource: Option<String>,
}

const TYPES: [&str; 8] = ["a", "aaaa", "cname", "txt", "srv", "ns", "mx", "ptr"];
const TEMPLATE: &str = "%{record_type}";

impl Mark {
    /// Reads a mark: one reading for each name and type it may mean. Which of them is meant shows in what exists.
    pub fn parse(at: &Name, data: &RecordData, naming: &Naming) -> Vec<Self> {
        let RecordData::Txt(strings) = data else { return Vec::new() };
        let Ok(text) = String::from_utf8(strings.concat()) else { return Vec::new() };
        let (mut heritage, mut owner, mut resource) = (false, None, None);
        let text = text.trim_matches('"');
        let decrypted = naming.key.as_ref().and_then(|key| key.decrypt(text));
        for field in decrypted.as_deref().unwrap_or(text).split(',') {
            match field.split_once('=') {
                Some(("heritage", value)) => heritage = value == "external-dns",
                Some(("external-dns/owner", value)) => owner = Some(value.to_owned()),
                Some(("external-dns/resource", value)) => resource = Some(value.to_owned()),
                _ => {}
            }
        }
        let Some(owner) = owner.filter(|_| heritage) else { return Vec::new() };
        let readings = readings(at, naming);
        readings
            .into_iter()
            .map(|(name, kind)| Self { name, kind, owner: owner.clone(), resource: resource.clone() })
            .collect()
    }

    /// Whether the value, at the mark's name, is external-dns'. It owns whole sets.
    pub fn covers(&self, data: &RecordData) -> bool {
        match self.kind {
            Some(kind) => data.kind() == kind,
            None => matches!(data.kind(), RecordType::A | RecordType::Aaaa | RecordType::Cname),
        }
    }
}

fn readings(at: &Name, naming: &Naming) -> Vec<(Name, Option<RecordType>)> {
    let mut found = Vec::new();
    let templated = naming.prefix.contains(TEMPLATE) || naming.suffix.contains(TEMPLATE);
    for kind in TYPES.iter().map(|kind| Some(*kind)).chain([None]) {
        let typed = kind.unwrap_or_default();
        let prefix = naming.prefix.replace(TEMPLATE, typed);
        let suffix = naming.suffix.replace(TEMPLATE, typed);
        let Some(rest) = at.as_str().strip_prefix(prefix.to_ascii_lowercase().as_str()) else { continue };
        let rest = match kind {
            Some(kind) if !templated => match rest.strip_prefix(kind).and_then(|rest| rest.strip_prefix('-'))
            {
                Some(rest) => rest,
                None => continue,
            },
            _ => rest,
        };
        let (label, parent) = rest.split_once('.').unwrap_or((rest, ""));
        let Some(label) = label.strip_suffix(suffix.to_ascii_lowercase().as_str()) else { continue };
        let label = if !naming.wildcard.is_empty() && label == naming.wildcard { "*" } else { label };
        let Ok(name) = [label, parent].join(".").trim_matches('.').parse() else { continue };
        found.push((name, kind.and_then(|kind| kind.parse().ok())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "heritage=external-dns,external-dns/owner=blue,external-dns/resource=ingress/web/app";

    fn readings_of(at: &str, naming: &Naming) -> Vec<String> {
        let marks = Mark::parse(&at.parse().unwrap(), &RecordData::txt(TEXT), naming);
        marks.iter().map(|mark| format!("{} {:?} {}", mark.name, mark.kind, mark.owner)).collect()
    }

    #[test]
    fn the_type_stands_before_the_first_label() {
        let found = readings_of("a-app.example.com", &Naming::default());
        assert_eq!(found, ["app.example.com Some(A) blue", "a-app.example.com None blue"]);
    }

    #[test]
    fn prefix_suffix_and_template_are_taken_off() {
        let naming =
            Naming { prefix: "own.%{record_type}.".into(), suffix: "-x".into(), ..Naming::default() };
        assert_eq!(readings_of("own.cname.app-x.example.com", &naming), ["app.example.com Some(Cname) blue"]);
        let naming = Naming { wildcard: "any".into(), ..Naming::default() };
        assert!(readings_of("a-any.example.com", &naming).contains(&"*.example.com Some(A) blue".into()));
    }

    #[test]
    fn what_is_no_mark_is_left() {
        let at = "a-app.example.com".parse().unwrap();
        for text in ["heritage=dnsweaver", "heritage=external-dns", "external-dns/owner=blue", "v=spf1"] {
            assert_eq!(Mark::parse(&at, &RecordData::txt(text), &Naming::default()), []);
        }
    }
}
