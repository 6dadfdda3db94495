//! The log: what makes a commit durable.
//!
//! A group of commits is one frame, written and flushed at once, into one of two segments of fixed size. A segment is
//! filled with zeros before it is written to and used again and again afterwards, so that a flush has nothing to write
//! but the frame itself: no length of a file, no place on the disk. The database gets the same writes later, without a
//! flush of its own; once its tables have all that a segment holds, that segment may be written over.
//! `docs/decisions/0005-a-log-of-our-own.md` has the reasons and the figures.

mod contents;
mod frame;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

pub(super) use self::contents::{Contents, Former};
use netstead_wire::files;

use self::{
    contents::Tail,
    frame::{Frame, FramePosition, SECTOR},
};
use super::{data_dir::sync_directory, database_error::DatabaseError, engine::DiskWrite};

const SEGMENTS: usize = 2;

/// Large enough that its use again is seldom waited for, small enough to be read in a moment at the start.
const SEGMENT_BYTES: usize = 16 << 20;

/// How far a segment is filled with zeros ahead of small frames, the first time it is written to.
const STEP: usize = 1 << 20;

/// Ahead of frames of this size nothing is filled: each byte would be written twice, which costs more than the growing.
const LARGE: usize = 64 << 10;

/// An open log. Every call may block.
#[derive(Debug)]
pub(super) struct Log {
    segments: [Segment; SEGMENTS],
    active: usize,
    position: usize,
    generation: u64,
    /// The revision before the first frame of the active segment: the other one holds nothing later.
    begun_after: u64,
    /// The last revision that was written.
    last: u64,
    /// The checkpoint the last frame carries.
    recorded: u64,
    frame: Frame,
}

#[derive(Debug)]
struct Segment {
    file: File,
    /// The length that is written already, and not only a hole.
    length: usize,
}

impl Log {
    /// Where the log of a data directory is.
    pub(super) fn path(dir: &Path) -> PathBuf {
        dir.join("log")
    }

    /// Reads the log of `dir`; `None` when it has none, or one that was never written to.
    pub(super) fn read(dir: &Path) -> Result<Option<Contents>, DatabaseError> {
        Contents::read(load(dir)?)
    }

    /// As much of the log of `dir` as must be known when the database has all that was ever in it.
    pub(super) fn forget(dir: &Path) -> io::Result<Former> {
        Ok(Former::forgotten(&load(dir)?))
    }

    /// Takes the log of `dir` away, if there is one.
    pub(super) fn remove(dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(Self::path(dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins a generation of the log of `dir` with the database at `revision`, all of it in tables.
    pub(super) fn begin(dir: &Path, revision: u64, former: Former) -> io::Result<Self> {
        let path = Self::path(dir);
        if !path.try_exists()? {
            files::create_private_dir(&path)?;
            sync_directory(dir)?;
        }
        let open = |number| -> io::Result<Segment> {
            let mut options = files::private();
            let file =
                options.read(true).write(true).create(true).truncate(false).open(file_name(dir, number))?;
            let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
            Ok(Segment { file, length })
        };
        let segments = [open(0)?, open(1)?];
        sync_directory(&path)?;
        let mut log = Self {
            segments,
            active: former.tail.map_or(0, |tail| (tail.segment + 1) % SEGMENTS),
            position: 0,
            generation: former.generation + 1,
            begun_after: revision,
            last: revision,
            recorded: revision,
            frame: Frame::default(),
        };
        if let Some(tail) = former.tail.filter(|tail| tail.needs_other) {
            log.seal(tail, revision)?;
        }
        log.frame.fill(&[]);
        log.commit(revision, revision)?;
        Ok(log)
    }

    /// Writes down that nothing before `checkpoint` is needed any more, behind all that stands in a segment, before the
    /// other one is written over.
    fn seal(&mut self, tail: Tail, checkpoint: u64) -> io::Result<()> {
        let Tail { segment, position, generation, last, .. } = tail;
        self.frame.fill(&[]);
        let bytes =
            self.frame.complete(FramePosition { generation, before: last, revision: last, checkpoint });
        match self.segments.get_mut(segment) {
            Some(segment) => segment.write(position, bytes),
            None => Ok(()),
        }
    }

    /// Takes in the next group. `false` if it does not fit into the active segment: call [`Log::switch_segment`] first then.
    pub(super) fn prepare(&mut self, writes: &[DiskWrite]) -> bool {
        self.frame.fill(writes);
        // One sector is left for a seal. However long a group is, it fits into an empty segment.
        self.position == 0 || self.position + self.frame.size() + SECTOR <= SEGMENT_BYTES
    }

    /// The other segment may be written over once the tables have every commit up to this one.
    pub(super) fn begun_after(&self) -> u64 {
        self.begun_after
    }

    /// Continues in the other segment, which is no longer needed: the tables have everything up to `checkpoint`.
    pub(super) fn switch_segment(&mut self, checkpoint: u64, writes: &[DiskWrite]) -> io::Result<()> {
        if self.recorded < self.begun_after {
            let (segment, position) = (self.active, self.position);
            let tail =
                Tail { segment, position, generation: self.generation, needs_other: true, last: self.last };
            self.seal(tail, checkpoint)?;
        }
        self.active = (self.active + 1) % SEGMENTS;
        self.position = 0;
        self.generation += 1;
        self.begun_after = self.last;
        self.frame.fill(writes);
        Ok(())
    }

    /// Makes the prepared group durable. `revision` is the number of its last commit, and the tables have everything up
    /// to `checkpoint`. Returns how many bytes it took. After an error the content of the log is unknown: it must be read again.
    pub(super) fn commit(&mut self, revision: u64, checkpoint: u64) -> io::Result<usize> {
        let place = FramePosition { generation: self.generation, before: self.last, revision, checkpoint };
        let bytes = self.frame.complete(place);
        if let Some(segment) = self.segments.get_mut(self.active) {
            segment.write(self.position, bytes)?;
        }
        let size = bytes.len();
        self.position += size;
        self.last = revision;
        self.recorded = checkpoint;
        Ok(size)
    }
}

impl Segment {
    fn write(&mut self, position: usize, bytes: &[u8]) -> io::Result<()> {
        let end = position + bytes.len();
        self.file.seek(SeekFrom::Start(position as u64))?;
        self.file.write_all(bytes)?;
        if end > self.length && bytes.len() < LARGE {
            let length = end.next_multiple_of(STEP);
            self.file.write_all(&vec![0; length - end])?;
            self.length = length;
        }
        self.length = self.length.max(end);
        self.file.sync_data()
    }
}

fn load(dir: &Path) -> io::Result<[Vec<u8>; SEGMENTS]> {
    let mut segments = [const { Vec::new() }; SEGMENTS];
    for (number, bytes) in segments.iter_mut().enumerate() {
        match File::open(file_name(dir, number)) {
            Ok(mut file) => drop(file.read_to_end(bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(segments)
}

fn file_name(dir: &Path, number: usize) -> PathBuf {
    Log::path(dir).join(number.to_string())
}
