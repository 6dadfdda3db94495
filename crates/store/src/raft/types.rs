//! The types of the log's entries and of the members, for openraft.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::snapshot_transfer::SnapshotData;
use crate::{Commit, Condition, Version, Write};

/// The id of a node. Drawn at random with its data directory, so that no two nodes ever have the same, not even one after
/// the other on the same machine.
pub type NodeId = u64;

openraft::declare_raft_types!(
    /// The types openraft works with.
    pub(super) Types:
        D = Proposal,
        R = Vec<Outcome>,
        NodeId = NodeId,
        Node = Member,
        Entry = openraft::Entry<Types>,
        SnapshotData = SnapshotData,
);

pub(super) type Raft = openraft::Raft<Types>;
pub(super) type LogId = openraft::LogId<NodeId>;
pub(super) type Vote = openraft::Vote<NodeId>;
pub(super) type Entry = openraft::Entry<Types>;
pub(super) type Membership = openraft::StoredMembership<NodeId, Member>;
pub(super) type SnapshotMeta = openraft::SnapshotMeta<NodeId, Member>;
pub(super) type Metrics = openraft::RaftMetrics<NodeId, Member>;
pub(super) type StorageError = openraft::StorageError<NodeId>;

/// The entry of one node in the cluster. Later versions may add fields; each needs a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    /// Where other nodes reach it: `host:port`.
    pub address: String,
    /// Where people and the other nodes reach its API, if it has one.
    pub api: String,
    /// Its name, for people.
    pub name: String,
    /// The newest protocol between nodes it speaks.
    pub protocol: u32,
    /// The newest format of stored values it can write.
    pub format: u32,
    /// The release it runs.
    pub version: String,
}

/// One entry of the log: commits that share its way to the disks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Proposal {
    /// Drawn by who proposes it, to know it again.
    pub(super) id: u64,
    pub(super) commits: Vec<Proposed>,
}

/// One commit on its way. The id is drawn by who wants it: an answer that is lost on the way back may still be learned from
/// the node's own log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Proposed {
    pub(super) id: u64,
    #[serde(rename = "if", default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<LogCondition>,
    #[serde(rename = "do", default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<LogWrite>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum LogCondition {
    #[serde(rename = "a")]
    Absent(ByteBuf),
    #[serde(rename = "v")]
    Version(ByteBuf, u64),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum LogWrite {
    #[serde(rename = "p")]
    Put(ByteBuf, ByteBuf),
    #[serde(rename = "d")]
    Delete(ByteBuf),
}

impl Proposed {
    pub(super) fn new(id: u64, commit: Commit) -> Self {
        let conditions = commit.conditions.into_iter().map(|condition| match condition {
            Condition::Absent(key) => LogCondition::Absent(key.into()),
            Condition::Version(key, version) => LogCondition::Version(key.into(), version.0),
        });
        let writes = commit.writes.into_iter().map(|write| match write {
            Write::Put(key, value) => LogWrite::Put(key.into(), value.into()),
            Write::Delete(key) => LogWrite::Delete(key.into()),
        });
        Self { id, conditions: conditions.collect(), writes: writes.collect() }
    }

    pub(super) fn into_commit(self) -> Commit {
        let conditions = self.conditions.into_iter().map(|condition| match condition {
            LogCondition::Absent(key) => Condition::Absent(key.into_vec()),
            LogCondition::Version(key, version) => Condition::Version(key.into_vec(), Version(version)),
        });
        let writes = self.writes.into_iter().map(|write| match write {
            LogWrite::Put(key, value) => Write::Put(key.into_vec(), value.into_vec()),
            LogWrite::Delete(key) => Write::Delete(key.into_vec()),
        });
        Commit { conditions: conditions.collect(), writes: writes.collect() }
    }

    /// About what it weighs.
    pub(super) fn bytes(&self) -> usize {
        let conditions = self.conditions.iter().map(|condition| match condition {
            LogCondition::Absent(key) | LogCondition::Version(key, _) => key.len() + 16,
        });
        let writes = self.writes.iter().map(|write| match write {
            LogWrite::Put(key, value) => key.len() + value.len() + 16,
            LogWrite::Delete(key) => key.len() + 16,
        });
        conditions.sum::<usize>() + writes.sum::<usize>() + 32
    }
}

/// The outcome of one commit when its entry was applied; the same on every node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    #[serde(rename = "l")]
    Landed(u64),
    #[serde(rename = "r")]
    Refused(ByteBuf),
}

/// Most commits in one entry; versions have room for as many.
pub(super) const MAX_COMMITS: usize = 500;

/// Bits of a version below the index of its entry.
const POSITION_BITS: u32 = 10;

/// The number the commits of the entry at `index` are counted from.
pub(super) fn first_version(index: u64) -> u64 {
    index << POSITION_BITS
}

/// The id of a node as people see it.
pub fn hex(id: NodeId) -> String {
    format!("{id:016x}")
}

/// Anything that is stored or sent: compact, with names, so that fields can be added.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Into memory, and of types that have only strings as names: this does not fail.
    let _ = value.serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_struct_map());
    bytes
}

pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, rmp_serde::decode::Error> {
    T::deserialize(&mut rmp_serde::Deserializer::from_read_ref(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_comes_back_as_it_was() {
        let commit = Commit::new()
            .when(Condition::Absent(b"a".to_vec()))
            .when(Condition::Version(b"b".to_vec(), Version(u64::MAX)))
            .put([0xff, 0], "value")
            .delete("c");
        let proposal = Proposal { id: 7, commits: vec![Proposed::new(u64::MAX, commit.clone())] };
        let bytes = encode(&proposal);
        assert!(bytes.len() < 80, "{} bytes", bytes.len());
        let mut back: Proposal = decode(&bytes).unwrap();
        assert_eq!(back, proposal);
        assert_eq!(back.commits.remove(0).into_commit(), commit);
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        #[derive(Serialize)]
        struct Later {
            id: u64,
            commits: Vec<Proposed>,
            mood: &'static str,
        }
        let back: Proposal = decode(&encode(&Later { id: 3, commits: Vec::new(), mood: "good" })).unwrap();
        assert_eq!(back, Proposal { id: 3, commits: Vec::new() });
        let member: Member =
            decode(&encode(&std::collections::BTreeMap::from([("address", "a:1")]))).unwrap();
        assert_eq!(member, Member { address: "a:1".into(), ..Member::default() });
    }
}
