//! A local store that is only read: for what is left of a damaged one.

use std::{fmt, path::Path, sync::Arc};

use super::{
    data_dir::DataDir,
    recovery,
    shared_state::{DatabaseKind, LocalShared},
    snapshot::LocalSnapshot,
};
use crate::{Snapshot, StoreError};

/// The store in a directory as it is now, for this process alone.
///
/// Unlike [`super::LocalStore`] it needs nothing but the tables that are read: what fails when files are merged does not
/// matter here.
pub struct LocalReader {
    view: LocalSnapshot,
    shared: Arc<LocalShared>,
    _dir: DataDir,
}

impl fmt::Debug for LocalReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReader").field("path", &self.shared.path()).finish_non_exhaustive()
    }
}

impl LocalReader {
    /// Opens the store in `dir`, which must be there.
    pub async fn open(dir: &Path) -> Result<Self, StoreError> {
        let dir = dir.to_path_buf();
        tokio::task::spawn_blocking(move || Self::open_blocking(&dir))
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable { reason: error.to_string() }))
    }

    fn open_blocking(dir: &Path) -> Result<Self, StoreError> {
        let dir = DataDir::acquire(dir)?;
        let engine = recovery::open_to_read(&dir)
            .map_err(|trouble| trouble.into_error(dir.path(), DatabaseKind::Own))?;
        let revision =
            engine.revision().map_err(|trouble| trouble.into_error(dir.path(), DatabaseKind::Own))?;
        let shared = Arc::new(LocalShared::closed(dir.path(), DatabaseKind::Own, revision));
        shared.publish_engine(engine);
        let view = LocalSnapshot::capture(&shared)?;
        Ok(Self { view, shared, _dir: dir })
    }

    pub fn snapshot(&self) -> &dyn Snapshot {
        &self.view
    }
}

impl Drop for LocalReader {
    fn drop(&mut self) {
        if let Some(engine) = self.shared.withdraw_engine() {
            engine.close();
        }
    }
}
