//! A group: the commits that share one flush to disk.

use std::collections::HashMap;

use super::engine::{DiskWrite, disk_key, disk_value};
use crate::{Commit, Key, Version, Write};

/// Decides commits one after the other as if each were durable before the next, and collects what all of
/// them together write. Nothing it says may leave before that is on the disk, a refusal as little as the
/// rest: it may rest on a commit of the same group.
#[derive(Debug)]
pub(crate) struct Group {
    revision: u64,
    /// The writes so far, in order; a key that is written again keeps its place.
    writes: Vec<DiskWrite>,
    /// The position of each key in `writes`. A single commit names each key once and no other commit looks at its writes, so
    /// this is only made when a second commit comes.
    places: HashMap<Vec<u8>, usize>,
}

/// The outcome of a commit, once its group is durable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Landed(Version),
    Refused(Key),
}

impl Group {
    /// A group that follows the commit with number `revision`.
    pub(crate) fn after(revision: u64) -> Self {
        Self { revision, writes: Vec::new(), places: HashMap::new() }
    }

    /// The commits that follow are numbered from here on.
    #[cfg(feature = "raft")]
    pub(crate) fn number_from(&mut self, revision: u64) {
        self.revision = revision;
    }

    /// Decides `commit`, which is valid. `standing` says which version a key, as it lies on disk, had before this
    /// group; when it fails the commit has not happened.
    pub(crate) fn decide<E>(
        &mut self,
        commit: &Commit,
        mut standing: impl FnMut(&[u8]) -> Result<Option<Version>, E>,
    ) -> Result<Decision, E> {
        let lonely = self.writes.is_empty();
        if !lonely && self.places.is_empty() {
            self.places = self.writes.iter().enumerate().map(|(n, (key, _))| (key.clone(), n)).collect();
        }
        let refusal = commit.refusal(|key| {
            let key = disk_key(key);
            match self.places.get(&key).and_then(|place| self.writes.get(*place)) {
                Some((_, content)) => Ok(content.as_deref().and_then(version)),
                None => standing(&key),
            }
        })?;
        if let Some(key) = refusal {
            return Ok(Decision::Refused(key.clone()));
        }
        if commit.writes.is_empty() {
            return Ok(Decision::Landed(Version(self.revision)));
        }
        self.revision += 1;
        let version = Version(self.revision);
        for write in &commit.writes {
            let (key, content) = match write {
                Write::Put(key, value) => (disk_key(key), Some(disk_value(version, value))),
                Write::Delete(key) => (disk_key(key), None),
            };
            if lonely {
                self.writes.push((key, content));
            } else {
                self.write_again(key, content);
            }
        }
        Ok(Decision::Landed(version))
    }

    /// The last write of a key wins.
    fn write_again(&mut self, key: Vec<u8>, content: Option<Vec<u8>>) {
        if let Some((_, former)) = self.places.get(&key).and_then(|place| self.writes.get_mut(*place)) {
            *former = content;
        } else {
            self.places.insert(key.clone(), self.writes.len());
            self.writes.push((key, content));
        }
    }

    /// The number of the last commit that wrote something.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// One write per key: fjall does not order two writes to a key in one batch.
    pub(crate) fn into_writes(self) -> Vec<DiskWrite> {
        self.writes
    }
}

/// The version in front of what lies under a key.
pub(super) fn version(content: &[u8]) -> Option<Version> {
    content.first_chunk::<8>().map(|bytes| Version(u64::from_be_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::Condition;

    fn decide(group: &mut Group, commit: &Commit) -> Decision {
        let standing = |key: &[u8]| Ok::<_, Infallible>((key == b"dold").then_some(Version(3)));
        group.decide(commit, standing).unwrap()
    }

    #[test]
    fn a_commit_sees_those_before_it_in_its_group() {
        let mut group = Group::after(10);
        let absent = || Commit::new().when(Condition::Absent(b"new".to_vec())).put("new", "1");
        assert_eq!(decide(&mut group, &absent()), Decision::Landed(Version(11)));
        assert_eq!(decide(&mut group, &absent()), Decision::Refused(b"new".to_vec()));
        let replace = Commit::new()
            .when(Condition::Version(b"new".to_vec(), Version(11)))
            .when(Condition::Version(b"old".to_vec(), Version(3)))
            .delete("new")
            .delete("old");
        assert_eq!(decide(&mut group, &replace), Decision::Landed(Version(12)));
        assert_eq!(decide(&mut group, &replace), Decision::Refused(b"new".to_vec()));
        assert_eq!(decide(&mut group, &absent()), Decision::Landed(Version(13)));
        assert_eq!(decide(&mut group, &Commit::new()), Decision::Landed(Version(13)));

        assert_eq!(group.revision(), 13);
        assert_eq!(
            group.into_writes(),
            [(b"dnew".to_vec(), Some(disk_value(Version(13), b"1"))), (b"dold".to_vec(), None)]
        );
    }

    #[test]
    fn a_commit_whose_conditions_cannot_be_read_leaves_nothing() {
        let mut group = Group::after(10);
        let commit = Commit::new().when(Condition::Absent(b"a".to_vec())).put("b", "1");
        assert_eq!(group.decide(&commit, |_| Err("broken")), Err("broken"));
        assert_eq!(group.revision(), 10);
        assert_eq!(group.into_writes(), []);
    }
}
