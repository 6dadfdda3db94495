//! One process per directory.

use netstead_store::{LocalStore, Store, StoreError};
use tempfile::tempdir;

use crate::{
    child::{Process, Role},
    support::open,
};

#[tokio::test]
async fn a_second_process_is_told_who_has_the_directory() {
    let dir = tempdir().unwrap();
    let mut process = Process::start(Role::Hold, dir.path());
    assert_eq!(process.next().as_deref(), Some("begin"));
    assert_eq!(process.next().as_deref(), Some("open"));

    let error = LocalStore::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "another netstead (process {}) runs on {}; stop it first, or give this one a directory of its own",
            process.id(),
            dir.path().display()
        )
    );
    process.kill();
    open(dir.path()).await.close().await;
}

#[tokio::test]
async fn a_store_that_is_dropped_gives_its_directory_back() {
    let dir = tempdir().unwrap();
    for _ in 0..3 {
        drop(open(dir.path()).await);
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = LocalStore::open(&file.join("below")).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains(&*file.join("below").to_string_lossy()), "{error}");
}
