//! dnsmasq, by files of its own in the directories that dnsmasq reads, on this machine or another behind ssh.
//!
//! - `hostsdir`: addresses. dnsmasq notices a changed file by itself.
//! - `conf_dir`: aliases, texts, services, pointers and wildcards. dnsmasq reads it when it starts, so `reload` restarts it;
//!   SIGHUP is not enough.
//!
//! In each directory Netstead writes one file, always as a whole. Files of others are read, so that their records are known,
//! and never changed. The one exception is the file of dnsweaver (`dnsweaver_file`): `adopt --from dnsweaver` moves its records to
//! our files. Values that were adopted otherwise lose their lines there when they change. The file is removed with its last record.
//!
//! - `config_files.rs`: files, commands and restarts. `dnsmasq/lines.rs`: the syntax of both kinds of file.
//!   `dnsmasq/records.rs`: all records with their files. `dnsmasq/unit_plan.rs`, `dnsmasq/write.rs`: a write and its order.

mod lines;
mod records;
mod unit_plan;
mod write;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Marks, Name, ProviderError, RecordData, RecordSet, RecordType, TtlSupport,
    WriteGuard, WriteOrder, WriteReply, WriteRequest, Zone, ZoneContent, ZoneSource,
};
use netstead_settings::{Configured, Identity, Kind, Parsed, table};
use netstead_wire::ssh::SshTarget;

use self::records::{Records, TTL, sign_of};
use super::{
    DnsKind,
    config_files::{ConfigFiles, SshKeys},
    tidy,
};
use crate::{BuildContext, SettingsError};

/// How long the files that `zones` read serve the reads that follow it.
const SHARED: Duration = Duration::from_secs(10);

pub const KIND: DnsKind =
    Kind::new::<Config>("dnsmasq", "dnsmasq, by files in its directories, here or through ssh", || {
        capabilities(true, true)
    });

table! {
    /// `[dns.NAME]` with `type = "dnsmasq"`.
    pub struct Config {
        /// the directory that dnsmasq's `hostsdir` names: A and AAAA, which dnsmasq takes up by itself
        hostsdir: Option<PathBuf>, unset;
        /// the directory that dnsmasq's `conf-dir` names: all other types and wildcards; addresses too if there is no
        /// `hostsdir`
        conf_dir: Option<PathBuf>, unset;
        /// the command, as a list of words, that restarts dnsmasq after a change in `conf_dir`; a mere reload (SIGHUP) is not enough
        reload: Vec<String>, unset;
        /// the machine that dnsmasq runs on: `ssh://USER@HOST`, through the `ssh` program of this machine
        ssh: Option<Parsed<SshTarget>>, unset "this machine";
        /// the key to log in with
        ssh_key: Option<PathBuf>, unset "those that ssh finds";
        /// the only file with host keys to trust
        ssh_known_hosts: Option<PathBuf>, unset "those that ssh finds";
        /// the file of dnsweaver in `conf_dir`: `netstead adopt --from dnsweaver` moves its records to Netstead's own file
        dnsweaver_file: String, default "dnsweaver.conf";
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        let dirs = [&self.hostsdir, &self.conf_dir].into_iter().flatten();
        dirs.fold(Identity::default(), |identity, dir| match &self.ssh {
            Some(ssh) => identity.and_url(&ssh.to_string(), &dir.display().to_string()),
            None => identity.and_path(dir),
        })
    }

    fn server(&self) -> String {
        let dirs = [&self.hostsdir, &self.conf_dir].into_iter().flatten();
        let dirs: Vec<String> = dirs.map(|dir| dir.display().to_string()).collect();
        let machine = self.ssh.as_ref().map(|ssh| format!("{}:", ssh.0)).unwrap_or_default();
        format!("{machine}{}", dirs.join(" and "))
    }

    fn check(&self) -> Result<(), SettingsError> {
        let wrong = |key, problem: &str, hint: &str| Err(SettingsError::new(key, problem).hint(hint));
        if self.hostsdir.is_none() && self.conf_dir.is_none() {
            let hint = "set `hostsdir`, `conf_dir` or both, as in dnsmasq's own configuration";
            return wrong("hostsdir", "there is no directory to write to", hint);
        }
        if self.hostsdir == self.conf_dir {
            return wrong("conf_dir", "it is `hostsdir` too", "give each a directory of its own");
        }
        if self.conf_dir.is_some() && self.reload.is_empty() {
            let problem = "`conf_dir` needs it: dnsmasq reads that directory only when it starts";
            return wrong("reload", problem, "write `reload = [\"systemctl\", \"restart\", \"dnsmasq\"]`");
        }
        if self.conf_dir.is_none() && !self.reload.is_empty() {
            return wrong("reload", "only `conf_dir` needs it", "remove it, or set `conf_dir`");
        }
        self.ssh_keys().check()?;
        let file = &self.dnsweaver_file;
        if file.is_empty() || file.contains('/') || file.starts_with('.') || file == records::CONF_FILE {
            return wrong("dnsweaver_file", "it is no name of a file of dnsweaver", "`dnsweaver.conf`");
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(Dnsmasq::open(self.clone(), context)?))
    }
}

