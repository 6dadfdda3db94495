//! Reading files that something may be writing at this moment.
//!
//! A file is opened once and looked at twice: what stayed the same in between is believed. The second look is at the
//! opened file, not at its name, so a file that another one replaced by a rename still counts: a rename gives a whole
//! file, however often it happens. A file whose last line has no end may be half written, and is whole only once it
//! stayed the same for longer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::Clock;
use netstead_wire::files;
use tokio::time::sleep;

/// A file must look the same for this long before it is believed: an editor may be in the middle of it.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);
/// A file whose last line has no end must look the same for this long.
const UNFINISHED: Duration = Duration::from_secs(3);

/// Said of a file whose last line has no end.
pub(crate) const HALF_WRITTEN: &str =
    "its last line has no end; it may be half written, and is read once it stays the same";

/// A file that was opened and read.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    file: File,
    text: String,
    most: u64,
}

impl OpenedFile {
    /// Opens and reads at most `most` bytes; more is an error. Blocks.
    pub(crate) fn read(path: &Path, most: u64) -> io::Result<Self> {
        let mut file = files::open(path)?;
        let text = files::read_text_from(&mut file, most)?;
        Ok(Self { file, text, most })
    }

    /// Length of the text, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Whether the file that was opened still says the same, whatever its name means by now. Blocks.
    pub(crate) fn is_unchanged(&mut self) -> bool {
        self.file.seek(SeekFrom::Start(0)).is_ok()
            && files::read_text_from(&mut self.file, self.most).is_ok_and(|text| text == self.text)
    }
}

/// Files whose last line has no end, and since when they say what they say.
#[derive(Debug)]
pub(crate) struct UnfinishedFiles {
    clock: Arc<dyn Clock>,
    seen: Mutex<BTreeMap<PathBuf, Unfinished>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unfinished {
    text: u64,
    since: Duration,
    believed: bool,
}

impl UnfinishedFiles {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, seen: Mutex::default() }
    }

    /// Whether `text` is all that `path` shall say: its last line ends, or it has not changed since a look a few seconds
    /// ago.
    pub(crate) fn is_whole(&self, path: &Path, text: &str) -> bool {
        let mut seen = self.lock();
        if text.is_empty() || text.ends_with('\n') {
            seen.remove(path);
            return true;
        }
        let now = self.clock.monotonic();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let text = hasher.finish();
        let known = seen.entry(path.to_owned()).or_insert(Unfinished { text, since: now, believed: false });
        if known.text != text {
            *known = Unfinished { text, since: now, believed: false };
        }
        known.believed = now.saturating_sub(known.since) >= UNFINISHED;
        known.believed
    }

    /// Forgets files that are no longer there.
    pub(crate) fn retain(&self, there: &BTreeSet<&Path>) {
        self.lock().retain(|path, _| there.contains(path.as_path()));
    }

    /// Returns when a file that was not believed should be looked at again; waits for ever if there is none.
    pub(crate) async fn due(&self) {
        let now = self.clock.monotonic();
        let wait = {
            let seen = self.lock();
            let waiting = seen.values().filter(|one| !one.believed);
            waiting.map(|one| (one.since + UNFINISHED).saturating_sub(now)).min()
        };
        match wait {
            Some(wait) => sleep(wait).await,
            None => std::future::pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Unfinished>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_was_replaced_is_as_it_was_and_one_that_was_written_to_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "one\n").unwrap();
        fs::write(&other, "two\n").unwrap();
        let mut opened = OpenedFile::read(&path, 100).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(opened.is_unchanged());
        let mut opened = OpenedFile::read(&path, 100).unwrap();
        fs::write(&path, "three\n").unwrap();
        assert!(!opened.is_unchanged());
        assert!(OpenedFile::read(&path, 3).unwrap_err().to_string().contains("more than 3 bytes"));
        assert!(OpenedFile::read(dir.path(), 3).is_err());
    }
}
