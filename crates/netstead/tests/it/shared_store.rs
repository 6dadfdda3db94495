//! Two servers on one etcd: one leads, the other follows, and nothing is lost between them.

use std::time::Duration;

use netstead_model::{Clock as _, SystemClock};
use netstead_testkit::{DelayingProxy, Etcd, Process};

use crate::{
    resolve,
    sandbox::{SOON, Sandbox},
};

/// Two users' worth of servers whose configuration names one etcd.
struct Pair {
    etcd: Etcd,
    first: Sandbox,
    second: Sandbox,
}

impl Pair {
    fn new() -> Option<Self> {
        let etcd = Etcd::start(1)?;
        let text = format!("[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\n", etcd.endpoints()[0]);
        let sandboxes = [Sandbox::empty(), Sandbox::empty()];
        for sandbox in &sandboxes {
            std::fs::write(sandbox.path().join("netstead.toml"), &text).unwrap();
        }
        let [first, second] = sandboxes;
        Some(Self { etcd, first, second })
    }
}

/// A server whose store the configuration names.
pub(crate) fn run(sandbox: &Sandbox) -> Process {
    let listen = sandbox.url().replace("http://", "");
    let dns = format!("127.0.0.1:{}", sandbox.dns());
    let mut command = sandbox.command();
    command.args(["run", "--listen", &listen, "--dns-listen", &dns]);
    Process::start("netstead", &mut command).unwrap()
}

#[test]
fn the_second_follows_and_takes_over_with_everything() {
    let Some(pair) = Pair::new() else { return };
    let mut first = run(&pair.first);
    first.wait_for_line("This node leads", SOON).unwrap();
    pair.first.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    assert_eq!(pair.first.does("claim lan web-1"), "10.0.3.50\n");
    let said = pair.first.does("status");
    assert!(said.contains("etcd at http://127.0.0.1:"), "{said}");
    assert!(pair.first.netstead(["store", "check"]).err.contains("all well"));

    let mut second = run(&pair.second);
    second.wait_for_line("role    following http://127.0.0.1:", SOON).unwrap();
    first.kill().unwrap();
    let died = SystemClock.monotonic();
    second.wait_for_line("This node leads", SOON).unwrap();
    println!("taken over {:?} after the leader was killed", SystemClock.monotonic().saturating_sub(died));
    assert_eq!(pair.second.does("claim lan web-1"), "10.0.3.50\n", "the same key, the same address");
    assert_eq!(pair.second.does("claim lan web-2"), "10.0.3.51\n");

    // Who ends well gives the lead away at once.
    let mut third = run(&pair.first);
    third.wait_for_line("role    following", SOON).unwrap();
    second.terminate().unwrap();
    assert_eq!(second.wait(SOON).unwrap().code(), Some(0));
    third.wait_for_line("This node leads", SOON).unwrap();
    assert_eq!(pair.first.does("claim lan web-2"), "10.0.3.51\n");
    third.terminate().unwrap();
    assert_eq!(third.wait(SOON).unwrap().code(), Some(0));
}

/// A commit to the zone `home.test` with this address.
fn is_late_write(bytes: &[u8]) -> bool {
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    has(b"dns/zone/home.test") && has(b"10.0.3.10")
}

/// Epoch and generation of the newest write to the zone.
fn fence(etcd: &Etcd) -> (u64, u64) {
    let text = etcd.ctl(&["get", "--print-value-only", "--prefix", ""]).unwrap();
    let header =
        text.lines().find_map(|line| line.strip_prefix('1').filter(|line| line.contains("\"visible\"")));
    let header: serde_json::Value = serde_json::from_str(header.unwrap_or("{}")).unwrap();
    (header["epoch"].as_u64().unwrap(), header["generation"].as_u64().unwrap())
}

