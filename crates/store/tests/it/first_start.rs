//! Kills during the very first start, where fjall alone leaves directories that never open again.

use std::{thread::sleep, time::Duration};

use netstead_store::Store;
use tempfile::tempdir;

use crate::{
    child::{Process, Role},
    support::{Dice, open, put},
};

const DIRECTORIES: u64 = 20;
const KILLS_EACH: u64 = 4;

#[tokio::test]
async fn a_store_killed_while_it_is_created_opens_afterwards() {
    let mut dice = Dice::new(11);
    let mut complete = 0;
    for number in 0..DIRECTORIES {
        let dir = tempdir().unwrap();
        for kill in 0..KILLS_EACH {
            let mut process = Process::start(Role::Hold, dir.path());
            assert_eq!(process.next().as_deref(), Some("begin"));
            // Creating takes 20 ms here and 200 ms on a busy machine: kill within the first 1 to 256 ms.
            let longest = 1_000 << dice.below(9);
            sleep(Duration::from_micros(dice.below(longest)));
            let said = process.kill();
            assert!(said.is_empty() || said == ["open"], "directory {number}, kill {kill}: {said:?}");
            complete += said.len();
        }
        let store = open(dir.path()).await;
        put(&store, "a", "1").await.unwrap();
        store.close().await;
    }
    println!("{} kills, {complete} of them after the store was open", DIRECTORIES * KILLS_EACH);
}
