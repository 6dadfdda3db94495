//! The data directory: its files, and its lock.
//!
//! ```text
//! lock        held by the process that uses the directory; contains its process id
//! highwater   the last revision known to be durable, see `high_water_mark`
//! log/        the log that makes a commit durable, see `log`
//! db/         fjall's files
//! db.new/     a database being created; renamed to db/ when it is complete
//! probe       a file that is written to find out whether writing works
//! ```

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use netstead_wire::files;

use crate::StoreError;

/// All that a store makes in its directory.
const ENTRIES: [&str; 6] = ["lock", "highwater", "log", "db", "db.new", "probe"];

/// How often a taken lock is tried again: a process that just ended may still be giving it back.
const TRIES: u32 = 5;

/// A directory that belongs to this process as long as this value lives.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    lock: File,
}

impl DataDir {
    /// Takes `path` for this process, and creates it if need be, readable by its owner only.
    pub(super) fn acquire(path: &Path) -> Result<Self, StoreError> {
        let cannot = |error: io::Error| StoreError::Unavailable {
            reason: format!("the directory {} cannot be used: {error}", path.display()),
        };
        files::create_private_dir(path).map_err(cannot)?;
        let mut options = files::private();
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.open(path.join("lock")).map_err(cannot)?;
        let mut dir = Self { path: path.to_path_buf(), lock };
        for attempt in 1..=TRIES {
            match dir.lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(cannot(error)),
                Err(TryLockError::WouldBlock) if attempt == TRIES => return Err(dir.in_use_error()),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(100)),
            }
        }
        dir.close_to_others().map_err(cannot)?;
        let _ = dir.write_process_id(); // Only told to people; a full disk must not keep us out.
        Ok(dir)
    }

    /// Makes private what was made in a directory that others may enter, by an older version or by hand. The directory
    /// itself stays as it is: it may be one that holds other things too.
    fn close_to_others(&self) -> io::Result<()> {
        ENTRIES.iter().try_for_each(|name| files::close_to_others(&self.path.join(name)))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path.join("db")
    }

    pub(super) fn new_database(&self) -> PathBuf {
        self.path.join("db.new")
    }

    /// Says, for people, that the directory is in use.
    pub(super) fn in_use_error(&mut self) -> StoreError {
        let mut holder = String::new();
        let process = match self.lock.read_to_string(&mut holder) {
            Ok(_) if !holder.trim().is_empty() => format!(" (process {})", holder.trim()),
            _ => String::new(),
        };
        StoreError::Locked {
            reason: format!(
                "another netstead{process} runs on {}; stop it first, or give this one a directory of its own",
                self.path.display()
            ),
        }
    }

    fn write_process_id(&mut self) -> io::Result<()> {
        self.lock.set_len(0)?;
        writeln!(self.lock, "{}", std::process::id())
    }

    /// Tries a durable write of `bytes` beside the database, to learn what is wrong with the disk.
    pub(super) fn probe(&self, bytes: u64) -> io::Result<()> {
        let path = self.path.join("probe");
        let outcome = File::create(&path).and_then(|mut file| {
            io::copy(&mut io::repeat(0x5a).take(bytes), &mut file)?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        outcome.and(removed)
    }
}

/// Makes a rename or a new file in `dir` durable.
pub(super) fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
