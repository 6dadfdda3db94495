//! Finding and reading the files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::FilePattern;
use crate::settled_file::OpenedFile;

/// Limits that no honest configuration meets.
const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 4 << 20;
const MOST_IN_ALL: usize = 64 << 20;
const DEEPEST: usize = 10;

/// The files found, and those that could not be read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: BTreeMap<PathBuf, OpenedFile>,
    pub(super) doubts: Vec<String>,
    bytes: usize,
}

/// Reads every file that is named, and those in directories whose name fits. Blocks.
pub(super) fn list(paths: &[PathBuf], patterns: &[FilePattern]) -> Listing {
    let mut listing = Listing::default();
    for path in paths {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => listing.directory(path, patterns, 0),
            Ok(_) => listing.file(path),
            Err(error) => listing.doubt(path, &error),
        }
    }
    listing
}

impl Listing {
    /// Whether `later` shows the same files, and those that are open here were not written to. Blocks.
    pub(super) fn is_settled(&mut self, later: &Self) -> bool {
        self.doubts == later.doubts
            && self.files.keys().eq(later.files.keys())
            && self.files.values_mut().all(OpenedFile::is_unchanged)
    }

    fn doubt(&mut self, path: &Path, problem: &dyn std::fmt::Display) {
        self.doubts.push(format!("{} cannot be read: {problem}", path.display()));
    }

    fn directory(&mut self, path: &Path, patterns: &[FilePattern], depth: usize) {
        if depth > DEEPEST {
            return self.doubt(path, &format!("it lies deeper than {DEEPEST} directories"));
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => return self.doubt(path, &error),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => return self.doubt(path, &error),
            };
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            // Editors' temporary files, and the hidden directories that a mounted ConfigMap is made of.
            if name.starts_with('.') {
                continue;
            }
            let fits = patterns.iter().any(|pattern| pattern.matches(&name));
            // Follows links, as a ConfigMap's files are.
            match fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.directory(&path, patterns, depth + 1),
                Ok(metadata) if metadata.is_file() && fits => self.file(&path),
                // It went while we looked; what is only passing is no doubt.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) if fits => self.doubt(&path, &error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn file(&mut self, path: &Path) {
        if self.files.len() >= MOST_FILES {
            return self.doubt(path, &format!("at most {MOST_FILES} files are read"));
        }
        match OpenedFile::read(path, MOST_BYTES) {
            Ok(opened) if opened.len() > MOST_IN_ALL.saturating_sub(self.bytes) => {
                self.doubt(path, &format!("with it, all files have more than {MOST_IN_ALL} bytes"));
            }
            Ok(opened) => {
                self.bytes += opened.len();
                self.files.insert(path.to_owned(), opened);
            }
            Err(error) => self.doubt(path, &error),
        }
    }
}
