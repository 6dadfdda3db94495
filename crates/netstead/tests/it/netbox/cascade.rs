//! Guests with all that they can have, in NetBox: what is written, what follows a change, and what is removed.

use netstead_testkit::{FakePve, NetBox, PowerDns, PveGuest, PveVersion};
use serde_json::{Value, json};

use super::once;
use crate::{resolve, sandbox::Sandbox};

/// A custom field and tags of this test alone: the NetBox is shared.
const OWN: &str =
    "key_field = \"netstead_cascade\"\nkind_tags = { vm = \"cascade-vm\", container = \"cascade-ct\" }\n";

/// One cluster of this test, as NetBox shows it.
struct Shown<'a>(&'a NetBox);

impl Shown<'_> {
    fn lines(&self, path: &str, line: impl Fn(&Value) -> String) -> Vec<String> {
        let mut lines: Vec<String> = self.0.list(path).iter().map(line).collect();
        lines.sort();
        lines.iter().map(|line| line.replace('"', "")).collect()
    }

    fn machines(&self) -> Vec<String> {
        self.lines("/api/virtualization/virtual-machines/?cluster=cascade", |one| {
            let tags = one["tags"].as_array().unwrap().iter().filter_map(|tag| tag["slug"].as_str());
            let tags: Vec<&str> = tags.collect();
            let comments = one["comments"].as_str().unwrap_or_default().lines().next().unwrap_or_default();
            format!("{} {} {} {comments}", one["name"], one["primary_ip4"]["address"], tags.join(","))
        })
    }

    /// Interfaces with their MAC and VLAN.
    fn interfaces(&self) -> Vec<String> {
        self.lines("/api/virtualization/interfaces/?cluster=cascade", |one| {
            let (vlan, mode) = (&one["untagged_vlan"]["vid"], &one["mode"]["value"]);
            format!("{} {} {} {vlan} {mode}", one["virtual_machine"]["name"], one["name"], one["mac_address"])
        })
    }

    fn addresses(&self) -> Vec<String> {
        self.lines("/api/ipam/ip-addresses/?parent=10.78.0.0/16", |one| {
            let machine = &one["assigned_object"]["virtual_machine"]["name"];
            format!("{} {} {machine} {}", one["address"], one["dns_name"], one["description"])
        })
    }

    fn macs(&self) -> usize {
        let ours = |one: &&Value| one["custom_fields"]["netstead_cascade"].is_string();
        self.0.list("/api/dcim/mac-addresses/").iter().filter(ours).count()
    }
}

/// The card of `web`.
const TAGGED: &str = "virtio=BC:24:11:00:00:65,bridge=vmbr0,firewall=1,tag=30";

/// Two nodes with three machines and a container.
fn guests() -> FakePve {
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2"]);
    let web = PveGuest::machine(101, "pve1", "web", "10.78.3.11/16").with("net0", TAGGED);
    fake.add(web.with("tags", "cascade-prod;unheard-of").with("description", "The shop.\nAsk Ann.\n"));
    let block = "Moved.\n```netstead\nip_map = { \"10.78.3.12\" = \"10.78.4.12\" }\n```\n";
    fake.add(PveGuest::machine(102, "pve2", "db", "10.78.3.12/16").with("description", block));
    fake.add(PveGuest::machine(103, "pve2", "mail", "10.78.4.13/16"));
    fake.add(PveGuest::container(201, "pve2", "dns1", "10.78.4.53/16"));
    fake
}

fn config(fake: &FakePve, server: &PowerDns, netbox: &NetBox, grace: &str) -> String {
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let grace = format!("grace = \"{grace}\"\nended_grace = \"{grace}\"\n");
    format!(
        "[store]\ntype = \"local\"\npath = \"data\"\n[source.pve]\ntype = \"proxmox\"\nurl = \"{}\"\ntoken_id = \
             \"{id}\"\ntoken_secret = \"{secret}\"\n[domain.\"lab.test\"]\nnetworks = [\"10.78.3.0/24\", {{ cidr = \
             \"10.78.4.0/24\", shared_name = \"all\" }}]\n[dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \
             \"{}\"\ndomains = [\"lab.test\"]\n{grace}[ipam.inventory]\n{}{OWN}cluster = \"cascade\"\nmake = [\"cluster\"]\n\
             networks = [\"10.78.0.0/16\"]\n{grace}",
        fake.url(),
        server.api_url(),
        server.api_key(),
        super::connection(netbox),
    )
}

