//! Several clusters, and clusters behind TLS.

use netstead_model::{ManualClock, Report, View};
use netstead_settings::{BuildContext, Configured as _};
use netstead_testkit::{FakePve, PveGuest};

use super::{cluster, read, settings, shown, source};

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_with_the_same_numbers_are_two_sources() {
    let (one, other) = (cluster(), cluster());
    one.add(PveGuest::machine(101, "pve1", "web", "10.0.3.11/24"));
    other.add(PveGuest::machine(101, "pve1", "db", "10.0.4.11/24"));
    other.cluster().name = Some("branch".into());
    let build = |fake: &FakePve, name: &str| {
        let context = BuildContext::new(name.parse().unwrap()).with_clock(ManualClock::default().shared());
        settings(fake, "").build(&context).unwrap()
    };
    let (first, second) = (build(&one, "here"), build(&other, "there"));
    let (here, there) = (first.report().await, second.report().await);
    assert_eq!(shown(&here), ["101/00000065 web 10.0.3.11"]);
    assert_eq!(shown(&there), ["101/00000065 db 10.0.4.11"]);
    let cluster = |report: &Report| report.workloads()[0].facts().cluster.clone();
    assert_eq!((cluster(&here).as_deref(), cluster(&there).as_deref()), (Some("lab"), Some("branch")));
    // The end of one is not the end of the other.
    one.destroy(101);
    let (here, there) = (first.report().await, second.report().await);
    assert_eq!((here.view(), here.workloads().len()), (View::Complete, 0));
    assert_eq!((there.view(), there.workloads().len()), (View::Complete, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_behind_tls_is_known_by_the_fingerprint_of_its_certificate() {
    let mut fake = cluster();
    fake.add(PveGuest::container(201, "pve1", "dns1", "10.0.3.53/24"));
    let (right, wrong) = (fake.add_tls_entry(), fake.add_tls_entry());
    let (id, secret) = FakePve::TOKEN.rsplit_once('=').unwrap();
    let settings = |urls: &[usize], more: &str| {
        let urls: Vec<String> = urls.iter().map(|entry| format!("{:?}", fake.entry(*entry).url())).collect();
        let urls = urls.join(", ");
        read(&format!("url = [{urls}]\ntoken_id = \"{id}\"\ntoken_secret = \"{secret}\"\n{more}\n"))
    };
    let print = fake.entry(right).fingerprint().unwrap();
    let pinned = format!("fingerprint = \"{print}\"");
    let (known, _) = source(&settings(&[right], &pinned));
    assert_eq!(shown(&known.report().await), ["201/bc24110000c9 dns1 10.0.3.53"]);
    // Another certificate is refused, also one that nothing is known of, and the next address is asked.
    for (urls, more) in [(vec![wrong], pinned.as_str()), (vec![right], "")] {
        fake.calls();
        let (other, _) = source(&settings(&urls, more));
        let View::Failed { reason } = other.report().await.view() else { panic!("it believes {urls:?}") };
        assert!(reason.contains("certificate"), "{reason}");
        assert_eq!(fake.calls(), [""; 0], "no token is sent");
        let told = other.diagnose().await;
        let hint = told[0].hint.as_deref().unwrap_or_default();
        assert!(hint.contains("`fingerprint`"), "{told:?}");
    }
    let (both, _) = source(&settings(&[wrong, right], &pinned));
    assert_eq!(both.report().await.view(), View::Complete);
}
