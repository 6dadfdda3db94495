//! [`DatabaseError`]: what went wrong in fjall or in the files around it, and the text for people.

use std::{any::Any, error::Error, io, path::Path};

use super::{high_water_mark, log::Log, shared_state::DatabaseKind};
use crate::StoreError;

/// Why fjall or the files around it did not do what they should.
#[derive(Debug)]
pub(super) enum DatabaseError {
    Fjall(fjall::Error),
    Io(io::Error),
    /// The disk has no room to open the database again.
    NoRoom {
        needed: u64,
    },
    /// fjall panicked: it asserts where files do not fit together.
    Panicked(String),
    /// The database opens, and is not the one that was written.
    Damaged(String),
    /// Reading failed at this key, or behind it.
    At {
        key: Vec<u8>,
        cause: Box<DatabaseError>,
    },
    /// The database ends before a commit that was once there.
    CutShort {
        found: u64,
        known: u64,
    },
    /// It is not a store of its own.
    OfACluster,
}

impl From<fjall::Error> for DatabaseError {
    fn from(error: fjall::Error) -> Self {
        Self::Fjall(error)
    }
}

impl From<io::Error> for DatabaseError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl DatabaseError {
    pub(super) fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(text.unwrap_or("no reason given").to_owned())
    }

    /// The same, and where it happened.
    pub(super) fn at(self, key: &[u8]) -> Self {
        Self::At { key: key.to_vec(), cause: Box::new(self) }
    }

    /// The key at which reading failed, or the last one before; empty if none is known.
    pub(super) fn place(&self) -> &[u8] {
        if let Self::At { key, .. } = self { key } else { &[] }
    }

    /// The operating system's error at the bottom of it, if that is what it is.
    fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) => Some(error),
            Self::At { cause, .. } => cause.io(),
            Self::Fjall(error) => {
                let mut cause: Option<&(dyn Error + 'static)> = Some(error);
                while let Some(error) = cause {
                    if let Some(io) = error.downcast_ref() {
                        return Some(io);
                    }
                    cause = error.source();
                }
                None
            }
            Self::NoRoom { .. }
            | Self::Panicked(_)
            | Self::Damaged(_)
            | Self::CutShort { .. }
            | Self::OfACluster => None,
        }
    }

    /// Whether an earlier write failed in fjall's background, which keeps the cause to itself.
    pub(super) fn hides_its_cause(&self) -> bool {
        matches!(self, Self::Fjall(fjall::Error::Poisoned) | Self::Panicked(_))
    }

    /// Whether the system was asked for something that a whole file would have allowed.
    pub(super) fn is_invalid_input(&self) -> bool {
        self.io().is_some_and(|error| error.kind() == io::ErrorKind::InvalidInput)
    }

    /// Says, for people, why `dir` cannot be written to.
    pub(super) fn reason(&self, dir: &Path) -> String {
        if let Self::At { cause, .. } = self {
            return cause.reason(dir);
        }
        let dir = dir.display();
        if let Some(error) = self.io() {
            return match error.kind() {
                io::ErrorKind::StorageFull => format!("the disk of {dir} is full"),
                io::ErrorKind::QuotaExceeded => format!("the disk quota of {dir} is used up"),
                io::ErrorKind::ReadOnlyFilesystem => format!("the file system of {dir} is read-only"),
                _ => format!("reading or writing {dir} failed: {error}"),
            };
        }
        match self {
            Self::Fjall(fjall::Error::Poisoned) => {
                format!("a write in the background to {dir} failed; the log says why")
            }
            Self::Fjall(fjall::Error::Locked) => format!("{dir} is still in use"),
            Self::Fjall(fjall::Error::Storage(fjall::LsmError::ChecksumMismatch { .. })) => {
                format!("the files in {dir} are not as they were written (a checksum does not match)")
            }
            Self::Fjall(error) => format!("the files in {dir} are not as they were written ({error:?})"),
            Self::NoRoom { needed } => {
                let megabytes = needed.div_ceil(1 << 20);
                format!("the disk of {dir} is full; {megabytes} MiB must be free for the store to go on")
            }
            Self::Panicked(reason) => format!("the files in {dir} cannot be understood ({reason})"),
            Self::Io(error) => format!("reading or writing {dir} failed: {error}"),
            Self::Damaged(reason) => reason.clone(),
            Self::At { .. } => String::new(),
            Self::CutShort { found, known } => format!(
                "{dir} ends at commit {found}, and commit {known} was once there: the log was cut short or old files were \
                 put in its place"
            ),
            Self::OfACluster => format!(
                "{dir} holds a node of a cluster, not a store of its own; say `type = \"raft\"`, or name another directory"
            ),
        }
    }

    /// Whether what is on the disk is not what was written there.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::CutShort { .. } | Self::Panicked(_) => true,
            Self::At { cause, .. } => cause.is_damage(),
            Self::NoRoom { .. }
            | Self::OfACluster
            | Self::Io(_)
            | Self::Fjall(fjall::Error::Poisoned | fjall::Error::Locked) => false,
            Self::Fjall(_) => self.io().is_none_or(|error| {
                matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
                )
            }),
        }
    }

    /// As [`DatabaseError::reason`]; of damage also what to do, which depends on whose database it is.
    pub(super) fn advised(&self, dir: &Path, kind: DatabaseKind) -> String {
        let reason = self.reason(dir);
        match (self, kind) {
            _ if !self.is_damage() => reason,
            (_, DatabaseKind::Node) => format!(
                "{reason}; the other nodes have the same data: move {} away and start this node again to join as a new one",
                dir.display()
            ),
            (Self::CutShort { .. }, DatabaseKind::Own) => format!(
                "{reason}; restore a backup. If there is none, delete {} and {} to go on without the missing commits: \
                 addresses that they gave out may then be given out again",
                dir.join(high_water_mark::FILE).display(),
                Log::path(dir).display()
            ),
            (_, DatabaseKind::Own) => format!("{reason}; restore a backup"),
        }
    }

    /// As the answer to a call that did nothing.
    pub(super) fn into_error(self, dir: &Path, kind: DatabaseKind) -> StoreError {
        let reason = self.advised(dir, kind);
        if self.is_damage() { StoreError::Damaged { reason } } else { StoreError::Unavailable { reason } }
    }

    /// As the answer to a read of an open store: what it says of damage is where that is. What to do depends on what
    /// else can be read, so the rooms above say it.
    pub(super) fn into_read_error(self, dir: &Path) -> StoreError {
        let reason = self.reason(dir);
        if !self.is_damage() {
            return StoreError::Unavailable { reason };
        }
        let place = String::from_utf8_lossy(self.place());
        StoreError::Damaged {
            reason: if place.is_empty() { reason } else { format!("near `{place}` {reason}") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_however_deep_it_hides() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let dir = Path::new("/data");
        for trouble in [
            DatabaseError::Io(full()),
            DatabaseError::Fjall(fjall::Error::Io(full())),
            DatabaseError::Fjall(fjall::Error::Storage(full().into())),
        ] {
            assert_eq!(trouble.reason(dir), "the disk of /data is full");
            assert!(matches!(trouble.into_error(dir, DatabaseKind::Own), StoreError::Unavailable { .. }));
        }
    }

    #[test]
    fn what_cannot_be_read_is_damage() {
        for trouble in [
            DatabaseError::Fjall(fjall::Error::InvalidTrailer),
            DatabaseError::Fjall(fjall::Error::Unrecoverable),
            DatabaseError::Fjall(fjall::Error::Io(io::ErrorKind::NotFound.into())),
            DatabaseError::Panicked("should exist".into()),
        ] {
            let error = trouble.into_error(Path::new("/data"), DatabaseKind::Own);
            assert!(matches!(&error, StoreError::Damaged { reason } if reason.ends_with("restore a backup")));
        }
    }

    #[test]
    fn what_to_do_about_a_log_that_was_cut_depends_on_whose_it_is() {
        let told = |kind| DatabaseError::CutShort { found: 4, known: 7 }.advised(Path::new("/data"), kind);
        let both = "/data ends at commit 4, and commit 7 was once there: the log was cut short or old files were put in its \
                    place; ";
        assert_eq!(
            told(DatabaseKind::Own),
            format!(
                "{both}restore a backup. If there is none, delete /data/highwater and /data/log to go on without the \
                 missing commits: addresses that they gave out may then be given out again"
            )
        );
        assert_eq!(
            told(DatabaseKind::Node),
            format!(
                "{both}the other nodes have the same data: move /data away and start this node again to join as a new one"
            )
        );
    }
}
