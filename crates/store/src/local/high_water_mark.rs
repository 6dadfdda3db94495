//! The high-water mark: a second record of how far the store got, outside of the database.
//!
//! A damaged log can end early without a complaint, as if its last write had been cut short, and old files can be put
//! in the place of newer ones. The database then believes in a lower revision than was once acknowledged; this file
//! knows better. It is written lazily, at most once a second and only with revisions that are durable, so it may be
//! behind the truth and is never ahead of it.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use netstead_wire::files;
use sha2::{Digest, Sha256};
use tracing::warn;

pub(super) const FILE: &str = "highwater";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HighWaterMark {
    /// Every commit up to this one was durable.
    pub(super) revision: u64,
    /// The store was closed in order: the tables of the database have all of it.
    pub(super) closed: bool,
    /// There is a log: the number of the mark is 2 then. It is 1 for a node of a cluster, and for a store from before there
    /// were logs.
    pub(super) log: bool,
}

impl HighWaterMark {
    /// `None` when there is no mark, or none that can be trusted: that says nothing about the database.
    pub(super) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(dir.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(error),
        };
        let mark = Self::parse(&text);
        if mark.is_none() {
            warn!(file = %dir.join(FILE).display(), "The high-water mark cannot be read and is made anew.");
        }
        Ok(mark)
    }

    /// Overwrites the mark in place: always the same few bytes of one sector, which works on a full disk too.
    pub(super) fn write(self, dir: &Path) -> io::Result<()> {
        let mut file = files::private().write(true).create(true).truncate(false).open(dir.join(FILE))?;
        file.write_all(self.line().as_bytes())?;
        file.sync_data()
    }

    fn line(self) -> String {
        let state = if self.closed { "closed" } else { "in use" };
        let format = if self.log { 2 } else { 1 };
        let fact = format!("netstead store {format}, revision {:020}, {state}", self.revision);
        format!("{fact}, {}\n", checksum(&fact))
    }

    fn parse(text: &str) -> Option<Self> {
        let (fact, sum) = text.lines().next()?.rsplit_once(", ")?;
        if sum != checksum(fact) {
            return None;
        }
        let (format, rest) = fact.strip_prefix("netstead store ")?.split_once(", revision ")?;
        let log = match format {
            "1" => false,
            "2" => true,
            _ => return None,
        };
        let (revision, state) = rest.split_once(", ")?;
        Some(Self { revision: revision.parse().ok()?, closed: state == "closed", log })
    }
}

fn checksum(fact: &str) -> String {
    let digest = Sha256::digest(fact.as_bytes());
    let short = digest.first_chunk::<4>().copied().unwrap_or_default();
    format!("{:08x}", u32::from_be_bytes(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_always_as_long() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(HighWaterMark::read(dir.path()).unwrap(), None);
        for mark in [
            HighWaterMark { revision: 0, closed: false, log: false },
            HighWaterMark { revision: u64::MAX, closed: true, log: true },
            HighWaterMark { revision: 17, closed: false, log: true },
        ] {
            mark.write(dir.path()).unwrap();
            assert_eq!(HighWaterMark::read(dir.path()).unwrap(), Some(mark));
            assert_eq!(fs::metadata(dir.path().join(FILE)).unwrap().len(), 66);
        }
    }

    #[test]
    fn a_mark_that_was_touched_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        HighWaterMark { revision: 17, closed: false, log: true }.write(dir.path()).unwrap();
        let file = dir.path().join(FILE);
        let text = fs::read_to_string(&file).unwrap();
        for broken in
            [text.replace("17", "18"), text.replace("in use", "closed"), String::new(), "\u{1}".into()]
        {
            fs::write(&file, broken).unwrap();
            assert_eq!(HighWaterMark::read(dir.path()).unwrap(), None);
        }
        fs::write(&file, [0xff, 0xfe, 0x80]).unwrap();
        assert_eq!(HighWaterMark::read(dir.path()).unwrap(), None);
    }
}
