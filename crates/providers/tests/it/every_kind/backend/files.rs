//! Servers that are kept in line by files, on this machine or behind ssh: that is where their credentials are.

use std::{fs, path::Path, sync::Arc, time::Duration};

use netstead_model::DnsProvider;
use netstead_providers::{
    BuildContext,
    dns::{self, dnsmasq, pihole},
};
use netstead_settings::Parsed;
use netstead_testkit::Sshd;

use super::{Backend, Failure};
use crate::{pihole_files, support};

/// An sshd whose key is known.
fn known_sshd() -> Option<Sshd> {
    let ssh = Sshd::start(&[])?;
    ssh.make_known().unwrap();
    Some(ssh)
}

/// Puts something that cannot be read in the place of a file or directory.
fn hide(path: &Path) {
    let was_dir = path.is_dir();
    fs::rename(path, path.with_extension("aside")).unwrap();
    let put = if was_dir { fs::write(path, "") } else { fs::create_dir(path) };
    put.unwrap();
}

/// Takes that away again.
fn show(path: &Path) {
    let aside = path.with_extension("aside");
    if aside.exists() {
        let removed = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        removed.unwrap();
        fs::rename(aside, path).unwrap();
    }
}

pub struct Dnsmasq(netstead_testkit::Dnsmasq, Option<Sshd>);

impl Backend for Dnsmasq {
    const KIND: &'static str = dnsmasq::KIND.name;
    /// A file is replaced or it is not: nothing on the way to it can fail.
    const FAILURES: &'static [Failure] = &[];

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

    fn cut_listings(&mut self) {
        hide(&self.0.conf_dir());
    }

    fn heal(&mut self) {
        show(&self.0.conf_dir());
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

/// A Pi-hole 5 by its files.
pub struct PiHoleFiles(pihole_files::Server, Option<Sshd>);

impl Backend for PiHoleFiles {
    const KIND: &'static str = pihole::KIND.name;
    /// A file is replaced or it is not: nothing on the way to it can fail.
    const FAILURES: &'static [Failure] = &[];

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

    fn cut_listings(&mut self) {
        hide(&self.0.hosts_file());
    }

    fn heal(&mut self) {
        show(&self.0.hosts_file());
    }
}
