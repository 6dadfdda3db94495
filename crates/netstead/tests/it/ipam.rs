//! An IPAM system from the configuration file to the objects: a source, the loop, and a receiver of the webhook.

use std::{collections::BTreeSet, time::Duration};

use netstead_testkit::IpamReceiver;
use serde_json::json;

use crate::{resolve::Stopwatch, sandbox::Sandbox};

const SECRET: &str = "a secret of the tests";
const HOSTS: &str = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";

/// A sandbox whose objects are on one receiver.
struct Scene {
    sandbox: Sandbox,
    receiver: IpamReceiver,
}

impl Scene {
    fn new(hosts: &str) -> Self {
        let scene = Self { sandbox: Sandbox::empty(), receiver: IpamReceiver::start(SECRET) };
        scene.hosts(hosts);
        scene.configure("", HOSTS);
        scene
    }

    fn configure(&self, keys: &str, more: &str) {
        let text = format!(
            "[ipam.inventory]\ntype = \"webhook\"\nurl = \"{}\"\nsecret = \"{SECRET}\"\ninterval = \"1s\"\n\
             ended_grace = \"0s\"\n{keys}\n{more}",
            self.receiver.url()
        );
        std::fs::write(self.sandbox.path().join("netstead.toml"), text).unwrap();
    }

    fn hosts(&self, text: &str) {
        std::fs::write(self.sandbox.path().join("hosts"), text).unwrap();
    }

    /// Waits until the receiver holds exactly these objects.
    fn holds(&self, wanted: &[&str]) {
        let wanted: BTreeSet<String> = wanted.iter().map(|line| (*line).to_owned()).collect();
        Self::until(|| {
            let lines: BTreeSet<String> = self.receiver.lines().into_iter().collect();
            if lines == wanted { Ok(()) } else { Err(format!("{lines:#?}")) }
        });
    }

    /// Waits until `netstead LINE` says `sign`.
    fn says(&self, line: &str, sign: &str) {
        Self::until(|| {
            let said = self.sandbox.netstead(line.split_whitespace());
            let text = format!("{}{}", said.out, said.err);
            if text.contains(sign) { Ok(()) } else { Err(format!("no `{sign}` in\n{text}")) }
        });
    }

