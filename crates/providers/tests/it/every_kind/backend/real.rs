//! Servers that are real, behind proxies that fail where the servers themselves would not.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use netstead_model::DnsProvider;
use netstead_providers::{
    BuildContext, Secret,
    dns::{self, adguard, powerdns},
};
use netstead_settings::Configured as _;
use netstead_testkit::{AdGuardHome, FakeHttp, HttpRequest, LossyProxy, Primary, PrimaryKind};

use super::{Backend, Failure};
use crate::support::{self, ZONE};

/// AdGuard Home itself.
pub struct RealAdGuard {
    server: AdGuardHome,
    http: FakeHttp,
    revoked: Arc<AtomicBool>,
}

impl Backend for RealAdGuard {
    const KIND: &'static str = adguard::KIND.name;

    fn start() -> Option<Self> {
        let server = AdGuardHome::start()?;
        let revoked = Arc::new(AtomicBool::new(false));
        let inside = Arc::clone(&revoked);
        // Without its credentials a request is as good as one with those that are no longer known.
        let http = FakeHttp::before(address(&server.url()), move |request| {
            request.headers.retain(|(name, _)| !inside.load(Ordering::SeqCst) || name != "authorization");
        });
        Some(Self { server, http, revoked })
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let password = Secret::new(self.server.password());
        adguard::Config::new(self.http.url(), self.server.user(), password).build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(&self.http)
    }

    fn revoke(&mut self, revoked: bool) {
        self.revoked.store(revoked, Ordering::SeqCst);
    }

    fn stop(&mut self) {
        self.http.stop();
        self.server.process().kill().unwrap();
    }

    fn restart(&mut self) {
        self.server.restart().unwrap();
        self.http.restart();
    }
}

fn address(url: &str) -> std::net::SocketAddr {
    url.trim_start_matches("http://").parse().unwrap()
}

pub struct PowerDns {
    server: netstead_testkit::PowerDns,
    http: FakeHttp,
}

impl Backend for PowerDns {
    const KIND: &'static str = powerdns::KIND.name;

    fn start() -> Option<Self> {
        let server = netstead_testkit::PowerDns::start(&[ZONE])?;
        let http = FakeHttp::before(address(&server.api_url()), |_| {});
        Some(Self { server, http })
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let key = Secret::new(self.server.api_key());
        powerdns::Config::new(self.http.url(), key).build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(&self.http)
    }

    fn lists(request: &HttpRequest) -> bool {
        request.method == "GET" && request.path.contains("/zones/")
    }

    fn revoke(&mut self, revoked: bool) {
        let key = if revoked { "another" } else { self.server.api_key() };
        self.server.restart_with_api_key(key).unwrap();
    }

    fn stop(&mut self) {
        self.http.stop();
        self.server.process().kill().unwrap();
    }

    fn restart(&mut self) {
        self.server.restart().unwrap();
        self.http.restart();
    }
}

/// A server that takes DNS UPDATE, behind a proxy that loses answers to updates and one that loses transfers.
pub struct Updated<M> {
    server: Primary<M>,
    updates: LossyProxy,
    transfers: LossyProxy,
}

pub type Bind = Updated<netstead_testkit::Named>;
pub type Knot = Updated<netstead_testkit::Knotd>;

/// The two bytes of the length come first.
fn is_update(message: &[u8]) -> bool {
    message.get(4).is_some_and(|flags| flags & 0x78 == 0x28)
}

/// The type AXFR, then the class IN.
fn is_transfer(message: &[u8]) -> bool {
    message.windows(4).any(|part| part == [0, 252, 0, 1])
}

impl<M: PrimaryKind + 'static> Backend for Updated<M> {
    const KIND: &'static str = dns::rfc2136::KIND.name;
    const FAILURES: &'static [Failure] = &[Failure::Dropped, Failure::Lost];

    fn start() -> Option<Self> {
        let server: Primary<M> = Primary::start(&[ZONE])?;
        let host = server.address().ip();
        let transfers = LossyProxy::before(host, server.address(), is_transfer).unwrap();
        let updates = LossyProxy::before(host, transfers.address(), is_update).unwrap();
        Some(Self { server, updates, transfers })
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        support::config(self.updates.address(), self.server.key()).build(context).unwrap()
    }

    fn revoke(&mut self, revoked: bool) {
        let secret = if revoked { "d3Jvbmc=".to_owned() } else { self.server.key().secret.clone() };
        self.server.restart_with_secret(&secret).unwrap();
    }

    fn stop(&mut self) {
        self.server.process().kill().unwrap();
    }

    fn restart(&mut self) {
        self.server.restart().unwrap();
    }

    fn cut_listings(&mut self) {
        self.transfers.lose_one_in(1);
    }

    /// One message has all updates of a zone.
    fn fail_change(&mut self, _: usize, failure: Failure) {
        match failure {
            Failure::Dropped => self.updates.drop_one_in(1),
            _ => self.updates.lose_one_in(1),
        }
    }

    fn failed(&self) -> usize {
        self.updates.lost()
    }

    fn heal(&mut self) {
        self.updates.lose_one_in(0);
        self.transfers.lose_one_in(0);
    }
}
