//! Pi-hole 5 and 6, against fakes: neither can be had as a program for tests. Its files are read by a real dnsmasq.

use std::{sync::Arc, time::Duration};

use netstead_model::{
    DnsProvider, ManualClock, ProviderError, RecordSet, RecordType, Unit, UnitOutcome, WriteReply,
    ZoneContent,
};
use netstead_providers::{
    BuildContext, Secret,
    contract::{self, Subject},
    dns::pihole::{Config, PiHole},
};
use netstead_testkit::{FakePiHole, HttpFault};

use crate::support::{Counter, a, change, context, request, set, zone};

fn open(server: &FakePiHole, password: &str, context: &BuildContext) -> Arc<dyn DnsProvider> {
    let config = Config::new(server.http().url(), Some(Secret::new(password)));
    Arc::new(PiHole::open(&config, context).unwrap())
}

fn fake(version: u8) -> (FakePiHole, Arc<dyn DnsProvider>) {
    let server = FakePiHole::start(version);
    let provider = open(&server, server.password(), &context());
    (server, provider)
}

fn sets(content: &ZoneContent) -> Vec<String> {
    let shown = |set: &RecordSet| {
        let values: Vec<String> = set.values.iter().map(ToString::to_string).collect();
        format!("{} {} {}", set.name, set.kind, values.join(" "))
    };
    content.sets.iter().map(shown).collect()
}

fn host(n: usize) -> Unit {
    change(None, Some(a(&format!("x{n}.example.test"), &["192.0.2.1"])))
}

fn alias(n: usize) -> Unit {
    change(None, Some(set(&format!("alias{n}.example.test"), RecordType::Cname, &["nas.example.test."])))
}

#[expect(clippy::unnecessary_wraps, reason = "as `write` answers")]
fn applied(units: usize) -> Result<WriteReply, ProviderError> {
    Ok(vec![UnitOutcome::Applied; units].into())
}

#[tokio::test]
async fn both_versions_of_pihole_keep_the_contract() {
    for version in [5, 6] {
        let server = FakePiHole::start(version);
        let counter = Counter::default();
        let context_with = context().with_calls(Arc::new(counter.clone()));
        let provider = open(&server, server.password(), &context_with);
        // What a server can do is known once it was asked.
        provider.read(&zone()).await.unwrap();
        let stranger = open(&server, "wrong", &context());
        let mut subject = Subject::new(Arc::clone(&provider), stranger, zone());
        subject.requests = Some(Box::new(move || counter.get()));
        contract::all(&subject).await;
        provider.close().await;
        let state = server.state();
        assert_eq!((state.hosts, state.aliases), (vec![], vec![]), "version {version}");
        assert_eq!(state.failures, 1, "refused credentials are sent once");
        let sessions = usize::from(version == 6);
        assert_eq!((state.most_sessions, state.sessions), (sessions, vec![]));
    }
}

#[tokio::test]
async fn there_is_never_a_second_session() {
    let (server, provider) = fake(6);
    let read = || {
        let provider = Arc::clone(&provider);
        tokio::spawn(async move { provider.read_names(&zone(), &[zone()].into()).await.map(drop) })
    };
    let all: Vec<_> = (0..20).map(|_| read()).collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!((server.state().logins, server.state().most_sessions), (1, 1));
    // The server restarted and forgot it.
    server.change(|state| state.sessions.clear());
    let all: Vec<_> = (0..20).map(|_| read()).collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!((server.state().logins, server.state().most_sessions), (2, 1));
    provider.close().await;
    assert_eq!(server.state().sessions, []);
    // Closed is not broken.
    provider.read(&zone()).await.unwrap();
    assert_eq!(server.state().sessions.len(), 1);
}

#[tokio::test]
async fn two_tables_of_one_server_share_a_session_and_the_last_one_gives_it_back() {
    let (server, first) = fake(6);
    let second = open(&server, server.password(), &context());
    // One session is left.
    let browsers: Vec<_> = (0..15).map(|n| (format!("browser {n}"), false)).collect();
    server.change(|state| state.sessions = browsers.clone());
    let zone = zone();
    let (one, other) = tokio::join!(first.read(&zone), second.read(&zone));
    one.unwrap();
    other.unwrap();
    assert_eq!((server.state().logins, server.state().sessions.len()), (1, 16));
    first.close().await;
    assert_eq!(server.state().sessions.len(), 16, "the other table uses it");
    second.read(&zone).await.unwrap();
    // A table that is removed from the configuration and comes back counts once.
    first.read(&zone).await.unwrap();
    first.read(&zone).await.unwrap();
    drop(first);
    second.close().await;
    assert_eq!(server.state().sessions, browsers);
    assert_eq!(server.state().logins, 1);
}

