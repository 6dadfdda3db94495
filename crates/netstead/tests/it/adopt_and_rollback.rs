//! Adopt, recover, clean, rollback and rename, through the binary and on a real PowerDNS.

use std::time::Duration;

use netstead_testkit::PowerDns;

use crate::{
    resolve::{self, Stopwatch},
    sandbox::Sandbox,
};

const ZONES: [&str; 2] = ["home.test", "3.0.10.in-addr.arpa"];
const HOSTS: &str = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";

/// A sandbox that keeps names on one PowerDNS.
struct Scene {
    sandbox: Sandbox,
    server: PowerDns,
}

impl Scene {
    fn new(hosts: &str) -> Option<Self> {
        let server = PowerDns::start(&ZONES)?;
        let scene = Self { sandbox: Sandbox::empty(), server };
        scene.hosts(hosts);
        scene.configure(HOSTS);
        Some(scene)
    }

    /// The provider, and what else the file has.
    fn configure(&self, more: &str) {
        self.write("netstead.toml", &format!("{}{more}", self.provider("lan", "")));
    }

    fn provider(&self, name: &str, more: &str) -> String {
        format!(
            "[dns.{name}]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"home.test\"]\n\
             ended_grace = \"0s\"\n{more}\n",
            self.server.api_url(),
            self.server.api_key()
        )
    }

