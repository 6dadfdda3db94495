//! A Proxmox VE cluster that only pretends, and what is made of it.

mod networks;
mod outages;
mod privileges;
mod scale;
mod several;

use std::{fmt::Write as _, sync::Arc, time::Duration};

use netstead_model::{Content, ManualClock, Report, Source, View, Workload};
use netstead_settings::{BuildContext, Configured as _, Problems, Section, Settings as _};
use netstead_sources::{contract, proxmox::ProxmoxSettings};
use netstead_testkit::{FakePve, PveGuest, PveInterface, PveTask, PveVersion};

/// The keys of a source that reads `fake`, with `more` behind them.
fn settings(fake: &FakePve, more: &str) -> ProxmoxSettings {
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let text =
        format!("url = [\"{}\"]\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\n{more}\n", fake.url());
    read(&text)
}

fn read(text: &str) -> ProxmoxSettings {
    let mut problems = Problems::new(std::path::Path::new("x.toml"), text);
    let table = netstead_settings::parse(text, &mut problems);
    let settings = ProxmoxSettings::read(&mut Section::open("source.pve", &table, &mut problems));
    settings.unwrap()
}

fn source(settings: &ProxmoxSettings) -> (Arc<dyn Source>, ManualClock) {
    settings.check().unwrap();
    let clock = ManualClock::default();
    let context = BuildContext::new("pve".parse().unwrap()).with_clock(clock.shared());
    (settings.build(&context).unwrap(), clock)
}

fn cluster() -> FakePve {
    let fake = FakePve::start(PveVersion::Nine, &["pve1", "pve2"]);
    fake.cluster().refusal_delay = Duration::from_millis(50);
    fake
}

/// `id name addresses`, `?` if it is unclear, then each wish.
fn shown(report: &Report) -> Vec<String> {
    let shown = |workload: &Workload| {
        let addresses = workload.interfaces.iter().flat_map(|one| &one.addresses);
        let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
        let hostname = workload.hostname.as_ref().map_or("-", |name| name.as_str());
        let mut text = format!("{} {hostname} {}", workload.id, addresses.join(","));
        if workload.unclear {
            text.push_str(" ?");
        }
        for wish in &workload.wishes {
            let Content::Addresses(addresses) = &wish.content else { continue };
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            let _ = write!(text, " | {} {}", wish.name, addresses.join(","));
        }
        text
    };
    report.workloads().into_iter().map(shown).collect()
}

