//! AdGuard Home: the contract against the real one where it was built, faults against a fake.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, ProviderError, RecordSet, RecordType, UnitOutcome, ZoneContent,
};
use netstead_providers::{
    BuildContext, Secret,
    contract::{self, Subject},
    dns::adguard::{AdGuard, Config},
};
use netstead_testkit::{AdGuardHome, AdGuardVersion, FakeAdGuard, HttpFault};

use crate::support::{Counter, a, change, context, request, set, zone};

const VERSIONS: [AdGuardVersion; 3] =
    [AdGuardVersion::V0_107_20, AdGuardVersion::V0_107_60, AdGuardVersion::V0_107_79];

fn open(url: &str, password: &str, context: &BuildContext) -> Arc<dyn DnsProvider> {
    let config = Config::new(url, "netstead", Secret::new(password));
    Arc::new(AdGuard::open(&config, context).unwrap())
}

fn fake() -> (FakeAdGuard, Arc<dyn DnsProvider>) {
    let server = FakeAdGuard::start(AdGuardVersion::V0_107_79);
    let provider = open(&server.http().url(), "netstead-test", &context());
    (server, provider)
}

fn subject(url: &str) -> Subject {
    let counter = Counter::default();
    let provider = open(url, "netstead-test", &context().with_calls(Arc::new(counter.clone())));
    let mut subject = Subject::new(provider, open(url, "wrong", &context()), zone());
    subject.requests = Some(Box::new(move || counter.get()));
    subject
}

/// Without times to live, which the server does not have.
fn sets(content: &ZoneContent) -> Vec<String> {
    let shown = |set: &RecordSet| {
        let values: Vec<String> = set.values.iter().map(ToString::to_string).collect();
        format!("{} {} {}", set.name, set.kind, values.join(" "))
    };
    content.sets.iter().map(shown).collect()
}

#[tokio::test]
async fn the_real_adguard_home_keeps_the_contract() {
    let Some(server) = AdGuardHome::start() else { return };
    contract::all(&subject(&server.url())).await;
}

#[tokio::test]
async fn every_version_of_adguard_home_keeps_the_contract() {
    for version in VERSIONS {
        let server = FakeAdGuard::start(version);
        contract::all(&subject(&server.http().url())).await;
        assert_eq!(server.rewrites(), [], "{version:?}");
    }
}

#[tokio::test]
async fn the_real_adguard_home_answers_what_was_written_also_after_a_restart() {
    let Some(mut server) = AdGuardHome::start() else { return };
    let provider = open(&server.url(), server.password(), &context());
    let units = vec![
        change(None, Some(a("www.example.test", &["192.0.2.1", "192.0.2.2"]))),
        change(None, Some(set("alias.example.test", RecordType::Cname, &["www.example.test."]))),
        change(None, Some(a("*.apps.example.test", &["192.0.2.3"]))),
    ];
    let done = provider.write(&zone(), &request(1, units)).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied; 3].into()));
    server.process().kill().unwrap();
    let down = provider.read(&zone()).await;
    assert!(matches!(down, Err(ProviderError::Unreachable { .. })), "{down:?}");
    server.restart().unwrap();
    let expected = [
        "*.apps.example.test A 192.0.2.3",
        "alias.example.test CNAME www.example.test.",
        "www.example.test A 192.0.2.1 192.0.2.2",
    ];
    assert_eq!(sets(&provider.read(&zone()).await.unwrap()), expected);
    if !netstead_testkit::has_commands(&["dig"]) {
        return;
    }
    let dig = |name: &str| {
        let (host, port) = (server.address().ip().to_string(), server.address().port().to_string());
        let words = ["+noall", "+answer", "+tries=1", "-p", &port, &format!("@{host}"), name];
        let output = std::process::Command::new("dig").args(words).output().unwrap();
        let mut lines: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(dig("x.apps.example.test"), ["x.apps.example.test. 10 IN A 192.0.2.3"]);
    assert_eq!(
        dig("alias.example.test"),
        [
            "alias.example.test. 10 IN CNAME www.example.test.",
            "www.example.test. 10 IN A 192.0.2.1",
            "www.example.test. 10 IN A 192.0.2.2"
        ]
    );
}

