//! A zip file with one program in it.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::{Compression, Crc, write::DeflateEncoder};

/// 1980-01-01, the first day that a zip file knows, so that the same program gives the same file.
const FIRST_DAY: u16 = 0b10_0001;
/// A file that its owner may write and all may run, as Unix says it.
const PROGRAM: u32 = 0o100_755 << 16;
const VERSION: u16 = 20;
/// Made on Unix.
const MADE_BY: u16 = 3 << 8 | VERSION;
const DEFLATE: u16 = 8;

/// A zip file with this program under this name.
pub(super) fn of_program(name: &str, program: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(program)?;
    let packed = encoder.finish()?;
    let mut crc = Crc::new();
    crc.update(program);
    let size = |bytes: &[u8]| u32::try_from(bytes.len()).context("the program has more than 4 GB");
    let (packed_size, full_size) = (size(&packed)?, size(program)?);
    let name_size = u16::try_from(name.len()).context("the name is too long")?;
    // The part that stands before the file, and again in the directory at the end.
    let mut common = Vec::new();
    for short in [VERSION, 0, DEFLATE, 0, FIRST_DAY] {
        common.extend(short.to_le_bytes());
    }
    for long in [crc.sum(), packed_size, full_size] {
        common.extend(long.to_le_bytes());
    }
    common.extend(name_size.to_le_bytes());
    common.extend(0_u16.to_le_bytes());
    let mut file = [b"PK\x03\x04".as_slice(), &common, name.as_bytes(), &packed].concat();
    let directory = size(&file)?;
    let mut entry = [b"PK\x01\x02".as_slice(), &MADE_BY.to_le_bytes(), &common].concat();
    for short in [0_u16, 0, 0] {
        entry.extend(short.to_le_bytes());
    }
    entry.extend(PROGRAM.to_le_bytes());
    entry.extend(0_u32.to_le_bytes());
    entry.extend(name.as_bytes());
    let entry_size = size(&entry)?;
    file.extend(entry);
    file.extend(b"PK\x05\x06");
    for short in [0_u16, 0, 1, 1] {
        file.extend(short.to_le_bytes());
    }
    file.extend(entry_size.to_le_bytes());
    file.extend(directory.to_le_bytes());
    file.extend(0_u16.to_le_bytes());
    Ok(file)
}
