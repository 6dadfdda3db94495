//! Files, up to a limit; and files that only their owner may read.
//!
//! How large a file is cannot be asked beforehand: it may grow, and a device has no size. So each is read up to its
//! limit and one byte more, which tells a file that fits from one that does not.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use nix::{
    fcntl::{AT_FDCWD, AtFlags, OFlag},
    unistd::{AccessFlags, faccessat},
};

/// The most of a configuration file, in bytes. It holds keys and lists, and no data.
pub const MOST_OF_CONFIG: u64 = 16 << 20;
/// The most of certificates and keys: all roots that a system has are a quarter of a megabyte.
pub const MOST_OF_PEM: u64 = 4 << 20;
/// The most of a secret.
pub const MOST_OF_SECRET: u64 = 64 << 10;

/// Mode of a file that only its owner may read.
const PRIVATE_FILE: u32 = 0o600;
/// Mode of a directory that only its owner may enter.
const PRIVATE_DIR: u32 = 0o700;
/// Permissions of group and others.
const OTHERS: u32 = 0o077;

/// Reads a file that a setting names: a regular file (or a link to one) of at most `limit` bytes.
///
/// A device, a pipe or a directory is refused, and opening one never waits. The error of a file that is too large is of
/// the kind `FileTooLarge`.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_from(open(path)?, limit)
}

/// Opens a regular file, or a link to one, for [`read_text_from`]. Refuses as [`read`] does.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe waits for its writer, unless it is told not to. Regular files do not mind.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        let kind = if found.is_dir() { "it is a directory" } else { "it is not a regular file" };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, kind));
    }
    Ok(file)
}

/// [`read`] for a file of text.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// [`read_text`] without holding up other tasks.
pub async fn read_text_async(path: &Path, limit: u64) -> io::Result<String> {
    text(read_async(path, limit).await?)
}

/// [`read`] without holding up other tasks.
pub async fn read_async(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read(&path, limit))
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// Reads the text of a file that a person names on the command line. It may be a pipe: `--config <(sops -d file)`.
pub fn read_named_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read_from(File::open(path)?, limit)?)
}

/// Reads the text that comes in through an open file, as stdin is.
pub fn read_text_from(input: impl Read, limit: u64) -> io::Result<String> {
    text(read_from(input, limit)?)
}

fn read_from(input: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let reason = format!("it has more than {limit} bytes, the most that is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Whether this process may make and replace files in a directory. Nothing is changed.
pub fn may_write_in(dir: &Path) -> io::Result<()> {
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory"));
    }
    let wanted = AccessFlags::W_OK | AccessFlags::X_OK;
    faccessat(AT_FDCWD, dir, wanted, AtFlags::AT_EACCESS).map_err(io::Error::from)
}

/// How to open a file that is ours alone: a new one gets the mode 0600, whatever the umask lets through.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(PRIVATE_FILE);
    options
}

/// Makes a directory and its parents, for its user only. One that exists stays as it is.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)
}

/// Takes from group and others all that they may do with a file or directory of ours.
///
/// One that is missing, or belongs to another user, stays as it is.
pub fn close_to_others(path: &Path) -> io::Result<()> {
    let close = || {
        let found = std::fs::metadata(path)?.permissions().mode();
        if found & OTHERS == 0 {
            return Ok(());
        }
        std::fs::set_permissions(path, Permissions::from_mode(found & !OTHERS & 0o7777))
    };
    match close() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            Ok(())
        }
        done => done,
    }
}