fn why(report: &Report) -> Vec<String> {
    report.workloads().into_iter().flat_map(|one| one.why_not.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_releases_show_the_same_guests() {
    for version in [PveVersion::Eight, PveVersion::Nine] {
        let fake = FakePve::start(version, &["pve1", "pve2"]);
        let web = PveGuest::machine(101, "pve1", "web1", "10.0.3.11/24").with("tags", "prod;web");
        let web = web.with_interfaces(vec![
            PveInterface::new("lo", Some("00:00:00:00:00:00"), &["127.0.0.1/8", "::1/128"]),
            PveInterface::new(
                "eth0",
                Some("bc:24:11:00:00:65"),
                &["10.0.3.11/24", "2001:db8::11/64", "fe80::1/64"],
            ),
            PveInterface::new("cali1", Some("ee:ee:ee:ee:ee:ee"), &["172.17.0.1/16"]),
            PveInterface::new("tailscale0", None, &["100.64.1.9/32"]),
        ]);
        fake.add(PveGuest { hostname: "web1.example.org".into(), ..web });
        fake.add(PveGuest::container(201, "pve2", "dns1", "10.0.3.53/24"));
        fake.add(PveGuest {
            status: "stopped".into(),
            ..PveGuest::machine(103, "pve1", "old", "10.0.3.9/24")
        });
        fake.add(PveGuest { template: true, ..PveGuest::machine(900, "pve1", "tmpl", "10.0.3.8/24") });
        let (source, _) = source(&settings(&fake, ""));
        let report = source.report().await;
        assert_eq!(report.view(), View::Complete);
        assert_eq!(
            shown(&report),
            [
                "101/00000065 web1.example.org 10.0.3.11,2001:db8::11 | web1.example.org 10.0.3.11,2001:db8::11",
                "201/bc24110000c9 dns1 10.0.3.53",
            ]
        );
        assert_eq!(
            why(&report),
            [
                "the addresses of cali1, tailscale0 are left out: no network card of the guest has their MAC address",
                "fe80::1 is left out: it is a link-local address",
            ]
        );
        let web = report.workloads()[0].clone();
        assert_eq!((web.kind.as_str(), web.tags.clone()), ("vm", vec!["prod".to_owned(), "web".into()]));
        assert_eq!(web.created, Some("2025-10-09T08:55:01Z".parse().unwrap()));
        let facts = (web.facts().cluster.as_deref(), web.facts().node.as_deref(), web.facts().cpus);
        assert_eq!(facts, (Some("lab"), Some("pve1"), Some(2)));
        assert_eq!((web.facts().memory, web.facts().disk), (Some(4 << 30), Some(32 << 30)));
        contract::sees_the_same_twice(&*source).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_without_a_change_costs_three_calls() {
    let fake = cluster();
    for vmid in 100..140 {
        fake.add(PveGuest::machine(vmid, "pve1", &format!("m{vmid}"), &format!("10.0.3.{}/24", vmid - 90)));
    }
    let (source, clock) = source(&settings(&fake, ""));
    source.report().await;
    fake.calls();
    clock.advance(Duration::from_secs(10));
    source.report().await;
    let lists =
        ["GET /api2/json/cluster/resources", "GET /api2/json/cluster/status", "GET /api2/json/cluster/tasks"];
    assert_eq!(fake.calls(), lists);
    // One that restarted: its configuration, its addresses and its name.
    fake.change(107, |guest| guest.uptime = 100);
    source.report().await;
    let mut calls = fake.calls();
    calls.sort();
    let of = |rest: &str| format!("GET /api2/json/nodes/pve1/qemu/107/{rest}");
    let wanted = [of("agent/get-host-name"), of("agent/network-get-interfaces"), of("config")];
    assert_eq!(calls, lists.map(str::to_owned).into_iter().chain(wanted).collect::<Vec<_>>());
    // One that a task names: when it begins, and again when it ended, as what it does comes last.
    let config = "GET /api2/json/nodes/pve1/qemu/108/config".to_owned();
    for task in [PveTask::running(1, "qmconfig", 108), PveTask::ended(1, "qmconfig", 108)] {
        fake.cluster().tasks = vec![task.clone()];
        source.report().await;
        assert!(fake.calls().contains(&config), "{task:?}");
        source.report().await;
        assert!(!fake.calls().contains(&config), "once is enough: {task:?}");
    }
    // All addresses are read again within the interval, spread over it.
    let mut reads = 0;
    for _ in 0..8 {
        clock.advance(Duration::from_secs(10));
        source.report().await;
        let some = fake.calls().iter().filter(|call| call.ends_with("network-get-interfaces")).count();
        assert!(some < 30, "not all at once: {some}");
        reads += some;
    }
    assert!((40..=80).contains(&reads), "each once or twice: {reads}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migrated_guest_stays_the_same_and_a_reused_number_does_not() {
    let fake = cluster();
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    let (source, _) = source(&settings(&fake, ""));
    let before = source.report().await;
    fake.change(101, |guest| guest.node = "pve2".into());
    let after = source.report().await;
    assert_eq!((shown(&before), before.ended().len()), (shown(&after), after.ended().len()));
    let new = PveGuest::machine(101, "pve2", "db", "10.0.3.12/24")
        .with("smbios1", "uuid=abcdef01-0000-4000-8000-000000000001");
    fake.add(new);
    let report = source.report().await;
    assert_eq!(shown(&report), ["101/abcdef01 db 10.0.3.12"]);
    let ended: Vec<&str> = report.ended().iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ended, ["101/00000065"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_maps_and_the_block_in_the_description_decide() {
    let fake = cluster();
    let block = "Web.\n```netstead\nip_map = { \"10.0.3.11\" = \"192.0.2.11\" }\n[mapping.\"dmz.test\"]\nnetworks = \
                 [{ cidr = \"192.0.2.0/24\", shared_name = \"all\" }]\n```\n";
    fake.add(
        PveGuest::machine(101, "pve1", "web", "10.0.3.11/24")
            .with("tags", "dns+www;web-1")
            .with("description", block),
    );
    fake.add(PveGuest::machine(102, "pve1", "db", "10.0.9.12/24").with("tags", "web-2"));
    fake.add(PveGuest::machine(103, "pve1", "other", "10.0.3.13/24").with("tags", "db"));
    fake.add(PveGuest::machine(104, "pve2", "far", "10.0.3.14/24").with("tags", "web-3"));
    fake.add(
        PveGuest::machine(105, "pve1", "bad", "10.0.3.15/24")
            .with("tags", "web-4")
            .with("description", "```netstead\nx = 1\n```"),
    );
    fake.add(
        PveGuest::machine(106, "pve1", "off", "10.0.3.16/24")
            .with("tags", "web-5")
            .with("description", "```pipam\nignore: true\n```"),
    );
    let more = "nodes = [\"pve1\"]\ntags = [\"web-*\"]\nskip_cidrs = [\"10.0.9.0/24\"]\nhostname_tag_prefix = \
                \"dns\"\ndomain_suffix = \"home.test\"\nip_map = { \"10.0.3.15\" = \"10.1.3.15\" }";
    let (source, _) = source(&settings(&fake, more));
    let report = source.report().await;
    assert_eq!(
        shown(&report),
        [
            "101/00000065 web 192.0.2.11 | www.home.test 192.0.2.11 | web.home.test 192.0.2.11 | all.dmz.test 192.0.2.11 | \
         web.dmz.test 192.0.2.11",
            "102/00000066 db  | db.home.test ",
            "105/00000069 bad 10.1.3.15 ? | bad.home.test 10.1.3.15",
            "106/0000006a - ",
        ]
    );
    assert_eq!(why(&report)[0], "10.0.9.12 is left out: `skip_cidrs` has 10.0.9.0/24");
    assert!(report.workloads()[0].interfaces[0].mapped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_names_the_addresses_of_its_networks_and_leaves_the_others_to_the_domains() {
    let fake = cluster();
    let block = "```pipam\nipv6_inherit_ipv4_fqdn: true\nmapping:\n  dmz.test:\n    networks:\n      - cidr: \
                 192.0.2.0/24\n        service_record: all.test\n```\n";
    let addresses = ["192.0.2.11/24", "10.0.3.11/24", "2001:db8::11/64"];
    let eth0 = PveInterface::new("eth0", Some("bc:24:11:00:00:65"), &addresses);
    let web = PveGuest::machine(101, "pve1", "web", "10.0.3.11/24").with("description", block);
    fake.add(web.with_interfaces(vec![eth0]));
    let (source, _) = source(&settings(&fake, ""));
    let report = source.report().await;
    assert_eq!(
        shown(&report),
        ["101/00000065 web 192.0.2.11,10.0.3.11,2001:db8::11 | all.test 192.0.2.11 | web.dmz.test \
             192.0.2.11,2001:db8::11"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_that_just_started_waits_until_its_name_is_told_twice() {
    let fake = cluster();
    let clone = PveGuest {
        uptime: 5,
        hostname: "template".into(),
        ..PveGuest::machine(101, "pve1", "web", "10.0.3.11/24")
    };
    fake.add(clone);
    let (source, clock) = source(&settings(&fake, ""));
    assert_eq!(shown(&source.report().await), ["101/00000065 template 10.0.3.11 ?"]);
    fake.change(101, |guest| guest.hostname = "web".into());
    clock.advance(Duration::from_secs(5));
    assert_eq!(shown(&source.report().await), ["101/00000065 web 10.0.3.11 ?"]);
    clock.advance(Duration::from_secs(5));
    assert_eq!(shown(&source.report().await), ["101/00000065 web 10.0.3.11"]);
}
