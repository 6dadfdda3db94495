//! [`Template`]: the text of a field, with words of a workload in it.

use std::fmt::Write as _;

use netstead_model::{IpamAddress, IpamInterface, IpamSubject};

/// The words that a text may have in braces.
const WORDS: &[&str] = &[
    "name",
    "kind",
    "source",
    "id",
    "dns_name",
    "mac",
    "interface",
    "vlan",
    "claim",
    "node",
    "cluster",
    "status",
    "cpus",
    "memory",
    "disk",
    "comments",
    "tags",
];

/// A text with words in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Word(&'static str),
}

pub(super) fn hint() -> String {
    format!("the words are {}", WORDS.iter().map(|word| format!("{{{word}}}")).collect::<Vec<_>>().join(", "))
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, from)) = rest.split_once('{') {
            let (word, after) = from.split_once('}').ok_or_else(|| "a `{` without a `}`".to_owned())?;
            let known = WORDS.iter().find(|one| **one == word);
            let word = *known.ok_or_else(|| format!("there is no word `{{{word}}}`"))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Word(word));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text for an address. It is empty where all of its words are.
    pub(super) fn fill(
        &self,
        subject: &IpamSubject,
        interface: Option<&IpamInterface>,
        at: &IpamAddress,
    ) -> String {
        let (mut text, mut words, mut filled) = (String::new(), 0, 0);
        for piece in &self.0 {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Word(word) => {
                    words += 1;
                    let value = value(word, subject, interface, at);
                    filled += usize::from(!value.is_empty());
                    let _ = write!(text, "{value}");
                }
            }
        }
        if words > 0 && filled == 0 { String::new() } else { text }
    }
}

fn value(word: &str, subject: &IpamSubject, interface: Option<&IpamInterface>, at: &IpamAddress) -> String {
    let facts = &subject.facts;
    let number = |value: Option<u64>| value.map(|value| value.to_string());
    let found = match word {
        "name" if subject.kind == "claim" => at.claim.clone(),
        "name" => Some(subject.name.clone()),
        "kind" => Some(subject.kind.clone()),
        "source" => Some(subject.source.to_string()),
        "id" => Some(subject.id.as_str().to_owned()),
        "dns_name" => at.dns_name.as_ref().map(|name| name.as_str().to_owned()),
        "mac" => interface.and_then(|interface| interface.mac).map(|mac| mac.to_string()),
        "interface" => interface.map(|interface| interface.name.clone()),
        "vlan" => interface.and_then(|interface| interface.vlan).map(|vlan| vlan.to_string()),
        "claim" => at.claim.clone(),
        "node" => facts.node.clone(),
        "cluster" => facts.cluster.clone(),
        "status" => facts.status.clone(),
        "cpus" => number(facts.cpus.map(u64::from)),
        "memory" => number(facts.memory),
        "disk" => number(facts.disk),
        "comments" => facts.comments.clone(),
        "tags" => Some(subject.tags.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
        _ => None,
    };
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_and_a_text_without_any_value_is_empty() {
        let subject = IpamSubject {
            source: "pve".parse().unwrap(),
            id: "101".parse().unwrap(),
            kind: "vm".into(),
            name: "web".into(),
            tags: ["b".to_owned(), "a".to_owned()].into(),
            facts: netstead_model::Facts { node: Some("n1".into()), ..netstead_model::Facts::default() },
            interfaces: Vec::new(),
            addresses: Vec::new(),
        };
        let address = "10.0.0.1".parse().unwrap();
        let at = IpamAddress { address, dns_name: None, claim: None, reserved: false };
        for (template, wanted) in [
            ("{kind} {name} on {node}", "vm web on n1"),
            ("Team Blue", "Team Blue"),
            ("{cluster}/{vlan}", ""),
            ("{cluster}/{node}", "/n1"),
            ("{tags}", "a, b"),
        ] {
            assert_eq!(Template::parse(template).unwrap().fill(&subject, None, &at), wanted, "{template}");
        }
        assert_eq!(Template::parse("{rack}"), Err("there is no word `{rack}`".to_owned()));
        assert_eq!(Template::parse("a {name"), Err("a `{` without a `}`".to_owned()));
    }
}
