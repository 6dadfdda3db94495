//! Where source files are, and how long they may be.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::root;

/// A file over 300 lines is a question; over this, an answer is due.
const MOST_LINES: usize = 500;

pub(crate) fn too_long() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in sources()? {
        let lines = std::fs::read_to_string(&path)?.lines().count();
        if lines > MOST_LINES {
            found.push(format!("{} has {lines} lines: can it be two?", shown(&path)));
        }
    }
    Ok(found)
}

pub(crate) fn misplaced() -> Result<Vec<String>> {
    let is_mod = |path: &PathBuf| path.file_name().is_some_and(|name| name == "mod.rs");
    let problem = |path: PathBuf| format!("{}: put it beside its directory, as `NAME.rs`", shown(&path));
    Ok(sources()?.into_iter().filter(is_mod).map(problem).collect())
}

/// Every Rust file of ours.
pub(crate) fn sources() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(&root().join("crates"), "rs", &mut found)?;
    Ok(found)
}

/// Every file under `dir` whose name ends in `.extension`, in order.
pub(crate) fn collect(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("{} cannot be read", dir.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(cannot)? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, extension, found)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    Ok(())
}

/// A path as people write it, from the top of the workspace.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
