//! `netstead run --once`, and the commands of pipam's users, without a server.

use netstead_testkit::{FakePve, PowerDns, PveGuest, PveVersion};
use serde_json::Value;

use crate::{
    resolve,
    sandbox::{CommandOutput, Sandbox},
};

/// A sandbox with a file of hosts and a DNS server; no server of ours runs.
struct Alone {
    sandbox: Sandbox,
    dns: PowerDns,
}

impl Alone {
    fn new() -> Option<Self> {
        let alone = Self { sandbox: Sandbox::empty(), dns: PowerDns::start(&["lab.test"])? };
        alone.hosts(&["web", "db"]);
        alone.configure("");
        Some(alone)
    }

    fn hosts(&self, names: &[&str]) {
        let line = |(at, name): (usize, &&str)| format!("10.0.3.{} {name}.lab.test\n", at + 11);
        let text: Vec<String> = names.iter().enumerate().map(line).collect();
        std::fs::write(self.sandbox.path().join("hosts"), text.concat()).unwrap();
    }

    fn configure(&self, provider: &str) {
        let port = self.sandbox.url().rsplit_once(':').unwrap().1.to_owned();
        let text = format!(
            "[store]\ntype = \"local\"\npath = \"data\"\n[api]\nlisten = \"127.0.0.1:{port}\"\n\
             [source.office]\ntype = \"hosts\"\npath = \"hosts\"\n\
             [dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"lab.test\"]\n{provider}\n\
             [dns.own]\ntype = \"builtin\"\ndomains = [\"own.test\"]\n{provider}\n",
            self.dns.api_url(),
            self.dns.api_key(),
        );
        std::fs::write(self.sandbox.path().join("netstead.toml"), text).unwrap();
    }

    /// Types a line where no variable names a server.
    fn types(&self, line: &str) -> CommandOutput {
        let mut command = self.sandbox.command();
        command.env_remove("NETSTEAD_URL").args(line.split_whitespace());
        CommandOutput::from(command.output().unwrap())
    }

    /// The same, and it must end so. Returns stdout.
    fn ends(&self, line: &str, code: i32) -> String {
        let said = self.types(line);
        assert_eq!(said.code, code, "`netstead {line}`:\n{}{}", said.out, said.err);
        said.out
    }

    fn addresses(&self, name: &str) -> Vec<String> {
        resolve::a(self.dns.address().port(), &format!("{name}.lab.test")).values
    }
}

#[test]
fn one_run_does_what_is_to_do_and_says_by_its_exit_code_what_is_left() {
    let Some(alone) = Alone::new() else { return };
    let planned = alone.ends("run --once --dry-run", 2);
    assert!(planned.contains("web.lab.test") && planned.contains("10.0.3.12"), "{planned}");
    assert_eq!(alone.addresses("web"), [""; 0]);
    let said = alone.types("run --once");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(said.out.matches("applied").count(), 2, "one line for each name:\n{}", said.out);
    assert_eq!(
        said.err,
        "looking at 1 source\noffice: complete, 2 workloads\nlan: 2 applied\nown: in line\n"
    );
    assert_eq!(
        (alone.addresses("web"), alone.addresses("db")),
        (vec!["10.0.3.11".to_owned()], vec!["10.0.3.12".to_owned()])
    );
    assert_eq!(alone.ends("run --once", 0), "", "a second run has nothing to do");
    let told: Value = serde_json::from_str(&alone.ends("run --once -o json", 0)).unwrap();
    assert_eq!((&told["result"], &told["changes"]), (&"fine".into(), &serde_json::json!([])));
    assert_eq!(told["providers"][0]["in_sync"], true);
    // A server that is only observed is never written to.
    alone.hosts(&["web", "db", "mail"]);
    alone.configure("mode = \"observe\"");
    let told: Value = serde_json::from_str(&alone.ends("run --once -o json", 2)).unwrap();
    assert_eq!(
        (&told["result"], told["plans"][0]["changes"].as_array().unwrap().len()),
        (&"pending".into(), 1)
    );
    assert_eq!(alone.addresses("mail"), [""; 0]);
    // A source that cannot be seen removes nothing, and is an error.
    alone.configure("");
    alone.ends("run --once", 0);
    std::fs::remove_file(alone.sandbox.path().join("hosts")).unwrap();
    let said = alone.types("run --once");
    assert_eq!((said.code, said.out.contains("applied")), (1, false), "{}{}", said.out, said.err);
    assert!(said.err.contains("office: failed, 3 workloads: "), "{}", said.err);
    assert_eq!(alone.addresses("web"), ["10.0.3.11"]);
}

