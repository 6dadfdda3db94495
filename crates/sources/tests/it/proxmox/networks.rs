//! VLANs of network cards, and addresses that the network knows.

use std::{collections::BTreeMap, time::Duration};

use netstead_model::{Report, Source};
use netstead_testkit::{FakePve, HttpFault, PveAgent, PveGuest, PveVersion};

use super::{cluster, settings, shown, source};

#[tokio::test(flavor = "multi_thread")]
async fn addresses_come_from_elsewhere_when_there_is_no_agent() {
    let fake = cluster();
    let bare = |vmid: u32, name: &str| PveGuest::machine(vmid, "pve1", name, "10.0.3.99/24").without("agent");
    fake.add(bare(101, "cloud").with("ipconfig0", "ip=10.0.3.11/24,gw=10.0.3.1,ip6=auto"));
    fake.add(bare(102, "evpn").with("net0", "virtio=BC:24:11:00:00:66,bridge=vnet1"));
    fake.add(PveGuest::machine(103, "pve1", "blocked", "10.0.3.99/24").with_agent(PveAgent::Blocked));
    {
        let mut cluster = fake.cluster();
        cluster.zones.insert("z1".into(), "evpn".into());
        cluster.vnets.insert("vnet1".into(), ("z1".into(), Some(400)));
        cluster.mac_vrf.push(("vnet1".into(), "bc:24:11:00:00:66".into(), "10.0.4.12".into()));
    }
    let (source, _) = source(&settings(&fake, ""));
    let report = source.report().await;
    let wanted = ["101/00000065 cloud 10.0.3.11", "102/00000066 evpn 10.0.4.12", "103/00000067 blocked "];
    assert_eq!(shown(&report), wanted);
    assert_eq!(report.workloads()[1].interfaces[0].vlan, Some(400));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_vlan_of_a_card_is_found_on_either_release() {
    for version in [PveVersion::Eight, PveVersion::Nine] {
        let fake = FakePve::start(version, &["pve1"]);
        let on = |vmid: u32, net: &str| {
            let mac = format!("BC:24:11:00:00:{vmid:02X}");
            PveGuest::machine(vmid, "pve1", &format!("m{vmid}"), "10.0.3.9/24")
                .with("net0", format!("virtio={mac},{net}"))
        };
        fake.add(on(101, "bridge=vmbr0,tag=20"));
        fake.add(on(102, "bridge=vmbr0"));
        fake.add(on(103, "bridge=vmbr100"));
        fake.add(on(104, "bridge=ovs1"));
        fake.add(on(105, "bridge=ovs2"));
        let (source, clock) = source(&settings(&fake, ""));
        let report = source.report().await;
        let vlans = |report: &Report| -> BTreeMap<String, Option<u16>> {
            report.workloads().into_iter().map(|one| (one.name.clone(), one.interfaces[0].vlan)).collect()
        };
        // The tag of an internal port is that of the node's own interface.
        let wanted =
            [("m101", Some(20)), ("m102", None), ("m103", Some(100)), ("m104", Some(300)), ("m105", None)];
        let wanted: BTreeMap<String, Option<u16>> = wanted.map(|(name, vlan)| (name.to_owned(), vlan)).into();
        assert_eq!(vlans(&report), wanted);
        // A node that answers with an error: its VLANs stay, and it is asked again within a minute.
        let good = std::mem::replace(&mut fake.cluster().network, vec![serde_json::json!({})]);
        clock.advance(Duration::from_mins(11));
        networks_are_read(&fake, source.as_ref()).await;
        assert_eq!(vlans(&source.report().await), wanted);
        fake.cluster().network = good.into_iter().filter(|one| one["iface"] != "eno1.100").collect();
        fake.cluster().network.retain(|one| one["iface"] != "vmbr100");
        clock.advance(Duration::from_secs(61));
        networks_are_read(&fake, source.as_ref()).await;
        let otherwise = async { while vlans(&source.report().await)["m103"].is_some() {} };
        let seen = tokio::time::timeout(Duration::from_secs(10), otherwise).await;
        assert!(seen.is_ok(), "the node says otherwise now");
    }
}

/// Looks until the networks of a node were asked for.
async fn networks_are_read(fake: &FakePve, source: &dyn Source) {
    fake.calls();
    for _ in 0..100 {
        source.report().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if fake.calls().iter().any(|call| call.ends_with("/network")) {
            return;
        }
    }
    panic!("nobody asks for the networks");
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_of_one_vnet_share_the_list_that_evpn_learned() {
    let fake = cluster();
    {
        let mut cluster = fake.cluster();
        cluster.zones.insert("z1".into(), "evpn".into());
        cluster.vnets.insert("vnet1".into(), ("z1".into(), Some(400)));
        let learned = (101..111)
            .map(|vmid| ("vnet1".into(), format!("bc:24:11:00:00:{vmid:02x}"), format!("10.0.4.{vmid}")));
        cluster.mac_vrf.extend(learned);
    }
    for vmid in 101..111 {
        let net = format!("virtio=BC:24:11:00:00:{vmid:02X},bridge=vnet1");
        let guest = PveGuest::machine(vmid, "pve1", &format!("m{vmid}"), "10.0.3.99/24");
        fake.add(guest.with("net0", net).without("agent"));
    }
    let (source, clock) = source(&settings(&fake, "address_interval = \"1h\""));
    let report = source.report().await;
    let wanted: Vec<String> =
        (101..111).map(|vmid| format!("{vmid}/{vmid:08x} m{vmid} 10.0.4.{vmid}")).collect();
    assert_eq!(shown(&report), wanted);
    let lists = fake.calls().into_iter().filter(|call| call.ends_with("/mac-vrf")).count();
    assert_eq!(lists, 1);
    // Their configurations are read again, and their addresses are not due.
    clock.advance(Duration::from_mins(11));
    let report = source.report().await;
    assert_eq!(fake.calls().into_iter().filter(|call| call.ends_with("/config")).count(), 10);
    assert_eq!(shown(&report), wanted);
    // A node that does not tell takes no address away, and one that says otherwise does.
    let fault = HttpFault::status(500, None);
    fake.entry(0).fail(0, 1, fault, |request| request.path.ends_with("/mac-vrf"));
    clock.advance(Duration::from_mins(61));
    fake.calls();
    assert_eq!(shown(&source.report().await), wanted);
    let known = fake.cluster().mac_vrf.clone();
    fake.cluster().mac_vrf = known.into_iter().filter(|(_, mac, _)| !mac.ends_with("65")).collect();
    let forgotten = async {
        loop {
            clock.advance(Duration::from_mins(61));
            if shown(&source.report().await)[0] == "101/00000065 m101 " {
                break;
            }
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), forgotten).await.is_ok());
}
