//! Tests that a typo in the configuration never leads to a delete.
//!
//! Every line of a working file is mutated; every mutation that can still be read is applied beside a real PowerDNS.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::{collections::BTreeSet, path::Path, sync::Arc};

use netstead_api::Meter;
use netstead_engine::{Engine, Options};
use netstead_model::{DnsProvider as _, Name, RecordData, SystemClock};
use netstead_providers::{
    Secret,
    dns::powerdns::{Config as Api, PowerDns},
};
use netstead_sources::{Hosts, hosts};
use netstead_store::{Commit, MAX_WRITES, MemoryStore, Store};
use netstead_testkit::PowerDns as Server;

use super::{setup::Parts, target_follower::TargetFollower};
use crate::config::{self, Config};

const ZONES: [&str; 3] = ["home.test", "lab.test", "3.0.10.in-addr.arpa"];
const HOSTS: &str = "10.0.3.1 nas.home.test\n10.0.3.2 web1.home.test\n10.0.3.3 tv.home.test\n10.0.3.4 a.lab.test\n\
                     10.0.3.5 b.lab.test\n10.0.3.6 secret.home.test\n10.0.3.7 home.test\n";
/// So many mutations of a line are tried: those of other lines tell more.
const MOST: usize = 3;

/// A file with everything in it; no guard but what this is about keeps anything.
fn file(server: &Server) -> String {
    format!(
        r#"[source.office]
type = "hosts"
path = "office.hosts"
domains = ["home.test", "lab.test"]
types = ["A", "AAAA"]
wildcard = true
apex = true

[dns.lan]
type = "powerdns"
url = "{}"
api_key = "{}"
server_id = "localhost"
domains = ["home.test", "*.lab.test"]
exclude_domains = ["secret.home.test"]
mode = "managed"
record_type = "A"
types = ["A", "PTR", "TXT"]
wildcard = true
apex = true
ttl = 120
grace = "0s"
ended_grace = "1s"
breaker = {{ changes = 1000, percent = 100, total = 1000, window = "10m" }}
adopt = false
share = false
reverse = true
interval = "10m"
full_interval = "1h"
owner = "blue"

[domain."home.test"]
networks = ["10.0.3.0/24"]

[domain."lab.test"]
template = "{{name}}.{{domain}}"
"#,
        server.api_url(),
        server.api_key()
    )
}

/// A line without one character, with one twice, with two swapped, twice, and not at all.
fn mutations(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let with = |at: usize, line: &[&str]| -> (usize, String) {
        let whole = [&lines[..at], line, &lines[at + 1..]].concat();
        (at, whole.join("\n") + "\n")
    };
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        found.push(with(at, &[]));
        found.push(with(at, &[line, line]));
        // All lines are ASCII.
        for place in 0..line.len() {
            let (front, back) = line.split_at(place);
            found.push(with(at, &[&format!("{front}{}", &back[1..])]));
            found.push(with(at, &[&format!("{front}{}{back}", &back[..1])]));
            if back.len() > 1 {
                found.push(with(at, &[&format!("{front}{}{}{}", &back[1..2], &back[..1], &back[2..])]));
            }
        }
    }
    found
}

fn read(dir: &Path, text: &str) -> Option<Config> {
    config::read(Some((&dir.join("netstead.toml"), text)), [], &[]).ok()
}

/// Files that can be read and mean something else, some of each line.
fn meaningful(dir: &Path, text: &str) -> Vec<(String, Config)> {
    let mut known = BTreeSet::from([format!("{:?}", read(dir, text).unwrap())]);
    let mut chosen: Vec<(usize, String, Config)> = Vec::new();
    for (line, text) in mutations(text) {
        if let Some(config) = read(dir, &text).filter(|config| known.insert(format!("{config:?}"))) {
            chosen.push((line, text, config));
        }
    }
    let mut kept = Vec::new();
    for of_line in chosen.chunk_by(|one, other| one.0 == other.0) {
        let step = of_line.len().div_ceil(MOST);
        kept.extend(of_line.iter().step_by(step).map(|(_, text, config)| (text.clone(), config.clone())));
    }
    kept
}