#[test]
fn names_of_what_is_gone_stay_until_a_run_waited_for_their_grace_or_a_guard_stops_it() {
    let Some(alone) = Alone::new() else { return };
    let quick = "grace = \"1s\"\nended_grace = \"1s\"";
    alone.configure(quick);
    alone.ends("run --once", 0);
    alone.hosts(&["web"]);
    for _ in 0..3 {
        let said = alone.types("run --once");
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        assert!(
            said.err.contains("1 workload no longer seen") && said.err.contains("--settle"),
            "{}",
            said.err
        );
    }
    assert_eq!(alone.addresses("db"), ["10.0.3.12"], "however often a single look missed it");
    let done = alone.ends("run --once --settle", 0);
    assert!(done.contains("db.lab.test"), "{done}");
    assert_eq!((alone.addresses("db"), alone.addresses("web")), (vec![], vec!["10.0.3.11".to_owned()]));
    // Absence alone never empties a server: a guard holds that back, and says how to go on.
    alone.hosts(&["web", "db", "mail"]);
    alone.ends("run --once", 0);
    std::fs::write(alone.sandbox.path().join("hosts"), "10.0.3.99 far.test\n").unwrap();
    let held = alone.ends("run --once --settle", 3);
    assert!(held.contains("parked") && held.contains("netstead apply "), "{held}");
    assert_eq!(alone.addresses("mail"), ["10.0.3.13"]);
}

#[test]
fn a_store_that_a_server_has_is_left_to_it_and_the_commands_ask_that_server() {
    let Some(mut alone) = Alone::new() else { return };
    alone.sandbox.start(&[]);
    let said = alone.types("run --once");
    assert_eq!(said.code, 1);
    assert!(said.err.contains("another netstead") && said.err.contains("`netstead apply`"), "{}", said.err);
    let said = alone.types("reconcile");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("lan: ") && !said.err.contains("no server answers"), "{}", said.err);
    assert!(alone.ends("output", 0).contains("web.lab.test"));
    assert_eq!(alone.types("health").code, alone.types("status --check").code);
    let shown = alone.ends("clean --all --dry-run", 0);
    assert!(shown.contains("web.lab.test") && shown.contains("db.lab.test"), "{shown}");
    assert_eq!(alone.addresses("web"), ["10.0.3.11"]);
    alone.ends("clean --all --yes", 0);
    assert_eq!((alone.addresses("web"), alone.addresses("db")), (vec![], vec![]));
    alone.sandbox.stop();
}

#[test]
fn users_of_pipam_need_no_server() {
    let Some(alone) = Alone::new() else { return };
    let said = alone.types("reconcile");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.starts_with("no server answers: working from "), "{}", said.err);
    assert_eq!(alone.addresses("web"), ["10.0.3.11"]);
    let said = alone.types("health");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("dns.lan") && said.out.contains("source.office"), "{}", said.out);
    // What is ours goes from everywhere, and comes back once a person says so.
    alone.hosts(&["web", "db", "mail"]);
    let shown = alone.ends("clean --all --dry-run", 0);
    assert!(shown.contains("web.lab.test") && !shown.contains("mail.lab.test"), "{shown}");
    assert_eq!((alone.addresses("web").len(), alone.addresses("mail").len()), (1, 0));
    alone.ends("clean --all --yes", 0);
    assert_eq!((alone.addresses("web"), alone.addresses("mail")), (vec![], vec![]));
    let said = alone.types("run --once");
    assert_eq!(said.code, 3, "it is paused:\n{}{}", said.out, said.err);
    assert_eq!(alone.addresses("web"), [""; 0]);
    alone.ends("resume --provider lan", 0);
    alone.ends("run --once", 0);
    assert_eq!((alone.addresses("web").len(), alone.addresses("mail").len()), (1, 1));
    drop(alone.dns);
    let said = alone.sandbox.command().env_remove("NETSTEAD_URL").arg("health").output().unwrap();
    assert_eq!(said.status.code(), Some(1));
}

#[test]
fn the_guests_of_a_cluster_are_shown_with_their_facts_and_nothing_is_stored() {
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24").with("tags", "prod"));
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let sandbox = Sandbox::empty();
    let config = format!(
        "[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\n\
         [domain.\"lab.test\"]\nnetworks = [\"10.0.3.0/24\"]\n\
         [dns.lan]\ntype = \"powerdns\"\nurl = \"http://127.0.0.1:1\"\napi_key = \"x\"\ndomains = [\"lab.test\"]\n",
        fake.url()
    );
    std::fs::write(sandbox.path().join("pve.toml"), config).unwrap();
    let types = |line: &str| {
        let mut command = sandbox.command();
        command.env_remove("NETSTEAD_URL").env("NETSTEAD_LISTEN", format!("127.0.0.1:{}", sandbox.dns()));
        let said = CommandOutput::from(command.args(line.split_whitespace()).output().unwrap());
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        said.out
    };
    insta::assert_snapshot!(types("output --config pve.toml"), @r"
    web  vm pve/101/00000065, present
      hostname    web
      facts       running, on pve1, cluster lab, 2 CPUs, 4 GiB memory, 32 GiB disk
      tags        prod
      interface   eth0 bc:24:11:00:00:65: 10.0.3.11
      names       web.lab.test
    ");
    let told: Value = serde_json::from_str(&types("output --config pve.toml --json")).unwrap();
    assert_eq!(told[0]["interfaces"][0]["mac"], "bc:24:11:00:00:65");
    assert_eq!(told[0]["facts"]["node"], "pve1");
    assert!(!sandbox.path().join("state/netstead").exists(), "nothing is stored");
}