    fn hosts(&self, text: &str) {
        self.write("hosts", text);
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.sandbox.path().join(file), text).unwrap();
    }

    fn port(&self) -> u16 {
        self.server.address().port()
    }

    fn is(&self, name: &str, values: &[&str]) {
        resolve::until(values, || {
            let mut answer = resolve::a(self.port(), name);
            answer.values.sort();
            answer
        });
    }

    /// Adds a foreign record.
    fn put(&self, name: &str, kind: &str, content: &str) {
        let columns = "domain_id, name, type, content, ttl";
        let statement = format!(
            "INSERT INTO records ({columns}) SELECT id, '{name}', '{kind}', '{content}', 300 FROM domains \
             WHERE name = 'home.test'"
        );
        self.server.sql(&statement).unwrap();
    }

    /// Raises the serial of the zone, as a tool that edits it does.
    fn raise_serial(&self, number: u8) {
        let soa = format!("ns1.home.test hostmaster.home.test 202701010{number} 10800 3600 604800 300");
        let place = "type = 'SOA' AND name = 'home.test'";
        self.server.sql(&format!("UPDATE records SET content = '{soa}' WHERE {place}")).unwrap();
    }

    /// Waits until the values of others that are reported are these.
    fn drifts(&self, values: &[&str]) {
        let begun = Stopwatch::start();
        loop {
            self.sandbox.does("apply");
            let drift = self.sandbox.does("get drift -o csv");
            let mut seen: Vec<&str> =
                drift.split([',', '\n']).filter(|cell| cell.starts_with("192.0.2.")).collect();
            seen.sort_unstable();
            if seen == values {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{values:?} expected:\n{drift}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until `netstead LINE` says `sign`.
    fn says(&self, line: &str, sign: &str) {
        let begun = Stopwatch::start();
        loop {
            let said = self.sandbox.netstead(line.split_whitespace());
            if said.out.contains(sign) || said.err.contains(sign) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "no `{sign}`:\n{}{}", said.out, said.err);
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The hash that approves what a plan parks.
fn hash(plan: &str) -> &str {
    plan.split("netstead apply ").nth(1).unwrap().split('`').next().unwrap()
}

#[test]
fn a_blocked_name_has_two_ways_out_and_both_work() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n10.0.3.8 mail.home.test\n") else { return };
    scene.put("www.home.test", "A", "192.0.2.1");
    scene.put("mail.home.test", "A", "192.0.2.2");
    scene.put("hand.home.test", "A", "192.0.2.3");
    scene.sandbox.start(&[]);
    scene.says("plan lan", "take it over: netstead adopt www.home.test");
    scene.says("plan lan", "share the name: share = true in [dns.lan]");
    scene.is("www.home.test", &["192.0.2.1"]);

    let seen = scene.sandbox.netstead(["adopt", "www.home.test", "--dry-run"]);
    assert_eq!((seen.code, seen.out.as_str()), (0, "lan  www.home.test A 192.0.2.1\n"), "{}", seen.err);
    assert!(seen.err.contains("1 value would be taken over"), "{}", seen.err);
    scene.is("www.home.test", &["192.0.2.1"]);
    assert_eq!(scene.sandbox.does("adopt www.home.test"), "lan  www.home.test A 192.0.2.1\n");
    scene.is("www.home.test", &["10.0.3.7"]);
    assert!(scene.sandbox.fails("adopt www.home.test").err.contains("hint: "));

    scene.is("mail.home.test", &["192.0.2.2"]);
    scene.write("netstead.toml", &format!("{}{HOSTS}", scene.provider("lan", "share = true")));
    scene.is("mail.home.test", &["10.0.3.8", "192.0.2.2"]);
    scene.is("hand.home.test", &["192.0.2.3"]);
    scene.sandbox.stop();
}

#[test]
fn drift_is_ignored_with_a_reason_until_it_changes() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n") else { return };
    scene.sandbox.start(&[]);
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.put("www.home.test", "A", "192.0.2.1");
    scene.raise_serial(1);
    scene.drifts(&["192.0.2.1"]);
    let fails = |line: &str| scene.sandbox.fails(line).err;
    assert!(fails("ignore www.home.test").contains("--reason"));
    assert!(fails("ignore nowhere.home.test --reason x").contains("nothing at nowhere.home.test drifted"));
    assert!(fails("ignore www.home.test TXT --reason x").contains("nothing at www.home.test drifted"));
    assert!(fails("ignore www.home.test --provider lam --reason x").contains("lam"));
    scene.drifts(&["192.0.2.1"]);
    let ignored = scene.sandbox.does("ignore www.home.test --reason printer");
    assert!(ignored.contains("192.0.2.1") && ignored.contains("printer"), "{ignored}");
    scene.drifts(&[]);
    let listed = scene.sandbox.does("get drift --ignored -o json");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let one = &listed[0];
    let said =
        ["provider", "name", "type", "value", "drift", "reason"].map(|field| one[field].as_str().unwrap());
    assert_eq!(said, ["lan", "www.home.test", "A", "192.0.2.1", "foreign", "printer"]);
    assert!(scene.sandbox.does("get changes -o json").contains("drift is ignored: A 192.0.2.1: printer"));
    // A restart keeps the choice, and the record stays on the server.
    scene.sandbox.stop();
    scene.sandbox.start(&[]);
    scene.says("plan lan", "nothing to change");
    scene.drifts(&[]);
    scene.is("www.home.test", &["10.0.3.7", "192.0.2.1"]);
    // Another value at that name is reported.
    scene.put("www.home.test", "A", "192.0.2.2");
    scene.raise_serial(2);
    scene.drifts(&["192.0.2.2"]);
    let ended = scene.sandbox.does("ignore www.home.test --end");
    assert!(ended.contains("192.0.2.1") && !ended.contains("192.0.2.2"), "{ended}");
    scene.drifts(&["192.0.2.1", "192.0.2.2"]);
    assert_eq!(scene.sandbox.does("get drift --ignored -o name"), "");
    let again = scene.sandbox.netstead(["ignore", "www.home.test", "--end"]);
    assert!(again.code == 0 && again.err.contains("nothing was ignored at www.home.test"), "{again:?}");
    scene.sandbox.stop();
}

#[test]
fn records_of_dnsweaver_are_taken_over_and_its_marks_go() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n") else { return };
    scene.put("www.home.test", "A", "192.0.2.1");
    scene.put("old.home.test", "A", "192.0.2.2");
    for name in ["www", "old"] {
        scene.put(&format!("_dnsweaver.{name}.home.test"), "TXT", "\"heritage=dnsweaver,instance=home\"");
    }
    scene.put("_dnsweaver-catalog-0.home.test", "TXT", "\"www.home.test\" \"old.home.test\"");
    scene.sandbox.start(&[]);
    let taken = scene.sandbox.does("adopt --from dnsweaver --id home");
    assert!(taken.contains("lan  old.home.test A 192.0.2.2  from dnsweaver home\n"), "{taken}");
    scene.is("www.home.test", &["10.0.3.7"]);
    // Nothing asks for the other, and it stays.
    scene.is("old.home.test", &["192.0.2.2"]);
    scene.says("plan lan", "adopted, and nothing asks for it");
    let zone = scene.sandbox.netstead(["adopt", "--from", "dnsweaver", "-o", "json"]);
    assert!(zone.out.contains("\"taken\": []"), "{}", zone.out);
    scene.sandbox.stop();
}

#[test]
fn a_lost_store_is_recovered_and_without_that_nothing_is_taken() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n10.0.3.8 mail.home.test\n") else { return };
    scene.sandbox.start(&[]);
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.is("mail.home.test", &["10.0.3.8"]);
    scene.says("plan lan", "nothing to change");
    scene.sandbox.stop();
    std::fs::remove_dir_all(scene.sandbox.data()).unwrap();
    scene.put("hand.home.test", "A", "192.0.2.3");
    scene.hosts("10.0.3.9 www.home.test\n");
    scene.sandbox.start(&[]);
    scene.says("plan lan", "if that was this one with a lost store: netstead recover --owner ");
    let plan = scene.sandbox.netstead(["plan", "lan"]).out;
    let owner = plan.split("recover --owner ").nth(1).unwrap().lines().next().unwrap().to_owned();
    scene.sandbox.does("apply");
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.is("mail.home.test", &["10.0.3.8"]);

    let seen = scene.sandbox.does(&format!("recover --owner {owner} --dry-run"));
    assert!(seen.contains("lan  www.home.test A 10.0.3.7  from netstead "), "{seen}");
    scene.sandbox.does(&format!("recover --owner {owner}"));
    scene.is("www.home.test", &["10.0.3.7"]);
    let plan = scene.sandbox.netstead(["plan", "lan"]);
    assert_eq!(plan.code, 3, "{}", plan.out);
    assert!(plan.out.contains("ownership was recovered"), "{}", plan.out);
    scene.sandbox.does(&format!("apply {}", hash(&plan.out)));
    scene.is("www.home.test", &["10.0.3.9"]);
    scene.is("mail.home.test", &[]);
    scene.is("hand.home.test", &["192.0.2.3"]);
    // It goes on with the former id.
    scene.sandbox.stop();
    scene.sandbox.start(&[]);
    scene.says("plan lan", "lan: nothing to change\n");
    scene.sandbox.stop();
}

