//! A NetBox that stops, or takes no more writes, while a server writes many guests.

use std::{collections::BTreeSet, time::Duration};

use netstead_testkit::{FakePve, NetBox, PveGuest, PveVersion, wait_until};
use serde_json::json;

use crate::sandbox::Sandbox;

/// NetBox makes about twenty objects a second on a quiet machine.
const LONG: Duration = Duration::from_mins(8);
const FIRST: u32 = 150;
const ALL: u32 = 200;

const MACHINES: &str = "virtualization_virtualmachine";
const INTERFACES: &str = "virtualization_vminterface";
const ADDRESSES: &str = "ipam_ipaddress";

/// The rows of a table: the database answers also while NetBox does not.
fn count(netbox: &NetBox, table: &str) -> u32 {
    netbox.sql(&format!("SELECT count(*) FROM {table}")).unwrap().parse().unwrap()
}

fn guest(number: u32) -> PveGuest {
    let address = format!("10.79.{}.{}/16", number / 200, number % 200 + 10);
    PveGuest::machine(1000 + number, "pve1", &format!("guest-{number}"), &address)
}

/// Waits until NetBox has so many guests as a whole.
fn has_all(netbox: &NetBox, sandbox: &Sandbox, wanted: u32) {
    let whole = "SELECT count(*) FROM virtualization_virtualmachine WHERE primary_ip4_id IS NOT NULL";
    let there = wait_until(LONG, || {
        // Looks at once, instead of after the pause that follows an error.
        sandbox.netstead(["apply", "--provider", "inventory"]);
        (netbox.sql(whole).unwrap() == wanted.to_string()).then_some(())
    });
    assert!(
        there.is_some(),
        "{} of {wanted} machines, {} addresses:\n{}",
        count(netbox, MACHINES),
        count(netbox, ADDRESSES),
        sandbox.netstead(["status"]).out
    );
}

/// Waits until the server says that it cannot write.
fn is_told(sandbox: &Sandbox) {
    let told = wait_until(LONG, || {
        sandbox.netstead(["apply", "--provider", "inventory"]);
        (sandbox.netstead(["status", "--check"]).code != 0).then_some(())
    });
    assert!(told.is_some(), "{:?}", sandbox.netstead(["status"]));
}

#[test]
fn a_netbox_that_stops_or_takes_no_writes_in_the_middle_of_many_has_everything_once_in_the_end() {
    let Some(netbox) = NetBox::start() else { return };
    netbox.make("/api/ipam/prefixes/", &json!({ "prefix": "10.79.0.0/16" }));
    let fake = FakePve::start(PveVersion::Nine, &["pve1"]);
    for number in 0..FIRST {
        fake.add(guest(number));
    }
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let mut sandbox = Sandbox::empty();
    let config = format!(
        "[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\ninterval = \
         \"1s\"\n[domain.\"lab.test\"]\nnetworks = [\"10.79.0.0/16\"]\n\
         [ipam.inventory]\n{}make = [\"cluster\"]\ninterval = \"5s\"\n",
        fake.url(),
        super::connection(&netbox),
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    // 1. The first machines are there. NetBox stops answering.
    let begun = wait_until(LONG, || (count(&netbox, MACHINES) > 0).then_some(()));
    assert!(begun.is_some(), "{}", sandbox.netstead(["status"]).out);
    netbox.stop().unwrap();
    let stopped_at = (count(&netbox, MACHINES), count(&netbox, ADDRESSES));
    assert!(stopped_at.1 < FIRST, "it stopped in the middle: {stopped_at:?}");
    is_told(&sandbox);
    assert_eq!((count(&netbox, MACHINES), count(&netbox, ADDRESSES)), stopped_at);
    // 2. It answers again, and gets the rest.
    netbox.go_on().unwrap();
    has_all(&netbox, &sandbox, FIRST);
    // 3. More guests come, and their first machines are there. The token may only read from now on.
    for number in FIRST..ALL {
        fake.add(guest(number));
    }
    let begun = wait_until(LONG, || (count(&netbox, MACHINES) > FIRST).then_some(()));
    assert!(begun.is_some(), "{}", sandbox.netstead(["status"]).out);
    netbox.read_only(true).unwrap();
    is_told(&sandbox);
    let (machines, addresses) = (count(&netbox, MACHINES), count(&netbox, ADDRESSES));
    assert!(machines >= FIRST && (FIRST..ALL).contains(&addresses), "{machines} {addresses}");
    // 4. It may write again, and gets the rest.
    netbox.read_only(false).unwrap();
    has_all(&netbox, &sandbox, ALL);

    let tables = [MACHINES, INTERFACES, "dcim_macaddress", ADDRESSES];
    assert_eq!(
        tables.map(|table| count(&netbox, table)),
        [ALL; 4],
        "nothing is missing, and nothing is there twice"
    );
    let keys = |table: &str| -> BTreeSet<String> {
        let query = format!("SELECT custom_field_data->>'netstead_key' FROM {table}");
        netbox.sql(&query).unwrap().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    for table in tables {
        assert_eq!(keys(table).len(), 200, "each object of {table} has a key of its own");
    }
    let names: BTreeSet<String> =
        netbox.sql("SELECT dns_name FROM ipam_ipaddress").unwrap().lines().map(str::to_owned).collect();
    assert_eq!(names, (0..ALL).map(|number| format!("guest-{number}.lab.test")).collect());
    // Nothing is left to do.
    let changes = || netbox.sql("SELECT count(*) FROM core_objectchange").unwrap();
    sandbox.does("apply --provider inventory");
    let before = changes();
    sandbox.does("apply --provider inventory");
    assert_eq!(changes(), before, "a pass without news writes nothing");
    sandbox.stop();
}