#[tokio::test]
async fn a_server_without_a_free_session_is_busy_until_it_has_one() {
    let (server, provider) = fake(6);
    server.change(|state| state.sessions = (0..16).map(|n| (format!("browser {n}"), false)).collect());
    let busy = ProviderError::Busy { server: server.http().url(), retry_after: None };
    assert_eq!(provider.read(&zone()).await, Err(busy));
    server.change(|state| drop(state.sessions.pop()));
    provider.read(&zone()).await.unwrap();
    provider.close().await;
    assert_eq!(server.state().sessions.len(), 15, "no session of others is ended");
}

#[tokio::test]
async fn a_login_whose_answer_is_lost_is_not_repeated_for_a_minute() {
    let server = FakePiHole::start(6);
    let clock = ManualClock::default();
    let provider = open(&server, server.password(), &context().with_clock(clock.shared()));
    server.http().fail_at("POST /api/auth", 0, HttpFault::Lost);
    for _ in 0..20 {
        let lost = provider.read(&zone()).await;
        assert!(matches!(lost, Err(ProviderError::Unreachable { .. })), "{lost:?}");
    }
    assert_eq!(server.state().logins, 1);
    clock.advance(Duration::from_secs(66));
    provider.read(&zone()).await.unwrap();
    assert_eq!(server.state().logins, 2);
}

#[tokio::test]
async fn credentials_that_are_revoked_are_tried_once_a_minute() {
    for version in [5, 6] {
        let server = FakePiHole::start(version);
        let clock = ManualClock::default();
        let provider = open(&server, server.password(), &context().with_clock(clock.shared()));
        assert_eq!(provider.write(&zone(), &request(1, vec![host(0)])).await, applied(1));
        server.change(|state| {
            state.revoked = true;
            state.sessions.clear();
        });
        for _ in 0..20 {
            let denied = provider.read(&zone()).await;
            assert!(matches!(denied, Err(ProviderError::Denied { .. })), "{denied:?}");
            let denied = provider.write(&zone(), &request(2, vec![host(1)])).await;
            assert!(matches!(denied, Err(ProviderError::Denied { .. })), "{denied:?}");
        }
        assert_eq!(server.state().failures, 1, "version {version}");
        server.change(|state| state.revoked = false);
        clock.advance(Duration::from_secs(66));
        assert_eq!(sets(&provider.read(&zone()).await.unwrap()), ["x0.example.test A 192.0.2.1"]);
    }
}

#[tokio::test]
async fn many_aliases_take_one_restart() {
    let (server, provider) = fake(6);
    let units: Vec<Unit> = (0..50).map(alias).chain((0..50).map(host)).collect();
    assert_eq!(provider.write(&zone(), &request(1, units)).await, applied(100));
    assert_eq!((server.state().restarts, server.state().answered.len()), (1, 50));
    assert_eq!(provider.write(&zone(), &request(2, vec![host(99)])).await, applied(1));
    assert_eq!(server.state().restarts, 1, "a host counts without one");
}

#[tokio::test]
async fn a_restart_that_failed_is_made_before_the_next_look() {
    let (server, provider) = fake(6);
    for _ in 0..3 {
        server.http().fail_at("POST /api/action/restartdns", 0, HttpFault::Dropped);
    }
    let reply = provider.write(&zone(), &request(1, vec![alias(1)])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Applied]);
    assert!(matches!(reply.stopped, Some(ProviderError::Unknown { .. })), "{reply:?}");
    assert_eq!(server.state().restarts, 0);
    provider.read(&zone()).await.unwrap();
    assert_eq!((server.state().restarts, server.state().answered.len()), (1, 1));
}

#[tokio::test]
async fn a_server_that_lets_nobody_restart_it_does_so_by_itself() {
    let (server, provider) = fake(6);
    server.change(|state| state.allow_destructive = false);
    let reply = provider.write(&zone(), &request(1, vec![alias(1)])).await.unwrap();
    assert!(matches!(reply.stopped, Some(ProviderError::Denied { .. })), "{reply:?}");
    assert_eq!(provider.write(&zone(), &request(2, vec![alias(2)])).await, applied(1));
    assert_eq!((server.state().restarts, server.state().answered.len()), (1, 2));
}