impl Config {
    /// With no directory yet.
    pub fn new() -> Self {
        Self {
            hostsdir: None,
            conf_dir: None,
            reload: Vec::new(),
            ssh: None,
            ssh_key: None,
            ssh_known_hosts: None,
            dnsweaver_file: "dnsweaver.conf".to_owned(),
        }
    }

    fn ssh_keys(&self) -> SshKeys<'_> {
        SshKeys {
            target: self.ssh.as_ref().map(|ssh| &ssh.0),
            key: self.ssh_key.as_deref(),
            known_hosts: self.ssh_known_hosts.as_deref(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

fn capabilities(hosts: bool, conf: bool) -> Capabilities {
    let types: &[RecordType] = if conf {
        &[
            RecordType::A,
            RecordType::Aaaa,
            RecordType::Cname,
            RecordType::Ptr,
            RecordType::Srv,
            RecordType::Txt,
        ]
    } else {
        &[RecordType::A, RecordType::Aaaa]
    };
    Capabilities {
        marks: Marks::None,
        fenced: false,
        order: if hosts && conf { WriteOrder::InPlace } else { WriteOrder::Atomic },
        ttl: TtlSupport::None(TTL),
        zones: ZoneSource::Domains,
        ..Capabilities::all(types)
    }
}

/// One dnsmasq.
pub struct Dnsmasq {
    config: Config,
    files: ConfigFiles,
    context: BuildContext,
    writing: tokio::sync::Mutex<()>,
    shared: Mutex<Option<SharedRecords>>,
}

/// The records of all domains at one time.
#[derive(Clone)]
struct SharedRecords {
    at: Duration,
    domains: Vec<Name>,
    records: Arc<Records>,
}

impl Dnsmasq {
    /// As [`Dnsmasq::open`], with this machine's clock and environment.
    pub fn new(config: Config) -> Result<Self, SettingsError> {
        Self::open(config, &super::plain_context(KIND.name))
    }

    /// Opens nothing yet: directories are looked at when they are read.
    pub fn open(config: Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check()?;
        let mut files = ConfigFiles::new("dnsmasq", config.server(), config.ssh_keys(), context);
        if let Some(dir) = &config.conf_dir {
            files = files.with_reload(&config.reload, dir);
        }
        let (context, writing, shared) = (context.clone(), tokio::sync::Mutex::default(), Mutex::default());
        Ok(Self { config, files, context, writing, shared })
    }

    /// With another pause between restarts: 3 s unless set.
    #[must_use]
    pub fn with_reload_pause(self, reload_pause: Duration) -> Self {
        Self { files: self.files.with_reload_pause(reload_pause), ..self }
    }

    fn directories(&self) -> impl Iterator<Item = &Path> {
        [&self.config.hostsdir, &self.config.conf_dir].into_iter().flatten().map(PathBuf::as_path)
    }

    async fn load(&self) -> Result<Records, ProviderError> {
        let dirs: Vec<&Path> = self.directories().collect();
        let mut files = self.files.read_directories(&dirs).await?.into_iter();
        let hosts = if self.config.hostsdir.is_some() { files.next() } else { None };
        let conf = if self.config.conf_dir.is_some() { files.next() } else { None };
        let (hosts, conf) = (hosts.unwrap_or_default(), conf.unwrap_or_default());
        Ok(Records::read(&hosts, &conf, &self.config.dnsweaver_file))
    }

    async fn read_for(&self, domains: &[Name]) -> Result<SharedRecords, ProviderError> {
        let records = Arc::new(self.load().await?);
        Ok(SharedRecords { at: self.context.clock.monotonic(), domains: domains.to_vec(), records })
    }
}

impl fmt::Debug for Dnsmasq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dnsmasq({})", self.files.shown())
    }
}

impl SharedRecords {
    /// The records that belong to `zone` and to no domain below it.
    fn content(&self, zone: &Name) -> ZoneContent {
        let zone_of = |name: &Name| {
            let above = std::iter::successors(Some(name.clone()), Name::parent);
            above.into_iter().find(|above| self.domains.contains(above))
        };
        let part = self.records.part(|name| zone_of(name).as_ref() == Some(zone));
        ZoneContent { sign: Some(sign_of(&part)), sets: part.into_sets() }
    }
}

/// A set as dnsmasq answers with it.
fn adjusted(set: RecordSet) -> RecordSet {
    RecordSet { ttl: TTL, ..set }
}

#[async_trait]
impl DnsProvider for Dnsmasq {
    fn kind(&self) -> &'static str {
        "dnsmasq"
    }

