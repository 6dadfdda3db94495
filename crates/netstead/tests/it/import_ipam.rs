//! `netstead import netbox` and `import phpipam`: what an IPAM system has becomes pools and claims.

use netstead_testkit::{FakePhpIpam, NetBox};
use serde_json::{Value, json};

use crate::sandbox::{CommandOutput, Sandbox};

/// Each claim as `POOL KEY ADDRESS VRF`.
fn claims(sandbox: &Sandbox) -> Vec<String> {
    let all: Value = serde_json::from_str(&sandbox.does("get claims -o json")).unwrap();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let line = |one: &Value| ["pool", "key", "address", "vrf"].map(|field| text(one, field)).join(" ");
    let mut lines: Vec<String> = all.as_array().unwrap().iter().map(line).collect();
    lines.sort();
    lines
}

/// Every event so far: a run that changes nothing adds none.
fn events(sandbox: &Sandbox) -> usize {
    sandbox.does("events export").lines().count()
}

fn last(said: &CommandOutput) -> &str {
    said.err.lines().last().unwrap_or_default()
}

#[test]
fn a_netbox_is_shown_and_then_brought_into_the_ledger_and_a_second_run_changes_nothing() {
    let Some(netbox) = NetBox::shared() else { return };
    let make = |path: &str, body: Value| netbox.make(&format!("/api/ipam/{path}/"), &body);
    let red = make("vrfs", json!({ "name": "Import Red" }));
    make("prefixes", json!({ "prefix": "10.75.0.0/16", "status": "container" }));
    make("prefixes", json!({ "prefix": "10.75.3.0/24", "description": "servers" }));
    make("prefixes", json!({ "prefix": "10.75.4.0/24" }));
    make("prefixes", json!({ "prefix": "10.75.3.0/24", "vrf": red }));
    make("ip-ranges", json!({ "start_address": "10.75.3.100/24", "end_address": "10.75.3.199/24" }));
    let address = |text: &str, more: Value| {
        let mut body = json!({ "address": text });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        make("ip-addresses", body)
    };
    address("10.75.3.1/24", json!({ "description": "gateway" }));
    address("10.75.3.2/24", json!({ "status": "reserved" }));
    address("10.75.3.11/24", json!({ "dns_name": "web.lab.test", "description": "the shop" }));
    let nameless = address("10.75.3.12/24", json!({}));
    let twin = address("10.75.3.13/24", json!({ "dns_name": "web.lab.test" }));
    address("10.75.3.101/24", json!({ "dns_name": "dhcp-1.lab.test", "status": "dhcp" }));
    address("10.75.3.11/24", json!({ "dns_name": "red.lab.test", "vrf": red }));
    address("10.75.9.9/24", json!({ "dns_name": "stray.lab.test" }));
    // An object of Netstead's own.
    let own = address("10.75.3.50/24", json!({}));
    // Other tests make the usual field.
    let field = json!({ "name": "netstead_import", "type": "text", "object_types": ["ipam.ipaddress"] });
    netbox.call("POST", "/api/extras/custom-fields/", Some(&field));
    let mark = json!({ "custom_fields": { "netstead_import": "[netstead-claim other/lan/x]" } });
    netbox.call("PATCH", &format!("/api/ipam/ip-addresses/{own}/"), Some(&mark));

    let mut sandbox = Sandbox::with_server();
    sandbox.set("NETBOX_API_TOKEN", netbox.bearer());
    let line = format!("import netbox {} --within 10.75.0.0/16 --key-field netstead_import", netbox.url());
    assert_eq!(
        sandbox.does(&line),
        format!(
            "pool 10.75.3.0_24: 10.75.3.0-10.75.3.99, 10.75.3.200-10.75.3.255, gateway 10.75.3.1, without 10.75.3.2, \
             from prefix 10.75.3.0/24\n  10.75.3.11  web.lab.test\n  10.75.3.12  netbox-{nameless}\n  10.75.3.13  \
             netbox-{twin}  (`web.lab.test` is the key of 10.75.3.11)\n\
             pool 10.75.3.100-10.75.3.199: 10.75.3.100-10.75.3.199, gateway 10.75.3.1, from range \
             10.75.3.100-10.75.3.199\n  10.75.3.101  dhcp-1.lab.test\n\
             pool 10.75.4.0_24: 10.75.4.0/24, from prefix 10.75.4.0/24\n\
             pool import-red.10.75.3.0_24: 10.75.3.0/24 of VRF import-red, from prefix 10.75.3.0/24\n  \
             10.75.3.11  red.lab.test\n\
             left out:\n  prefix 10.75.0.0/16: it is a container\n  \
             10.75.9.9 (stray.lab.test): no prefix that is imported holds it\n"
        )
    );
    assert_eq!(sandbox.does("get pools -o name"), "", "a preview makes nothing");

    // A pool and a claim of the ledger are in the way of one pool and one key each.
    sandbox.does("pool create mine --range 10.75.4.10-10.75.4.20");
    let said = sandbox.netstead(format!("{line} --yes").split_whitespace());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains(
            "left out: prefix 10.75.4.0/24 as pool `10.75.4.0_24`: the ranges of pool `10.75.4.0_24` and of pool `mine` overlap"
        ),
        "{}",
        said.err
    );
    assert_eq!(
        last(&said),
        "5 claims made, 0 there already; 3 pools made, 0 there already; 1 object of Netstead left out; NetBox was not changed"
    );
    let held = [
        "10.75.3.0_24 netbox-NAMELESS 10.75.3.12 default",
        "10.75.3.0_24 netbox-TWIN 10.75.3.13 default",
        "10.75.3.0_24 web.lab.test 10.75.3.11 default",
        "10.75.3.100-10.75.3.199 dhcp-1.lab.test 10.75.3.101 default",
        "import-red.10.75.3.0_24 red.lab.test 10.75.3.11 import-red",
    ]
    .map(|line| line.replace("NAMELESS", &nameless.to_string()).replace("TWIN", &twin.to_string()));
    assert_eq!(claims(&sandbox), held);
    // What a person changes in the ledger stays.
    sandbox.does("pool update 10.75.3.0_24 --cooldown 1h");
    let before = events(&sandbox);
    let said = sandbox.netstead(format!("{line} --yes").split_whitespace());
    assert_eq!(
        last(&said),
        "0 claims made, 5 there already; 0 pools made, 3 there already; 1 object of Netstead left out; NetBox was not changed"
    );
    assert_eq!((claims(&sandbox).len(), events(&sandbox)), (5, before), "a second run changes nothing");
    // Nothing that NetBox has is handed out: 1 is the gateway, 2 is reserved.
    assert_eq!(sandbox.does("claim 10.75.3.0_24 new"), "10.75.3.3\n");

    // A new address whose name is a key of the ledger, and others with it: the others are made.
    address("10.75.3.21/24", json!({ "dns_name": "new" }));
    address("10.75.3.22/24", json!({ "dns_name": "late.lab.test" }));
    let said = sandbox.netstead(format!("{line} --yes").split_whitespace());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("left out: 10.75.3.21 as `new` of pool `10.75.3.0_24`: "), "{}", said.err);
    assert!(last(&said).starts_with("1 claim made, 5 there already; "), "{}", said.err);
    assert!(claims(&sandbox).contains(&"10.75.3.0_24 late.lab.test 10.75.3.22 default".to_owned()));
    // One network as one pool, with its names.
    let one = format!("import netbox {} --within 10.75.3.0/24 --vrf import-red --pool red", netbox.url());
    assert!(sandbox.does(&one).starts_with("pool red: 10.75.3.0/24 of VRF import-red"));
    let wrong = sandbox.fails(&line.replace(&netbox.url(), "http://127.0.0.1:9"));
    assert!(wrong.err.contains("cannot be reached"), "{}", wrong.err);
    sandbox.set("NETBOX_API_TOKEN", "0000000000000000000000000000000000000000");
    let wrong = sandbox.fails(&line);
    assert!(wrong.err.contains("refuses these credentials"), "{}", wrong.err);
    let file = sandbox.path().join("token");
    std::fs::write(&file, netbox.reader()).unwrap();
    let by_file = format!("{line} --api-token-file {}", file.display());
    assert!(sandbox.does(&by_file).contains("pool 10.75.3.0_24: "), "a token that may only read is enough");
    sandbox.stop();
}

