//! A cluster of the largest size.

use std::time::Duration;

use netstead_model::{Report, View};
use netstead_testkit::{FakePve, PveAgent, PveGuest, PveVersion};

use super::{settings, source};

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_guests_on_twenty_nodes_are_seen_and_moves_and_faults_are_told_apart() {
    const GUESTS: u32 = 5000;
    let nodes: Vec<String> = (1..=20).map(|number| format!("pve{number:02}")).collect();
    let fake = FakePve::start(PveVersion::Nine, &nodes.iter().map(String::as_str).collect::<Vec<_>>());
    fake.cluster().hang = Duration::from_secs(8);
    for vmid in 1000..1000 + GUESTS {
        let node = &nodes[usize::try_from(vmid % 20).unwrap()];
        let address = format!("10.{}.{}.{}/8", vmid % 20, vmid / 250, vmid % 250 + 1);
        let name = format!("m{vmid}");
        // Half of them are containers; one in a hundred has an agent that hangs.
        let guest = match vmid % 2 {
            0 => PveGuest::container(vmid, node, &name, &address),
            _ => PveGuest::machine(vmid, node, &name, &address),
        };
        let hangs = vmid % 100 == 51;
        fake.add(guest.with_agent(if hangs { PveAgent::Hung } else { PveAgent::Answers }));
    }
    let (source, clock) = source(&settings(&fake, ""));
    let clear = |report: &Report| report.workloads().into_iter().filter(|one| !one.unclear).count();
    let all = async {
        loop {
            let report = source.report().await;
            if clear(&report) >= 4950 {
                return report;
            }
        }
    };
    let report = tokio::time::timeout(Duration::from_mins(2), all).await.expect("all are read");
    assert_eq!((report.view(), report.workloads().len(), clear(&report)), (View::Complete, 5000, 4950));
    // One moves, one number is used again, one node is lost: nothing ends but the guest that is another one now.
    fake.change(1003, |guest| guest.node = "pve10".into());
    let new = PveGuest::machine(1005, "pve06", "new", "10.9.9.9/8");
    fake.add(new.with("smbios1", "uuid=abcdef01-0000-4000-8000-000000000001"));
    fake.cluster().nodes.insert("pve20".into(), false);
    fake.calls();
    clock.advance(Duration::from_secs(1));
    let report = source.report().await;
    let ended: Vec<&str> = report.ended().iter().map(|one| one.id.as_str()).collect();
    assert_eq!(
        (report.view(), report.workloads().len(), ended),
        (View::Complete, 5000, vec!["1005/000003ed"])
    );
    let lost =
        report.workloads().into_iter().filter(|one| one.why_not.iter().any(|why| why.contains("is offline")));
    assert_eq!(lost.count(), 250);
    let reads = fake.calls().into_iter().filter(|call| call.ends_with("/config")).count();
    assert_eq!(reads, 2, "only what changed is read");
}
