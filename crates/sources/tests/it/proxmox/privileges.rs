//! Credentials that may not see everything: what they cannot see is never taken for gone.

use netstead_model::{Report, View};
use netstead_testkit::{FakePve, PveGuest, PveRights, PveVersion};

use super::{cluster, settings, shown, source};

/// Rights on each guest by itself, and on the cluster.
fn on_each(guests: &[u32]) -> PveRights {
    let rights = PveRights::on_root(&["Sys.Audit"]);
    let own = ["VM.Audit", "VM.GuestAgent.Audit"];
    guests.iter().fold(rights, |rights, vmid| rights.and(&format!("/vms/{vmid}"), &own))
}

fn give(fake: &FakePve, rights: PveRights) {
    fake.cluster().tokens.insert(FakePve::TOKEN.into(), rights);
}

fn partial(reason: &str) -> View {
    View::Partial { reason: reason.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_sees_nothing_is_partial_and_the_doctor_names_the_privilege() {
    let fake = cluster();
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    let (source, _) = source(&settings(&fake, ""));
    source.report().await;
    fake.cluster().tokens.insert(FakePve::TOKEN.into(), PveRights::none());
    let reason = "these credentials may see no guest: they lack `VM.Audit` on `/vms`".to_owned();
    assert_eq!(source.report().await.view(), View::Partial { reason });
    let told: Vec<String> = source.diagnose().await.into_iter().map(|one| one.text).collect();
    assert_eq!(told[1], "`VM.Audit` on `/vms` is missing: no guest is seen, and none of their names is made");
    assert_eq!(told.len(), 5);
    fake.cluster().tokens.insert(FakePve::TOKEN.into(), PveRights::reader(PveVersion::Nine));
    let told: Vec<String> = source.diagnose().await.into_iter().map(|one| one.text).collect();
    let wanted = [
        format!("{} is Proxmox VE 9.1.3", fake.url()),
        "the credentials have every privilege that is needed".into(),
    ];
    assert_eq!(told, wanted);
    // PVEAuditor of 8.x may not ask agents.
    let old = FakePve::start(PveVersion::Eight, &["pve1"]);
    old.cluster().tokens.insert(FakePve::TOKEN.into(), PveRights::auditor(PveVersion::Eight));
    let (source, _) = super::source(&settings(&old, ""));
    let told = source.diagnose().await;
    assert!(told[1].text.starts_with("`VM.Monitor` on `/vms` is missing"), "{told:?}");
}

/// Two guests, seen by an ACL of each.
fn two_guests() -> FakePve {
    let fake = cluster();
    fake.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    fake.add(PveGuest::machine(102, "pve1", "db", "10.0.3.12/24"));
    give(&fake, on_each(&[101, 102]));
    fake
}

const HIDDEN: &str =
    "guest 102 still exists, and these credentials may no longer see it: they lack `VM.Audit` on `/vms/102`";

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_whose_acl_is_taken_away_is_never_taken_for_deleted() {
    let fake = two_guests();
    let (first, _) = source(&settings(&fake, ""));
    assert_eq!(first.report().await.view(), View::Complete);
    fake.cluster().tokens.values_mut().for_each(|rights| rights.remove("/vms/102"));
    let web = vec!["101/00000065 web 10.0.3.11".to_owned()];
    for _ in 0..3 {
        let report = first.report().await;
        assert_eq!((report.view(), shown(&report)), (partial(HIDDEN), web.clone()));
    }
    // Another process that never saw the guest knows it from what the engine remembers.
    let (second, _) = source(&settings(&fake, ""));
    second.remember(vec!["101/00000065".parse().unwrap(), "102/00000066".parse().unwrap()]);
    for _ in 0..3 {
        let report = second.report().await;
        assert_eq!((report.view(), shown(&report)), (partial(HIDDEN), web.clone()));
    }
    give(&fake, on_each(&[101, 102]));
    for source in [first, second] {
        let report = source.report().await;
        assert_eq!((report.view(), report.workloads().len()), (View::Complete, 2));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_guest_is_gone_though_its_acl_ended_with_it() {
    let fake = two_guests();
    let (first, _) = source(&settings(&fake, ""));
    first.report().await;
    fake.destroy(102);
    let (second, _) = source(&settings(&fake, ""));
    second.remember(vec!["101/00000065".parse().unwrap(), "102/00000066".parse().unwrap()]);
    for source in [first, second] {
        fake.calls();
        let report = source.report().await;
        assert_eq!((report.view(), report.workloads().len()), (View::Complete, 1));
        let asked = |fake: &FakePve| fake.calls().iter().filter(|call| call.ends_with("/nextid")).count();
        assert_eq!(asked(&fake), 1);
        assert_eq!(source.report().await.view(), View::Complete);
        assert_eq!(asked(&fake), 0, "once is enough");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_hidden_guests_cost_few_calls_and_many_deleted_ones_are_all_seen_to_be_gone() {
    let fake = cluster();
    let all: Vec<u32> = (100..160).collect();
    for vmid in &all {
        fake.add(PveGuest::machine(*vmid, "pve1", &format!("m{vmid}"), &format!("10.0.3.{vmid}/24")));
    }
    give(&fake, on_each(&all));
    let (source, _) = source(&settings(&fake, ""));
    source.report().await;
    give(&fake, on_each(&[100]));
    fake.calls();
    let reason = "guests 101, 102, 103, 104, 105 and perhaps 54 more still exist, and these credentials may no longer \
                  see them: they lack `VM.Audit` on `/vms`";
    assert_eq!(source.report().await.view(), partial(reason));
    assert_eq!(fake.calls().iter().filter(|call| call.ends_with("/nextid")).count(), 5);
    (101..160).for_each(|vmid| fake.destroy(vmid));
    assert_eq!(source.report().await.view(), View::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_not_known_whether_a_guest_was_deleted_while_the_cluster_does_not_say() {
    let fake = two_guests();
    let (source, _) = source(&settings(&fake, ""));
    source.report().await;
    fake.destroy(102);
    let fault = netstead_testkit::HttpFault::status(500, None);
    fake.entry(0).fail(0, 2, fault, |request| request.path.ends_with("/nextid"));
    for _ in 0..2 {
        let View::Partial { reason } = source.report().await.view() else { panic!("it does not know") };
        let begins = "it is not known whether the missing guest 102 still exists: ";
        assert!(reason.starts_with(begins), "{reason}");
    }
    assert_eq!(source.report().await.view(), View::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_cannot_be_seen_takes_no_guest_out_of_the_filter() {
    let fake = two_guests();
    fake.change(101, |guest| guest.pool = Some("web".into()));
    give(&fake, on_each(&[101, 102]).and("/pool/web", &["Pool.Audit"]));
    let (source, _) = source(&settings(&fake, "pools = [\"web\"]"));
    let web = vec!["101/00000065 web 10.0.3.11".to_owned()];
    let seen = |report: &Report| (report.view(), shown(report));
    assert_eq!(seen(&source.report().await), (View::Complete, web.clone()));
    give(&fake, on_each(&[101, 102]));
    let reason =
        "these credentials cannot see which guests are in a pool: they lack `Pool.Audit` on `/pool/web`";
    for _ in 0..3 {
        assert_eq!(seen(&source.report().await), (partial(reason), web.clone()));
    }
    // One that never saw the pool shows no guest, and admits it.
    let (blind, _) = super::source(&settings(&fake, "pools = [\"web\"]"));
    blind.remember(vec!["101/00000065".parse().unwrap()]);
    assert_eq!(seen(&blind.report().await), (partial(reason), vec![]));
    let told: Vec<String> = blind.diagnose().await.into_iter().map(|one| one.text).collect();
    let missing = "`Pool.Audit` on `/pool/web` is missing: `pools` has it, and the list does not show which guests are in it";
    assert!(told.contains(&missing.to_owned()), "{told:?}");
    // A guest that leaves the pool is out, and so is everything once the pool is empty.
    give(&fake, on_each(&[101, 102]).and("/pool", &["Pool.Audit"]));
    fake.change(101, |guest| guest.pool = None);
    assert_eq!(seen(&source.report().await), (View::Complete, vec![]));
    let told: Vec<String> = source.diagnose().await.into_iter().map(|one| one.text).collect();
    assert!(!told.iter().any(|one| one.contains("Pool.Audit")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_on_a_pool_count_for_its_guests() {
    let fake = two_guests();
    fake.change(101, |guest| guest.pool = Some("web".into()));
    let own = ["VM.Audit", "VM.GuestAgent.Audit", "Pool.Audit"];
    give(&fake, PveRights::on_root(&["Sys.Audit"]).and("/pool/web", &own));
    let (source, _) = source(&settings(&fake, "pools = [\"web\"]"));
    let report = source.report().await;
    assert_eq!((report.view(), shown(&report)), (View::Complete, vec!["101/00000065 web 10.0.3.11".into()]));
    // It leaves the pool, and the credentials see it no more: it still exists.
    fake.change(101, |guest| guest.pool = None);
    fake.cluster().empty_pools.insert("web".into());
    let hidden = HIDDEN.replace("102", "101");
    assert_eq!(source.report().await.view(), partial(&hidden));
}
