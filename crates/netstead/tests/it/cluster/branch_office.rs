//! A cluster of three nodes whose pool draws from a head office. Nodes of either side are killed, the link is cut, and
//! hundreds wait when it is back: nothing is lost, doubled or leaked.
//!
//! `cargo xtask faults` cuts the link for a minute and goes three rounds; the tests do the same in short.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use netstead_testkit::{
    Link,
    history::{Action, Held, History, Outcome, check},
    wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    nodes::{Http, run},
    raft,
};
use crate::sandbox::Sandbox;

/// How long it may take until all is well again.
const PATIENCE: Duration = Duration::from_mins(3);
const CLIENTS: usize = 4;

/// How long it goes on.
struct Length {
    rounds: usize,
    /// Between two faults.
    pause: Duration,
    cut: Duration,
    waiters: usize,
}

fn length() -> Length {
    if std::env::var_os("NETSTEAD_FAULT_OPERATIONS").is_some() {
        let (pause, cut) = (Duration::from_secs(5), Duration::from_mins(1));
        return Length { rounds: 3, pause, cut, waiters: 500 };
    }
    Length { rounds: 1, pause: Duration::from_millis(700), cut: Duration::from_secs(2), waiters: 100 }
}

/// The head office, the link to it, and the branch.
struct Offices {
    head: Sandbox,
    link: Link,
    branch: raft::Nodes,
}

impl Offices {
    fn start() -> Self {
        let head = Sandbox::with_server();
        // Waiters of all rounds are kept, so the longest run needs more than 1,500 addresses.
        head.does("pool create branch-7 --range 10.7.0.1-10.7.15.254 --cooldown 0");
        let token = head.does("token create branch-7 --role claim --pool branch-7");
        let file = head.path().join("branch-7.token");
        std::fs::write(&file, token.trim()).unwrap();
        let at = head.url().trim_start_matches("http://").parse().unwrap();
        let link = Link::before(Ipv4Addr::LOCALHOST.into(), at).unwrap();
        let more = format!(
            "\n[backend.head-office]\ntype = \"netstead\"\nurl = \"http://{}\"\ntoken = {{ file = \"{}\" }}\n\
             \n[pool.lan]\nbackend = \"head-office\"\nbackend_pool = \"branch-7\"\ncooldown = \"0\"\n",
            link.address(),
            file.display()
        );
        let branch = raft::Nodes::start_with(&more);
        let offices = Self { head, link, branch };
        let made = wait_until(PATIENCE, || {
            let (status, _) = offices.branch.ask(0, Method::GET, "/pools/lan", None);
            (status == 200).then_some(())
        });
        assert!(made.is_some(), "the pool of the file is made");
        offices
    }

    /// Kills a node of the branch and starts it again.
    fn kill_in_the_branch(&mut self, node: usize, pause: Duration) {
        self.branch.kill(node);
        thread::sleep(pause);
        self.branch.servers[node] = Some(run(&self.branch.sandboxes[node]));
        self.branch.ready(node);
    }

    fn kill_the_head(&mut self, pause: Duration) {
        self.head.kill();
        thread::sleep(pause);
        self.head.start(&[]);
    }

    /// All pages of a list at a node of the branch.
    fn claims(&self) -> Vec<Value> {
        list(|after| {
            let path = format!("/claims?pool=lan&limit=1000{after}");
            let (status, page) = self.branch.ask(self.branch.leader(), Method::GET, &path, None);
            (status == 200).then_some(page)
        })
    }

    fn held_at_the_head(&self) -> Vec<Value> {
        list(|after| {
            let url = format!("{}/api/v1/claims?pool=branch-7&limit=1000{after}", self.head.url());
            let answer = self.branch.http.ask(Method::GET, &url, &self.head.token(), &[], None);
            (answer.status == 200).then_some(answer.body)
        })
    }
}