#[test]
fn a_phpipam_is_shown_and_then_brought_into_the_ledger_and_a_second_run_changes_nothing() {
    let fake = FakePhpIpam::start();
    let outer = fake.add_subnet(1, "10.76.0.0/16");
    let lan = fake.add_subnet(1, "10.76.3.0/24");
    fake.describe(lan, "R&amp;D");
    let folder = fake.add_subnet(1, "10.76.4.0/24");
    fake.make_folder(folder);
    let red = fake.add_vrf("Team Red");
    let own = fake.add_subnet(1, "10.77.3.0/24");
    fake.set_vrf(own, red);
    let other = fake.add_section("Other");
    let twin = fake.add_subnet(other, "10.76.3.0/24");
    let router = fake.put(lan, "10.76.3.1", &[("hostname", "router")]);
    fake.make_gateway(router);
    fake.put(lan, "10.76.3.11", &[("hostname", "web.lab.test"), ("description", "the shop")]);
    let nameless = fake.put(lan, "10.76.3.12", &[("mac", "02:00:00:00:00:01")]);
    let reserved = fake.put(lan, "10.76.3.20", &[]);
    fake.set_tag(reserved, 3);
    fake.put(lan, "10.76.3.50", &[("hostname", "ours"), ("note", "[netstead-claim own/lan/ours]")]);
    fake.put(own, "10.77.3.7", &[("hostname", "red.lab.test")]);
    fake.put(twin, "10.76.3.11", &[("hostname", "theirs.lab.test")]);
    let (user, password) = FakePhpIpam::user();
    let mut sandbox = Sandbox::with_server();
    sandbox.set("PHPIPAM_USER_NAME", user);
    let file = sandbox.path().join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    let line = format!("import phpipam {} --password-file {}", fake.url(), file.display());
    assert_eq!(
        sandbox.does(&line),
        format!(
            "pool 10.76.3.0_24: 10.76.3.0/24, gateway 10.76.3.1, without 10.76.3.20, from subnet 10.76.3.0/24\n  \
             10.76.3.11  web.lab.test\n  10.76.3.12  phpipam-{nameless}\n\
             pool team-red.10.77.3.0_24: 10.77.3.0/24 of VRF team-red, from subnet 10.77.3.0/24\n  \
             10.77.3.7  red.lab.test\n\
             left out:\n  subnet 10.76.3.0/24 with the id {twin}: the one with the id {lan} is the same, and pools of one VRF \
             never overlap\n  10.76.3.11 (theirs.lab.test): no subnet that is imported holds it\n  \
             subnet 10.76.0.0/16: it holds 10.76.3.0/24, which is a pool of its own, and no address beside\n"
        )
    );
    assert_eq!(sandbox.does("get pools -o name"), "", "a preview makes nothing");
    let of_lab = format!("{line} --section Lab --hostnames --yes");
    sandbox.does(&of_lab);
    let held = [
        format!("10.76.3.0_24 phpipam-{nameless} 10.76.3.12 default"),
        "10.76.3.0_24 web.lab.test 10.76.3.11 default".to_owned(),
        "team-red.10.77.3.0_24 red.lab.test 10.77.3.7 team-red".to_owned(),
    ];
    assert_eq!(claims(&sandbox), held);
    let told: Value =
        serde_json::from_str(&sandbox.does("get claim 10.76.3.0_24/web.lab.test -o json")).unwrap();
    assert_eq!((&told["hostnames"], &told["description"]), (&json!(["web.lab.test"]), &json!("the shop")));
    let pools = sandbox.does("get pools -o json");
    assert!(pools.contains("R&D (subnet 10.76.3.0/24 of phpIPAM)"), "{pools}");
    let before = (events(&sandbox), fake.changes());
    let said = sandbox.netstead(of_lab.split_whitespace());
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        last(&said),
        "0 claims made, 3 there already; 0 pools made, 2 there already; 1 object of Netstead left out; phpIPAM was not changed"
    );
    assert_eq!((events(&sandbox), fake.changes()), before, "a second run changes nothing");
    assert_eq!(sandbox.does("claim 10.76.3.0_24 new"), "10.76.3.2\n");

    // An address of the large subnet itself: it becomes the pool of what the smaller one leaves over.
    fake.put(outer, "10.76.9.9", &[("hostname", "loose.lab.test")]);
    let said = sandbox.does(&format!("{line} --section Lab"));
    assert!(
        said.starts_with(
            "pool 10.76.0.0_16: 10.76.0.0-10.76.2.255, 10.76.4.0-10.76.255.255, from subnet 10.76.0.0/16\n  10.76.9.9"
        ),
        "{said}"
    );
    let wrong = sandbox.fails(&format!("{line} --section Racks"));
    assert!(wrong.err.contains("it shows no section `Racks` among Lab, Other"), "{}", wrong.err);
    let without = sandbox.fails(&format!("import phpipam {} --yes", fake.url()));
    assert!(without.err.contains("there is no login of phpIPAM"), "{}", without.err);
    sandbox.stop();
}
