//! Files and commands of this machine.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    process::Stdio,
    time::Duration,
};

use netstead_wire::files;
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

use super::{File, MOST_OF_FILES, is_skipped};

/// dnsmasq reads its files as a user of its own.
const MODE: u32 = 0o644;
/// How long a command may take.
const COMMAND: Duration = Duration::from_secs(30);
/// How long the words of a command that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The most bytes of a command's complaint that an error shows.
const MOST_WORDS: u64 = 400;

pub(super) fn read(dir: &Path) -> Result<Vec<File>, String> {
    let about = |error: io::Error| format!("{}: {error}", dir.display());
    let mut found = Vec::new();
    let mut left = MOST_OF_FILES as u64;
    for entry in fs::read_dir(dir).map_err(about)? {
        let entry = entry.map_err(about)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link to a file counts, as it does for dnsmasq.
        let is_file = fs::metadata(entry.path()).is_ok_and(|found| found.is_file());
        if is_skipped(&name) || !is_file {
            continue;
        }
        let bytes = files::read(&entry.path(), left)
            .map_err(|error| format!("{}: {error}", entry.path().display()))?;
        left = left.saturating_sub(bytes.len() as u64);
        found.push(File { name, bytes });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

pub(super) fn read_file(dir: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    fs::metadata(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let place = dir.join(name);
    match files::read(&place, MOST_OF_FILES as u64) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", place.display())),
    }
}

pub(super) fn write(dir: &Path, name: &str, bytes: Option<&[u8]>) -> Result<(), String> {
    let place = dir.join(name);
    replace(dir, &place, name, bytes).map_err(|error| format!("{}: {error}", place.display()))
}

fn replace(dir: &Path, place: &Path, name: &str, bytes: Option<&[u8]>) -> io::Result<()> {
    match bytes {
        Some(bytes) => {
            // dnsmasq reads no file whose name begins with a dot.
            let new = dir.join(format!(".{name}.new"));
            let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, place));
            if written.is_err() {
                let _ = fs::remove_file(&new);
            }
            written?;
        }
        None => match fs::remove_file(place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    // The new name lasts only once the directory is on the disk.
    fs::File::open(dir)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One that a crash left, or a link that leads elsewhere.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(MODE))?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(super) fn may_write(dir: &Path) -> Result<(), String> {
    files::may_write_in(dir).map_err(|error| format!("no file can be written in {}: {error}", dir.display()))
}

pub(super) async fn run(words: &[String]) -> Result<(), String> {
    let shown = words.join(" ");
    let Some((program, rest)) = words.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| format!("`{shown}` cannot be started: {error}"))?;
    let mut said = Vec::new();
    let stderr = child.stderr.take();
    let read = async {
        if let Some(stderr) = stderr {
            let _ = stderr.take(MOST_WORDS).read_to_end(&mut said).await;
        }
    };
    let ended = async {
        let mut read = std::pin::pin!(read);
        let status = tokio::select! {
            status = child.wait() => status,
            () = &mut read => return child.wait().await,
        };
        // A server that the command started may hold the pipe open for ever.
        let _ = timeout(LAST_WORDS, read).await;
        status
    };
    let status = timeout(COMMAND, ended)
        .await
        .map_err(|_| format!("`{shown}` takes longer than {} s", COMMAND.as_secs()))?
        .map_err(|error| format!("`{shown}` cannot be started: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(format!("`{shown}` ends with {status}: {said}"))
}
