//! The mark of a directory into which everything is being restored or moved.
//!
//! Inside the store a key says so. Before there is a store to hold that key, this file does: a process that is killed in its
//! first moments would otherwise leave a directory that looks like a new and empty store.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use netstead_store::Store;
use netstead_wire::files;
use tracing::warn;

use crate::failure::Failure;

const FILE: &str = "restoring";

/// A directory that is being filled.
#[derive(Debug)]
pub(crate) struct RestoreMark {
    dir: PathBuf,
    /// Whether the directory was there before, and what was in it; `None` if it held a store, which stays as it is.
    before: Option<Before>,
}

#[derive(Debug)]
struct Before {
    existed: bool,
    entries: Vec<OsString>,
}

impl RestoreMark {
    /// Marks a directory without a store, and makes it if need be. `holds_a_store` says that it has one.
    pub(crate) fn set(dir: &Path, holds_a_store: bool) -> io::Result<Self> {
        let dir = dir.to_owned();
        if holds_a_store {
            return Ok(Self { dir, before: None });
        }
        let before = Before { existed: dir.exists(), entries: entries(&dir) };
        files::create_private_dir(&dir)?;
        File::create(dir.join(FILE))?.sync_all()?;
        File::open(&dir)?.sync_all()?;
        Ok(Self { dir, before: Some(before) })
    }

    /// The store is whole.
    pub(crate) fn clear(self) {
        remove(&self.dir);
    }

    /// Nothing was restored: what this command made is removed again.
    pub(crate) fn undo(self) {
        let Some(before) = self.before else { return };
        let gone = if before.existed {
            let made = entries(&self.dir).into_iter().filter(|entry| !before.entries.contains(entry));
            made.map(|entry| self.dir.join(entry)).try_for_each(|path| {
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
            })
        } else {
            fs::remove_dir_all(&self.dir)
        };
        if let Err(error) = gone {
            warn!(dir = %self.dir.display(), %error, "What the command made there could not be removed.");
        }
    }
}

/// Refuses a store that holds nothing because a restore was interrupted. A mark that a whole store has is removed.
pub(crate) async fn check(dir: &Path, store: &dyn Store) -> anyhow::Result<()> {
    if !dir.join(FILE).exists() {
        return Ok(());
    }
    if store.own_snapshot().await?.range(b"", None, 1).await?.is_empty() {
        let dir = dir.display();
        let message = format!("a restore into {dir} was interrupted before it had written anything");
        // The directory of a node stands in the configuration.
        let place = if store.membership().is_some() { String::new() } else { format!(" --data-dir {dir}") };
        let hint = format!(
            "begin anew: `netstead store restore FILE{place}`; for a new and empty store remove {dir}/{FILE}"
        );
        return Err(Failure::new(message).hint(hint).into());
    }
    // The store says itself whether it is whole.
    remove(dir);
    Ok(())
}

/// Whether this is the name of the mark.
pub(crate) fn is_mark(name: &str) -> bool {
    name == FILE
}

fn remove(dir: &Path) {
    match fs::remove_file(dir.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!(file = %dir.join(FILE).display(), %error, "The mark of a restore could not be removed.");
        }
        _ => {}
    }
}

fn entries(dir: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}