async fn copy(store: &dyn Store) -> Arc<dyn Store> {
    let copy = MemoryStore::new();
    let entries = store.snapshot().await.unwrap().range(b"", None, 100_000).await.unwrap();
    for some in entries.chunks(MAX_WRITES) {
        let put = |commit: Commit, entry: &netstead_store::Entry| {
            commit.put(entry.key.clone(), entry.value.clone())
        };
        copy.commit(some.iter().fold(Commit::new(), put)).await.unwrap();
    }
    copy.lead().await.unwrap();
    Arc::new(copy)
}

fn parts(store: &Arc<dyn Store>, dir: &Path) -> Parts {
    // Claims are no matter of the file; another file stands for them.
    let claims = hosts::Config { path: dir.join("claims.hosts") };
    let ledger = Hosts::new("ledger".parse().unwrap(), claims, SystemClock::shared());
    let targets = Arc::new(TargetFollower::new(Arc::clone(store)));
    let parts = Parts::new(Arc::clone(store), Arc::new(ledger), Meter::default(), targets);
    parts.owner.set("blue".parse().unwrap()).unwrap();
    parts
}

async fn start(parts: &Parts, config: &Config) -> Engine {
    let setup = parts.setup(config).await.unwrap();
    Engine::start(Arc::clone(&parts.store), SystemClock::shared(), setup, Options::default()).await.unwrap()
}

/// Records that the applied plans removed.
async fn removed(engine: &Engine) -> Vec<String> {
    let mut removed = Vec::new();
    for provider in ["lan", "builtin"] {
        for plan in engine.applied(&provider.parse().unwrap()).await.unwrap() {
            let steps = plan.steps.iter().map(|step| &step.step);
            removed.extend(steps.flat_map(|step| {
                step.forgets.iter().map(move |data| format!("{provider}: {} {data}", step.unit.name))
            }));
        }
    }
    removed
}

async fn values(server: &PowerDns) -> BTreeSet<(Name, RecordData)> {
    let mut values = BTreeSet::new();
    for zone in ZONES {
        for set in server.read(&zone.parse().unwrap()).await.unwrap().sets {
            let name = set.name.clone();
            values.extend(set.values.into_iter().map(|value| (name.clone(), value)));
        }
    }
    values
}

/// Puts `bad` in force after `good`: nothing may be removed. Whether a person is asked.
async fn put_in_force(store: Arc<dyn Store>, dir: &Path, good: &Config, text: &str, bad: &Config) -> bool {
    let parts = parts(&store, dir);
    let engine = start(&parts, good).await;
    if let Ok(setup) = parts.setup(bad).await
        && engine.reconfigure(setup).await.is_ok()
    {
        // Twice: an absence must be seen twice to be believed.
        engine.apply(None).await.unwrap();
        engine.apply(None).await.unwrap();
    }
    let (removed, status) = (removed(&engine).await, engine.status());
    engine.close().await;
    assert!(removed.is_empty(), "this file removed {removed:#?}:\n{text}");
    status.providers.iter().any(|provider| provider.parked.is_some())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typo_in_any_key_or_value_deletes_nothing() {
    let Some(server) = Server::start(&ZONES) else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("office.hosts"), HOSTS).unwrap();
    std::fs::write(dir.join("claims.hosts"), "10.0.3.50 claim-1.home.test\n").unwrap();
    let text = file(&server);
    let good = read(dir, &text).unwrap();

    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    store.lead().await.unwrap();
    let engine = start(&parts(&store, dir), &good).await;
    engine.apply(None).await.unwrap();
    engine.close().await;
    let api = PowerDns::new(Api::new(server.api_url(), Secret::new(server.api_key()))).unwrap();
    let before = values(&api).await;
    assert!(before.len() > 20, "{before:#?}");

    let mutants = meaningful(dir, &text);
    assert!(mutants.len() >= 40, "{}", mutants.len());
    let mut running = tokio::task::JoinSet::new();
    let mut asked = 0;
    for (text, bad) in mutants {
        if running.len() >= 12 {
            asked += usize::from(running.join_next().await.unwrap().unwrap());
        }
        let (store, dir, good) = (copy(&*store).await, dir.to_owned(), good.clone());
        running.spawn(async move { put_in_force(store, &dir, &good, &text, &bad).await });
    }
    while let Some(done) = running.join_next().await {
        asked += usize::from(done.unwrap());
    }
    assert!(asked > 0, "some of them would have removed something, and nobody was asked");
    let after = values(&api).await;
    assert!(after.is_superset(&before), "{:#?}", before.difference(&after).collect::<Vec<_>>());
}