#[test]
fn a_rollback_brings_back_what_was_and_pauses() {
    let Some(mut scene) = Scene::new("") else { return };
    scene.sandbox.start(&[]);
    scene.sandbox.does("record set www.home.test A 10.0.3.7");
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.says("plan lan", "nothing to change");
    scene.sandbox.does("record set www.home.test A 10.0.3.8");
    scene.is("www.home.test", &["10.0.3.8"]);
    scene.sandbox.does("record set new.home.test A 10.0.3.9");
    scene.is("new.home.test", &["10.0.3.9"]);
    let refused = scene.sandbox.fails("rollback --to 1 --provider lan");
    assert!(refused.out.contains("10.0.3.8 → 10.0.3.7") && refused.err.contains("--yes"), "{refused:?}");
    assert!(scene.sandbox.does("rollback --to 1 --provider lan --dry-run").contains("10.0.3.8 → 10.0.3.7"));
    scene.is("www.home.test", &["10.0.3.8"]);
    let done = scene.sandbox.netstead(["rollback", "--to", "1", "--provider", "lan", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("lan is paused") && done.err.contains("resume --provider lan"), "{}", done.err);
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.is("new.home.test", &[]);
    assert!(scene.sandbox.does("get providers -o json").contains("it was brought back to generation 1"));
    assert!(scene.sandbox.fails("rollback --to 99 --provider lan --yes").err.contains("hint: "));
    // What is asked for comes again, but what the rollback brought back gives way only when a person says so.
    scene.sandbox.does("resume --provider lan");
    scene.is("new.home.test", &["10.0.3.9"]);
    scene.is("www.home.test", &["10.0.3.7"]);
    let plan = scene.sandbox.netstead(["plan", "lan"]);
    assert_eq!(plan.code, 3, "{}", plan.out);
    scene.sandbox.does(&format!("apply {}", hash(&plan.out)));
    scene.is("www.home.test", &["10.0.3.8"]);
    scene.sandbox.stop();
}

#[test]
fn what_a_detached_source_brought_goes_when_a_person_says_so() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n") else { return };
    scene.sandbox.start(&[]);
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.sandbox.does("record set hand.home.test A 10.0.3.9");
    scene.is("hand.home.test", &["10.0.3.9"]);
    assert!(scene.sandbox.fails("clean --source office --yes").err.contains("hint: take its table out"));
    scene.configure("");
    scene.says("get sources", "detached");
    scene.sandbox.does("apply");
    scene.is("www.home.test", &["10.0.3.7"]);
    assert!(scene.sandbox.fails("clean --source office").err.contains("--yes"));
    assert!(scene.sandbox.fails("clean --source offise --yes").err.contains("offise"));
    scene.is("www.home.test", &["10.0.3.7"]);
    let done = scene.sandbox.netstead(["clean", "--source", "office", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("- www.home.test") && done.err.contains("lan is paused"), "{done:?}");
    scene.is("www.home.test", &[]);
    scene.is("hand.home.test", &["10.0.3.9"]);
    scene.sandbox.does("resume");

    // The whole provider: while it is configured it is emptied, afterwards only forgotten.
    scene.sandbox.does("clean --provider lan --yes");
    scene.is("hand.home.test", &[]);
    scene.sandbox.does("resume --provider lan");
    scene.is("hand.home.test", &["10.0.3.9"]);
    scene.write("netstead.toml", "");
    scene.says("get providers", "detached");
    assert!(scene.sandbox.fails("clean --provider lan --yes").err.contains("--forget"));
    scene.sandbox.does("clean --provider lan --forget --yes");
    assert!(!scene.sandbox.does("get providers").contains("detached"));
    scene.is("hand.home.test", &["10.0.3.9"]);
    scene.sandbox.stop();
}

#[test]
fn a_source_and_a_provider_keep_what_is_theirs_under_another_name() {
    let Some(mut scene) = Scene::new("10.0.3.7 www.home.test\n10.0.3.8 mail.home.test\n") else { return };
    scene.sandbox.start(&[]);
    scene.is("www.home.test", &["10.0.3.7"]);
    scene.says("plan lan", "nothing to change");
    let renamed = HOSTS.replace("office", "lab");
    let both = format!("{}{HOSTS}{renamed}was = \"office\"\n", scene.provider("lan", ""));
    scene.write("netstead.toml", &both);
    let checked = scene.sandbox.netstead(["config", "check"]);
    assert!(checked.err.contains("source.lab.was: source.office is still there"), "{}", checked.err);
    scene.configure(&format!("{renamed}was = \"office\"\n"));
    scene.says("get sources -o name", "lab");
    scene.sandbox.does("apply");
    assert!(!scene.sandbox.does("get sources -o name").contains("office"));
    scene.says("plan lan", "lan: nothing to change\n");
    assert!(scene.sandbox.does("explain www.home.test").contains("lab/"));

    let provider = scene.provider("inner", "was = \"lan\"");
    scene.write("netstead.toml", &format!("{provider}{renamed}was = \"office\"\n"));
    scene.says("plan inner", "inner: nothing to change\n");
    assert!(!scene.sandbox.does("get providers").contains("lan "));
    // It is all still theirs to change.
    scene.hosts("10.0.3.9 www.home.test\n10.0.3.8 mail.home.test\n");
    scene.is("www.home.test", &["10.0.3.9"]);
    scene.sandbox.stop();
}
