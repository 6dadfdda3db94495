//! Repairs what a check found.

use netstead_store::{Commit, Condition, MAX_CONDITIONS, Store, StoreError, Version, Write};

use super::CheckReport;
use crate::{
    load::RESTORING_KEY,
    migrate::SEALED_KEY,
    record::{self, HEAD_KEY, Head},
};

/// Problems mended by one commit; three conditions are about the store as a whole.
const AT_ONCE: usize = MAX_CONDITIONS - 3;

/// A change that repairs a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// The head is raised to this number.
    Head { seq: u64 },
    /// A key is written anew or goes, if it is still as it was found.
    Key { write: Write, found: Condition },
}

impl Repair {
    pub(super) fn key(write: Write, found: Version) -> Self {
        let found = Condition::Version(write.key().clone(), found);
        Self::Key { write, found }
    }
}

/// Why not everything was mended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// Another process writes to the store: what the check saw is out of date.
    #[error("the store changed meanwhile, {}", match repaired { 0 => "nothing was repaired".to_owned(), 1 => "only 1 problem was repaired".to_owned(), n => format!("only {n} problems were repaired") })]
    Changed { repaired: usize },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Mends what can be mended, if the store is still as `report` found it, and says how many problems that were.
///
/// The head is replaced with every commit, on condition that it is still the one that was read: whatever a leader
/// commits meanwhile makes this refuse, and a leader that is silent meanwhile reads everything anew with its next commit.
pub async fn repair(store: &dyn Store, report: &CheckReport) -> Result<usize, RepairError> {
    let Some((mut head, mut version)) = report.head.clone() else { return Ok(0) };
    let repairs: Vec<&Repair> =
        report.problems.iter().filter_map(|problem| problem.repair.as_ref()).collect();
    let mut repaired = 0;
    for group in repairs.chunks(AT_ONCE) {
        let commit = commit_of(group, &mut head, version);
        version = match store.commit(commit).await {
            Ok(committed) => committed.version,
            Err(StoreError::Refused { .. }) => return Err(RepairError::Changed { repaired }),
            Err(error) => return Err(error.into()),
        };
        repaired += group.len();
    }
    Ok(repaired)
}

fn commit_of(group: &[&Repair], head: &mut Head, version: Version) -> Commit {
    let mut commit = Commit::new()
        .when(Condition::Version(HEAD_KEY.into(), version))
        .when(Condition::Absent(RESTORING_KEY.to_vec()))
        .when(Condition::Absent(SEALED_KEY.to_vec()));
    for repair in group {
        match repair {
            Repair::Head { seq } => head.seq = head.seq.max(*seq),
            Repair::Key { write, found } => {
                commit.conditions.push(found.clone());
                commit.writes.push(write.clone());
            }
        }
    }
    // As with every commit that brings no event.
    head.seq = head.seq.saturating_add(1);
    head.batch = rand::random();
    commit.put(HEAD_KEY, record::encode(head))
}
