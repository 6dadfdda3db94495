//! A block of the events on the disk is damaged: everything that shows the state says so, what needs it says so at once,
//! and what is left goes on in a new directory.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use netstead_client::types::ClaimInput;
use netstead_store::{LocalReader, StoreError, each_readable};

use crate::{notifications::WebhookServer, resolve::Stopwatch, sandbox::Sandbox};

/// Whether the keys with `prefix` can all be read.
async fn is_whole(dir: &Path, prefix: &str) -> bool {
    let Ok(reader) = LocalReader::open(dir).await else { return false };
    let read = each_readable(reader.snapshot(), prefix.as_bytes(), |_| Ok::<(), StoreError>(()));
    matches!(read.await, Ok(None))
}

/// Changes a bit of a table so that an event cannot be read, and everything else can.
async fn damage_an_event(dir: &Path) {
    let tables = fs::read_dir(dir.join("db/keyspaces/1/tables")).unwrap();
    let mut tables: Vec<PathBuf> = tables.map(|entry| entry.unwrap().path()).collect();
    tables.sort_by_key(|path| fs::metadata(path).unwrap().len());
    let table = tables.last().unwrap();
    let intact = fs::read(table).unwrap();
    for place in (0..intact.len()).step_by(50_000) {
        let mut bytes = intact.clone();
        bytes[place] ^= 0x10;
        fs::write(table, bytes).unwrap();
        let others = [
            "access/",
            "cluster/",
            "dns/",
            "engine/",
            "ledger/addr/",
            "ledger/head",
            "ledger/pool/",
            "meta/",
        ];
        let mut fine = !is_whole(dir, "ledger/event/").await;
        for prefix in others {
            fine = fine && is_whole(dir, prefix).await;
        }
        if fine {
            return;
        }
    }
    panic!("no place holds an event");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_event_is_shown_everywhere_and_everything_else_is_kept() {
    let ear = WebhookServer::open();
    let mut sandbox = Sandbox::empty();
    let file = format!("[notify]\nurl = \"{}\"\nformat = \"line\"\n", ear.url);
    fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.0.0/16");
    let client = sandbox.client();
    for number in 0..800_u64 {
        // Text that cannot be packed fills blocks of its own.
        let noise: String = (0..120_u64)
            .map(|place| {
                char::from(b'a' + u8::try_from((number * 7919 + place * place * 104_729) % 26).unwrap())
            })
            .collect();
        let input = ClaimInput { description: Some(noise), ..ClaimInput::default() };
        client.claim("lan", &format!("m{number}"), &input).await.unwrap();
    }
    let holder = sandbox.does("get claims --pool lan --key m42 -o json");
    sandbox.stop();
    damage_an_event(&sandbox.data()).await;

    sandbox.start(&[]);
    let begun = Stopwatch::start();
    let said = sandbox.fails("get events --limit 0");
    assert!(
        said.err.contains("the stored ledger is damaged: ") && said.err.contains("`ledger/event/"),
        "{}",
        said.err
    );
    assert!(begun.elapsed() < Duration::from_secs(15), "it must not wait for its timeout");
    sandbox.does("get events --limit 1");
    assert_eq!(sandbox.does("get claims --pool lan --key m42 -o json"), holder);
    sandbox.does("claim lan one-more");

    let ready = sandbox.get("/readyz");
    assert!(
        ready.starts_with("HTTP/1.1 200 OK") && ready.contains("degraded, leading: events cannot be read"),
        "{ready}"
    );
    assert!(sandbox.get("/metrics").contains("\nnetstead_store_damaged 1\n"));
    let status = sandbox.netstead(["status", "--check"]);
    let text = status.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.code == 1 && text.contains("is degraded"), "{}", status.out);
    assert!(
        text.contains("The store is damaged, and all else is served: events cannot be read in full"),
        "{text}"
    );
    assert!(sandbox.netstead(["doctor"]).out.contains("it is damaged: events cannot be read in full"));
    ear.wait_for("The store is damaged: events cannot be read in full");

    let said = sandbox.fails("store backup whole.backup");
    assert!(said.err.contains("the store is damaged: events cannot be read in full"), "{}", said.err);
    assert!(said.err.contains("--leave-out-damaged FILE"), "{}", said.err);
    assert!(!sandbox.path().join("whole.backup").exists());
    sandbox.stop();

    let data = sandbox.data();
    let said = sandbox.netstead(
        format!("store backup --local --leave-out-damaged left.backup --data-dir {}", data.display())
            .split(' '),
    );
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("left out: events between `ledger/event/"), "{}", said.err);
    fs::rename(&data, sandbox.path().join("damaged")).unwrap();
    sandbox.does(&format!("store restore left.backup --data-dir {}", data.display()));
    sandbox.start(&[]);
    let whole: Vec<serde_json::Value> =
        serde_json::from_str(&sandbox.does("get claims --pool lan -o json")).unwrap();
    assert_eq!(whole.len(), 801);
    assert_eq!(sandbox.get("/readyz").lines().last(), Some("ok, leading"));
    sandbox.does("get events --limit 0");
    sandbox.does("resume");
    sandbox.does("claim lan two-more");
    sandbox.does("store backup whole.backup");
}
