//! [`Backend`]: a server of one kind, with the switches that the stories need.

use std::{sync::Arc, time::Duration};

use netstead_model::DnsProvider;
use netstead_providers::{
    BuildContext, Secret,
    dns::{self, adguard, cloudflare, dnsmasq, external_dns, pihole, powerdns, technitium, webhook},
};
use netstead_settings::{Configured as _, Parsed};
use netstead_testkit::{
    AdGuardVersion, DnsweaverReceiver, FakeAdGuard, FakeCloudflare, FakePiHole, FakeTechnitium,
    FakeWebhookProvider, Primary, PrimaryKind, Sshd, TechnitiumRights, WebhookHabits, WebhookReceiver,
};

use crate::{
    pihole_files,
    support::{self, ZONE},
};

pub trait Backend: Sized {
    /// Its name in the list of kinds.
    const KIND: &'static str;

    /// Starts it, empty; `None`, and the test is skipped, where that cannot be done.
    fn start() -> Option<Self>;

    /// As [`Backend::start`], with credentials that can be revoked and a connection that can end.
    fn start_with_access() -> Option<Self> {
        Self::start()
    }

    /// A new connection, as an installation of Netstead makes it.
    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider>;

    /// A look from beside, for what others see and do.
    fn look(&self) -> Arc<dyn DnsProvider> {
        self.open(&support::context())
    }

    /// Refuses the credentials that it took so far, or takes them again.
    fn revoke(&mut self, revoked: bool);

    /// Is not there any more.
    fn stop(&mut self);

    /// Is there again, with what it held.
    fn restart(&mut self);
}

/// An sshd whose key is known.
fn known_sshd() -> Option<Sshd> {
    let ssh = Sshd::start(&[])?;
    ssh.make_known().unwrap();
    Some(ssh)
}

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

    fn revoke(&mut self, revoked: bool) {
        self.0.revoke(revoked);
    }

    fn stop(&mut self) {
        self.0.http().stop();
    }

    fn restart(&mut self) {
        self.0.http().restart();
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

    fn revoke(&mut self, revoked: bool) {
        let all: &[_] = &["#zone:read", "#dns_records:read", "#dns_records:edit"];
        self.0.set_permissions((!revoked).then_some(all));
    }

    fn stop(&mut self) {
        self.0.http().stop();
    }

    fn restart(&mut self) {
        self.0.http().restart();
    }
}

/// On this machine, or behind ssh: that is where its credentials are.
pub struct Dnsmasq(netstead_testkit::Dnsmasq, Option<Sshd>);

impl Backend for Dnsmasq {
    const KIND: &'static str = dnsmasq::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(netstead_testkit::Dnsmasq::start()?, None))
    }

    fn start_with_access() -> Option<Self> {
        Some(Self(netstead_testkit::Dnsmasq::start()?, Some(known_sshd()?)))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        self.access(self.1.as_ref(), context)
    }

    fn look(&self) -> Arc<dyn DnsProvider> {
        self.access(None, &support::context())
    }

    fn revoke(&mut self, revoked: bool) {
        let ssh = self.1.as_ref().unwrap();
        if revoked { ssh.forbid().unwrap() } else { ssh.allow().unwrap() }
    }

    fn stop(&mut self) {
        self.1.as_mut().unwrap().stop().unwrap();
    }

    fn restart(&mut self) {
        self.1.as_mut().unwrap().restart().unwrap();
    }
}

