//! Checks of a file or directory for `netstead doctor`: can it be read.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use netstead_model::Diagnosis;
use netstead_wire::files;

/// Tries each path.
pub(crate) async fn diagnose_paths(paths: Vec<PathBuf>) -> Vec<Diagnosis> {
    let checked = tokio::task::spawn_blocking(move || paths.iter().map(|path| diagnose(path)).collect());
    checked.await.unwrap_or_default()
}

fn diagnose(path: &Path) -> Diagnosis {
    let shown = path.display();
    match open(path) {
        Ok(()) => Diagnosis::fine(format!("{shown} can be read")),
        Err(error) => {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => {
                    "make it, mount it into the container, or correct `path`".to_owned()
                }
                io::ErrorKind::PermissionDenied => format!(
                    "let the user of Netstead read it, and enter every directory above it: `namei -l {shown}` \
                     shows which may not be"
                ),
                _ => "correct `path`".to_owned(),
            };
            Diagnosis::problem(format!("{shown} cannot be read: {error}"), hint)
        }
    }
}

fn open(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() { fs::read_dir(path).map(drop) } else { files::open(path).map(drop) }
}