/// An applier has looked, has found everything as expected, and is stopped on its way to the store. Another takes the
/// lead and applies a newer plan. Then the first goes on.
#[test]
fn a_late_write_to_our_own_zones_is_refused() {
    let Some(pair) = Pair::new() else { return };
    let etcd = pair.etcd.endpoints()[0].strip_prefix("http://").unwrap().parse().unwrap();
    let gate = DelayingProxy::before(etcd, is_late_write).unwrap();
    let zones = "[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\nreverse = false\n";
    for (sandbox, endpoint) in [(&pair.first, gate.address()), (&pair.second, etcd)] {
        let store = format!("[store]\ntype = \"etcd\"\nendpoints = [\"http://{endpoint}\"]\n");
        std::fs::write(sandbox.path().join("netstead.toml"), format!("{store}{zones}")).unwrap();
    }
    let mut first = run(&pair.first);
    first.wait_for_line("is ready", SOON).unwrap();
    let of = |sandbox: &Sandbox| resolve::a(sandbox.dns(), "www.home.test");
    // That a write of this kind is held and lands when the gate opens, so that the one below is not simply lost.
    gate.shut();
    pair.first.does("record set www.home.test A 10.0.3.10");
    assert!(gate.holds_one(SOON));
    gate.open();
    resolve::until(&["10.0.3.10"], || of(&pair.first));
    pair.first.does("record set www.home.test A 10.0.3.9");
    resolve::until(&["10.0.3.9"], || of(&pair.first));
    let mut second = run(&pair.second);
    second.wait_for_line("role    following", SOON).unwrap();

    gate.shut();
    pair.first.does("record set www.home.test A 10.0.3.10");
    assert!(gate.holds_one(SOON));
    let before = fence(&pair.etcd);
    first.signal("STOP").unwrap();
    second.wait_for_line("This node leads", SOON).unwrap();
    pair.second.does("record set www.home.test A 10.0.3.11");
    resolve::until(&["10.0.3.11"], || of(&pair.second));
    let newer = fence(&pair.etcd);
    assert!(newer > before, "{before:?} {newer:?}");

    let passed = gate.passed();
    first.signal("CONT").unwrap();
    gate.open();
    first.wait_for_line("this one follows", SOON).unwrap();
    assert!(first.running(), "{}", first.log());
    // The news that another one leads may overtake it.
    let mut looks = 0;
    while gate.passed() <= passed && looks < 200 {
        looks += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(gate.passed() > passed, "the late write did go on its way");
    assert_eq!(of(&pair.second).values, ["10.0.3.11"]);
    pair.second.does("apply");
    assert_eq!(of(&pair.second).values, ["10.0.3.11"]);
    assert!(fence(&pair.etcd) >= newer);
    assert_eq!(pair.second.netstead(["plan"]).code, 0);
}

#[test]
fn one_that_follows_can_be_stopped() {
    let Some(pair) = Pair::new() else { return };
    let mut first = run(&pair.first);
    first.wait_for_line("is ready", SOON).unwrap();
    let mut second = run(&pair.second);
    second.wait_for_line("role    following", SOON).unwrap();
    second.terminate().unwrap();
    assert_eq!(second.wait(Duration::from_secs(20)).unwrap().code(), Some(0));
    pair.first.does("pool create lan --range 10.0.3.50-10.0.3.200");
}

#[test]
fn an_etcd_that_is_not_there_is_said_and_nothing_starts() {
    let sandbox = Sandbox::empty();
    let text = "[store]\ntype = \"etcd\"\nendpoints = [\"http://127.0.0.1:1\"]\ntimeout = \"1s\"\n";
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
    let said = sandbox.netstead(["run", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("etcd at http://127.0.0.1:1: "), "{}", said.err);
    assert!(said.err.contains("check `endpoints`"), "{}", said.err);
}

#[test]
fn a_local_store_moves_into_an_etcd_by_backup_and_restore() {
    let Some(pair) = Pair::new() else { return };
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200");
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    sandbox.does("store backup all.backup");
    sandbox.stop();
    let file = sandbox.path().join("all.backup");
    let restored = pair.first.netstead(["store", "restore", file.to_str().unwrap()]);
    assert_eq!(restored.code, 0, "{}", restored.err);
    assert!(restored.err.contains("etcd at "), "{}", restored.err);
    let again = pair.first.netstead(["store", "restore", file.to_str().unwrap()]);
    assert!(again.code == 1 && again.err.contains("there is a store already"), "{}", again.err);
    let mut server = run(&pair.first);
    server.wait_for_line("is ready", SOON).unwrap();
    pair.first.does("resume");
    assert_eq!(pair.first.does("claim lan web-1"), "10.0.3.50\n");
    assert_eq!(pair.first.does("claim lan web-2"), "10.0.3.51\n");
    assert!(pair.first.netstead(["store", "check"]).err.contains("all well"));
}

#[test]
fn everything_moves_into_an_etcd_and_back_and_what_it_left_is_sealed() {
    let Some(pair) = Pair::new() else { return };
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200");
    assert_eq!(sandbox.does("claim lan web-1"), "10.0.3.50\n");
    let etcd = pair.first.path().join("netstead.toml");
    let etcd = etcd.to_str().unwrap();
    let busy = sandbox.netstead(["store", "migrate", etcd, "--data-dir", sandbox.data().to_str().unwrap()]);
    assert!(busy.code == 1 && busy.err.contains("stop it first"), "{}", busy.err);
    sandbox.stop();
    let data = sandbox.data();
    let data = data.to_str().unwrap();
    let moved = sandbox.netstead(["store", "migrate", etcd, "--data-dir", data]);
    assert_eq!(moved.code, 0, "{}", moved.err);
    assert!(moved.err.contains("to etcd at ") && moved.err.contains("sha256"), "{}", moved.err);
    let sealed = sandbox.netstead(["run", "--data-dir", data, "--listen", "127.0.0.1:0"]);
    assert!(sealed.code == 1 && sealed.err.contains("this store was moved to etcd at"), "{}", sealed.err);
    let again = sandbox.netstead(["store", "migrate", etcd, "--data-dir", data]);
    assert!(again.code == 1 && again.err.contains("already"), "{}", again.err);

    let mut server = run(&pair.first);
    server.wait_for_line("is ready", SOON).unwrap();
    assert_eq!(pair.first.does("claim lan web-1"), "10.0.3.50\n");
    assert_eq!(pair.first.does("claim lan web-2"), "10.0.3.51\n", "it does not wait for `resume`");
    let home = pair.second.path().join("home");
    let home = home.to_str().unwrap();
    let led = pair.second.netstead(["store", "migrate", home]);
    assert!(led.code == 1 && led.err.contains("a Netstead is running"), "{}", led.err);
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    let inner = pair.second.path().join("inner.toml");
    let text = std::fs::read_to_string(pair.second.path().join("netstead.toml")).unwrap();
    std::fs::write(&inner, text + "prefix = \"/netstead/kv/two\"\n").unwrap();
    let within = pair.second.netstead(["store", "migrate", inner.to_str().unwrap()]);
    assert!(within.code == 1 && within.err.contains("take it for its own"), "{}", within.err);
    let back = pair.second.netstead(["store", "migrate", home]);
    assert_eq!(back.code, 0, "{}", back.err);
    let claims = pair.second.netstead(["get", "claims", "--local", "--data-dir", home, "-o", "json"]);
    assert!(claims.out.contains("10.0.3.51"), "{} {}", claims.out, claims.err);
    let mut late = run(&pair.first);
    assert_eq!(late.wait(SOON).unwrap().code(), Some(1), "the etcd is sealed as well");
    late.wait_for_line("this store was moved to local in", SOON).unwrap();
}
