//! Servers that only pretend, and speak HTTP.

use std::sync::Arc;

use netstead_model::DnsProvider;
use netstead_providers::{
    BuildContext, Secret,
    dns::{adguard, cloudflare, external_dns, pihole, technitium, webhook},
};
use netstead_settings::Configured as _;
use netstead_testkit::{
    AdGuardVersion, DnsweaverReceiver, FakeAdGuard, FakeCloudflare, FakeHttp, FakePiHole, FakeTechnitium,
    FakeWebhookProvider, HttpRequest, TechnitiumRights, WebhookHabits, WebhookReceiver,
};

use super::Backend;
use crate::support::{self, ZONE};

pub struct AdGuard(FakeAdGuard);

impl Backend for AdGuard {
    const KIND: &'static str = adguard::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(FakeAdGuard::start(AdGuardVersion::V0_107_79)))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config = adguard::Config::new(self.0.http().url(), "netstead", Secret::new("netstead-test"));
        config.build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.revoke(revoked);
    }
}

pub struct Cloudflare(FakeCloudflare);

impl Backend for Cloudflare {
    const KIND: &'static str = cloudflare::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(FakeCloudflare::start(&[ZONE])))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config =
            cloudflare::Config { url: self.0.url(), ..cloudflare::Config::new(Secret::new(self.0.token())) };
        config.build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn lists(request: &HttpRequest) -> bool {
        request.method == "GET" && request.path.ends_with("/dns_records")
    }

    fn revoke(&mut self, revoked: bool) {
        let all: &[_] = &["#zone:read", "#dns_records:read", "#dns_records:edit"];
        self.0.set_permissions((!revoked).then_some(all));
    }
}

pub struct ExternalDns(FakeWebhookProvider);

impl Backend for ExternalDns {
    const KIND: &'static str = external_dns::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(FakeWebhookProvider::start(WebhookHabits::default())))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let mut config = external_dns::Config::new(self.0.http().url());
        config.user = Some(self.0.user().into());
        config.password = Some(Secret::new(self.0.password()));
        config.build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn lists(request: &HttpRequest) -> bool {
        request.method == "GET" && request.path == "/records"
    }

    fn changes(request: &HttpRequest) -> bool {
        request.method == "POST" && request.path == "/records"
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.revoke(revoked);
    }
}

pub struct PiHole<const VERSION: u8>(FakePiHole);

impl<const VERSION: u8> Backend for PiHole<VERSION> {
    const KIND: &'static str = pihole::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(FakePiHole::start(VERSION)))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config = pihole::Config::new(self.0.http().url(), Some(Secret::new(self.0.password())));
        config.build(context).unwrap()
    }

    /// Another process has a session and refusals of its own, and so has another address here.
    fn look(&self) -> Arc<dyn DnsProvider> {
        let url = self.0.http().url().replace("127.0.0.1", "localhost");
        let config = pihole::Config::new(url, Some(Secret::new(self.0.password())));
        config.build(&support::context()).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn lists(request: &HttpRequest) -> bool {
        request.parameter("action") == Some("get") || request.path == "/api/config/dns"
    }

    fn changes(request: &HttpRequest) -> bool {
        let of_five = request.parameter("action").is_some_and(|action| action != "get");
        of_five || request.method != "GET" && request.path.starts_with("/api/config/dns/")
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.change(|state| {
            state.revoked = revoked;
            state.sessions.clear();
        });
    }
}

pub struct Technitium(FakeTechnitium);

impl Backend for Technitium {
    const KIND: &'static str = technitium::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(FakeTechnitium::start(&[ZONE])))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        technitium::Config::new(self.0.http().url(), Secret::new(self.0.token())).build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn lists(request: &HttpRequest) -> bool {
        request.path.ends_with("/records/get")
    }

    fn changes(request: &HttpRequest) -> bool {
        request.path.contains("/zones/records/") && !Self::lists(request)
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.set_rights((!revoked).then_some(TechnitiumRights::ALL));
    }
}

const SECRET: &str = "a secret of the tests";
const TOKEN: &str = "Bearer hunter2";

pub struct Webhook(WebhookReceiver);

impl Backend for Webhook {
    const KIND: &'static str = webhook::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(WebhookReceiver::start(SECRET, &[ZONE])))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let secret = Some(Secret::new(SECRET));
        webhook::Config::new(self.0.url(), webhook::Protocol::Netstead, secret).build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn lists(request: &HttpRequest) -> bool {
        request.method == "GET" && request.path.contains("/zones/")
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.lock(revoked);
    }
}

pub struct WebhookForDnsweaver(DnsweaverReceiver);

impl Backend for WebhookForDnsweaver {
    const KIND: &'static str = webhook::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(DnsweaverReceiver::start("authorization", TOKEN)))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config = webhook::Config {
            auth_header: Some("Authorization".into()),
            auth_token: Some(Secret::new(TOKEN)),
            ..webhook::Config::new(self.0.url(), webhook::Protocol::Dnsweaver, None)
        };
        config.build(context).unwrap()
    }

    fn http(&self) -> Option<&FakeHttp> {
        Some(self.0.http())
    }

    fn revoke(&mut self, revoked: bool) {
        self.0.lock(revoked);
    }
}