#[tokio::test]
async fn a_rewrite_that_a_person_disabled_stays_disabled() {
    let (server, provider) = fake();
    server.add("off.example.test", "192.0.2.1", false);
    server.add("moved.example.test", "192.0.2.2", true);
    server.add("moved.example.test", "192.0.2.1", false);
    let content = provider.read(&zone()).await.unwrap();
    assert_eq!(sets(&content), ["moved.example.test A 192.0.2.2"], "what is disabled does not answer");
    let moved = |address: &str| Some(a("moved.example.test", &[address]));
    let units = vec![
        change(None, Some(a("off.example.test", &["192.0.2.1"]))),
        change(moved("192.0.2.2"), moved("192.0.2.1")),
    ];
    let done = provider.write(&zone(), &request(1, units)).await.unwrap();
    let refused = |domain: &str| UnitOutcome::Rejected {
        reason: format!(
            "the rewrite of `{domain}` to 192.0.2.1 is there and disabled: enable or delete it there"
        ),
    };
    assert_eq!(done.outcomes, [refused("off.example.test"), refused("moved.example.test")]);
    let all = [
        ("off.example.test", "192.0.2.1", false),
        ("moved.example.test", "192.0.2.2", true),
        ("moved.example.test", "192.0.2.1", false),
    ];
    assert_eq!(server.rewrites(), all.map(|(domain, answer, on)| (domain.into(), answer.into(), on)));
}

#[tokio::test]
async fn a_disabled_twin_is_not_deleted_along() {
    let (server, provider) = fake();
    server.add("twin.example.test", "192.0.2.1", true);
    server.add("twin.example.test", "192.0.2.1", false);
    let twin = a("twin.example.test", &["192.0.2.1"]);
    for after in [None, Some(a("twin.example.test", &["192.0.2.2"]))] {
        let done = provider.write(&zone(), &request(1, vec![change(Some(twin.clone()), after)])).await;
        let reason = "the rewrite of `twin.example.test` to 192.0.2.1 is there twice, once disabled, and the server \
                      deletes only both: delete one of them there";
        let rejected = UnitOutcome::Rejected { reason: reason.into() };
        assert_eq!(done, Ok(vec![rejected].into()));
    }
    assert_eq!(server.rewrites().len(), 2);
}

