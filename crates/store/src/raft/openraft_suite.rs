//! Runs openraft's own tests of a storage.

use std::sync::Arc;

use openraft::{
    StorageError,
    testing::{StoreBuilder, Suite},
};
use tempfile::TempDir;

use super::{
    disk::Disk,
    log::Log,
    state_machine::StateMachine,
    types::{NodeId, Types},
};

struct Builder;

impl StoreBuilder<Types, Log, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, Log, StateMachine), StorageError<NodeId>> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::open(dir.path()).await.unwrap());
        let ours = Arc::default();
        let log = Log { disk: Arc::clone(&disk), ours: Arc::clone(&ours) };
        let machine = StateMachine { disk, progress: Arc::default(), ours };
        Ok((dir, log, machine))
    }
}

#[test]
fn openrafts_own_tests_of_a_storage_pass() {
    Suite::test_all(Builder).unwrap();
}