#[tokio::test]
async fn an_app_password_needs_the_right_to_write() {
    let server = FakePiHole::start(6);
    let provider = open(&server, server.app_password(), &context());
    provider.read(&zone()).await.unwrap();
    let reason = "an app password may only read; set `webserver.api.app_sudo` on the server".to_owned();
    let denied = ProviderError::Denied { server: server.http().url(), reason };
    assert_eq!(provider.may_write(&zone()).await, Err(denied));
    let reply = provider.write(&zone(), &request(1, vec![host(1)])).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::NotTried]);
    assert!(matches!(reply.stopped, Some(ProviderError::Denied { .. })), "{reply:?}");
    server.change(|state| state.app_sudo = true);
    assert_eq!(provider.may_write(&zone()).await, Ok(()));
    assert_eq!(provider.write(&zone(), &request(2, vec![host(1)])).await, applied(1));
    assert_eq!(server.state().most_sessions, 1);
}

#[tokio::test]
async fn a_second_factor_needs_an_app_password() {
    let (server, provider) = fake(6);
    server.change(|state| state.second_factor = true);
    let reason =
        "No 2FA token found in JSON payload; with a second factor only an app password works".to_owned();
    let denied = ProviderError::Denied { server: server.http().url(), reason };
    assert_eq!(provider.read(&zone()).await, Err(denied));
    open(&server, server.app_password(), &context()).read(&zone()).await.unwrap();
}

#[tokio::test]
async fn a_server_without_a_password_needs_none() {
    for version in [5, 6] {
        let server = FakePiHole::start(version);
        server.change(|state| state.without_password = true);
        let provider = PiHole::open(&Config::new(server.http().url(), None), &context()).unwrap();
        assert_eq!(
            provider.write(&zone(), &request(1, vec![host(1)])).await,
            applied(1),
            "version {version}"
        );
    }
}

