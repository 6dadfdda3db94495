//! One group of commits as it lies in the log.
//!
//! ```text
//!  0  8 bytes that begin every frame
//!  8  generation: how often a segment has been begun; frames of an earlier one are what a reused segment had before
//! 16  the revision before the group
//! 24  the revision after it
//! 32  the revision up to which the tables of the database were durable when this was written
//! 40  bytes of the payload
//! 48  checksum of the payload
//! 56  checksum of the 56 bytes before
//! 64  the payload: for each write 4 bytes length of the key, 4 bytes length of the content plus one (0 deletes), both
//! ```
//!
//! All numbers are little-endian. A frame begins at a sector and is filled up with zeros to the next, so that no later
//! write touches a sector of one that was acknowledged.

use xxhash_rust::xxh3::xxh3_64;

use super::super::engine::DiskWrite;

pub(super) const SECTOR: usize = 512;
pub(super) const HEADER: usize = 64;

/// Not text in any encoding, so no value that is text can look like a frame.
const MAGIC: [u8; 8] = [0xf5, b'n', b's', b'l', b'o', b'g', 0x01, 0xff];

/// The header of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) generation: u64,
    pub(super) before: u64,
    pub(super) revision: u64,
    pub(super) checkpoint: u64,
    length: u64,
    checksum: u64,
}

impl Header {
    /// The header at the beginning of `bytes`, if one stands there.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER).filter(|header| header.starts_with(&MAGIC))?;
        let number = |place: usize| -> Option<u64> {
            Some(u64::from_le_bytes(*header.get(8 * place..)?.first_chunk::<8>()?))
        };
        let read = Self {
            generation: number(1)?,
            before: number(2)?,
            revision: number(3)?,
            checkpoint: number(4)?,
            length: number(5)?,
            checksum: number(6)?,
        };
        (number(7)? == xxh3_64(header.get(..HEADER - 8)?)).then_some(read)
    }

    /// The payload behind the header, if all of it is there as it was written.
    pub(super) fn payload<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let end = usize::try_from(self.length).ok()?.checked_add(HEADER)?;
        bytes.get(HEADER..end).filter(|payload| xxh3_64(payload) == self.checksum)
    }

    /// How many bytes the frame takes, to the next sector.
    pub(super) fn size(&self) -> usize {
        padded(HEADER.saturating_add(usize::try_from(self.length).unwrap_or(usize::MAX - HEADER)))
    }
}

/// A frame under construction, whose memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Frame {
    bytes: Vec<u8>,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct FramePosition {
    pub(super) generation: u64,
    pub(super) before: u64,
    pub(super) revision: u64,
    pub(super) checkpoint: u64,
}

impl Frame {
    /// Takes in what a group writes. Where it goes is told by [`Frame::complete`], once that is known.
    pub(super) fn fill(&mut self, writes: &[DiskWrite]) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        for (key, content) in writes {
            let content_length = content.as_ref().map_or(0, |content| length(content).saturating_add(1));
            self.bytes.extend_from_slice(&length(key).to_le_bytes());
            self.bytes.extend_from_slice(&content_length.to_le_bytes());
            self.bytes.extend_from_slice(key);
            self.bytes.extend_from_slice(content.as_deref().unwrap_or_default());
        }
    }

    /// How many bytes it takes in the log.
    pub(super) fn size(&self) -> usize {
        padded(self.bytes.len())
    }

    /// Completes the frame. To be called once for each [`Frame::fill`].
    pub(super) fn complete(&mut self, place: FramePosition) -> &[u8] {
        let payload = self.bytes.get(HEADER..).unwrap_or_default();
        let (length, checksum) = (payload.len() as u64, xxh3_64(payload));
        let FramePosition { generation, before, revision, checkpoint } = place;
        let numbers = [generation, before, revision, checkpoint, length, checksum];
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        for number in numbers {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        if let Some(front) = self.bytes.get_mut(..HEADER) {
            front.copy_from_slice(&header);
        }
        self.bytes.resize(self.size(), 0);
        &self.bytes
    }
}

/// The writes of a payload; `None` if it is not one.
pub(super) fn writes(mut payload: &[u8]) -> Option<Vec<DiskWrite>> {
    let mut writes = Vec::new();
    while !payload.is_empty() {
        let (key_length, rest) = payload.split_first_chunk::<4>()?;
        let (content_length, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_at_checked(size(*key_length)?)?;
        let (content, rest) = match size(*content_length)?.checked_sub(1) {
            Some(length) => {
                let (content, rest) = rest.split_at_checked(length)?;
                (Some(content.to_vec()), rest)
            }
            None => (None, rest),
        };
        writes.push((key.to_vec(), content));
        payload = rest;
    }
    Some(writes)
}

fn size(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// A commit has at most [`crate::MAX_BYTES`], so this is never cut.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn padded(bytes: usize) -> usize {
    bytes.div_ceil(SECTOR).saturating_mul(SECTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: FramePosition = FramePosition { generation: 3, before: 7, revision: 9, checkpoint: 5 };

    fn some_writes() -> Vec<DiskWrite> {
        vec![
            (b"da".to_vec(), Some(b"12345678one".to_vec())),
            (b"db".to_vec(), None),
            (b"d".to_vec(), Some(vec![])),
        ]
    }

    #[test]
    fn a_frame_is_read_back() {
        let mut frame = Frame::default();
        for writes_in in [some_writes(), Vec::new(), vec![(vec![b'd'; 2000], Some(vec![7; 70_000]))]] {
            frame.fill(&writes_in);
            let bytes = frame.complete(POSITION).to_vec();
            let header = Header::read(&bytes).unwrap();
            assert_eq!((header.generation, header.before, header.revision, header.checkpoint), (3, 7, 9, 5));
            assert_eq!((header.size(), bytes.len() % SECTOR), (bytes.len(), 0));
            assert_eq!(writes(header.payload(&bytes).unwrap()).unwrap(), writes_in);
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed() {
        let mut frame = Frame::default();
        frame.fill(&some_writes());
        let bytes = frame.complete(POSITION).to_vec();
        let used = HEADER + 3 * 8 + 2 + 11 + 2 + 1;
        for place in 0..used {
            for bit in 0..8 {
                let mut broken = bytes.clone();
                broken[place] ^= 1 << bit;
                let payload =
                    Header::read(&broken).and_then(|header| header.payload(&broken).map(<[u8]>::len));
                assert_eq!(payload, None, "byte {place}, bit {bit}");
            }
        }
    }

    #[test]
    fn what_is_cut_or_empty_is_no_frame() {
        let mut frame = Frame::default();
        frame.fill(&some_writes());
        let bytes = frame.complete(POSITION).to_vec();
        assert_eq!(Header::read(&bytes[..HEADER - 1]), None);
        assert_eq!(Header::read(&bytes).unwrap().payload(&bytes[..HEADER + 20]), None);
        assert_eq!(Header::read(&[0; SECTOR]), None);
        assert_eq!(writes(&[1, 0, 0, 0]), None);
        assert_eq!(writes(&[255; 12]), None);
    }
}
