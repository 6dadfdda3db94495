//! A directory with a JSON file for each zone. Another program reads them; only Netstead writes them.

use std::{io, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Name, ProviderError, RecordSet, RecordType, SetChange, Unit, UnitOutcome,
    WriteReply, WriteRequest, Zone, ZoneContent,
};
use netstead_settings::{BuildContext, Configured, Identity, Kind, SettingsError, table};
use netstead_wire::files;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::DnsKind;

/// The largest file that is read.
const MOST_OF_ZONE: u64 = 64 << 20;

pub const KIND: DnsKind = Kind::new::<Config>("jsonfile", "a directory of JSON files", capabilities);

table! {
    /// `[dns.NAME]` with `type = "jsonfile"`.
    pub struct Config {
        /// the directory with the files
        directory: PathBuf, required "\"/var/lib/zones\"";
        /// the zones to keep there
        zones: Vec<Name>, required "[\"home.example.com\"]";
    }
}

impl Configured<dyn DnsProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_path(&self.directory)
    }

    fn server(&self) -> String {
        self.directory.display().to_string()
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.zones.is_empty() {
            return Err(SettingsError::new("zones", "it is empty, so no name has a place"));
        }
        Ok(())
    }

    fn build(&self, _context: &BuildContext) -> Result<Arc<dyn DnsProvider>, SettingsError> {
        Ok(Arc::new(JsonFile { config: self.clone(), writing: Mutex::new(()) }))
    }
}

fn capabilities() -> Capabilities {
    Capabilities { fenced: false, keeps_foreign: false, ..Capabilities::all(RecordType::ALL) }
}

/// One directory.
#[derive(Debug)]
pub struct JsonFile {
    config: Config,
    /// One write at a time, from reading the file to replacing it.
    writing: Mutex<()>,
}

/// The content of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ZoneFile {
    /// One more after each change.
    serial: u32,
    sets: Vec<RecordSet>,
}

impl JsonFile {
    fn path(&self, zone: &Name) -> Result<PathBuf, ProviderError> {
        if self.config.zones.contains(zone) {
            return Ok(self.config.directory.join(format!("{zone}.json")));
        }
        Err(ProviderError::NoSuchZone { server: self.server(), zone: zone.clone() })
    }

    async fn load(&self, zone: &Name) -> Result<ZoneFile, ProviderError> {
        let path = self.path(zone)?;
        let text = match files::read_async(&path, MOST_OF_ZONE).await {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ZoneFile::default()),
            Err(error) => return Err(self.unreachable(&error)),
        };
        serde_json::from_slice(&text).map_err(|error| ProviderError::Malformed {
            server: self.server(),
            reason: format!("{}: {error}", path.display()),
        })
    }

    /// Replaces the file as a whole, so that a reader never sees half of it.
    async fn store(&self, zone: &Name, file: &ZoneFile) -> Result<(), ProviderError> {
        let path = self.path(zone)?;
        let fresh = path.with_extension("json.new");
        let text = serde_json::to_vec_pretty(file).map_err(|error| self.unreachable(&error.into()))?;
        tokio::fs::write(&fresh, text).await.map_err(|error| self.unreachable(&error))?;
        tokio::fs::rename(&fresh, &path).await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &io::Error) -> ProviderError {
        ProviderError::Unreachable { server: self.server(), reason: error.to_string() }
    }
}

#[async_trait]
impl DnsProvider for JsonFile {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.config.server()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        let near = |zone: &&Name| {
            domains.iter().any(|domain| zone.is_subdomain_of(domain) || domain.is_subdomain_of(zone))
        };
        let mut zones = Vec::new();
        for name in self.config.zones.iter().filter(near) {
            let sign = Some(self.load(name).await?.serial.into());
            zones.push(Zone { name: name.clone(), sign });
        }
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let file = self.load(zone).await?;
        Ok(ZoneContent { sign: Some(file.serial.into()), sets: file.sets })
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _writing = self.writing.lock().await;
        let old = self.load(zone).await?;
        let mut sets = old.sets.clone();
        let outcomes: Vec<_> = request.units.iter().map(|unit| apply(zone, &mut sets, unit)).collect();
        if sets != old.sets {
            // No server refuses a late write for us, so the engine is asked whether this node still leads.
            request.guard.permit().await?;
            self.store(zone, &ZoneFile { serial: old.serial.wrapping_add(1), sets }).await?;
        }
        Ok(outcomes.into())
    }
}

/// Applies a unit as a whole, or not at all.
fn apply(zone: &Name, sets: &mut Vec<RecordSet>, unit: &Unit) -> UnitOutcome {
    if unit.names().iter().any(|name| !name.is_subdomain_of(zone)) {
        return UnitOutcome::Rejected { reason: format!("`{}` is not in the zone `{zone}`", unit.name) };
    }
    if unit.changes.iter().all(|change| found(sets, change) == change.after.as_ref()) {
        // A write that is repeated.
        return UnitOutcome::Applied;
    }
    if unit.changes.iter().any(|change| found(sets, change) != change.before.as_ref()) {
        return UnitOutcome::Changed;
    }
    let mut changed = sets.clone();
    for change in &unit.changes {
        changed.retain(|set| Some(set) != change.before.as_ref());
        changed.extend(change.after.clone());
    }
    let own: Vec<RecordType> =
        changed.iter().filter(|set| set.name == unit.name).map(|set| set.kind).collect();
    if own.len() > 1 && own.contains(&RecordType::Cname) {
        let reason = format!("a CNAME cannot stand at `{}` beside other records", unit.name);
        return UnitOutcome::Rejected { reason };
    }
    *sets = changed;
    UnitOutcome::Applied
}

/// The set that the change is about, as it is now.
fn found<'a>(sets: &'a [RecordSet], change: &SetChange) -> Option<&'a RecordSet> {
    let wanted = change.before.as_ref().or(change.after.as_ref())?;
    sets.iter().find(|set| (&set.name, set.kind) == (&wanted.name, wanted.kind))
}
