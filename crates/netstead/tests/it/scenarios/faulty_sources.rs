//! Sources that lie: nothing goes before its rule allows it.

use netstead_client::types::{BulkEntry, BulkInput, ClaimFrom, TargetInput};
use netstead_testkit::{PowerDns, wait_until};

use super::dns_fixture::{FORWARD, HOSTS, SOON, Server, ZONES, Zone, powerdns, sandbox};
use crate::sandbox::Sandbox;

/// A file with hosts `h0` to `hN`, but for some.
fn hosts(count: u8, without: &[u8]) -> String {
    let lines = (0..count).filter(|n| !without.contains(n)).map(|n| format!("10.0.3.{n} h{n}.home.test\n"));
    format!("# the office\n{}", lines.collect::<String>())
}

struct Scene {
    sandbox: Sandbox,
    server: Server,
    daemon: PowerDns,
    before: Zone,
}

impl Scene {
    /// So many hosts on a server, with these settings.
    fn with(count: u8, settings: &str) -> Option<Self> {
        let daemon = PowerDns::start(&ZONES)?;
        let mut sandbox = sandbox("");
        sandbox.write("netstead.toml", &config(&daemon, settings));
        sandbox.write("hosts", &hosts(count, &[]));
        sandbox.start(&[]);
        let server = Server::from(&daemon);
        let wanted = usize::from(count);
        let there = wait_until(SOON, || (server.zone(FORWARD).plain().len() == wanted).then_some(()));
        assert!(there.is_some(), "{:?}", server.zone(FORWARD));
        sandbox.settles("lan");
        let before = server.zone(FORWARD);
        Some(Self { sandbox, server, daemon, before })
    }

    /// Looks at the file and at the server as often as it takes to believe an absence; whatever the file says, nothing
    /// changed on the server.
    fn nothing_happens(&self, file: &str) {
        self.sandbox.write("hosts", file);
        self.nothing_changes(file);
    }

    fn nothing_changes(&self, after: &str) {
        for _ in 0..3 {
            self.sandbox.does("apply");
        }
        assert_eq!(self.server.zone(FORWARD), self.before, "after:\n{after}");
    }
}

fn config(daemon: &PowerDns, settings: &str) -> String {
    format!("{HOSTS}{}", powerdns("lan", &daemon.api_url(), settings))
}

/// Without grace, so that only the other rules keep anything.
const HASTY: &str = "reverse = false\ngrace = \"0s\"\ninterval = \"1s\"";

#[test]
fn a_source_that_fails_shows_half_or_nothing_removes_nothing() {
    let Some(scene) = Scene::with(10, HASTY) else { return };
    let file = scene.sandbox.path().join("hosts");
    std::fs::remove_file(&file).unwrap();
    scene.nothing_changes("no file");
    assert!(scene.sandbox.does("get sources").contains("failed"));
    std::fs::create_dir(&file).unwrap();
    scene.nothing_changes("a directory instead");
    std::fs::remove_dir(&file).unwrap();

    scene.nothing_happens("");
    scene.nothing_happens("10.0.3.0 h0.home.test\n10.0.3.1 h1.home.te");
    scene.nothing_happens("10.0.3.0 h0.home.test\n10.0.3.999 h1.home.test\n");
    assert!(scene.sandbox.does("get sources").contains("partial"));
    // Half of it, and nothing at all, in good form: it must say so for five minutes.
    scene.nothing_happens(&hosts(5, &[]));
    assert!(scene.sandbox.does("get sources").contains("suspect"));
    scene.nothing_happens("# nothing\n");
    scene.nothing_happens(&hosts(10, &[]));
    scene.sandbox.settles("lan");
    assert!(!scene.sandbox.does("get sources").contains("suspect"));
}

