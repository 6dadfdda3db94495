//! Agents, nodes and credentials that fail: what was known stays, and no other guest waits.

use std::time::Duration;

use netstead_model::View;
use netstead_sources::contract;
use netstead_testkit::{FakePve, HttpFault, PveAgent, PveGuest, PveRights, PveVersion};

use super::{cluster, read, settings, shown, source, why};

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_agent_keeps_what_was_known_and_a_hung_one_delays_no_other() {
    let fake = cluster();
    fake.cluster().hang = Duration::from_secs(4);
    for vmid in 101..110 {
        fake.add(PveGuest::machine(vmid, "pve1", &format!("m{vmid}"), &format!("10.0.3.{}/24", vmid - 90)));
    }
    for vmid in 120..140 {
        fake.add(
            PveGuest::machine(vmid, "pve1", &format!("h{vmid}"), "10.0.3.99/24").with_agent(PveAgent::Hung),
        );
    }
    let (source, clock) = source(&settings(&fake, ""));
    // One after the other they would take a minute.
    let report = tokio::time::timeout(Duration::from_secs(12), source.report()).await;
    let report = report.expect("hung agents hold the report up");
    let clear = report.workloads().into_iter().filter(|one| !one.unclear).count();
    assert_eq!((report.view(), clear, report.workloads().len()), (View::Complete, 9, 29));
    fake.change(101, |guest| guest.agent = PveAgent::Silent);
    clock.advance(Duration::from_mins(2));
    let report = source.report().await;
    assert_eq!(shown(&report)[0], "101/00000065 m101 10.0.3.11 ?");
    let told = "its addresses cannot be read, and those known last are kept: QEMU guest agent is not running";
    assert_eq!(report.workloads()[0].why_not, [told]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_agents_all_hang_delays_the_first_report_of_no_other() {
    let fake = cluster();
    for vmid in 101..301 {
        let hung = PveGuest::machine(vmid, "pve2", &format!("h{vmid}"), "10.0.3.99/24");
        fake.add(hung.with_agent(PveAgent::Hung));
    }
    fake.add(PveGuest::machine(301, "pve1", "web", "10.0.3.11/24"));
    let (source, _) = source(&settings(&fake, ""));
    // One after the other in eight places they would take twenty seconds.
    let report = tokio::time::timeout(Duration::from_secs(9), source.report()).await;
    let report = report.expect("hung agents hold the report up");
    assert_eq!(shown(&report)[200], "301/0000012d web 10.0.3.11");
    // Those that are moved aside later wake the source, so the next look need not wait for its time.
    assert!(tokio::time::timeout(Duration::from_secs(20), source.changed()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offline_node_makes_its_guests_unclear_and_removes_nothing() {
    let fake = cluster();
    fake.cluster().nodes.insert("pve3".into(), true);
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    fake.add(PveGuest::machine(102, "pve2", "db", "10.0.3.12/24"));
    let (first, _) = source(&settings(&fake, ""));
    first.report().await;
    fake.cluster().nodes.insert("pve2".into(), false);
    let report = first.report().await;
    let wanted = ["101/00000065 web 10.0.3.11", "102/00000066 db 10.0.3.12 ?"];
    assert_eq!((report.view(), shown(&report)), (View::Complete, wanted.map(str::to_owned).to_vec()));
    assert_eq!(why(&report), ["node `pve2` is offline, so its names stay as they are"]);
    // Another process that never saw the guest: it has the id that the engine remembers.
    let (second, _) = source(&settings(&fake, ""));
    second.remember(vec!["102/00000066".parse().unwrap()]);
    assert_eq!(shown(&second.report().await), ["101/00000065 web 10.0.3.11", "102/00000066 -  ?"]);
    // Without a majority nothing is certain.
    fake.cluster().quorate = false;
    fake.cluster().nodes.insert("pve3".into(), false);
    let reason = "the cluster has no quorum: 1 of 3 nodes are online".to_owned();
    assert_eq!(first.report().await.view(), View::Partial { reason });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hangs_delays_no_guest_of_another() {
    let fake = cluster();
    for vmid in 101..121 {
        let node = if vmid % 2 == 0 { "pve1" } else { "pve2" };
        fake.add(PveGuest::machine(vmid, node, &format!("m{vmid}"), &format!("10.0.3.{}/24", vmid - 90)));
    }
    let (source, clock) = source(&settings(&fake, ""));
    assert!(source.report().await.workloads().into_iter().all(|one| !one.unclear));
    fake.cluster().stalled.insert("pve2".into(), Duration::from_secs(30));
    // Everything is due, the networks of the nodes too.
    clock.advance(Duration::from_mins(11));
    fake.change(102, |guest| guest.interfaces[0].addresses = vec!["10.0.3.99/24".into()]);
    let report = tokio::time::timeout(Duration::from_secs(8), source.report()).await;
    let report = report.expect("the other node holds the report up");
    assert_eq!((report.view(), report.workloads().len()), (View::Complete, 20));
    let lines = shown(&report);
    assert_eq!(lines[1], "102/00000066 m102 10.0.3.99");
    assert_eq!(lines[0], "101/00000065 m101 10.0.3.11", "what is known of the others stays");
    let again = tokio::time::timeout(Duration::from_secs(8), source.report()).await;
    assert!(again.is_ok(), "the next look does not wait for the same reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_url_is_asked_when_a_proxy_says_that_its_node_is_down() {
    let mut fake = cluster();
    fake.add(PveGuest::container(201, "pve1", "dns1", "10.0.3.53/24"));
    let second = fake.add_entry();
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let text = format!(
        "url = [\"{}\", \"{}\"]\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\n",
        fake.url(),
        fake.entry(second).url()
    );
    let (source, _) = source(&read(&text));
    fake.entry(0).fail(0, 1000, HttpFault::status(502, None), |_| true);
    assert_eq!(shown(&source.report().await), ["201/bc24110000c9 dns1 10.0.3.53"]);
    fake.entry(second).stop();
    let View::Failed { reason } = source.report().await.view() else { panic!("nothing answers") };
    assert!(reason.contains("502") || reason.contains("cannot be reached"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_tried_once_a_minute() {
    let fake = cluster();
    let (source, clock) = source(&settings(&fake, ""));
    fake.cluster().tokens.clear();
    contract::admits_what_it_cannot_see(&*source).await;
    source.report().await;
    assert_eq!(fake.calls().len(), 1);
    clock.advance(Duration::from_secs(61));
    let reason = format!("{} refuses these credentials: Authentication failed!", fake.url());
    assert_eq!(source.report().await.view(), View::Failed { reason });
    assert_eq!(fake.calls().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_logs_in_again_when_the_ticket_ends_and_another_node_takes_over() {
    let mut fake = cluster();
    fake.add(PveGuest::container(201, "pve1", "dns1", "10.0.3.53/24"));
    fake.cluster().users.insert("root@pam".into(), ("hunter2".into(), PveRights::reader(PveVersion::Nine)));
    let second = fake.add_entry();
    let text = format!(
        "url = [\"{}\", \"{}\"]\nuser = \"root@pam\"\npassword = \"hunter2\"\n",
        fake.url(),
        fake.entry(second).url()
    );
    let (source, _) = source(&read(&text));
    assert_eq!(shown(&source.report().await), ["201/bc24110000c9 dns1 10.0.3.53"]);
    fake.cluster().tickets.clear();
    assert_eq!(source.report().await.view(), View::Complete);
    fake.entry(0).stop();
    assert_eq!(source.report().await.view(), View::Complete);
}
