//! Rewrites as AdGuard Home has them, and as records.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use netstead_model::{Name, RecordData, RecordType};
use serde::{Deserialize, Serialize};

use crate::dns::per_record::{Listing, NewRecord, Record, RecordError};

/// One rewrite. Two with the same domain and answer are equal to the server, whether they are enabled or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rewrite {
    pub(super) domain: String,
    pub(super) answer: String,
    /// Since 0.107.68; all older ones are enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) enabled: Option<bool>,
}

/// All rewrites of a server.
#[derive(Debug, Default)]
pub(super) struct Rewrites {
    /// How many are enabled of each domain and answer.
    enabled: BTreeMap<(String, String), usize>,
    disabled: BTreeSet<(String, String)>,
    /// Whether this version can disable one.
    can_disable: bool,
}

impl Rewrite {
    /// The rewrite behind a record, as the server spells it.
    pub(super) fn of(record: &Record) -> Self {
        Self { domain: record.name.to_string(), answer: record.id.clone(), enabled: None }
    }

    fn key(&self) -> (String, String) {
        (self.domain.clone(), self.answer.clone())
    }
}

impl From<Vec<Rewrite>> for Rewrites {
    fn from(listed: Vec<Rewrite>) -> Self {
        let mut rewrites = Self::default();
        for rewrite in listed {
            rewrites.can_disable |= rewrite.enabled.is_some();
            if rewrite.enabled == Some(false) {
                rewrites.disabled.insert(rewrite.key());
            } else {
                rewrites.added(&rewrite);
            }
        }
        rewrites
    }
}

impl Rewrites {
    /// The enabled ones as records. What is no name of the DNS (`*`, `ads*.example.net`) is left out.
    pub(super) fn listing(&self, ttl: u32) -> Listing {
        let mut listing = Listing::default();
        for (domain, answer) in self.enabled.keys() {
            let Some(name) =
                domain.parse::<Name>().ok().filter(|name| name.as_str() == domain && domain != "*")
            else {
                continue;
            };
            match data(answer) {
                Ok(data) => {
                    listing.records.push(Record { id: answer.clone(), name, ttl, data, proxied: None });
                }
                Err(kind) => listing.opaque.push((name, kind)),
            }
        }
        listing
    }

    /// A new record as a rewrite.
    pub(super) fn rewrite(&self, new: &NewRecord) -> Rewrite {
        let answer = match &new.data {
            RecordData::Cname(target) => target.to_string(),
            other => other.to_string(),
        };
        Rewrite { domain: new.name.to_string(), answer, enabled: self.can_disable.then_some(true) }
    }

    /// Refuses a rewrite that a person disabled: added once more, both would be deleted one day.
    pub(super) fn may_add(&self, rewrite: &Rewrite) -> Result<(), RecordError> {
        if !self.disabled.contains(&rewrite.key()) {
            return Ok(());
        }
        let Rewrite { domain, answer, .. } = rewrite;
        let reason =
            format!("the rewrite of `{domain}` to {answer} is there and disabled: enable or delete it there");
        Err(RecordError::Rejected { reason })
    }

    /// Refuses to delete a rewrite beside an equal one that is disabled: the server would delete both.
    pub(super) fn may_remove(&self, rewrite: &Rewrite) -> Result<(), RecordError> {
        if !self.disabled.contains(&rewrite.key()) {
            return Ok(());
        }
        let Rewrite { domain, answer, .. } = rewrite;
        let reason = format!(
            "the rewrite of `{domain}` to {answer} is there twice, once disabled, and the server deletes only both: \
             delete one of them there"
        );
        Err(RecordError::Rejected { reason })
    }

    pub(super) fn is_twice(&self, rewrite: &Rewrite) -> bool {
        self.enabled.get(&rewrite.key()).is_some_and(|count| *count > 1)
            || self.disabled.contains(&rewrite.key())
    }

    pub(super) fn added(&mut self, rewrite: &Rewrite) {
        *self.enabled.entry(rewrite.key()).or_default() += 1;
    }

    pub(super) fn removed(&mut self, rewrite: &Rewrite) {
        self.enabled.remove(&rewrite.key());
    }
}

/// The data behind an answer, or the type of one that is no record: `A` and `AAAA` mean that the real answer counts.
fn data(answer: &str) -> Result<RecordData, RecordType> {
    match (answer, answer.parse()) {
        ("A", _) => Err(RecordType::A),
        ("AAAA", _) => Err(RecordType::Aaaa),
        (_, Ok(IpAddr::V4(address))) => Ok(RecordData::A(address)),
        (_, Ok(IpAddr::V6(address))) => Ok(RecordData::Aaaa(address)),
        // An address with a zone: `fe80::1%eth0`.
        _ if answer.contains(':') => Err(RecordType::Aaaa),
        _ => answer.parse().map(RecordData::Cname).map_err(|_| RecordType::Cname),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_address_or_a_name() {
        let shown = |answer: &str| data(answer).map(|data| data.to_string());
        assert_eq!(shown("192.0.2.1"), Ok("192.0.2.1".into()));
        assert_eq!(shown("2001:DB8::1"), Ok("2001:db8::1".into()));
        assert_eq!(shown("::ffff:192.0.2.1"), Ok("::ffff:192.0.2.1".into()));
        assert_eq!(shown("Target.example.net"), Ok("target.example.net.".into()));
        assert_eq!(shown("A"), Err(RecordType::A));
        assert_eq!(shown("AAAA"), Err(RecordType::Aaaa));
        assert_eq!(shown("fe80::1%eth0"), Err(RecordType::Aaaa));
        assert_eq!(shown("not a name"), Err(RecordType::Cname));
    }

    #[test]
    fn what_cannot_be_a_record_is_never_ours_to_change() {
        let rewrite = |domain: &str, answer: &str, enabled| Rewrite {
            domain: domain.into(),
            answer: answer.into(),
            enabled,
        };
        let rewrites = Rewrites::from(vec![
            rewrite("*.lan.test", "192.0.2.1", Some(true)),
            rewrite("x.lan.test", "192.0.2.1", Some(true)),
            rewrite("x.lan.test", "192.0.2.1", Some(true)),
            rewrite("off.lan.test", "192.0.2.1", Some(false)),
            rewrite("real.lan.test", "AAAA", None),
            rewrite("*", "192.0.2.1", None),
            rewrite("ads*.lan.test", "192.0.2.1", None),
        ]);
        let listing = rewrites.listing(10);
        let names: Vec<&str> = listing.records.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(names, ["*.lan.test", "x.lan.test"]);
        assert_eq!(listing.opaque, [("real.lan.test".parse().unwrap(), RecordType::Aaaa)]);
    }
}