#[test]
fn what_is_missing_for_a_while_or_flaps_stays_until_its_grace_has_passed() {
    let Some(mut scene) = Scene::with(6, "reverse = false\ngrace = \"1h\"\ninterval = \"1s\"") else {
        return;
    };
    for _ in 0..3 {
        scene.nothing_happens(&hosts(6, &[3]));
        let plan = scene.sandbox.netstead(["plan", "lan"]).out;
        assert!(plan.contains("= h3.home.test") && plan.contains("grace 1h"), "{plan}");
        scene.nothing_happens(&hosts(6, &[]));
    }
    scene.nothing_happens(&hosts(6, &[3]));
    // A restart does not end a grace.
    scene.sandbox.stop();
    scene.sandbox.start(&[]);
    scene.nothing_changes("a restart");
    // Then the grace is over, which we cannot wait for.
    let config = config(&scene.daemon, HASTY);
    scene.sandbox.reload(&config);
    let gone = wait_until(SOON, || {
        scene.sandbox.does("apply");
        (scene.server.zone(FORWARD).plain().len() == 5).then_some(())
    });
    assert!(gone.is_some(), "{}", scene.sandbox.netstead(["plan", "lan"]).out);
    assert!(!scene.server.zone(FORWARD).records.iter().any(|record| record.contains("h3.home.test")));
}

#[test]
fn a_slow_bleed_trips_the_breaker_and_a_person_decides() {
    let breaker = format!("{HASTY}\nbreaker = {{ changes = 3, percent = 20 }}");
    let Some(scene) = Scene::with(12, &breaker) else { return };
    // One record per pass: three are removed, and then a person must look.
    let mut missing = Vec::new();
    for host in 0..5 {
        missing.push(host);
        scene.sandbox.write("hosts", &hosts(12, &missing));
        scene.sandbox.does("apply");
        scene.sandbox.does("apply");
        let left = 12 - missing.len().min(3);
        assert_eq!(scene.server.zone(FORWARD).plain().len(), left, "{missing:?}");
    }
    // Creates still flow.
    scene.sandbox.write("hosts", &format!("{}10.0.3.99 new.home.test\n", hosts(12, &missing)));
    scene.sandbox.does("apply");
    assert_eq!(scene.server.zone(FORWARD).plain().len(), 10);
    let said = scene.sandbox.netstead(["plan", "lan"]);
    assert_eq!(said.code, 3, "{}", said.out);
    assert!(said.out.contains("changes of home.test within 10m"), "{}", said.out);
    let (_, rest) = said.out.split_once("netstead apply ").unwrap();
    let (hash, _) = rest.split_once('`').unwrap();
    scene.sandbox.does(&format!("apply {hash}"));
    assert_eq!(scene.server.zone(FORWARD).plain().len(), 8);
    assert!(scene.sandbox.fails(&format!("apply {hash}")).err.contains("netstead plan"), "once");
}

#[test]
fn absence_alone_never_takes_the_last_of_three() {
    let Some(scene) = Scene::with(3, HASTY) else { return };
    scene.nothing_happens("# nothing\n");
    let said = scene.sandbox.netstead(["plan", "lan"]);
    assert_eq!(said.code, 3, "{}", said.out);
    assert!(said.out.contains("nothing would be left"), "{}", said.out);
}

#[test]
fn fifty_claims_are_released_at_once_and_no_guard_minds() {
    let Some(daemon) = PowerDns::start(&ZONES) else { return };
    let mut sandbox = sandbox(&powerdns("lan", &daemon.api_url(), "breaker = { changes = 3, percent = 20 }"));
    sandbox.start(&[]);
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    let (server, client) = (Server::from(&daemon), sandbox.client());
    let bulk = |entries| server.runtime.block_on(client.bulk(&BulkInput { entries })).unwrap();
    let counts = |wanted: usize| {
        let there = wait_until(SOON, || (server.zone(FORWARD).plain().len() == wanted).then_some(()));
        assert!(there.is_some(), "{}", sandbox.netstead(["plan", "lan"]).out);
    };
    let claim = |n: u8| {
        let (key, each) = (format!("web-{n}"), vec!["lan".into()]);
        BulkEntry::Claim(ClaimFrom { key, each, ..ClaimFrom::default() })
    };
    bulk((0..50).map(claim).collect());
    counts(50);
    let release = |n: u8| {
        let (pool, key) = ("lan".to_owned(), format!("web-{n}"));
        let id = server.runtime.block_on(client.look_up(&pool, &key)).unwrap().unwrap().id;
        BulkEntry::Release(TargetInput { pool, key, id })
    };
    bulk((0..50).map(release).collect());
    counts(0);
    sandbox.settles("lan");
}
