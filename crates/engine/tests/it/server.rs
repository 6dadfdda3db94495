//! A DNS server in memory that can be told to misbehave.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Capabilities, ChangeSign, DnsProvider, ManualClock, Marks, Name, ProviderError, RecordData, RecordSet,
    RecordType, SetChange, Unit, UnitOutcome, WriteOrder, WriteReply, WriteRequest, Zone, ZoneContent,
};
use tokio::sync::Notify;

use crate::world::{data, name};

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a way to misbehave")]
pub struct Server {
    pub zones: Mutex<BTreeMap<Name, HeldZone>>,
    pub writes: AtomicUsize,
    pub reads: AtomicUsize,
    /// How often its session was given back.
    pub closes: AtomicUsize,
    pub fenced: bool,
    /// Zones come into being with their first record.
    pub makes_zones: AtomicBool,
    /// Every call waits until this is false.
    pub hangs: AtomicBool,
    /// The next call fails as a bug would.
    pub panics: AtomicBool,
    /// Writes wait for ever.
    pub swallows: AtomicBool,
    /// Writes have arrived, and wait until this is false.
    pub holds: AtomicBool,
    pub goes_on: Notify,
    /// The error that the next calls answer.
    pub fails: Mutex<Option<ProviderError>>,
    /// The write takes effect, and its answer is lost.
    pub loses_answer: AtomicBool,
    /// Names it will not have.
    pub rejects: Mutex<BTreeSet<Name>>,
    /// It hands out no whole zones; the names it was asked for, read by read.
    pub by_name: Option<Mutex<Vec<BTreeSet<Name>>>>,
    /// A value that another tool puts there right before the next write.
    pub intruder: Mutex<Option<(Name, RecordData)>>,
    /// By how much the last write moved each serial, if it says so.
    pub moved: Mutex<BTreeMap<Name, u32>>,
    pub tells_moves: bool,
    /// It takes one unit after the other, each in this time on the clock of the engine.
    pub one_by_one: Option<(ManualClock, Duration)>,
    /// The next request for this name is sent and stays on its way until `goes_on`. Then it takes effect, whatever is there.
    pub stalls: Mutex<Option<Name>>,
    /// So many more units are taken before it asks to slow down.
    pub patience: Mutex<Option<usize>>,
    /// The pause that it asks for then.
    pub retry_after: Option<Duration>,
    /// How often it asked to slow down.
    pub refusals: AtomicUsize,
    /// It says nothing about changes.
    pub signless: bool,
    /// Answers to these units are lost; the change takes effect.
    pub loses: Mutex<BTreeSet<Name>>,
    /// It can be asked for single names, and was, so often.
    pub can_read_names: bool,
    pub name_reads: AtomicUsize,
    /// The name of its type, and where it can hold marks.
    pub kind: &'static str,
    pub marks: Marks,
    /// How often it was asked what it can do.
    pub asked: AtomicUsize,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeldZone {
    pub serial: u32,
    pub sets: BTreeMap<(Name, RecordType), RecordSet>,
    pub fence: (u64, u64),
}

impl Server {
    pub fn new(zones: &[&str]) -> Self {
        let held = |zone: &&str| (name(zone), HeldZone { serial: 1, ..HeldZone::default() });
        Self {
            zones: Mutex::new(zones.iter().map(held).collect()),
            writes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            closes: AtomicUsize::new(0),
            fenced: true,
            makes_zones: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            panics: AtomicBool::new(false),
            swallows: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            goes_on: Notify::new(),
            fails: Mutex::new(None),
            loses_answer: AtomicBool::new(false),
            rejects: Mutex::default(),
            by_name: None,
            intruder: Mutex::default(),
            moved: Mutex::default(),
            tells_moves: true,
            one_by_one: None,
            stalls: Mutex::default(),
            patience: Mutex::default(),
            retry_after: Some(Duration::from_secs(90)),
            refusals: AtomicUsize::new(0),
            signless: false,
            loses: Mutex::default(),
            can_read_names: false,
            name_reads: AtomicUsize::new(0),
            kind: "fake",
            marks: Marks::Txt,
            asked: AtomicUsize::new(0),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, HeldZone>> {
        self.zones.lock().unwrap()
    }

    pub fn has(&self, at: &str, text: &str) -> bool {
        let value = data(text);
        let key = (name(at), value.kind());
        self.lock().values().any(|zone| zone.sets.get(&key).is_some_and(|set| set.values.contains(&value)))
    }

    /// A value of another tool.
    pub fn add(&self, at: &str, text: &str) {
        put(&mut self.lock(), &name(at), data(text));
    }

    pub fn remove(&self, at: &str, text: &str) {
        let value = data(text);
        for zone in self.lock().values_mut() {
            let key = (name(at), value.kind());
            if let Some(set) = zone.sets.get_mut(&key) {
                set.values.remove(&value);
                if set.values.is_empty() {
                    zone.sets.remove(&key);
                }
                zone.serial += 1;
            }
        }
    }

    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn sign(&self, serial: u32) -> Option<ChangeSign> {
        (!self.signless).then(|| serial.into())
    }

    /// Takes the units of a request one after the other, as far as guard and patience go.
    async fn write_one_by_one(&self, zone: &Name, request: &WriteRequest) -> WriteReply {
        let (mut outcomes, mut stopped) = (Vec::new(), None);
        for unit in &request.units {
            stopped = request.guard.permit().await.err();
            if let Some(left) = &mut *self.patience.lock().unwrap() {
                if let Some(fewer) = left.checked_sub(1) {
                    *left = fewer;
                } else {
                    self.refusals.fetch_add(1, Ordering::SeqCst);
                    let retry_after = self.retry_after;
                    stopped = Some(ProviderError::Busy { server: "fake".into(), retry_after });
                }
            }
            if stopped.is_some() {
                break;
            }
            self.writes.fetch_add(1, Ordering::SeqCst);
            if let Some((clock, takes)) = &self.one_by_one {
                clock.advance(*takes);
            }
            let stalled = self.stalls.lock().unwrap().take_if(|name| *name == unit.name).is_some();
            let outcome = if stalled {
                self.goes_on.notified().await;
                overwrite(self.lock().get_mut(zone).unwrap(), unit)
            } else {
                apply_unit(self.lock().get_mut(zone).unwrap(), unit)
            };
            let lost = self.loses.lock().unwrap().remove(&unit.name);
            outcomes.push(if lost { UnitOutcome::Unknown } else { outcome });
        }
        outcomes.resize(request.units.len(), UnitOutcome::NotTried);
        WriteReply { outcomes, stopped }
    }

    async fn answer(&self) -> Result<(), ProviderError> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "a bug in a provider");
        while self.hangs.load(Ordering::SeqCst) {
            self.goes_on.notified().await;
        }
        match self.fails.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// Applies a unit as a server does that looks at nothing before it.
fn overwrite(zone: &mut HeldZone, unit: &Unit) -> UnitOutcome {
    for change in &unit.changes {
        if let Some(set) = change.before.as_ref().or(change.after.as_ref()) {
            zone.sets.remove(&(set.name.clone(), set.kind));
        }
        if let Some(set) = &change.after {
            zone.sets.insert((set.name.clone(), set.kind), set.clone());
        }
    }
    zone.serial += 1;
    UnitOutcome::Applied
}

fn put(zones: &mut BTreeMap<Name, HeldZone>, at: &Name, value: RecordData) {
    let zone = zones
        .iter_mut()
        .filter(|(zone, _)| at.is_subdomain_of(zone))
        .max_by_key(|(zone, _)| zone.as_str().len());
    let (_, zone) = zone.unwrap();
    let kind = value.kind();
    let set =
        zone.sets.entry((at.clone(), kind)).or_insert_with(|| RecordSet::new(at.clone(), kind, 300, []));
    set.values.insert(value);
    zone.serial += 1;
}

fn key_of_change(change: &SetChange) -> (Name, RecordType) {
    let set = change.before.as_ref().or(change.after.as_ref()).unwrap();
    (set.name.clone(), set.kind)
}

fn apply_unit(zone: &mut HeldZone, unit: &Unit) -> UnitOutcome {
    let is = |change: &SetChange, wanted: &Option<RecordSet>| {
        zone.sets.get(&key_of_change(change)) == wanted.as_ref()
    };
    if unit.changes.iter().all(|change| is(change, &change.after)) {
        return UnitOutcome::Applied;
    }
    if !unit.changes.iter().all(|change| is(change, &change.before)) {
        return UnitOutcome::Changed;
    }
    for change in &unit.changes {
        match &change.after {
            Some(set) => zone.sets.insert(key_of_change(change), set.clone()),
            None => zone.sets.remove(&key_of_change(change)),
        };
    }
    zone.serial += 1;
    UnitOutcome::Applied
}

#[async_trait]
impl DnsProvider for Server {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn server(&self) -> String {
        "fake".into()
    }

    fn capabilities(&self) -> Capabilities {
        let order = if self.one_by_one.is_some() { WriteOrder::InPlace } else { WriteOrder::Atomic };
        self.asked.fetch_add(1, Ordering::SeqCst);
        let signs_changes = !self.signless;
        Capabilities {
            fenced: self.fenced,
            marks: self.marks,
            order,
            signs_changes,
            ..Capabilities::all(RecordType::ALL)
        }
    }

    async fn close(&self) {
        self.closes.fetch_add(1, Ordering::SeqCst);
    }

    fn zone_of(&self, name: &Name) -> Option<Name> {
        self.makes_zones().then(|| name.clone())
    }

    fn makes_zones(&self) -> bool {
        self.makes_zones.load(Ordering::SeqCst)
    }

    async fn zones(&self, domains: &[Name]) -> Result<Vec<Zone>, ProviderError> {
        self.answer().await?;
        let near =
            |zone: &Name| domains.iter().any(|one| zone.is_subdomain_of(one) || one.is_subdomain_of(zone));
        let zones = self.lock();
        let zones = zones.iter().filter(|(name, _)| near(name));
        Ok(zones.map(|(name, held)| Zone { name: name.clone(), sign: self.sign(held.serial) }).collect())
    }

    async fn read(&self, zone: &Name) -> Result<ZoneContent, ProviderError> {
        self.answer().await?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.moved.lock().unwrap().remove(zone);
        let zones = self.lock();
        let held =
            zones.get(zone).ok_or(ProviderError::NoSuchZone { server: "fake".into(), zone: zone.clone() })?;
        Ok(ZoneContent { sign: self.sign(held.serial), sets: held.sets.values().cloned().collect() })
    }

    fn reads_by_name(&self) -> bool {
        self.by_name.is_some()
    }

    fn can_read_names(&self) -> bool {
        self.reads_by_name() || self.can_read_names
    }

    async fn read_names(&self, zone: &Name, names: &BTreeSet<Name>) -> Result<ZoneContent, ProviderError> {
        if self.can_read_names && !names.is_empty() {
            self.name_reads.fetch_add(1, Ordering::SeqCst);
            let held = self.lock().get(zone).cloned().unwrap();
            let sets = held.sets.into_values().filter(|set| names.contains(&set.name)).collect();
            return Ok(ZoneContent { sign: self.sign(held.serial), sets });
        }
        let mut content = self.read(zone).await?;
        if let Some(asked) = &self.by_name {
            asked.lock().unwrap().push(names.clone());
            content.sets.retain(|set| names.contains(&set.name));
        }
        Ok(content)
    }

    async fn fence(&self, zone: &Name, _owner: &str) -> Result<Option<(u64, u64)>, ProviderError> {
        self.answer().await?;
        Ok(self.lock().get(zone).map(|held| held.fence).filter(|fence| self.fenced && *fence > (0, 0)))
    }

    async fn write(&self, zone: &Name, request: &WriteRequest) -> Result<WriteReply, ProviderError> {
        self.answer().await?;
        if self.one_by_one.is_some() {
            return Ok(self.write_one_by_one(zone, request).await);
        }
        if !self.fenced {
            request.guard.permit().await?;
        }
        self.writes.fetch_add(1, Ordering::SeqCst);
        if self.swallows.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        while self.holds.load(Ordering::SeqCst) {
            self.goes_on.notified().await;
        }
        if let Some((at, value)) = self.intruder.lock().unwrap().take() {
            put(&mut self.lock(), &at, value);
        }
        let mut zones = self.lock();
        let held = zones.entry(zone.clone()).or_default();
        let fence = (request.fence.epoch, request.fence.generation);
        if self.fenced && fence < held.fence {
            return Err(ProviderError::Late { server: "fake".into(), zone: zone.clone() });
        }
        held.fence = fence;
        let rejects = self.rejects.lock().unwrap().clone();
        let before = held.serial;
        let outcomes = request.units.iter().map(|unit| {
            if rejects.contains(&unit.name) {
                return UnitOutcome::Rejected { reason: "not here".into() };
            }
            apply_unit(held, unit)
        });
        let outcomes: Vec<UnitOutcome> = outcomes.collect();
        *self.moved.lock().unwrap().entry(zone.clone()).or_default() += held.serial - before;
        if self.loses_answer.swap(false, Ordering::SeqCst) {
            return Err(ProviderError::Unknown {
                server: "fake".into(),
                reason: "the line went dead".into(),
            });
        }
        Ok(outcomes.into())
    }

    fn moved_alone(&self, zone: &Name, before: &ChangeSign, after: &ChangeSign) -> bool {
        let (before, after) = (before.serial().unwrap(), after.serial().unwrap());
        let mut moved = self.moved.lock().unwrap();
        let alone = self.tells_moves && moved.get(zone).is_some_and(|moved| before + moved == after);
        if alone {
            moved.remove(zone);
        }
        alone
    }
}
