//! Keys that no path of a URL can hold: nothing new gets one, and what has one from before lives on.

use insta::assert_snapshot;
use netstead_ledger::{Command, Options};
use netstead_model::Span;
use netstead_store::{Commit, MemoryStore, Store};
use std::sync::Arc;

use crate::support::{House, any, claim, key, target};

fn reserve(name: &str, range: &str) -> Command {
    let range = range.parse().unwrap();
    Command::Reserve { pool: "lan".parse().unwrap(), key: key(name), range, description: None }
}

fn moved(from: &str, to: &str) -> Command {
    Command::Move { target: target("lan", from, None), key: key(to), owner: None }
}

#[tokio::test]
async fn nothing_new_gets_a_key_that_is_a_step_in_a_path() {
    let house = House::with_lan().await;
    house.claim("ann", "lan", "web").await;
    let waits = claim("lan", "..", |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    let bulk = Command::Bulk(vec![any("lan", "db"), any("lan", ".")]);
    let mut said = Vec::new();
    for command in [any("lan", "."), waits, moved("web", ".."), reserve(".", "10.0.3.58"), bulk] {
        said.push(house.say("ann", command).await);
    }
    assert_snapshot!(said.join("\n"), @r"
    refused: key: `.` cannot be a key: in the path of a URL it means another place; use another
    refused: key: `..` cannot be a key: in the path of a URL it means another place; use another
    refused: key: `..` cannot be a key: in the path of a URL it means another place; use another
    refused: key: `.` cannot be a key: in the path of a URL it means another place; use another
    refused: entry 1, `.`: key: `.` cannot be a key: in the path of a URL it means another place; use another
    ");
    // Others with dots in them are fine.
    assert_snapshot!(house.say("ann", any("lan", "...")).await, @"10.0.3.51 for ... of ann, new");
    assert_snapshot!(house.say("ann", any("lan", "a/..")).await, @"10.0.3.52 for a/.. of ann, new");
}

#[tokio::test]
async fn what_has_such_a_key_from_before_is_read_and_let_go() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let house = House::on(store.clone(), Options::default()).await;
    house.make("lan", "10.0.3.50-10.0.3.59").await;
    for name in ["x1", "x2"] {
        house.claim("ann", "lan", name).await;
    }
    house.ask("ann", reserve("x3", "10.0.3.58")).await.unwrap();
    house.ledger.close().await;
    // As an earlier version would have written it.
    let entries = store.snapshot().await.unwrap().range(b"ledger/", None, 1000).await.unwrap();
    let mut commit = Commit::new();
    for entry in entries {
        let text = String::from_utf8(entry.value).unwrap();
        let older = text.replace("\"x1\"", "\"..\"").replace("\"x2\"", "\".\"").replace("\"x3\"", "\"..\"");
        if older != text {
            commit = commit.put(entry.key, older);
        }
    }
    store.commit(commit).await.unwrap();

    let house = House::on(store, Options::default()).await;
    let release = |name: &str| Command::Release(target("lan", name, None));
    let unreserve = Command::Unreserve { pool: "lan".parse().unwrap(), key: key("..") };
    let mut said = Vec::new();
    for command in [
        any("lan", ".."),
        reserve("..", "10.0.3.58"),
        Command::Renew { target: target("lan", "..", None), ttl: Some(Span::from_secs(60)) },
        moved("..", ".."),
        moved("..", "."),
        moved(".", "web"),
        release(".."),
        release("."),
        unreserve,
        any("lan", ".."),
    ] {
        said.push(house.say("ann", command).await);
    }
    assert_snapshot!(said.join("\n"), @r"
    10.0.3.50 for .. of ann, again
    10.0.3.58 reserved for ..
    10.0.3.50 renewed for Some(60s)
    10.0.3.50 is now .. of ann
    refused: key: `.` cannot be a key: in the path of a URL it means another place; use another
    10.0.3.51 is now web of ann
    10.0.3.50 released
    already gone
    Gone(true)
    refused: key: `..` cannot be a key: in the path of a URL it means another place; use another
    ");
}
