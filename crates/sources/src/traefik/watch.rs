//! Noticing that files changed.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

/// Watches directories with all below them, and the directory of each single file: editors write a new file and rename
/// it over the old one.
///
/// Where the system cannot watch (a network file system, too many watches), the timer alone finds changes.
#[derive(Debug)]
pub(super) struct Watch {
    paths: Vec<PathBuf>,
    changed: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watcher: Option<RecommendedWatcher>,
    /// Not yet watched: not there, or refused.
    missing: Vec<PathBuf>,
    told: bool,
}

impl Watch {
    pub(super) fn new(paths: Vec<PathBuf>) -> Self {
        let changed = Arc::new(Notify::new());
        let signal = Arc::clone(&changed);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if !matches!(event, Ok(notify::Event { kind: EventKind::Access(_), .. })) {
                signal.notify_one();
            }
        });
        if let Err(error) = &watcher {
            tracing::warn!(%error, "Files cannot be watched; they are looked at now and then.");
        }
        let state = State { watcher: watcher.ok(), missing: paths.clone(), told: false };
        let watch = Self { paths, changed, state: Mutex::new(state) };
        watch.renew();
        watch
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Watches what was not there before.
    pub(super) fn renew(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { watcher: Some(watcher), missing, told } = &mut *state else { return };
        // A directory that was replaced is another one to the system.
        missing.extend(self.paths.iter().filter(|path| !path.exists()).cloned());
        missing.sort();
        missing.dedup();
        missing.retain(|path| {
            let watched = begin(watcher, path);
            if let Err(error) = &watched
                && path.exists()
                && !*told
            {
                tracing::warn!(path = %path.display(), %error, "A path cannot be watched; it is looked at now and then.");
                *told = true;
            }
            watched.is_err()
        });
    }
}

fn begin(watcher: &mut RecommendedWatcher, path: &Path) -> notify::Result<()> {
    if path.is_dir() {
        return watcher.watch(path, RecursiveMode::Recursive);
    }
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watcher.watch(parent, RecursiveMode::NonRecursive)?;
    if path.exists() { Ok(()) } else { Err(notify::Error::path_not_found()) }
}
