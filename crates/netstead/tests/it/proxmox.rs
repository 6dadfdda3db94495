//! Guests of Proxmox VE, from the cluster to a real PowerDNS.

use netstead_testkit::{FakePve, PowerDns, PveAgent, PveGuest, PveVersion};

use crate::{resolve, sandbox::Sandbox};

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
