//! Guests of Proxmox VE, from the cluster to a real PowerDNS.

mod names;
mod once;
mod sight;

use std::time::Duration;

use netstead_testkit::{FakePve, IpamReceiver, PowerDns, PveAgent, PveGuest, PveVersion};
use serde_json::Value;

use crate::{resolve, sandbox::Sandbox};

/// `[source.NAME]` of a cluster, with `more` keys.
fn source(name: &str, fake: &FakePve, more: &str) -> String {
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    format!(
        "[source.{name}]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\n{more}\n",
        fake.url()
    )
}

/// A store, a PowerDNS with short graces, and names of `lab.test` for 10.0.0.0/8.
fn destination(server: &PowerDns) -> String {
    format!(
        "[store]\ntype = \"local\"\npath = \"data\"\n[domain.\"lab.test\"]\nnetworks = [\"10.0.0.0/8\"]\n\
         [dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"lab.test\"]\n\
         grace = \"1s\"\nended_grace = \"1s\"\n\
         [dns.own]\ntype = \"builtin\"\ndomains = [\"own.test\"]\ngrace = \"1s\"\nended_grace = \"1s\"\n",
        server.api_url(),
        server.api_key(),
    )
}

/// A sandbox with this configuration, without a server.
fn configured(config: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox
}

#[test]
fn guests_have_names_at_powerdns_and_a_migration_or_a_dead_node_changes_none() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2", "pve3"]);
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    fake.add(PveGuest::machine(102, "pve2", "db", "10.0.4.12/24"));
    fake.add(PveGuest::container(201, "pve2", "dns1", "10.0.4.53/24"));
    let full = PveGuest::machine(103, "pve1", "mail", "10.0.9.13/24");
    fake.add(PveGuest { hostname: "mx.lab.test".into(), ..full });
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let mut sandbox = Sandbox::empty();
    let config = format!(
        "[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\ninterval = \
         \"1s\"\naddress_interval = \"1s\"\n\
         [domain.\"lab.test\"]\nnetworks = [\"10.0.3.0/24\", {{ cidr = \"10.0.4.0/24\", shared_name = \"all\" }}]\n\
         [dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"lab.test\"]\n",
        fake.url(),
        server.api_url(),
        server.api_key()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    let port = server.address().port();
    let are_there = || {
        resolve::until(&["10.0.3.11"], || resolve::a(port, "web.lab.test"));
        resolve::until(&["10.0.4.12"], || resolve::a(port, "db.lab.test"));
        resolve::until(&["10.0.9.13"], || resolve::a(port, "mx.lab.test"));
        resolve::until(&["10.0.4.12", "10.0.4.53"], || resolve::a(port, "all.lab.test"));
    };
    are_there();
    let doctor = sandbox.netstead(["doctor"]).out;
    assert!(doctor.contains("the credentials have every privilege that is needed"), "{doctor}");
    // A guest moves, an agent falls silent, a node is lost: looks go on, and every name stays.
    fake.change(101, |guest| guest.node = "pve3".into());
    fake.change(103, |guest| guest.agent = PveAgent::Silent);
    fake.cluster().nodes.insert("pve2".into(), false);
    fake.calls();
    let mut looks = 0;
    while looks < 4 {
        looks += fake.calls().iter().filter(|call| call.ends_with("/cluster/resources")).count();
        std::thread::yield_now();
    }
    sandbox.does("apply");
    are_there();
    let told = sandbox.does("get workloads -o json");
    assert!(told.contains("node `pve2` is offline, so its names stay as they are"), "{told}");
    // An address changes inside of the guest, without any other sign.
    fake.change(101, |guest| guest.interfaces[0].addresses = vec!["10.0.3.99/24".into()]);
    resolve::until(&["10.0.3.99"], || resolve::a(port, "web.lab.test"));
    sandbox.stop();
}

