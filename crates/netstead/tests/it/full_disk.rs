//! The disk is full: callers are told, `/readyz` says so, and it heals by itself when there is room again.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use netstead_client::{ClaimQuery, Client, types::ClaimInput};
use netstead_testkit::Tmpfs;

use crate::sandbox::Sandbox;

/// Large enough that the disk is full after some hundred claims.
fn large() -> ClaimInput {
    ClaimInput { description: Some("x".repeat(1000)), ..ClaimInput::default() }
}

async fn claim_until<T>(
    client: &Client,
    acknowledged: &mut BTreeMap<String, String>,
    done: impl Fn(&Result<String, String>) -> Option<T>,
) -> T {
    for _ in 0..20_000 {
        let key = format!("machine-{}", acknowledged.len());
        let result =
            client.claim("big", &key, &large()).await.map(|(claim, _)| claim.address.unwrap_or_default());
        let result = result.map_err(|error| error.to_string());
        if let Ok(address) = &result {
            acknowledged.insert(key, address.clone());
        }
        if let Some(found) = done(&result) {
            return found;
        }
        if result.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    panic!("it never happened, after {} claims", acknowledged.len());
}

fn ready(sandbox: &Sandbox) -> String {
    let address = sandbox.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_an_error_to_the_caller_and_heals() {
    let Some(disk) = Tmpfs::mount(48 << 20) else { return };
    let mut sandbox = Sandbox::empty();
    std::os::unix::fs::symlink(disk.path(), sandbox.data()).unwrap();
    sandbox.start(&[]);
    sandbox.does("pool create big --range 10.0.0.0/8");
    let client = sandbox.client();
    let mut acknowledged = BTreeMap::new();
    claim_until(&client, &mut acknowledged, |result| result.as_ref().ok().map(|_| ())).await;

    disk.fill().unwrap();
    let told = claim_until(&client, &mut acknowledged, |result| result.as_ref().err().cloned()).await;
    assert!(told.contains("full") || told.contains("space"), "{told}");
    let answer = ready(&sandbox);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("full"), "{answer}");

    // No other process can write to this store, so the server knows its newest state.
    let count = sandbox.does("get claims -o name").lines().count();
    assert_eq!(count, acknowledged.len());
    let said = sandbox.netstead(["status"]);
    assert!(said.code == 1 && said.err.is_empty(), "{said:?}");
    let first = said.out.lines().next().unwrap_or_default();
    assert!(first.contains(" is not ready: the disk of ") && first.contains(" is full"), "{}", said.out);
    assert!(said.out.contains("\nbig ") && !said.out.contains("\nStale "), "{}", said.out);

    disk.free().unwrap();
    claim_until(&client, &mut acknowledged, |result| result.as_ref().ok().map(|_| ())).await;
    assert!(ready(&sandbox).starts_with("HTTP/1.1 200"));
    let there: BTreeMap<String, String> = client
        .all(ClaimQuery::default())
        .await
        .unwrap()
        .into_iter()
        .map(|claim| (claim.key, claim.address.unwrap_or_default()))
        .collect();
    for (key, address) in &acknowledged {
        assert_eq!(there.get(key), Some(address), "{key} was acknowledged");
    }
    sandbox.does("store check");
    sandbox.stop();
}