#[tokio::test]
async fn other_names_in_an_entry_stay() {
    let (server, provider) = fake(6);
    server
        .change(|state| state.hosts = vec!["192.0.2.1 NAS.example.test nas tv.example.test # cellar".into()]);
    server.change(|state| state.aliases = vec!["a.example.test,b.example.test,nas.example.test".into()]);
    let content = provider.read(&zone()).await.unwrap();
    assert_eq!(sets(&content), ["nas.example.test A 192.0.2.1", "tv.example.test A 192.0.2.1"]);
    let both =
        ["nas.example.test", "tv.example.test"].map(|name| change(Some(a(name, &["192.0.2.1"])), None));
    assert_eq!(provider.write(&zone(), &request(1, both.into())).await, applied(2));
    assert_eq!(server.state().hosts, ["192.0.2.1 nas # cellar"]);
    // An alias that shares its entry cannot be changed without the others.
    let wanted = set("b.example.test", RecordType::Cname, &["tv.example.test."]);
    let reply = provider.write(&zone(), &request(2, vec![change(None, Some(wanted))])).await.unwrap();
    assert!(matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{reply:?}");
    assert_eq!(server.state().aliases.len(), 1);
}

#[tokio::test]
async fn what_the_server_refuses_is_told_with_its_reason() {
    for (version, reason) in [(5, "the server knows no wildcards"), (6, "the server knows no wildcards")] {
        let (_server, provider) = fake(version);
        let wildcard = change(None, Some(a("*.example.test", &["192.0.2.1"])));
        let reply = provider.write(&zone(), &request(1, vec![wildcard, host(1)])).await.unwrap();
        let rejected = UnitOutcome::Rejected { reason: reason.into() };
        assert_eq!(reply.outcomes, [rejected, UnitOutcome::Applied], "version {version}");
    }
    let (server, provider) = fake(6);
    server.change(|state| state.aliases.push("alias1.example.test,".into()));
    let reply = provider.write(&zone(), &request(1, vec![alias(1)])).await.unwrap();
    assert!(matches!(reply.outcomes.as_slice(), [UnitOutcome::Rejected { .. }]), "{reply:?}");
}

#[tokio::test]
async fn version_5_has_one_address_of_a_family_for_a_name() {
    let (server, provider) = fake(5);
    let two = change(None, Some(a("x.example.test", &["192.0.2.1", "192.0.2.2"])));
    let reply = provider.write(&zone(), &request(1, vec![two])).await;
    let reason = "the server holds one A at a name".into();
    assert_eq!(reply, Ok(vec![UnitOutcome::Rejected { reason }].into()));
    let [old, new] = [["192.0.2.1"], ["192.0.2.2"]].map(|values| a("x.example.test", &values));
    let units = vec![
        change(None, Some(old.clone())),
        change(None, Some(set("six.example.test", RecordType::Aaaa, &["2001:db8::1"]))),
    ];
    assert_eq!(provider.write(&zone(), &request(2, units)).await, applied(2));
    let reply = provider.write(&zone(), &request(3, vec![change(Some(old), Some(new))])).await;
    assert_eq!(reply, applied(1));
    assert_eq!(server.state().hosts, ["2001:db8::1 six.example.test", "192.0.2.2 x.example.test"]);
}

#[tokio::test]
async fn a_pihole_that_is_updated_is_asked_for_its_version_again() {
    let (server, provider) = fake(5);
    assert_eq!(provider.write(&zone(), &request(1, vec![host(1)])).await, applied(1));
    server.change(|state| state.version = 6);
    assert!(matches!(provider.read(&zone()).await, Err(ProviderError::Malformed { .. })));
    assert_eq!(sets(&provider.read(&zone()).await.unwrap()), ["x1.example.test A 192.0.2.1"]);
    assert_eq!(server.state().sessions.len(), 1);
}

#[tokio::test]
async fn another_program_is_no_pihole() {
    let server = FakePiHole::start(4);
    let error = open(&server, "x", &context()).read(&zone()).await.unwrap_err();
    let reason =
        "it has the API of neither Pi-hole 5 nor 6; is the address that of its web interface?".to_owned();
    assert_eq!(error, ProviderError::Malformed { server: server.http().url(), reason });
}

#[tokio::test]
async fn a_busy_server_is_heeded_in_the_middle_of_a_batch() {
    let (server, provider) = fake(6);
    server.http().fail_at("PUT /api/config/dns/hosts", 1, HttpFault::status(429, Some(7)));
    let units: Vec<Unit> = (0..3).map(host).collect();
    let reply = provider.write(&zone(), &request(1, units.clone())).await.unwrap();
    assert_eq!(reply.outcomes, [UnitOutcome::Applied, UnitOutcome::NotTried, UnitOutcome::NotTried]);
    let busy = ProviderError::Busy { server: server.http().url(), retry_after: Some(Duration::from_secs(7)) };
    assert_eq!(reply.stopped, Some(busy));
    assert_eq!(provider.write(&zone(), &request(2, units)).await, applied(3));
}

#[tokio::test]
async fn a_lost_answer_changes_nothing_else() {
    for fault in [HttpFault::Lost, HttpFault::Half, HttpFault::Dropped, HttpFault::status(500, None)] {
        let (server, provider) = fake(6);
        for beginning in ["PUT /api/config/dns/hosts", "DELETE /api/config/dns/hosts"] {
            server.http().fail_at(beginning, 0, fault.clone());
        }
        assert_eq!(provider.write(&zone(), &request(1, vec![host(1)])).await, applied(1), "{fault:?}");
        let gone = change(Some(a("x1.example.test", &["192.0.2.1"])), None);
        assert_eq!(provider.write(&zone(), &request(2, vec![gone])).await, applied(1), "{fault:?}");
        let (server, provider) = fake(5);
        server.http().fail_at("GET /admin/api.php", 3, fault.clone());
        let reply = provider.write(&zone(), &request(1, vec![host(1)])).await.unwrap();
        assert_eq!(reply.outcomes, [UnitOutcome::Unknown], "{fault:?}");
        assert_eq!(provider.write(&zone(), &request(2, vec![host(1)])).await, applied(1), "{fault:?}");
        assert_eq!(server.state().hosts.len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_went_away_comes_back() {
    for version in [5, 6] {
        let (server, provider) = fake(version);
        provider.read(&zone()).await.unwrap();
        server.http().stop();
        let gone = provider.write(&zone(), &request(1, vec![host(1)])).await;
        assert!(matches!(gone, Err(ProviderError::Unreachable { .. })), "{gone:?}");
        server.http().restart();
        assert_eq!(provider.write(&zone(), &request(2, vec![host(1)])).await, applied(1));
    }
}

#[tokio::test]
async fn half_a_listing_is_an_error() {
    let (server, provider) = fake(6);
    server.change(|state| state.hosts = vec!["192.0.2.1 x.example.test".into()]);
    for _ in 0..3 {
        server.http().fail_at("GET /api/config/dns", 0, HttpFault::Half);
    }
    let read = provider.read(&zone()).await;
    assert!(matches!(read, Err(ProviderError::Unreachable { .. })), "{read:?}");
    assert_eq!(sets(&provider.read(&zone()).await.unwrap()), ["x.example.test A 192.0.2.1"]);
}

#[test]
fn the_address_may_be_that_of_the_interface() {
    for url in ["http://pi.hole", "http://pi.hole/admin/", "http://pi.hole/api"] {
        let provider = PiHole::open(&Config::new(url, None), &context()).unwrap();
        assert_eq!(provider.server(), "http://pi.hole", "{url}");
    }
}