    fn server(&self) -> String {
        self.files.shown().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(self.config.hostsdir.is_some(), self.config.conf_dir.is_some())
    }

    /// Restarts dnsmasq if a node died between a change of its files and the restart.
    async fn prepare(&self) -> Result<(), ProviderError> {
        self.files.prepare().await
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.files.finish_reload().await?;
        let held = self.read_for(domains).await?;
        let zone = |name: &Name| Zone { name: name.clone(), sign: held.content(name).sign };
        let zones = domains.iter().map(zone).collect();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let held = self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = self.context.clock.monotonic();
        let fresh =
            |held: &SharedRecords| now.saturating_sub(held.at) < SHARED && held.domains.contains(zone);
        match held.filter(fresh) {
            Some(held) => Ok(held.content(zone)),
            None => Ok(self.read_for(std::slice::from_ref(zone)).await?.content(zone)),
        }
    }

    async fn may_write(&self, _zone: &Name) -> Result<(), ProviderError> {
        let dirs: Vec<&Path> = self.directories().collect();
        self.files.may_write(&dirs).await
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        adjusted(tidy(set))
    }

    fn cannot_hold(&self, name: &Name, data: &RecordData) -> Option<String> {
        self.layout().dir_of(name, data).err()
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.files.finish_reload().await?;
        let records = self.load().await?;
        self.apply(zone, request, records).await
    }

    async fn left_by(&self, tool: &str) -> Result<Vec<(Name, RecordData)>, ProviderError> {
        if tool != "dnsweaver" {
            return Ok(Vec::new());
        }
        Ok(self.load().await?.dnsweaver.records())
    }

    async fn move_from(
        &self,
        _tool: &str,
        values: &[(Name, RecordData)],
        guard: &WriteGuard,
    ) -> Result<(), ProviderError> {
        let _alone = self.writing.lock().await;
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.absorb(values, guard).await
    }
}
