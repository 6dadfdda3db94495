//! What DNS servers are told while leaders die or stand still: newer plans only, and in the end everything.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use netstead_client::{
    ClaimQuery, Client,
    types::{ClaimInput, PoolInput},
};
use netstead_testkit::{Bind, Lan, PowerDns, until};
use tokio::time::sleep;

use super::{
    Backing, Cluster, Fault,
    cluster::{NODES, PATIENCE},
};
use crate::{
    resolve::{self, Stopwatch},
    scenarios::lab::Server,
};

const DOMAIN: &str = "home.test";

/// In how much time a server that cannot refuse a late write holds what it should.
const BACK: Duration = Duration::from_secs(10);

/// Epochs and generations as they were seen in one place, with when.
type Seen = Arc<Mutex<Vec<(Duration, u64, u64)>>>;

struct Observer {
    seen: Seen,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Looks all the time; what it sees may never go back.
    fn of(
        name: &'static str,
        watch: Stopwatch,
        look: impl Fn() -> Option<(u64, u64)> + Send + 'static,
    ) -> Self {
        let (seen, over) = (Seen::default(), Arc::new(AtomicBool::new(false)));
        let thread = thread::spawn({
            let (seen, over) = (Arc::clone(&seen), Arc::clone(&over));
            move || {
                while !over.load(Ordering::Relaxed) {
                    if let Some((epoch, generation)) = look() {
                        let mut seen = seen.lock().unwrap();
                        let last = seen.last().copied().unwrap_or_default();
                        assert!(
                            (epoch, generation) >= (last.1, last.2) && generation >= last.2,
                            "{name} went from {last:?} to epoch {epoch}, generation {generation}"
                        );
                        if (last.1, last.2) != (epoch, generation) {
                            seen.push((watch.elapsed(), epoch, generation));
                        }
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            }
        });
        Self { seen, over, thread: Some(thread) }
    }

    /// How long after `moment` something newer was applied.
    async fn next_after(&self, moment: Duration) -> Duration {
        let begun = Stopwatch::start();
        loop {
            let found = self.seen.lock().unwrap().iter().map(|(at, ..)| *at).find(|at| *at > moment);
            if let Some(at) = found {
                return at.saturating_sub(moment);
            }
            let seen = self.seen.lock().unwrap().len();
            assert!(begun.elapsed() < PATIENCE, "nothing newer is applied after {seen} generations");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// How many different ones were seen.
    fn end(mut self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "what is applied never goes back");
        self.seen.lock().unwrap().len()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Epoch and generation of the zone as the nameservers of all nodes have it, from the store itself.
fn own_fence(endpoints: &str) -> Option<(u64, u64)> {
    let output = std::process::Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", endpoints, "get", "--print-value-only", "--prefix", "/netstead/kv/dns/zone/"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let header =
        text.lines().find_map(|line| line.strip_prefix('1').filter(|line| line.contains("\"visible\"")))?;
    let header: serde_json::Value = serde_json::from_str(header).ok()?;
    Some((header["epoch"].as_u64()?, header["generation"].as_u64()?))
}

/// Claims and releases names all the time, of whichever node answers.
async fn work(clients: Vec<Client>, me: usize, over: Arc<AtomicBool>) {
    let (mut at, mut held) = (me, BTreeMap::<String, String>::new());
    for step in 0_usize.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let client = &clients[at % clients.len()];
        let key = format!("host-{me}-{}", step * 7 % 10);
        let done = match held.get(&key) {
            Some(id) => client.release("names", &key, id).await.map(|_| drop(held.remove(&key))),
            None => client.claim("names", &key, &ClaimInput::default()).await.map(|(claim, _)| {
                held.extend(claim.id.map(|id| (key, id)));
            }),
        };
        if done.is_err() {
            at += 1;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn names_survive(fault: Fault) {
    let (Some(bind), Some(powerdns)) = (Bind::start(&[DOMAIN]), PowerDns::start(&[DOMAIN])) else { return };
    let key = bind.key().clone();
    let config = format!(
        "[dns.own]\ntype = \"builtin\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
         [dns.bind]\ntype = \"rfc2136\"\nservers = [\"{}\"]\ntsig_name = \"{}\"\ntsig_algorithm = \"{}\"\n\
         tsig_secret = \"{}\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n\
         [dns.pdns]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"{DOMAIN}\"]\nreverse = false\n",
        bind.address(),
        key.name,
        key.algorithm,
        key.secret,
        powerdns.api_url(),
        powerdns.api_key(),
    );
    let lan = Lan::on_loopback(NODES + 1);
    let Some(mut cluster) = Cluster::start_on(lan, Backing::Etcd { members: 1 }, fault, &config) else {
        return;
    };
    cluster.begin().await;
    let clients = cluster.clients(Duration::from_secs(3));
    let pool = PoolInput {
        ranges: vec!["10.7.0.1-10.7.0.200".into()],
        domain: Some(DOMAIN.into()),
        cooldown: Some("0".into()),
        ..PoolInput::default()
    };
    clients[cluster.leader().await].create_pool("names", &pool).await.unwrap();
    let watch = Stopwatch::start();
    let endpoints = cluster.etcd().endpoints().join(",");
    let own = Observer::of("builtin", watch, move || own_fence(&endpoints));
    let (address, its_key) = (bind.address(), key.clone());
    let at_bind = thread::spawn(move || Server::at(address, &its_key)).join().unwrap();
    let seen_by_bind = Observer::of("BIND", watch, move || at_bind.fence(DOMAIN));
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> =
        (0..4).map(|me| tokio::spawn(work(clients.clone(), me, Arc::clone(&over)))).collect();
    seen_by_bind.next_after(Duration::ZERO).await;
    sleep(Duration::from_secs(2)).await;

    let leader = cluster.leader().await;
    let moment = watch.elapsed();
    match fault {
        Fault::LeaderKilled => cluster.nodes()[leader].kill(),
        _ => cluster.nodes()[leader].process().signal("STOP").unwrap(),
    }
    // What was on its way when it stopped may still arrive; what counts begins after that.
    let settled = moment + Duration::from_millis(300);
    let (took_own, took_bind) = (own.next_after(settled).await, seen_by_bind.next_after(settled).await);
    sleep(Duration::from_secs(2)).await;
    match fault {
        Fault::LeaderKilled => cluster.nodes()[leader].start(),
        _ => cluster.nodes()[leader].process().signal("CONT").unwrap(),
    }
    sleep(Duration::from_secs(3)).await;
    over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }

    let clients = cluster.clients(PATIENCE);
    let query = ClaimQuery { pool: Some("names".into()), ..ClaimQuery::default() };
    let claims = clients[cluster.leader().await].all(query).await.unwrap();
    let mut wanted: Vec<String> = claims
        .iter()
        .map(|claim| format!("{}.{DOMAIN} A {}", claim.key, claim.address.as_deref().unwrap()))
        .collect();
    wanted.sort();
    assert!(!wanted.is_empty());
    let leader = cluster.leader().await;
    let dns = cluster.nodes()[leader].dns();
    let (bind_at, powerdns_at) = (bind.address(), powerdns.address());
    let (bind_key, powerdns_key) = (key, powerdns.key().clone());
    let answers = claims.clone();
    // On a thread of its own: what looks at zones blocks.
    let looked = thread::spawn(move || {
        for (name, server) in
            [("BIND", Server::at(bind_at, &bind_key)), ("PowerDNS", Server::at(powerdns_at, &powerdns_key))]
        {
            let same = until(BACK, || (server.zone(DOMAIN).plain() == wanted).then_some(()));
            assert!(same.is_some(), "{name} wanted {wanted:#?}, got {:#?}", server.zone(DOMAIN).plain());
        }
        for claim in answers {
            let name = format!("{}.{DOMAIN}", claim.key);
            let same = until(BACK, || {
                resolve::a_at(dns, &name).filter(|answer| answer.values.first() == claim.address.as_ref())
            });
            assert!(same.is_some(), "{name} is not {:?} at {dns}", claim.address);
        }
    });
    looked.join().expect("no record is missing");
    let (own, bind) = (own.end(), seen_by_bind.end());
    assert!(own > 5 && bind > 5, "{own} and {bind} generations were seen: this tests nothing");
    eprintln!(
        "{fault}: {own} generations of our own zone and {bind} at BIND, never back; the next DNS change came {took_own:?} \
         and {took_bind:?} after the leader was gone"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_is_lost_or_goes_back_when_the_leader_is_killed() {
    names_survive(Fault::LeaderKilled).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_is_lost_or_goes_back_when_the_leader_stands_still() {
    names_survive(Fault::LeaderStopped).await;
}