impl Dnsmasq {
    fn access(&self, ssh: Option<&Sshd>, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config = dnsmasq::Config {
            hostsdir: Some(self.0.hostsdir()),
            conf_dir: Some(self.0.conf_dir()),
            reload: self.0.restart_command(),
            ssh: ssh.map(|ssh| Parsed(ssh.url().parse().unwrap())),
            ssh_key: ssh.map(Sshd::key_file),
            ssh_known_hosts: ssh.map(Sshd::known_hosts_file),
            ..dnsmasq::Config::new()
        };
        Arc::new(dns::Dnsmasq::open(config, context).unwrap().with_reload_pause(Duration::ZERO))
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

    fn revoke(&mut self, revoked: bool) {
        self.0.revoke(revoked);
    }

    fn stop(&mut self) {
        self.0.http().stop();
    }

    fn restart(&mut self) {
        self.0.http().restart();
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

    fn revoke(&mut self, revoked: bool) {
        self.0.change(|state| {
            state.revoked = revoked;
            state.sessions.clear();
        });
    }

    fn stop(&mut self) {
        self.0.http().stop();
    }

    fn restart(&mut self) {
        self.0.http().restart();
    }
}

/// By its files, on this machine or behind ssh.
pub struct PiHoleFiles(pihole_files::Server, Option<Sshd>);

impl Backend for PiHoleFiles {
    const KIND: &'static str = pihole::KIND.name;

    fn start() -> Option<Self> {
        Some(Self(pihole_files::Server::start()?, None))
    }

    fn start_with_access() -> Option<Self> {
        Some(Self(pihole_files::Server::start()?, Some(known_sshd()?)))
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        let config = self.1.as_ref().map_or_else(|| self.0.config(), |ssh| self.0.through(ssh));
        let provider = pihole::PiHoleFiles::open(&config, context).unwrap();
        Arc::new(provider.with_reload_pause(Duration::ZERO))
    }

    fn look(&self) -> Arc<dyn DnsProvider> {
        let provider = pihole::PiHoleFiles::open(&self.0.config(), &support::context()).unwrap();
        Arc::new(provider.with_reload_pause(Duration::ZERO))
    }

    fn revoke(&mut self, revoked: bool) {
        let ssh = self.1.as_ref().unwrap();
        if revoked { ssh.forbid().unwrap() } else { ssh.allow().unwrap() }
    }

    fn stop(&mut self) {
        self.1.as_mut().unwrap().stop().unwrap();
    }

    fn restart(&mut self) {
        self.1.as_mut().unwrap().restart().unwrap();
    }
}

pub struct PowerDns(netstead_testkit::PowerDns);

impl Backend for PowerDns {
    const KIND: &'static str = powerdns::KIND.name;

    fn start() -> Option<Self> {
        netstead_testkit::PowerDns::start(&[ZONE]).map(Self)
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        powerdns::Config::new(self.0.api_url(), Secret::new(self.0.api_key())).build(context).unwrap()
    }

    fn revoke(&mut self, revoked: bool) {
        let key = if revoked { "another" } else { self.0.api_key() };
        self.0.restart_with_api_key(key).unwrap();
    }

    fn stop(&mut self) {
        self.0.process().kill().unwrap();
    }

    fn restart(&mut self) {
        self.0.restart().unwrap();
    }
}

/// A server that takes DNS UPDATE.
pub struct Updated<M>(Primary<M>);

pub type Bind = Updated<netstead_testkit::Named>;
pub type Knot = Updated<netstead_testkit::Knotd>;

impl<M: PrimaryKind> Backend for Updated<M> {
    const KIND: &'static str = dns::rfc2136::KIND.name;

    fn start() -> Option<Self> {
        Primary::start(&[ZONE]).map(Self)
    }

    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider> {
        support::config(self.0.address(), self.0.key()).build(context).unwrap()
    }

    fn revoke(&mut self, revoked: bool) {
        let secret = if revoked { "d3Jvbmc=".to_owned() } else { self.0.key().secret.clone() };
        self.0.restart_with_secret(&secret).unwrap();
    }

    fn stop(&mut self) {
        self.0.process().kill().unwrap();
    }

    fn restart(&mut self) {
        self.0.restart().unwrap();
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

    fn revoke(&mut self, revoked: bool) {
        self.0.set_rights((!revoked).then_some(TechnitiumRights::ALL));
    }

    fn stop(&mut self) {
        self.0.http().stop();
    }

    fn restart(&mut self) {
        self.0.http().restart();
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

    fn revoke(&mut self, revoked: bool) {
        self.0.lock(revoked);
    }

    fn stop(&mut self) {
        self.0.stop();
    }

    fn restart(&mut self) {
        self.0.restart();
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

    fn revoke(&mut self, revoked: bool) {
        self.0.lock(revoked);
    }

    fn stop(&mut self) {
        self.0.stop();
    }

    fn restart(&mut self) {
        self.0.restart();
    }
}
