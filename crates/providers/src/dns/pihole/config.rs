//! The table of a Pi-hole: its API, or its files.

use std::{path::PathBuf, sync::Arc};

use netstead_model::DnsProvider;
use netstead_settings::{Configured, Identity, Parsed, table};
use netstead_wire::{http::check_url, ssh::SshTarget};

use super::{PiHole, PiHoleFiles};
use crate::{BuildContext, Secret, SettingsError, Tls, dns::config_files::SshKeys};

table! {
    /// `[dns.NAME]` with `type = "pihole"`.
    pub struct Config {
        /// of its web interface: `http://pi.hole`; needed unless `hosts_file` is set
        url: Option<String>, unset;
        /// of its web interface, or an app password, a secret
        password: Option<Secret>, unset "none is needed";
        /// instead of `url`: the file with the addresses of a Pi-hole 5, usually `/etc/pihole/custom.list`
        hosts_file: Option<PathBuf>, unset;
        /// beside `hosts_file`: the file with its CNAME records, usually `/etc/dnsmasq.d/05-pihole-custom-cname.conf`
        cname_file: Option<PathBuf>, unset "no CNAME is written";
        /// the command, as a list of words, that makes Pi-hole read these files: `["pihole", "restartdns"]`
        reload: Vec<String>, unset;
        /// the machine with these files: `ssh://USER@HOST`, through the `ssh` program of this machine
        ssh: Option<Parsed<SshTarget>>, unset "this machine";
        /// the key to log in with
        ssh_key: Option<PathBuf>, unset "those that ssh finds";
        /// the only file with host keys to trust
        ssh_known_hosts: Option<PathBuf>, unset "those that ssh finds";
        tls: Tls, all;
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        let files = [&self.hosts_file, &self.cname_file].into_iter().flatten();
        let identity = match &self.url {
            Some(_) => Identity::default().and_url(self.root(), ""),
            None => Identity::default(),
        };
        files.fold(identity, |identity, file| match &self.ssh {
            Some(ssh) => identity.and_url(&ssh.to_string(), &file.display().to_string()),
            None => identity.and_path(file),
        })
    }

    fn server(&self) -> String {
        self.shown()
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.hosts_file.is_some() {
            return self.check_files();
        }
        if self.url.is_none() {
            let hint =
                "write `url = \"http://pi.hole\"`, or `hosts_file` for a Pi-hole 5 without its web interface";
            return Err(SettingsError::new("url", "there is no Pi-hole to write to").hint(hint));
        }
        let lone = [
            ("cname_file", self.cname_file.is_some()),
            ("reload", !self.reload.is_empty()),
            ("ssh", self.ssh.is_some()),
        ];
        if let Some((key, _)) = lone.into_iter().find(|(_, set)| *set) {
            let hint = "remove it, or set `hosts_file` instead of `url`";
            return Err(SettingsError::new(key, "it means nothing over the API").hint(hint));
        }
        self.ssh_keys().check()?;
        check_url(self.root())?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        if self.hosts_file.is_some() {
            return Ok(Arc::new(PiHoleFiles::open(self, context)?));
        }
        Ok(Arc::new(PiHole::open(self, context)?))
    }
}

impl Config {
    /// Over its API.
    pub fn new(url: impl Into<String>, password: Option<Secret>) -> Self {
        Self { url: Some(url.into()), password, ..Self::empty() }
    }

    /// By its files.
    pub fn of_files(
        hosts_file: impl Into<PathBuf>,
        cname_file: Option<PathBuf>,
        reload: Vec<String>,
    ) -> Self {
        Self { hosts_file: Some(hosts_file.into()), cname_file, reload, ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            url: None,
            password: None,
            hosts_file: None,
            cname_file: None,
            reload: Vec::new(),
            ssh: None,
            ssh_key: None,
            ssh_known_hosts: None,
            tls: Tls::default(),
        }
    }

    /// The address without the paths of interface and API.
    pub(super) fn root(&self) -> &str {
        let url = self.url.as_deref().unwrap_or_default().trim_end_matches('/');
        ["/admin", "/api"].iter().find_map(|path| url.strip_suffix(path)).unwrap_or(url)
    }

    pub(super) fn shown(&self) -> String {
        let machine = self.ssh.as_ref().map(|ssh| format!("{}:", ssh.0)).unwrap_or_default();
        match (&self.hosts_file, &self.url) {
            (Some(file), _) => format!("{machine}{}", file.display()),
            (None, url) => url.clone().unwrap_or_default(),
        }
    }

    pub(super) fn ssh_keys(&self) -> SshKeys<'_> {
        SshKeys {
            target: self.ssh.as_ref().map(|ssh| &ssh.0),
            key: self.ssh_key.as_deref(),
            known_hosts: self.ssh_known_hosts.as_deref(),
        }
    }

    pub(super) fn check_files(&self) -> Result<(), SettingsError> {
        let wrong = |key, problem: &str, hint: &str| Err(SettingsError::new(key, problem).hint(hint));
        if self.url.is_some() {
            return wrong("hosts_file", "`url` is there too", "write one of them: the API or the files");
        }
        if self.password.is_some() {
            return wrong("password", "files need none", "remove it, or set `url` instead of `hosts_file`");
        }
        if self.reload.is_empty() {
            let hint = "write `reload = [\"pihole\", \"restartdns\"]`";
            return wrong("reload", "Pi-hole reads its files only when its reload command runs", hint);
        }
        if self.hosts_file == self.cname_file {
            return wrong("cname_file", "it is `hosts_file` too", "give each a file of its own");
        }
        for (key, file) in [("hosts_file", &self.hosts_file), ("cname_file", &self.cname_file)] {
            let named = |file: &PathBuf| {
                file.is_absolute()
                    && file.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
            };
            if file.as_ref().is_some_and(|file| !named(file)) {
                return wrong(key, "it is no whole path of a file", "`/etc/pihole/custom.list`");
            }
        }
        self.ssh_keys().check()
    }
}
