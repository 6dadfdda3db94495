//! Pi-hole by its files, on its machine or through ssh: for version 5 without its web interface.
//!
//! The files are Pi-hole's own, and people change them too: lines of others stay as they are. Both files are read again when
//! `reload` runs, so all changes of a write count at once.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, DnsProvider, Name, ProviderError, RecordData, RecordSet, RecordType, Unit, UnitOutcome,
    WriteGuard, WriteOrder, WriteReply, WriteRequest, Zone, ZoneContent,
};

use super::{Config, KIND, TTL, capabilities, custom_list::CustomList};
use crate::{
    BuildContext, SettingsError,
    dns::{
        config_files::{ConfigFiles, ReplaceError, Replacement},
        per_record::{SharedListing, adjusted, judge},
        preconditions::{ServerRecords, wanted},
        tidy,
    },
};

/// The files of one Pi-hole.
#[derive(Debug)]
pub struct PiHoleFiles {
    hosts: Place,
    aliases: Option<Place>,
    files: ConfigFiles,
    writing: tokio::sync::Mutex<()>,
    /// The newest listing, which serves all domains.
    shared: Mutex<Option<SharedListing>>,
}

/// A file and its directory.
#[derive(Debug)]
struct Place {
    dir: PathBuf,
    name: String,
}

/// The records with the bytes they were read from.
struct Held {
    list: CustomList,
    written: [Option<Vec<u8>>; 2],
}

impl Place {
    fn of(file: &Path) -> Option<Self> {
        let (dir, name) = (file.parent()?, file.file_name()?.to_str()?);
        Some(Self { dir: dir.to_owned(), name: name.to_owned() })
    }
}

impl PiHoleFiles {
    /// Opens nothing yet: the files are looked at when they are read.
    pub fn open(config: &Config, context: &BuildContext) -> Result<Self, SettingsError> {
        config.check_files()?;
        let wrong = |key| SettingsError::new(key, "it is no path of a file");
        let hosts = config.hosts_file.as_deref().and_then(Place::of).ok_or_else(|| wrong("hosts_file"))?;
        let aliases = match &config.cname_file {
            Some(file) => Some(Place::of(file).ok_or_else(|| wrong("cname_file"))?),
            None => None,
        };
        let files = ConfigFiles::new("Pi-hole", config.shown(), config.ssh_keys(), context)
            .with_reload(&config.reload, &hosts.dir);
        let (writing, shared) = (tokio::sync::Mutex::default(), Mutex::default());
        Ok(Self { hosts, aliases, files, writing, shared })
    }

    /// With another pause between reloads: 3 s unless set.
    #[must_use]
    pub fn with_reload_pause(self, reload_pause: Duration) -> Self {
        Self { files: self.files.with_reload_pause(reload_pause), ..self }
    }

    fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.hosts).chain(&self.aliases)
    }

    async fn load(&self) -> Result<Held, ProviderError> {
        let places: Vec<(&Path, &str)> =
            self.places().map(|place| (place.dir.as_path(), place.name.as_str())).collect();
        let mut found = self.files.read_files(&places).await?.into_iter();
        let written = [found.next().flatten(), found.next().flatten()];
        let text = |bytes: &Option<Vec<u8>>, place: Option<&Place>| {
            String::from_utf8(bytes.clone().unwrap_or_default()).map_err(|_| {
                let name = place.map_or("it", |place| place.name.as_str());
                let reason = format!("`{name}` is no text in UTF-8; mend or remove the line");
                ProviderError::Malformed { server: self.server(), reason }
            })
        };
        let [hosts, aliases] = &written;
        let list = CustomList::read(&text(hosts, Some(&self.hosts))?, &text(aliases, self.aliases.as_ref())?);
        Ok(Held { list, written })
    }

    async fn list_all(&self, domains: &[Name]) -> Result<SharedListing, ProviderError> {
        Ok(SharedListing::new(domains, self.load().await?.list.listing(TTL)))
    }

    /// The files of a list that differ from what was read.
    fn replacements<'a>(&'a self, held: &'a Held, list: &CustomList) -> Vec<Replacement<'a>> {
        let texts = list.texts().into_iter();
        let all = self.places().zip(texts).zip(&held.written).map(|((place, new), old)| Replacement {
            dir: &place.dir,
            name: &place.name,
            old: old.as_deref(),
            // Pi-hole expects its own files to be there.
            new: new.or_else(|| old.as_ref().map(|_| Vec::new())),
        });
        all.filter(|one| one.old != one.new.as_deref()).collect()
    }

    fn forget_listing(&self) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Brings the records in line with a unit that will be written, for the units after it.
