//! fjall's journals: thrown away where there is a log, and elsewhere written once more, byte by byte the same.
//!
//! After an fsync that failed, Linux holds the pages for clean: they are in memory, not on the disk, and no
//! later fsync writes them. A journal recovered from such pages reads well until the machine loses power,
//! and then ends where the gap is, with everything that was appended after it. So a journal that may have
//! seen a failed fsync is written again before anything is built on it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::data_dir::sync_directory;

const CHUNK: usize = 1 << 20;

/// How a copy is called that is not complete yet; fjall looks at `jnl` only.
const COPY: &str = "jnl-copy";

/// How many bytes the journals in `database` have.
pub(super) fn size(database: &Path) -> io::Result<u64> {
    journals(database)?.iter().try_fold(0, |sum, journal| Ok(sum + fs::metadata(journal)?.len()))
}

/// Replaces each journal in `database` by a copy, inside the process that saw the failure: a thread of the
/// dropped database that still holds the old file writes into a file without a name. Takes up to
/// [`size`] of free space.
pub(super) fn replace_by_copies(database: &Path) -> io::Result<()> {
    remove_leftovers(database)?;
    for journal in journals(database)? {
        let copied = copy(&journal, &journal.with_extension(COPY));
        if copied.is_err() {
            let _ = remove_leftovers(database); // A half copy must not be what fills the disk.
            return copied;
        }
    }
    sync_directory(database)
}

fn copy(journal: &Path, copy: &Path) -> io::Result<()> {
    let mut from = File::open(journal)?;
    let mut to = File::create(copy)?;
    pour(&mut from, &mut to)?;
    to.set_len(from.metadata()?.len())?;
    to.sync_all()?;
    fs::rename(copy, journal)
}

/// Puts one empty journal in place of all that are there. Not none: without one fjall does not look how far its tables
/// have counted, and counts from the beginning. A thread of a database that was given up and still holds an old journal
/// writes into a file without a name. Returns the new one: fjall only ever appends to a journal it has found.
pub(super) fn start_anew(database: &Path) -> io::Result<File> {
    remove_leftovers(database)?;
    let old = journals(database)?;
    let numbers = old.iter().filter_map(|journal| journal.file_stem()?.to_str()?.parse::<u64>().ok());
    let next = numbers.max().map_or(0, |number| number.saturating_add(1));
    let new = File::create_new(database.join(next.to_string()).with_extension("jnl"))?;
    old.iter().try_for_each(fs::remove_file)?;
    sync_directory(database)?;
    Ok(new)
}

/// Writes each journal in `database` again in place, at the start of a process: no other process has it open
/// then, and it takes no space.
pub(super) fn write_again(database: &Path) -> io::Result<()> {
    remove_leftovers(database)?;
    for journal in journals(database)? {
        let mut from = File::open(&journal)?;
        let mut to = OpenOptions::new().write(true).open(&journal)?;
        pour(&mut from, &mut to)?;
        to.sync_all()?;
    }
    Ok(())
}

/// Writes what `from` holds to the same places of `to`. Runs of zeros are left out: fjall makes its journals
/// 64 MiB of holes.
fn pour(from: &mut File, to: &mut File) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut offset = 0;
    loop {
        chunk.clear();
        let length = Read::take(&mut *from, CHUNK as u64).read_to_end(&mut chunk)? as u64;
        if length == 0 {
            return Ok(());
        }
        if chunk.iter().any(|byte| *byte != 0) {
            to.seek(SeekFrom::Start(offset))?;
            to.write_all(&chunk)?;
        }
        offset += length;
    }
}

fn journals(database: &Path) -> io::Result<Vec<PathBuf>> {
    with_extension(database, "jnl")
}

fn remove_leftovers(database: &Path) -> io::Result<()> {
    with_extension(database, COPY)?.iter().try_for_each(fs::remove_file)
}

fn with_extension(dir: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn journals_stay_the_same_and_nothing_else_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("7.jnl");
        let mut content = vec![0; 3 * CHUNK + 1000];
        content[10..20].fill(7);
        content[2 * CHUNK + 5] = 9;
        fs::write(&journal, &content).unwrap();
        fs::write(dir.path().join("6.jnl"), b"").unwrap();
        fs::write(dir.path().join("version"), b"x").unwrap();
        fs::write(dir.path().join("5.jnl-copy"), b"of a crash").unwrap();

        write_again(dir.path()).unwrap();
        assert_eq!(fs::read(&journal).unwrap(), content);
        replace_by_copies(dir.path()).unwrap();
        assert_eq!(fs::read(&journal).unwrap(), content);

        assert_eq!(names(dir.path()), ["6.jnl", "7.jnl", "version"]);
    }

    #[test]
    fn a_writer_that_still_holds_the_old_journal_cannot_reach_the_copy() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("0.jnl");
        fs::write(&journal, b"good").unwrap();
        let mut stale = OpenOptions::new().append(true).open(&journal).unwrap();
        replace_by_copies(dir.path()).unwrap();
        stale.write_all(b"late").unwrap();
        assert_eq!(fs::read(&journal).unwrap(), b"good");
    }

    #[test]
    fn a_new_journal_comes_after_all_others_and_nobody_who_holds_one_can_reach_it() {
        let dir = tempfile::tempdir().unwrap();
        start_anew(dir.path()).unwrap();
        assert_eq!(names(dir.path()), ["0.jnl"]);
        let mut stale = OpenOptions::new().append(true).open(dir.path().join("0.jnl")).unwrap();
        fs::write(dir.path().join("9.jnl"), b"old").unwrap();
        fs::write(dir.path().join("10.jnl"), b"old").unwrap();
        fs::write(dir.path().join("8.jnl-copy"), b"half").unwrap();
        start_anew(dir.path()).unwrap();
        stale.write_all(b"late").unwrap();
        assert_eq!(names(dir.path()), ["11.jnl"]);
        assert_eq!(fs::read(dir.path().join("11.jnl")).unwrap(), b"");
    }
}
