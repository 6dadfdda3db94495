//! Noticing that a file changed, also when an editor replaces it by a new one.

use std::path::{Path, PathBuf};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Watches the directory of a file, since editors write a new file and rename it over the old one.
#[derive(Debug)]
pub(super) struct FileWatch {
    changed: std::sync::Arc<Notify>,
    /// Kept for its end: dropping it ends the watch.
    _watcher: Option<RecommendedWatcher>,
}

impl FileWatch {
    /// Without inotify, or without the directory, nothing is noticed here and the timer alone finds changes.
    pub fn new(path: &Path) -> Self {
        let changed = std::sync::Arc::new(Notify::new());
        let watcher = watch(path, changed.clone());
        if let Err(error) = &watcher {
            tracing::warn!(path = %path.display(), %error, "The file cannot be watched; it is looked at now and then.");
        }
        Self { changed, _watcher: watcher.ok() }
    }

    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

fn watch(path: &Path, changed: std::sync::Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let file = path.file_name().map(PathBuf::from);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return changed.notify_one() };
        let ours = event.paths.iter().any(|path| path.file_name().map(PathBuf::from) == file);
        if ours && !matches!(event.kind, EventKind::Access(_)) {
            changed.notify_one();
        }
    })?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(dir, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}