    fn until(done: impl Fn() -> Result<(), String>) {
        let begun = Stopwatch::start();
        while let Err(text) = done() {
            assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs passes and sees that none of them writes.
    fn rests(&self) {
        self.rests_with(0);
    }

    /// Passes write nothing, and `apply` ends with this code.
    fn rests_with(&self, code: i32) {
        let before = self.receiver.changes();
        for _ in 0..3 {
            let said = self.sandbox.netstead(["apply", "--provider", "inventory"]);
            assert_eq!(said.code, code, "{said:?}");
        }
        assert_eq!(self.receiver.changes(), before, "a pass without news writes nothing");
    }
}

const WEB: &str =
    "address address=10.0.3.7 dns_name=web.home.test status=active (address:office:10.0.3.7@web.home.test)";
const DB: &str =
    "address address=10.0.3.8 dns_name=db.home.test status=active (address:office:10.0.3.8@db.home.test)";

#[test]
fn names_and_claims_become_objects_and_a_second_pass_and_a_restart_write_nothing() {
    let mut scene = Scene::new("10.0.3.7 web.home.test\n10.0.3.8 db.home.test\n");
    scene.receiver.put("address", &json!({ "address": "10.0.3.200/24", "dns_name": "printer" }));
    let printer = "address address=10.0.3.200/24 dns_name=printer (not marked)";
    scene.sandbox.start(&[]);
    scene.holds(&[WEB, DB, printer]);
    scene.rests();
    scene.sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60 --domain home.test");
    scene.sandbox.does("claim lan mail --hostname mail");
    let mail = "address address=10.0.3.50 claim=lan/mail dns_name=mail.home.test status=reserved \
                (address:ledger:10.0.3.50@lan/mail)";
    scene.holds(&[WEB, DB, mail, printer]);
    scene.rests();
    scene.sandbox.does("release lan mail");
    scene.holds(&[WEB, DB, printer]);
    let before = scene.receiver.changes();
    scene.sandbox.stop();
    scene.sandbox.start(&[]);
    scene.rests();
    assert_eq!(scene.receiver.changes(), before);
    let shown = scene.sandbox.does("get providers");
    assert!(shown.contains("inventory") && shown.contains("in sync"), "{shown}");
    let plans = scene.sandbox.does("get plans");
    let [title, _, row] = plans.lines().collect::<Vec<_>>()[..] else { panic!("{plans}") };
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(title), ["PROVIDER", "GENERATION", "CHANGES", "PARKED", "BLOCKED", "KEPT", "DRIFT"]);
    let row = words(row);
    assert_eq!((row[0].as_str(), &row[2..]), ("inventory", ["0"; 5].map(str::to_owned).as_slice()));
    // It is beside the DNS servers, with two objects of ours, and nothing is left to do.
    let status = scene.sandbox.does("status");
    let part = status.split("DNS servers and IPAM systems:").nth(1).unwrap_or_else(|| panic!("{status}"));
    let row = words(part.lines().find(|line| line.trim_start().starts_with("inventory")).unwrap());
    assert_eq!(row[..2], ["inventory", "webhook"].map(str::to_owned), "{status}");
    assert!(row.join(" ").starts_with("inventory webhook in sync 2 0 0 0"), "{status}");
    scene.says("get changes --provider inventory", "address:office:10.0.3.7@web.home.test");
    scene.says("explain web.home.test", "inventory: address:office:10.0.3.7@web.home.test with dns_name");
    scene.sandbox.stop();
}

#[test]
fn drift_stays_until_it_is_adopted_or_accepted_and_an_object_in_the_way_is_taken_over() {
    let mut scene = Scene::new("10.0.3.7 web.home.test\n");
    let theirs = scene.receiver.put("address", &json!({ "address": "10.0.3.8", "owner": "alice" }));
    scene.sandbox.start(&[]);
    scene.holds(&[WEB, "address address=10.0.3.8 owner=alice (not marked)"]);
    let web = scene.receiver.objects()[1]["id"].as_str().unwrap().to_owned();
    scene.receiver.set(&web, "dns_name", &json!("hand.home.test"));
    scene.says("get drift", "hand.home.test");
    scene.rests();
    let key = "address:office:10.0.3.7@web.home.test";
    let seen = scene.sandbox.netstead(["adopt", "--object", key, "--dry-run"]);
    assert_eq!(
        seen.out,
        format!("inventory  {key}\n  dns_name: hand.home.test is replaced\n"),
        "{}",
        seen.err
    );
    scene.sandbox.does(&format!("adopt --object {key}"));
    scene.holds(&[WEB, "address address=10.0.3.8 owner=alice (not marked)"]);
    scene.receiver.set(&web, "dns_name", &json!("hand.home.test"));
    scene.says("get drift", "hand.home.test");
    scene.sandbox.does(&format!("adopt --object {key} --keep"));
    Scene::until(|| {
        let said = scene.sandbox.does("get drift");
        if said.contains("hand.home.test") { Err(said) } else { Ok(()) }
    });
    scene.hosts("10.0.3.7 web.home.test\n10.0.3.8 db.home.test\n");
    scene.says("plan inventory", "netstead adopt --object address:office:10.0.3.8@db.home.test");
    scene.sandbox.does("adopt --object address:office:10.0.3.8@db.home.test --provider inventory");
    scene.holds(&[
        &WEB.replace("dns_name=web.home.test", "dns_name=hand.home.test"),
        "address address=10.0.3.8 dns_name=db.home.test owner=alice status=active (address:office:10.0.3.8@db.home.test)",
    ]);
    assert_eq!(scene.receiver.objects()[0]["id"], json!(theirs));
    scene.rests();
    scene.sandbox.stop();
}

#[test]
fn a_pause_holds_it_clean_takes_back_what_is_ours_and_a_rollback_brings_it_again() {
    let mut scene = Scene::new("10.0.3.7 web.home.test\n");
    let printer = "address address=10.0.3.9 (not marked)";
    scene.receiver.put("address", &json!({ "address": "10.0.3.9" }));
    scene.sandbox.start(&[]);
    scene.holds(&[WEB, printer]);
    scene.sandbox.does("pause --provider inventory");
    scene.hosts("10.0.3.7 web.home.test\n10.0.3.8 db.home.test\n");
    scene.says("plan inventory", "+ address 10.0.3.8");
    scene.rests_with(3);
    scene.sandbox.does("resume --provider inventory");
    scene.holds(&[WEB, DB, printer]);
    let cleaned = scene.sandbox.does("clean --provider inventory --yes");
    assert!(cleaned.contains("- address 10.0.3.7"), "{cleaned}");
    scene.holds(&[printer]);
    let shown = scene.sandbox.does("get providers -o json");
    let providers: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let one = providers.as_array().unwrap().iter().find(|one| one["name"] == "inventory").unwrap();
    let before = one["generation"].as_u64().unwrap() - 1;
    let back = scene.sandbox.does(&format!("rollback --to {before} --provider inventory --yes"));
    assert!(back.contains("made again"), "{back}");
    scene.holds(&[WEB, DB, printer]);
    scene.sandbox.stop();
}

#[test]
fn many_removals_wait_for_the_hash_and_a_receiver_that_was_away_catches_up() {
    let all: String = (10..50).fold(String::new(), |text, n| text + &format!("10.0.3.{n} h{n}.home.test\n"));
    let mut scene = Scene::new(&all);
    scene.configure("grace = \"0s\"", HOSTS);
    scene.sandbox.start(&[]);
    Scene::until(|| if scene.receiver.objects().len() == 40 { Ok(()) } else { Err("not all".into()) });
    scene.receiver.stop();
    scene.hosts(&all.lines().skip(13).fold(String::new(), |text, line| text + line + "\n"));
    scene.says("status", "Provider `inventory` fails");
    scene.receiver.restart();
    scene.says("plan inventory", "parked, until");
    assert_eq!(scene.receiver.objects().len(), 40);
    let plans: serde_json::Value = serde_json::from_str(&scene.sandbox.does("get plans -o json")).unwrap();
    let own = plans.as_array().unwrap().iter().find(|plan| plan["provider"] == "inventory").unwrap();
    let parked = &own["parked"];
    assert_eq!(parked["changes"], json!(13), "{own}");
    assert_eq!(own["objects"]["parked_changes"].as_array().map(Vec::len), Some(13), "{own}");
    let status = scene.sandbox.netstead(["status"]).out;
    let wanted = format!("netstead apply {}", parked["hash"].as_str().unwrap());
    let plain = status.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&wanted), "no `{wanted}` in\n{status}");
    let plan = scene.sandbox.netstead(["plan", "inventory"]).out;
    let hash = plan.split("netstead apply ").nth(1).unwrap().split('`').next().unwrap();
    scene.sandbox.does(&format!("apply {hash}"));
    Scene::until(|| if scene.receiver.objects().len() == 27 { Ok(()) } else { Err(plan.clone()) });
    scene.sandbox.stop();
}

#[test]
fn mistakes_in_the_table_are_told_with_their_place() {
    let scene = Scene::new("");
    let config = "[ipam.lan]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1\"\nsecret = \"a secret of the tests\"\n\
                  kinds = [\"rack\"]\nscop = \"all\"\n[dns.lan]\ntype = \"builtin\"\ndomains = [\"home.test\"]\n";
    std::fs::write(scene.sandbox.path().join("netstead.toml"), config).unwrap();
    let told = scene.sandbox.fails("config check").err;
    for sign in ["`rack` is no kind of object", "scop", "ipam.lan has the name of dns.lan"] {
        assert!(told.contains(sign), "no `{sign}` in\n{told}");
    }
}
