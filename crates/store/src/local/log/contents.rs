//! Reads the log that an earlier process left behind.
//!
//! Each segment has a row of frames from its beginning. The row ends early after a write that was cut short, which was never
//! acknowledged, or after damage. The two are told apart by what follows: a frame is durable before the next is begun, so after
//! a write that was cut short there is no frame of the same generation.

use std::ops::Range;

use super::{
    SEGMENTS,
    frame::{self, HEADER, Header, SECTOR},
};
use crate::local::{database_error::DatabaseError, engine::DiskWrite};

/// The frames of one segment, from its beginning.
#[derive(Debug)]
struct Row {
    generation: u64,
    /// The revision before its first frame.
    before: u64,
    frames: Vec<(Header, Range<usize>)>,
    /// Where the next frame would begin.
    end: usize,
}

/// Everything in a log that is of use.
#[derive(Debug)]
pub(in crate::local) struct Contents {
    segments: [Vec<u8>; SEGMENTS],
    rows: [Option<Row>; SEGMENTS],
    /// Where the last frame is.
    newest: usize,
    /// The highest generation anything in it has.
    generation: u64,
    /// The tables of the database have every commit up to this one.
    pub(in crate::local) checkpoint: u64,
    /// The last commit that is in the log.
    pub(in crate::local) last: u64,
}

/// The content of a log before a generation of it is begun.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::local) struct Former {
    /// The highest generation anything in it has.
    pub(super) generation: u64,
    /// The end of what may still be needed if the beginning fails half way.
    pub(super) tail: Option<Tail>,
}

impl Former {
    /// Of a log of which nothing is needed any more, whatever state it is in.
    pub(super) fn forgotten(segments: &[Vec<u8>; SEGMENTS]) -> Self {
        let sectors = segments.iter().flat_map(|bytes| bytes.chunks(SECTOR));
        let generation = sectors.filter_map(Header::read).map(|header| header.generation).max();
        Self { generation: generation.unwrap_or_default(), tail: None }
    }
}

/// Where to go on in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) segment: usize,
    pub(super) position: usize,
    pub(super) generation: u64,
    /// Without the other segment this one cannot be understood.
    pub(super) needs_other: bool,
    pub(super) last: u64,
}

impl Contents {
    /// `None` when nothing was ever written to it.
    pub(super) fn read(segments: [Vec<u8>; SEGMENTS]) -> Result<Option<Self>, DatabaseError> {
        let rows = segments.each_ref().map(|bytes| row(bytes));
        // Frames that belong to no row, but for the one that may have been cut short.
        let mut strays = Vec::new();
        let mut generation = 0;
        for (segment, (bytes, row)) in segments.iter().zip(&rows).enumerate() {
            let end = row.as_ref().map_or(0, |row| row.end);
            generation = generation.max(row.as_ref().map_or(0, |row| row.generation));
            for place in (end..bytes.len()).step_by(SECTOR) {
                let rest = bytes.get(place..).unwrap_or_default();
                let Some(header) = Header::read(rest) else { continue };
                generation = generation.max(header.generation);
                if place > end || header.payload(rest).is_some() {
                    strays.push((segment, header.generation));
                }
            }
        }
        let newest = (0..SEGMENTS).filter_map(|n| Some((rows.get(n)?.as_ref()?.generation, n))).max();
        let Some((newest_generation, newest)) = newest else {
            return if strays.is_empty() { Ok(None) } else { Err(damaged("it has lost its beginning")) };
        };
        if strays.iter().any(|(_, stray)| *stray >= newest_generation) {
            return Err(damaged("what was written later can be read, and something before it cannot"));
        }
        let Some(row) = rows.get(newest).and_then(Option::as_ref) else { return Ok(None) };
        let last_header = row.frames.last().map(|(header, _)| *header);
        let (checkpoint, last) = last_header.map_or((0, 0), |header| (header.checkpoint, header.revision));
        let (needed, newest_before) = (checkpoint < row.before, row.before);
        let contents = Self { segments, rows, newest, generation, checkpoint, last };
        if needed {
            let other = contents.other();
            let fits = other.is_some_and(|(segment, row)| {
                row.generation + 1 == newest_generation
                    && row.before <= checkpoint
                    && row.frames.last().is_some_and(|(header, _)| header.revision == newest_before)
                    && !strays.contains(&(segment, row.generation))
            });
            if !fits {
                return Err(damaged("what the database lacks is not whole"));
            }
        }
        Ok(Some(contents))
    }

    fn other(&self) -> Option<(usize, &Row)> {
        let segment = (self.newest + 1) % SEGMENTS;
        Some((segment, self.rows.get(segment)?.as_ref()?))
    }

    fn newest(&self) -> Option<&Row> {
        self.rows.get(self.newest)?.as_ref()
    }

    fn needs_other(&self) -> bool {
        self.newest().is_some_and(|row| self.checkpoint < row.before)
    }

    /// Facts of it that the next generation needs.
    pub(in crate::local) fn former(&self) -> Former {
        Former { generation: self.generation, tail: Some(self.tail()) }
    }

    fn tail(&self) -> Tail {
        let row = self.newest();
        Tail {
            segment: self.newest,
            position: row.map_or(0, |row| row.end),
            generation: row.map_or(0, |row| row.generation),
            needs_other: self.needs_other(),
            last: self.last,
        }
    }

    /// How many bytes of groups are behind the checkpoint.
    pub(in crate::local) fn bytes(&self) -> u64 {
        self.groups().map(|(_, payload)| payload.len() as u64).sum()
    }

    /// The groups behind the checkpoint, in order: the revision and what each writes.
    pub(in crate::local) fn replay(
        &self,
    ) -> impl Iterator<Item = Result<(u64, Vec<DiskWrite>), DatabaseError>> {
        self.groups().map(|(revision, payload)| match frame::writes(payload) {
            Some(writes) => Ok((revision, writes)),
            None => Err(damaged("a group in it cannot be understood")),
        })
    }

    fn groups(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let older = self.other().map(|(segment, _)| segment).filter(|_| self.needs_other());
        let order = older.into_iter().chain([self.newest]);
        let frames = order.flat_map(|segment| {
            let bytes = self.segments.get(segment).map(Vec::as_slice).unwrap_or_default();
            let row = self.rows.get(segment).and_then(Option::as_ref);
            row.into_iter()
                .flat_map(|row| &row.frames)
                .map(move |(header, place)| (header, bytes.get(place.clone())))
        });
        frames
            .filter(|(header, _)| header.revision > self.checkpoint && header.revision > header.before)
            .filter_map(|(header, payload)| Some((header.revision, payload?)))
    }
}

fn row(bytes: &[u8]) -> Option<Row> {
    let first = Header::read(bytes)?;
    let mut row = Row { generation: first.generation, before: first.before, frames: Vec::new(), end: 0 };
    let mut last = first.before;
    while let Some(rest) = bytes.get(row.end..)
        && let Some(header) = Header::read(rest)
        && header.generation == row.generation
        && header.before == last
        && let Some(payload) = header.payload(rest)
    {
        let start = row.end + HEADER;
        row.frames.push((header, start..start + payload.len()));
        row.end += header.size();
        last = header.revision;
    }
    if row.frames.is_empty() { None } else { Some(row) }
}

fn damaged(what: &str) -> DatabaseError {
    DatabaseError::Damaged(format!("the log is not as it was written: {what}"))
}