fn note(found: &mut ServerRecords, unit: &Unit) {
    for change in &unit.changes {
        let Some(some) = change.after.as_ref().or(change.before.as_ref()) else { continue };
        let key = (some.name.clone(), some.kind);
        match wanted(change) {
            Some(set) => found.sets.insert(key, set.clone()),
            None => found.sets.remove(&key),
        };
    }
}

#[async_trait]
impl DnsProvider for PiHoleFiles {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.files.shown().to_owned()
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = Capabilities { order: WriteOrder::Atomic, ..capabilities() };
        if self.aliases.is_none() {
            can.types.retain(|kind| *kind != RecordType::Cname);
        }
        can
    }

    /// Runs `reload` if a node died between a change of the files and the reload.
    async fn prepare(&self) -> Result<(), ProviderError> {
        self.files.prepare().await
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.files.finish_reload().await?;
        let held = self.list_all(domains).await?;
        let zones = held.zones();
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(zones)
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        let held = {
            let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_mut().and_then(|held| held.unread(zone))
        };
        match held {
            Some(held) => Ok(held.content(zone)),
            None => Ok(self.list_all(std::slice::from_ref(zone)).await?.content(zone)),
        }
    }

    async fn may_write(&self, _zone: &Name) -> Result<(), ProviderError> {
        let dirs: Vec<&Path> = self.places().map(|place| place.dir.as_path()).collect();
        self.files.may_write(&dirs).await
    }

    fn adjust(&self, set: RecordSet, _: &Capabilities) -> RecordSet {
        RecordSet { ttl: TTL, ..tidy(set) }
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        self.forget_listing();
        self.files.finish_reload().await?;
        let held = self.load().await?;
        let (mut list, mut found) = (held.list.clone(), held.list.listing(TTL).found());
        let can = self.capabilities();
        let mut outcomes = Vec::with_capacity(request.units.len());
        let mut written = Vec::new();
        for (index, unit) in request.units.iter().enumerate() {
            let unit = adjusted(unit, |set| self.adjust(set, &can));
            if let Some(outcome) = judge(&can, zone, &unit, &found) {
                outcomes.push(outcome);
                continue;
            }
            match list.apply(&unit, &found) {
                Ok(()) => {
                    note(&mut found, &unit);
                    written.push(index);
                    outcomes.push(UnitOutcome::NotTried);
                }
                Err(reason) => outcomes.push(UnitOutcome::Rejected { reason }),
            }
        }
        let replacements = self.replacements(&held, &list);
        let (outcome, stopped) = if replacements.is_empty() {
            (UnitOutcome::Applied, None)
        } else {
            request.guard.permit().await?;
            match self.files.replace(&replacements).await {
                Ok(()) => (UnitOutcome::Applied, None),
                Err(ReplaceError::Unknown(error)) => (UnitOutcome::Unknown, Some(error)),
                Err(ReplaceError::Failed(error)) => (UnitOutcome::NotTried, Some(error)),
                Err(ReplaceError::Refused(reason)) if written.len() == 1 => {
                    (UnitOutcome::Rejected { reason }, None)
                }
                Err(ReplaceError::Refused(reason)) => {
                    let reason = format!("none of {} changes is made: {reason}", written.len());
                    (UnitOutcome::NotTried, Some(self.files.unreachable(reason)))
                }
            }
        };
        for index in written {
            if let Some(slot) = outcomes.get_mut(index) {
                *slot = outcome.clone();
            }
        }
        Ok(WriteReply { outcomes, stopped })
    }

    async fn left_by(&self, tool: &str) -> Result<Vec<(Name, RecordData)>, ProviderError> {
        if tool != "dnsweaver" {
            return Ok(Vec::new());
        }
        Ok(self.load().await?.list.of_dnsweaver())
    }

    async fn move_from(
        &self,
        _tool: &str,
        values: &[(Name, RecordData)],
        guard: &WriteGuard,
    ) -> Result<(), ProviderError> {
        let _alone = self.writing.lock().await;
        self.forget_listing();
        let held = self.load().await?;
        let mut list = held.list.clone();
        list.absorb(values);
        let replacements = self.replacements(&held, &list);
        if replacements.is_empty() {
            return Ok(());
        }
        guard.permit().await?;
        self.files.replace(&replacements).await.map_err(|error| match error {
            ReplaceError::Refused(reason) => self.files.unreachable(reason),
            ReplaceError::Failed(error) | ReplaceError::Unknown(error) => error,
        })
    }
}
