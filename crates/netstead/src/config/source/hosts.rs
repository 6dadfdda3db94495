//! `type = "hosts"`: names and addresses that a person wrote into a file.

use std::path::{Path, PathBuf};

use super::Section;

pub(super) const KEYS: &[&str] = &["path"];

/// The file.
pub(super) fn read(section: &mut Section<'_, '_>, dir: &Path) -> Option<PathBuf> {
    section.needed("path", "write `path = \"/etc/netstead/hosts\"`").map(|file| dir.join(file))
}
