//! Records as a server with one record per call has them.

use netstead_model::{ChangeSign, Name, ProviderError, RecordData, RecordType};

use crate::dns::preconditions::ServerRecords;

/// A record on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The server's own id of it; empty if it has none.
    pub id: String,
    pub name: Name,
    pub ttl: u32,
    pub data: RecordData,
    /// Whether the server stands in front of what it leads to; none if it cannot.
    pub proxied: Option<bool>,
}

/// A record that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    pub name: Name,
    pub ttl: u32,
    pub data: RecordData,
    pub proxied: Option<bool>,
}

/// Records of a zone, and those that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub records: Vec<Record>,
    /// Sets with a value that our types cannot hold: they are never changed.
    pub opaque: Vec<(Name, RecordType)>,
    /// Names with records of types that we do not know.
    pub others: Vec<Name>,
    pub sign: Option<ChangeSign>,
}

/// Why a call about one record did not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The server does not want the record, and changed nothing.
    #[error("{reason}")]
    Rejected { reason: String },
    /// The record that was to be changed or deleted is not there.
    #[error("the record is not there any more")]
    Gone,
    #[error(transparent)]
    Failed(#[from] ProviderError),
}

impl NewRecord {
    /// The record as the server has it once it is made.
    pub fn made(&self, id: impl Into<String>) -> Record {
        let Self { name, ttl, data, proxied } = self.clone();
        Record { id: id.into(), name, ttl, data, proxied }
    }
}

impl Record {
    /// A new record that is like it.
    pub fn again(&self) -> NewRecord {
        let Self { name, ttl, data, proxied, .. } = self.clone();
        NewRecord { name, ttl, data, proxied }
    }
}

impl Listing {
    /// The part at names that are `wanted`.
    pub(super) fn filter(&self, wanted: impl Fn(&Name) -> bool) -> Self {
        Self {
            records: self.records.iter().filter(|record| wanted(&record.name)).cloned().collect(),
            opaque: self.opaque.iter().filter(|(name, _)| wanted(name)).cloned().collect(),
            others: self.others.iter().filter(|name| wanted(name)).cloned().collect(),
            sign: self.sign.clone(),
        }
    }

    /// The records as sets.
    pub(in crate::dns) fn found(&self) -> ServerRecords {
        let mut found = ServerRecords::default();
        for record in &self.records {
            found.add(record.name.clone(), record.data.kind(), record.ttl, record.data.clone());
            if let Some(set) = found.sets.get_mut(&(record.name.clone(), record.data.kind())) {
                set.proxied = set.proxied.or(record.proxied);
            }
        }
        found.opaque.extend(self.opaque.iter().cloned());
        found.others.extend(self.others.iter().cloned());
        found
    }
}