fn list(page: impl Fn(&str) -> Option<Value>) -> Vec<Value> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let found = wait_until(PATIENCE, || page(&after)).expect("a list is answered");
        all.extend(found["items"].as_array().unwrap().iter().cloned());
        match found["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// Claims and releases at any node until `stop`, and notes what it was told.
fn work(number: usize, nodes: &[(String, String)], history: &History, stop: &AtomicBool) {
    let http = Http::new();
    let mut held: Vec<Held> = Vec::new();
    let mut turn = number;
    while !stop.load(Ordering::Relaxed) {
        turn += 1;
        let (url, token) = &nodes[turn % nodes.len()];
        let at = |key: &str| format!("{url}/api/v1/pools/lan/claims/{key}");
        if held.len() > 12 || (turn.is_multiple_of(3) && !held.is_empty()) {
            let Held { key, id, .. } = held.remove(0);
            let begun = history.begin(number, Action::Release { key: key.clone(), id: id.clone() });
            let answer = http.ask(Method::DELETE, &format!("{}?id={id}", at(&key)), token, &[], None);
            begun.end(match (answer.status, answer.body["outcome"].as_str()) {
                (200, Some("released")) => Outcome::Released,
                (200, _) => Outcome::Gone,
                _ => Outcome::Unknown,
            });
        } else {
            let key = format!("client-{number}-{}", turn % 40);
            let begun = history.begin(number, Action::Claim { key: key.as_str().into(), exact: None });
            let answer = http.ask(Method::PUT, &at(&key), token, &[], Some(json!({})));
            let text = |name: &str| answer.body[name].as_str().map(str::to_owned);
            match (answer.status, text("address"), text("id")) {
                (200 | 201, Some(address), Some(id)) => {
                    let claim = Held::new(&key, &address, &id);
                    held.retain(|other| other.key != claim.key);
                    held.push(claim.clone());
                    begun.end(Outcome::Holds(claim));
                }
                _ => begun.end(Outcome::Unknown),
            }
        }
    }
}

#[test]
fn nothing_is_lost_doubled_or_leaked_while_nodes_of_either_side_die_and_the_link_is_cut() {
    let length = length();
    let mut offices = Offices::start();
    let nodes: Vec<(String, String)> =
        offices.branch.sandboxes.iter().map(|sandbox| (sandbox.url(), sandbox.token())).collect();
    let (history, stop) = (History::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (nodes, history, stop) = (&nodes, &history, &stop);
            scope.spawn(move || work(number, nodes, history, stop));
        }
        // Clients end also if a fault cannot be made.
        let _ending = Ending(&stop);
        for round in 0..length.rounds {
            goes_on(&history, 60);
            let leader = offices.branch.leader();
            offices.kill_in_the_branch(leader, length.pause);
            offices.kill_the_head(length.pause);
            let follower = (offices.branch.leader() + 1) % 3;
            offices.kill_in_the_branch(follower, length.pause);
            cut(&mut offices, round, &length);
        }
        goes_on(&history, 20);
    });
    settle(&offices);

    let (claims, head) = (offices.claims(), offices.held_at_the_head());
    let bound = |list: &[Value], key: &str| -> BTreeMap<String, String> {
        let text = |claim: &Value, name: &str| claim[name].as_str().unwrap_or_default().to_owned();
        list.iter().map(|claim| (text(claim, key), text(claim, "address"))).collect()
    };
    let (ours, theirs) = (bound(&claims, "backend_key"), bound(&head, "key"));
    assert_eq!(ours, theirs, "the head office holds exactly what the branch has account of");
    assert_eq!(ours.len(), claims.len(), "no key has two claims");
    let addresses: BTreeSet<&String> = ours.values().collect();
    assert_eq!(addresses.len(), ours.len(), "no address has two holders");
    for round in 0..length.rounds {
        for number in 0..length.waiters {
            let key = format!("/lan/waiter-{round}-{number}");
            assert!(ours.keys().any(|held| held.ends_with(&key)), "{key} was served");
        }
    }
    if let Err(violations) = check(&history.operations(), &[]) {
        let told: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        panic!("{} impossible things, among them:\n{}", violations.len(), told.join("\n"));
    }
    let answered = history.operations().iter().filter(|done| done.outcome != Outcome::Unknown).count();
    println!("{} operations, {answered} of them answered; {} claims in the end", history.count(), ours.len());
    assert!(answered > 50, "hardly anything was answered");
}

/// Waits until so many more operations were answered.
fn goes_on(history: &History, more: usize) {
    let answered = || history.operations().iter().filter(|done| done.outcome != Outcome::Unknown).count();
    let before = answered();
    let reached = wait_until(PATIENCE, || (answered() >= before + more).then_some(()));
    assert!(reached.is_some(), "nothing is answered any more after {before} operations");
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cuts the link, kills the leader meanwhile, and lets hundreds wait.
fn cut(offices: &mut Offices, round: usize, length: &Length) {
    offices.link.cut();
    let leader = offices.branch.leader();
    for number in 0..length.waiters {
        let path = format!("/pools/lan/claims/waiter-{round}-{number}");
        let body = json!({"wait": "1ms", "keep": true});
        offices.branch.done((leader + number) % 3, &Method::PUT, &path, &body);
    }
    offices.kill_in_the_branch(leader, length.pause);
    thread::sleep(length.cut);
    offices.link.mend();
}

/// Waits until nothing waits and nothing is on its way back.
fn settle(offices: &Offices) {
    let calm = wait_until(PATIENCE, || {
        let waits = offices.claims().iter().any(|claim| claim["address"].is_null());
        let path = "/addresses?pool=lan&state=giving-back";
        let (status, page) = offices.branch.ask(offices.branch.leader(), Method::GET, path, None);
        let owed = status != 200 || page["items"].as_array().is_none_or(|items| !items.is_empty());
        (!waits && !owed).then_some(())
    });
    assert!(calm.is_some(), "something still waits: {:?}", offices.claims().first());
}

#[test]
fn every_node_shows_how_full_the_backend_said_its_pool_is() {
    let offices = Offices::start();
    // Its own claims the ledger counts; this one only the backend knows.
    offices.head.does("claim branch-7 printer");
    let ask = |node: usize, path: &str| offices.branch.ask(node, Method::GET, path, None);
    let leader = offices.branch.leader();
    let size = 15 * 256 + 254;
    for node in [leader, (leader + 1) % 3, (leader + 2) % 3] {
        let shown = wait_until(PATIENCE, || {
            let (_, pool) = ask(node, "/pools/lan");
            pool["described"].is_string().then_some(pool)
        });
        let pool = shown.unwrap_or_else(|| panic!("node {node}: {:?}", ask(node, "/pools/lan")));
        assert_eq!(pool["usage"]["size"], size.to_string(), "{pool}");
        let (status, page) = ask(node, "/pools");
        assert_eq!((status, &page["items"][0]["described"]), (200, &pool["described"]), "{page}");
        assert_eq!(page["items"][0]["usage"]["free"], pool["usage"]["free"], "{page}");
        let (status, all) = ask(node, "/status");
        let backends = json!([{"name": "head-office", "paused": false}]);
        assert_eq!((status, &all["backends"]), (200, &backends), "{all}");
    }
}