#[test]
fn a_guest_is_followed_with_vlan_comments_shared_names_and_mapped_addresses_until_it_is_gone() {
    let Some(server) = PowerDns::start(&["lab.test"]) else { return };
    let Some(netbox) = NetBox::shared() else { return };
    for prefix in ["10.78.0.0/16", "10.78.3.0/24", "10.78.4.0/24"] {
        netbox.make("/api/ipam/prefixes/", &json!({ "prefix": prefix }));
    }
    netbox.make("/api/ipam/vlans/", &json!({ "vid": 30, "name": "cascade" }));
    netbox.make("/api/extras/tags/", &json!({ "name": "Cascade prod", "slug": "cascade-prod" }));
    let fake = guests();
    let sandbox = Sandbox::empty();
    let config = |grace: &str| config(&fake, &server, netbox, grace);
    let configure =
        |grace: &str| std::fs::write(sandbox.path().join("netstead.toml"), config(grace)).unwrap();
    configure("1h");
    let (shown, port) = (Shown(netbox), server.address().port());
    let records = |name: &str| {
        let mut values = resolve::a(port, &format!("{name}.lab.test")).values;
        values.sort();
        values.join(" ")
    };
    let (code, made) = once(&sandbox);
    assert_eq!(code, 0, "{made:?}");
    assert_eq!(
        shown.machines(),
        [
            "db 10.78.4.12/24 cascade-vm Moved.",
            "dns1 10.78.4.53/24 cascade-ct ",
            "mail 10.78.4.13/24 cascade-vm ",
            "web 10.78.3.11/24 cascade-prod,cascade-vm The shop.",
        ]
    );
    assert_eq!(
        shown.interfaces(),
        [
            "db eth0 BC:24:11:00:00:66 null null",
            "dns1 eth0 BC:24:11:00:00:C9 null null",
            "mail eth0 BC:24:11:00:00:67 null null",
            "web eth0 BC:24:11:00:00:65 30 access",
        ]
    );
    let all = [
        "10.78.3.11/24 web.lab.test web ",
        "10.78.4.12/24 db.lab.test db ",
        "10.78.4.13/24 mail.lab.test mail ",
        "10.78.4.53/24 dns1.lab.test dns1 ",
    ];
    assert_eq!((shown.addresses().as_slice(), shown.macs()), (all.map(str::to_owned).as_slice(), 4));
    assert_eq!(
        ["web", "db", "all"].map(records),
        ["10.78.3.11", "10.78.4.12", "10.78.4.12 10.78.4.13 10.78.4.53"],
        "a mapped address is published in place of its own, and a shared name has all of its network"
    );
    assert_eq!(once(&sandbox), (0, vec![]), "a second run writes nothing");

    // Objects that people made beside ours.
    let cluster = &netbox.list("/api/virtualization/clusters/?name=cascade")[0]["id"];
    let by_hand = json!({ "name": "by-hand", "cluster": cluster });
    netbox.make("/api/virtualization/virtual-machines/", &by_hand);
    netbox.make("/api/ipam/ip-addresses/", &json!({ "address": "10.78.4.200/24", "dns_name": "by-hand" }));
    let claims = "[netstead-claim other/lan/x]";
    let claimed = json!({ "address": "10.78.4.201/24", "custom_fields": { "netstead_cascade": claims } });
    netbox.make("/api/ipam/ip-addresses/", &claimed);

    // A guest is removed: its objects stay for the grace, then those with our mark are removed, and no others.
    fake.cluster().guests.remove(&103);
    let (code, made) = once(&sandbox);
    assert_eq!((code, made, shown.macs()), (0, vec![], 4), "nothing is removed within the grace");
    configure("1s");
    settle(&sandbox);
    assert_eq!(
        shown.machines(),
        [
            "by-hand null  ",
            "db 10.78.4.12/24 cascade-vm Moved.",
            "dns1 10.78.4.53/24 cascade-ct ",
            "web 10.78.3.11/24 cascade-prod,cascade-vm The shop.",
        ]
    );
    let left = [all[0], all[1], "10.78.4.200/24 by-hand null ", "10.78.4.201/24  null ", all[3]];
    assert_eq!((shown.addresses().as_slice(), shown.macs()), (left.map(str::to_owned).as_slice(), 3));
    assert_eq!((records("mail"), records("all")), (String::new(), "10.78.4.12 10.78.4.53".to_owned()));

    // An address changes: the machine has the new one as its primary address, and the stale one is removed.
    fake.change(101, |guest| guest.interfaces[0].addresses = vec!["10.78.3.99/16".into()]);
    settle(&sandbox);
    let moved = ["10.78.3.99/24 web.lab.test web ", left[1], left[2], left[3], left[4]];
    assert_eq!(shown.addresses(), moved);
    assert!(shown.machines().contains(&"web 10.78.3.99/24 cascade-prod,cascade-vm The shop.".to_owned()));
    assert_eq!(records("web"), "10.78.3.99");
    assert_eq!(once(&sandbox), (0, vec![]), "nothing is left to do");
    // The notes of a guest, its tag and its VLAN are taken away again.
    fake.change(101, |guest| {
        for key in ["description", "tags"] {
            guest.config.remove(key);
        }
        guest.config.insert("net0".into(), TAGGED.replace(",tag=30", "").into());
    });
    settle(&sandbox);
    assert!(shown.machines().contains(&"web 10.78.3.99/24 cascade-vm ".to_owned()), "{:?}", shown.machines());
    assert_eq!(shown.interfaces()[2], "web eth0 BC:24:11:00:00:65 null null");
}

/// Runs until two runs in a row have nothing to do: the first one may only see that something is gone.
fn settle(sandbox: &Sandbox) {
    let mut idle = 0;
    for _ in 0..10 {
        idle = if once(sandbox) == (0, vec![]) { idle + 1 } else { 0 };
        if idle == 2 {
            return;
        }
    }
    panic!("it never settles: {:?}", sandbox.netstead(["run", "--once"]));
}