/// The changes that `netstead run --once` made, each as `PROVIDER NAME-OR-OBJECT`, and its exit code.
fn once(sandbox: &Sandbox) -> (i32, Vec<String>) {
    let said = sandbox.netstead(["run", "--once", "-o", "json"]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let text = |change: &Value, field: &str| change[field].as_str().unwrap_or_default().to_owned();
    let changes = told["changes"].as_array().unwrap().iter().filter(|change| change["what"] == "applied");
    let mut changes: Vec<String> = changes
        .map(|change| {
            format!("{} {}{}", text(change, "provider"), text(change, "name"), text(change, "object"))
        })
        .filter(|change| !change.ends_with(' ') && !change.starts_with("builtin "))
        .collect();
    changes.sort();
    // A machine gets its primary address once that is there.
    changes.dedup();
    (said.code, changes)
}

#[test]
fn guests_become_records_and_objects_and_only_what_failed_is_tried_again() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let receiver = IpamReceiver::start("a secret of the tests");
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2", "pve3"]);
    let block = "Web.\n```pipam\ntags: [www]\nip_map: { \"10.0.3.12\": \"10.0.4.12\" }\n```\n";
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24").with("tags", "prod"));
    fake.add(PveGuest::machine(102, "pve2", "db", "10.0.3.12/24").with("description", block));
    fake.add(PveGuest::container(201, "pve2", "dns1", "10.0.4.53/24"));
    fake.add(PveGuest::machine(103, "pve1", "nameless", "10.9.9.9/24"));
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let sandbox = Sandbox::empty();
    let config = format!(
        "[store]\ntype = \"local\"\npath = \"data\"\n[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \
         \"{id}\"\ntoken_secret = \"{secret}\"\n\
         [domain.\"lab.test\"]\nnetworks = [\"10.0.3.0/24\", {{ cidr = \"10.0.4.0/24\", shared_name = \"all\" }}]\n\
         [dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"lab.test\"]\n\
         [ipam.inventory]\ntype = \"webhook\"\nurl = \"{}\"\nsecret = \"a secret of the tests\"\n",
        fake.url(),
        server.api_url(),
        server.api_key(),
        receiver.url(),
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    // The machine of one guest is rejected: the others have everything, and so has DNS.
    receiver.reject(&["machine:pve:@102/00000066"]);
    let (code, made) = once(&sandbox);
    assert_eq!(
        (code, made.join("\n").as_str()),
        (
            1,
            "inventory address:pve:10.0.3.11@101/00000065\ninventory address:pve:10.0.4.53@201/bc24110000c9\n\
             inventory interface:pve:eth0@101/00000065\ninventory interface:pve:eth0@201/bc24110000c9\n\
             inventory machine:pve:@101/00000065\ninventory machine:pve:@201/bc24110000c9\n\
             lan all.lab.test\nlan db.lab.test\nlan dns1.lab.test\nlan web.lab.test"
        )
    );
    let port = server.address().port();
    let records = || {
        ["web", "db", "dns1", "all"].map(|name| {
            let mut values = resolve::a(port, &format!("{name}.lab.test")).values;
            values.sort();
            values.join(" ")
        })
    };
    assert_eq!(records(), ["10.0.3.11", "10.0.4.12", "10.0.4.53", "10.0.4.12 10.0.4.53"]);
    receiver.reject(&[]);
    let own = |kinds: [&str; 3]| (0, kinds.map(|kind| format!("inventory {kind}")).to_vec());
    let of_db = [
        "address:pve:10.0.4.12@102/00000066",
        "interface:pve:eth0@102/00000066",
        "machine:pve:@102/00000066",
    ];
    assert_eq!(once(&sandbox), own(of_db), "only what failed is tried again");
    let objects = receiver.lines();
    insta::assert_snapshot!(objects.join("\n"), @r#"
    machine cluster=lab cpus=2 disk=34359738368 memory=4294967296 name=web node=pve1 primary_ip4=address:pve:10.0.3.11@101/00000065 status=running tags=["prod"] type=vm (machine:pve:@101/00000065)
    machine cluster=lab cpus=1 disk=8589934592 memory=536870912 name=dns1 node=pve2 primary_ip4=address:pve:10.0.4.53@201/bc24110000c9 status=running type=container (machine:pve:@201/bc24110000c9)
    interface mac=bc:24:11:00:00:65 machine=machine:pve:@101/00000065 name=eth0 (interface:pve:eth0@101/00000065)
    interface mac=bc:24:11:00:00:c9 machine=machine:pve:@201/bc24110000c9 name=eth0 (interface:pve:eth0@201/bc24110000c9)
    address address=10.0.3.11 dns_name=web.lab.test interface=interface:pve:eth0@101/00000065 status=active (address:pve:10.0.3.11@101/00000065)
    address address=10.0.4.53 dns_name=dns1.lab.test interface=interface:pve:eth0@201/bc24110000c9 status=active (address:pve:10.0.4.53@201/bc24110000c9)
    machine cluster=lab comments=Web.
    ```pipam
    tags: [www]
    ip_map: { "10.0.3.12": "10.0.4.12" }
    ``` cpus=2 disk=34359738368 memory=4294967296 name=db node=pve2 primary_ip4=address:pve:10.0.4.12@102/00000066 status=running tags=["www"] type=vm (machine:pve:@102/00000066)
    interface mac=bc:24:11:00:00:66 machine=machine:pve:@102/00000066 name=eth0 (interface:pve:eth0@102/00000066)
    address address=10.0.4.12 dns_name=db.lab.test interface=interface:pve:eth0@102/00000066 status=active (address:pve:10.0.4.12@102/00000066)
    "#);
    assert_eq!(once(&sandbox), (0, vec![]));
    // A guest moves: it is the same machine on another node, and no name changes.
    fake.change(101, |guest| guest.node = "pve3".into());
    assert_eq!(once(&sandbox), (0, vec!["inventory machine:pve:@101/00000065".into()]));
    // A hung agent and a lost node change nothing, and delay no guest that is new.
    fake.cluster().hang = Duration::from_secs(5);
    fake.change(101, |guest| guest.agent = PveAgent::Hung);
    fake.cluster().nodes.insert("pve2".into(), false);
    fake.add(PveGuest::machine(104, "pve1", "mail", "10.0.3.14/24"));
    let (code, made) = once(&sandbox);
    assert_eq!((code, made.len()), (0, 4), "{made:?}");
    assert!(made.contains(&"lan mail.lab.test".to_owned()), "{made:?}");
    assert_eq!(records(), ["10.0.3.11", "10.0.4.12", "10.0.4.53", "10.0.4.12 10.0.4.53"]);
    let now = receiver.lines();
    assert_eq!((now.len(), &now[1..objects.len()]), (objects.len() + 3, &objects[1..]));
}

#[test]
fn addresses_of_guests_are_compared_with_claims_and_turned_into_claims() {
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    for (vmid, name) in [(101, "web"), (102, "db"), (103, "cache")] {
        fake.add(PveGuest::machine(vmid, "pve1", name, &format!("10.0.3.{}/24", vmid - 90)));
    }
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let mut sandbox = Sandbox::empty();
    let config = format!(
        "[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\ninterval = \
         \"1s\"\n[pool.lan]\nnetwork = \"10.0.3.0/24\"\nranges = [\"10.0.3.10-10.0.3.60\"]\n",
        fake.url()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    let drift = || {
        let told: Value = serde_json::from_str(&sandbox.does("get drift --addresses -o json")).unwrap();
        let line =
            |one: &Value| format!("{} {} {}", one["address"], one["drift"], one["seen"]).replace('"', "");
        told.as_array().unwrap().iter().map(line).collect::<Vec<_>>()
    };
    let until = |wanted: &[&str]| {
        let begun = resolve::Stopwatch::start();
        while drift() != wanted {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", drift());
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let (web, db) = ("10.0.3.11 unknown [vm web of pve]", "10.0.3.12 unknown [vm db of pve]");
    until(&[web, db, "10.0.3.13 unknown [vm cache of pve]"]);
    sandbox.does("claim lan db --address 10.0.3.12 --adopt");
    sandbox.does("claim lan mail --address 10.0.3.13 --adopt");
    sandbox.does("claim lan old --address 10.0.3.50");
    until(&[web, "10.0.3.13 mismatch [vm cache of pve]", "10.0.3.50 reclaimable []"]);
    assert!(sandbox.does("get drift").contains("reclaimable"));
    let said = sandbox.fails("adopt --address 10.0.3.50");
    assert!(said.err.contains("10.0.3.50 is not seen in a pool without a claim"), "{}", said.err);
    assert!(sandbox.does("adopt --observed --pool lan --dry-run").contains("10.0.3.11"));
    until(&[web, "10.0.3.13 mismatch [vm cache of pve]", "10.0.3.50 reclaimable []"]);
    sandbox.does("adopt --observed");
    until(&["10.0.3.13 mismatch [vm cache of pve]", "10.0.3.50 reclaimable []"]);
    let claims = sandbox.does("get claims -o name");
    assert!(claims.contains("lan/pve/101/00000065/10.0.3.11\n"), "{claims}");
    fake.add(PveGuest::machine(104, "pve1", "late", "10.0.3.14/24"));
    until(&[
        "10.0.3.13 mismatch [vm cache of pve]",
        "10.0.3.14 unknown [vm late of pve]",
        "10.0.3.50 reclaimable []",
    ]);
    sandbox.does("adopt --address 10.0.3.14");
    until(&["10.0.3.13 mismatch [vm cache of pve]", "10.0.3.50 reclaimable []"]);
    sandbox.stop();
}