#[tokio::test]
async fn a_rewrite_that_is_there_twice_is_changed_and_deleted_wholly() {
    let (server, provider) = fake();
    server.add("x.example.test", "192.0.2.1", true);
    server.add("x.example.test", "192.0.2.1", true);
    let [old, new] = [["192.0.2.1"], ["192.0.2.2"]].map(|values| a("x.example.test", &values));
    let done = provider.write(&zone(), &request(1, vec![change(Some(old), Some(new.clone()))])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    assert_eq!(server.rewrites(), [("x.example.test".into(), "192.0.2.2".into(), true)]);
    server.add("x.example.test", "192.0.2.2", true);
    let done = provider.write(&zone(), &request(2, vec![change(Some(new), None)])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    assert_eq!(server.rewrites(), []);
}

#[tokio::test]
async fn an_exception_is_left_alone() {
    let (server, provider) = fake();
    server.add("real.example.test", "A", true);
    let wanted = change(None, Some(a("real.example.test", &["192.0.2.1"])));
    let done = provider.write(&zone(), &request(1, vec![wanted])).await.unwrap();
    assert!(matches!(done.outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{done:?}");
    assert_eq!(server.rewrites(), [("real.example.test".into(), "A".into(), true)]);
}

/// The server locks an address out after five failures, also for people who know the password.
#[tokio::test]
async fn refused_credentials_are_sent_once_a_minute() {
    let server = FakeAdGuard::start(AdGuardVersion::V0_107_79);
    let clock = ManualClock::default();
    let provider = open(&server.http().url(), "netstead-test", &context().with_clock(clock.shared()));
    provider.read(&zone()).await.unwrap();
    server.revoke(true);
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    for _ in 0..20 {
        let denied = provider.read(&zone()).await;
        assert!(matches!(denied, Err(ProviderError::Denied { .. })), "{denied:?}");
        let denied = provider.write(&zone(), &request(1, vec![unit.clone()])).await;
        assert!(matches!(denied, Err(ProviderError::Denied { .. })), "{denied:?}");
    }
    assert_eq!(server.failures(), 1);
    clock.advance(Duration::from_secs(66));
    assert!(provider.read(&zone()).await.is_err());
    assert_eq!(server.failures(), 2);
    server.revoke(false);
    clock.advance(Duration::from_secs(66));
    provider.read(&zone()).await.unwrap();
}

#[tokio::test]
async fn credentials_that_are_revoked_half_way_end_the_write() {
    let (server, provider) = fake();
    server.http().fail_at("POST /control/rewrite/add", 2, HttpFault::status(401, None));
    let unit = |n: usize| change(None, Some(a(&format!("x{n}.example.test"), &["192.0.2.1"])));
    let done = provider.write(&zone(), &request(1, (0..4).map(unit).collect())).await.unwrap();
    let (yes, no) = (UnitOutcome::Applied, UnitOutcome::NotTried);
    assert_eq!(done.outcomes, [yes.clone(), yes, no.clone(), no]);
    assert!(matches!(done.stopped, Some(ProviderError::Denied { .. })), "{done:?}");
    assert_eq!(server.rewrites().len(), 2);
}

#[tokio::test]
async fn a_busy_server_is_heeded_in_the_middle_of_a_batch() {
    let (server, provider) = fake();
    server.http().fail_at("POST /control/rewrite/add", 1, HttpFault::status(429, Some(7)));
    let unit = |n: usize| change(None, Some(a(&format!("x{n}.example.test"), &["192.0.2.1"])));
    let units: Vec<_> = (0..3).map(unit).collect();
    let done = provider.write(&zone(), &request(1, units.clone())).await.unwrap();
    assert_eq!(done.outcomes, [UnitOutcome::Applied, UnitOutcome::NotTried, UnitOutcome::NotTried]);
    let busy = ProviderError::Busy { server: server.http().url(), retry_after: Some(Duration::from_secs(7)) };
    assert_eq!(done.stopped, Some(busy));
    let done = provider.write(&zone(), &request(2, units)).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied; 3].into()));
    assert_eq!(server.rewrites().len(), 3);
}

/// A rewrite that was added without an answer is not added once more.
#[tokio::test]
async fn a_lost_answer_makes_no_twin() {
    for fault in [HttpFault::Lost, HttpFault::Half, HttpFault::Dropped, HttpFault::status(500, None)] {
        let (server, provider) = fake();
        server.http().fail_at("POST /control/rewrite/add", 0, fault.clone());
        let units = vec![change(None, Some(a("x.example.test", &["192.0.2.1"])))];
        let done = provider.write(&zone(), &request(1, units.clone())).await.unwrap();
        // Of half an answer without a body the first line is all there is to know.
        assert!(
            matches!(done.outcomes[0], UnitOutcome::Unknown | UnitOutcome::Applied),
            "{fault:?}: {done:?}"
        );
        let done = provider.write(&zone(), &request(2, units)).await;
        assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()), "{fault:?}");
        assert_eq!(server.rewrites().len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn half_a_listing_is_an_error() {
    let (server, provider) = fake();
    server.add("x.example.test", "192.0.2.1", true);
    for _ in 0..3 {
        server.http().fail_at("GET /control/rewrite/list", 0, HttpFault::Half);
    }
    let read = provider.read(&zone()).await;
    assert!(matches!(read, Err(ProviderError::Unreachable { .. })), "{read:?}");
    assert_eq!(sets(&provider.read(&zone()).await.unwrap()), ["x.example.test A 192.0.2.1"]);
}

#[tokio::test]
async fn a_server_that_went_away_comes_back() {
    let (server, provider) = fake();
    provider.read(&zone()).await.unwrap();
    server.http().stop();
    let unit = change(None, Some(a("x.example.test", &["192.0.2.1"])));
    let gone = provider.write(&zone(), &request(1, vec![unit.clone()])).await;
    assert!(matches!(gone, Err(ProviderError::Unreachable { .. })), "{gone:?}");
    server.http().restart();
    let done = provider.write(&zone(), &request(2, vec![unit])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
}

#[test]
fn settings_that_cannot_work_are_told() {
    let problem = |url: &str, user: &str| {
        let config = Config::new(url, user, Secret::new("x"));
        AdGuard::open(&config, &context()).map(drop).unwrap_err().to_string()
    };
    assert_eq!(problem("http://a", "a:b"), "user: `a:b` is no user of a web interface");
    assert_eq!(problem("http://me:x@a", "a"), "url: a secret does not belong in it");
    let config = Config::new("http://a:3000/control/", "a", Secret::new("x"));
    assert_eq!(AdGuard::open(&config, &context()).unwrap().server(), "http://a:3000");
}
