//! NetBox itself from the configuration file: objects of guests, and claims out of its prefixes.

mod cascade;
mod interrupted;

use std::sync::Arc;

use netstead_client::types::ClaimInput;
use netstead_ledger::contract::{self, Subject};
use netstead_model::{BackendClaim, GivenBack, PoolBackend, Want};
use netstead_providers::{BuildContext, Secret, pool::netbox::Config};
use netstead_testkit::{FakePve, NetBox, PowerDns, PveGuest, PveVersion, wait_until};
use serde_json::{Value, json};

use crate::{
    resolve,
    sandbox::{SOON, Sandbox},
};

fn backend(netbox: &NetBox) -> Arc<dyn PoolBackend> {
    let context = BuildContext::new("ipam".parse().unwrap());
    Arc::new(Config::new(netbox.url(), Secret::new(netbox.token())).open(&context).unwrap())
}

fn connection(netbox: &NetBox) -> String {
    format!("type = \"netbox\"\nurl = \"{}\"\ntoken = \"{}\"\n", netbox.url(), netbox.token())
}

fn addresses_in(netbox: &NetBox, network: &str) -> Vec<Value> {
    netbox.list(&format!("/api/ipam/ip-addresses/?parent={network}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn netbox_keeps_the_contract_of_pool_backends() {
    let Some(netbox) = NetBox::shared() else { return };
    let id = netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.71.7.0/29" }));
    netbox.make(
        "/api/ipam/ip-ranges/",
        &json!({ "start_address": "10.72.7.10/24", "end_address": "10.72.7.15/24" }),
    );
    let outside = "10.71.9.1".parse().unwrap();
    for pool in ["10.71.7.0/29".to_owned(), id.to_string(), "10.72.7.10-10.72.7.15".to_owned()] {
        contract::pools(&Subject { backend: backend(netbox), pool, size: 6, outside }).await;
    }
    assert_eq!(addresses_in(netbox, "10.71.7.0/29").len() + addresses_in(netbox, "10.72.7.0/24").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn prefixes_are_claimed_and_given_back_and_those_of_others_stay() {
    let Some(netbox) = NetBox::shared() else { return };
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.73.0.0/24" }));
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.73.0.0/26" }));
    let backend = backend(netbox);
    let ask = |key: &str, length| BackendClaim {
        pool: "10.73.0.0/24".into(),
        key: format!("own/nets/{key}"),
        want: Want::Any,
        length: Some(length),
        note: "a test".into(),
    };
    let first = backend.claim(&ask("a", 26)).await.unwrap();
    assert_eq!((first.address.to_string().as_str(), first.length), ("10.73.0.64", Some(26)));
    assert_eq!(backend.claim(&ask("a", 26)).await.unwrap().reference, first.reference);
    let second = backend.claim(&ask("b", 25)).await.unwrap();
    assert_eq!((second.address.to_string().as_str(), second.length), ("10.73.0.128", Some(25)));
    let full = backend.claim(&ask("c", 27)).await.unwrap_err();
    assert_eq!(full.to_string(), "prefix 10.73.0.0/24 has nothing free");
    for object in [&first, &second] {
        assert_eq!(backend.release("10.73.0.0/24", object).await, Ok(GivenBack::Done));
        assert_eq!(backend.release("10.73.0.0/24", object).await, Ok(GivenBack::AlreadyGone));
    }
    assert_eq!(netbox.list("/api/ipam/prefixes/?within=10.73.0.0/24").len(), 1);
}

#[test]
fn sixty_four_parallel_claims_from_one_prefix_are_distinct() {
    let Some(netbox) = NetBox::shared() else { return };
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.74.7.0/24" }));
    let mut sandbox = Sandbox::empty();
    let file = format!(
        "[backend.office]\n{}\n[pool.lan]\nbackend = \"office\"\nbackend_pool = \"10.74.7.0/24\"\ncooldown = \"0\"\n",
        connection(netbox)
    );
    std::fs::write(sandbox.path().join("netstead.toml"), file).unwrap();
    sandbox.start(&[]);
    let made = || (sandbox.netstead(["get", "pools", "-o", "name"]).out == "lan\n").then_some(());
    assert!(wait_until(SOON, made).is_some(), "the pool of the file is made");
    let client = Arc::new(sandbox.client());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut given: Vec<String> = runtime.block_on(async {
        let claim = |number: usize| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                let key = format!("key-{number}");
                for _ in 0..300 {
                    let asked = client.claim("lan", &key, &ClaimInput::default()).await;
                    if let Some(address) = asked.ok().and_then(|(claim, _)| claim.address) {
                        return address;
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                }
                "none".to_owned()
            })
        };
        let mut given = Vec::new();
        for claim in (0..64).map(claim).collect::<Vec<_>>() {
            given.push(claim.await.unwrap());
        }
        given
    });
    given.sort();
    given.dedup();
    assert_eq!(given.len(), 64, "{given:?}");
    let held = || (addresses_in(netbox, "10.74.7.0/24").len() == 64).then_some(());
    assert!(wait_until(SOON, held).is_some(), "no address is held twice or forgotten");
    sandbox.stop();
}

/// Runs until everything is in line, and gives the exit code of the last run and whether it wrote something.
fn once(sandbox: &Sandbox) -> (i32, Vec<String>) {
    let said = sandbox.netstead(["run", "--once", "-o", "json"]);
    let told: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let of_netbox = |change: &&Value| change["what"] == "applied" && change["provider"] == "inventory";
    let changes = told["changes"].as_array().unwrap().iter().filter(of_netbox);
    (said.code, changes.map(|change| change["object"].to_string()).collect())
}

#[test]
fn guests_become_records_and_objects_and_a_netbox_that_is_away_or_read_only_loses_nothing() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let Some(netbox) = NetBox::start() else { return };
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.0.3.0/24" }));
    netbox.make("/api/ipam/vlans/", &json!({ "vid": 30, "name": "guests" }));
    netbox.make("/api/extras/tags/", &json!({ "name": "prod", "slug": "prod" }));
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2"]);
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/16").with("tags", "prod;unheard-of"));
    fake.add(PveGuest::machine(102, "pve2", "db", "10.0.3.12/16"));
    fake.add(PveGuest::container(201, "pve2", "dns1", "10.0.3.53/16"));
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let sandbox = Sandbox::empty();
    let config = format!(
        "[store]\ntype = \"local\"\npath = \"data\"\n[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \
         \"{id}\"\ntoken_secret = \"{secret}\"\n[domain.\"lab.test\"]\nnetworks = [\"10.0.3.0/24\"]\n\
         [dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"lab.test\"]\n\
         [ipam.inventory]\n{}make = [\"cluster\"]\nkind_tags = {{ vm = \"qemu\", container = \"lxc\" }}\n",
        fake.url(),
        server.api_url(),
        server.api_key(),
        connection(&netbox),
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    let (code, made) = once(&sandbox);
    assert_eq!(code, 0, "{made:?}");
    resolve::until(&["10.0.3.11"], || resolve::a(server.address().port(), "web.lab.test"));
    let machines = || -> Vec<String> {
        let line = |one: &Value| {
            let tags =
                one["tags"].as_array().unwrap().iter().map(|tag| tag["slug"].as_str().unwrap_or_default());
            let tags: Vec<&str> = tags.collect();
            format!(
                "{} {} {} {} {} {} {}",
                one["name"],
                one["cluster"]["name"],
                one["vcpus"],
                one["memory"],
                one["disk"],
                one["primary_ip4"]["address"],
                tags.join(",")
            )
        };
        let mut lines: Vec<String> =
            netbox.list("/api/virtualization/virtual-machines/").iter().map(line).collect();
        lines.sort();
        lines.iter().map(|line| line.replace('"', "")).collect()
    };
    assert_eq!(
        machines(),
        [
            "db lab 2.0 4096 32768 10.0.3.12/24 qemu",
            "dns1 lab 1.0 512 8192 10.0.3.53/24 lxc",
            "web lab 2.0 4096 32768 10.0.3.11/24 prod,qemu",
        ]
    );
    let names = || -> Vec<String> {
        let line = |one: &Value| {
            format!(
                "{} {} {}",
                one["address"], one["dns_name"], one["assigned_object"]["virtual_machine"]["name"]
            )
        };
        let mut lines: Vec<String> = netbox.list("/api/ipam/ip-addresses/").iter().map(line).collect();
        lines.sort();
        lines.iter().map(|line| line.replace('"', "")).collect()
    };
    let all =
        ["10.0.3.11/24 web.lab.test web", "10.0.3.12/24 db.lab.test db", "10.0.3.53/24 dns1.lab.test dns1"];
    assert_eq!(names(), all);
    assert_eq!(netbox.list("/api/dcim/mac-addresses/").len(), 3);
    assert_eq!(once(&sandbox), (0, vec![]), "a second run writes nothing");
    // A guest moves: nothing of it changes.
    fake.change(101, |guest| guest.node = "pve2".into());
    assert_eq!(once(&sandbox), (0, vec![]));

    // A new guest while the token may only read: it fails, and comes as soon as it may write again.
    fake.add(PveGuest::machine(104, "pve1", "mail", "10.0.3.14/16"));
    netbox.read_only(true).unwrap();
    assert_eq!(once(&sandbox), (1, vec![]));
    assert_eq!(names(), all, "nothing is lost");
    netbox.read_only(false).unwrap();
    let (code, made) = once(&sandbox);
    assert_eq!((code, made.is_empty(), names().len()), (0, false, 4), "{made:?}");
    // The same while it does not answer at all.
    fake.add(PveGuest::machine(105, "pve1", "cache", "10.0.3.15/16"));
    netbox.stop().unwrap();
    assert_eq!(once(&sandbox), (1, vec![]));
    resolve::until(&["10.0.3.15"], || resolve::a(server.address().port(), "cache.lab.test"));
    netbox.go_on().unwrap();
    let (code, made) = once(&sandbox);
    assert_eq!((code, made.is_empty(), names().len()), (0, false, 5), "{made:?}");
    assert_eq!(once(&sandbox), (0, vec![]));
}
