//! [`Mirror`]: a copy of a range, kept by watching it.
//!
//! With it a claim is one round trip. It may be behind: every write is conditional on the revisions that it was decided from, and
//! one that is refused brings what changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use netstead_wire::etcd::{
    Questions, WATCH,
    messages::{Event, KeyValue, WatchCreateRequest, WatchRequest, WatchResponse},
};
use tokio::time::{sleep, timeout};
use tonic::Streaming;

use super::{
    layout::{AddressList, RangeKeys, end_of, found, get_from},
    raw::{RangeType, RawAddress},
    session::{Session, locked},
    view::{Held, Info, RangeView, held, text},
};

/// Keys of one answer while it is loaded.
const PAGE: i64 = 2000;
/// Fixed and free addresses of a view. What is not in it is read.
const FREED: usize = 128;
const PAUSE: Duration = Duration::from_secs(1);
/// How long a copy that no claim asked for is kept.
const UNUSED: u32 = 600;

#[derive(Debug, Default)]
pub(super) struct Mirror {
    copy: Mutex<RangeCopy>,
}

#[derive(Debug, Default)]
struct RangeCopy {
    /// 0 while nothing is known.
    revision: i64,
    /// The newest revision of a change of the range.
    changed: i64,
    kind: Option<RangeType>,
    first: Option<RawAddress>,
    last: Option<RawAddress>,
    next: Option<(RawAddress, i64)>,
    names: HashMap<String, Held>,
    fixed: BTreeSet<RawAddress>,
    freed: BTreeMap<RawAddress, i64>,
    planned: BTreeMap<RawAddress, String>,
    /// Seconds since it was asked for last.
    unused: u32,
}

impl Session {
    /// Views of the ranges from their mirrors; `None` while one of them is not loaded.
    pub(super) fn mirrored(&self, ranges: &[RangeKeys], names: &[String]) -> Option<Vec<RangeView>> {
        if !self.options.mirror {
            return None;
        }
        ranges.iter().map(|keys| self.mirror(keys.prefix())?.view(keys, names)).collect()
    }

    fn mirror(&self, range: &str) -> Option<Arc<Mirror>> {
        locked(&self.mirrors).get(range).cloned()
    }

    /// A change of ours was written at this revision.
    pub(super) fn note_revision(&self, range: &str, revision: i64) {
        if let Some(mirror) = self.mirror(range) {
            let mut copy = locked(&mirror.copy);
            copy.changed = copy.changed.max(revision);
        }
    }

    /// The newest revision of a change of the range, once its mirror is loaded.
    pub(super) fn changed(&self, range: &str) -> Option<i64> {
        let mirror = self.mirror(range)?;
        let mut copy = locked(&mirror.copy);
        copy.unused = 0;
        (copy.revision > 0).then_some(copy.changed)
    }

    /// Begins a mirror of the range, if there is none.
    pub(super) fn follow(self: &Arc<Self>, range: &str) {
        if !self.options.mirror {
            return;
        }
        // One lock for the look and the insertion: two callers at once begin one mirror.
        let mirror = match locked(&self.mirrors).entry(range.to_owned()) {
            Entry::Occupied(_) => return,
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::default())),
        };
        let (session, range) = (Arc::downgrade(self), range.to_owned());
        tokio::spawn(async move { mirror.run(session, range).await });
    }
}

impl Mirror {
    /// Loads and follows the range until the session is dropped, or no claim needs it any more.
    async fn run(&self, session: Weak<Session>, range: String) {
        let keys = RangeKeys::new(&range);
        loop {
            let answers = match session.upgrade() {
                Some(session) => self.begin(&session, &keys).await,
                None => return,
            };
            if let Some(answers) = answers {
                self.receive(answers, &session, &keys).await;
            }
            let unused = self.idle();
            *locked(&self.copy) = RangeCopy { unused, ..RangeCopy::default() };
            let Some(session) = session.upgrade() else { return };
            if self.idle() >= UNUSED {
                locked(&session.mirrors).remove(&range);
                return;
            }
            drop(session);
            sleep(PAUSE).await;
            self.note_idle();
        }
    }

    fn idle(&self) -> u32 {
        locked(&self.copy).unused
    }

    fn note_idle(&self) {
        let mut copy = locked(&self.copy);
        copy.unused = copy.unused.saturating_add(1);
    }

    /// Loads the range at one revision, and opens a watch after it.
    async fn begin(&self, session: &Session, keys: &RangeKeys) -> Option<Streaming<WatchResponse>> {
        let at = session.client.current_endpoint();
        // The watch begins before the loading ends, so nothing is missed.
        let first = session.read(vec![get_from(&keys.info(), keys.info(), 4, false)]).await.ok()?;
        let revision = first.revision;
        let prefix = keys.prefix().as_bytes().to_vec();
        let create = WatchCreateRequest {
            range_end: end_of(&prefix),
            key: prefix,
            start_revision: revision.saturating_add(1),
        };
        let questions = Questions::one(WatchRequest { create: Some(create) });
        let answers = session.client.stream(at, WATCH, questions).await.ok()?;
        let mut copy = RangeCopy { unused: self.idle(), ..RangeCopy::default() };
        for part in [keys.info(), keys.data()] {
            let mut start = part.clone();
            loop {
                let answer = session.read(vec![get_from(&part, start, PAGE, false)]).await.ok()?;
                let page = found(answer.responses.into_iter().next());
                let last = page.kvs.last().map(|kv| kv.key.clone());
                for kv in page.kvs {
                    copy.put(keys, kv);
                }
                let (true, Some(last)) = (page.more, last) else { break };
                start = [last.as_slice(), &[0]].concat();
            }
        }
        copy.revision = revision;
        *locked(&self.copy) = copy;
        Some(answers)
    }

    async fn receive(
        &self,
        mut answers: Streaming<WatchResponse>,
        session: &Weak<Session>,
        keys: &RangeKeys,
    ) {
        loop {
            let answer = timeout(PAUSE, answers.message()).await;
            if session.strong_count() == 0 || self.idle() >= UNUSED {
                return;
            }
            match answer {
                Err(_) => self.note_idle(),
                Ok(Ok(Some(answer))) if !answer.canceled && answer.compact_revision == 0 => {
                    let mut copy = locked(&self.copy);
                    for event in answer.events {
                        copy.apply(keys, event);
                    }
                }
                Ok(_) => return,
            }
        }
    }

    fn view(&self, keys: &RangeKeys, names: &[String]) -> Option<RangeView> {
        let mut copy = locked(&self.copy);
        copy.unused = 0;
        if copy.revision == 0 {
            return None;
        }
        let (next, next_revision) = copy.next.clone()?;
        let info = Info { kind: copy.kind?, first: copy.first.clone()?, last: copy.last.clone()? };
        let freed = copy.freed.iter().filter(|(address, _)| info.contains(address)).take(FREED);
        // A run of fixed addresses right behind the pointer, and one more.
        let mut fixed = BTreeSet::new();
        let mut fixed_to = None;
        for address in copy.fixed.range(next.clone()..) {
            fixed.insert(address.clone());
            if fixed.len() > FREED * 8 {
                fixed_to = Some(address.clone());
                break;
            }
        }
        Some(RangeView {
            keys: keys.clone(),
            freed: freed.map(|(address, revision)| (address.clone(), *revision)).collect(),
            info,
            next,
            next_revision,
            fixed,
            fixed_to,
            planned: copy.planned.clone(),
            names: names
                .iter()
                .filter_map(|name| Some((name.clone(), copy.names.get(name)?.clone())))
                .collect(),
            revision: copy.revision,
        })
    }
}

impl RangeCopy {
    fn apply(&mut self, keys: &RangeKeys, event: Event) {
        let Some(kv) = event.kv else { return };
        self.revision = self.revision.max(kv.mod_revision);
        if event.kind == 0 {
            self.put(keys, kv);
        } else {
            self.changed = self.changed.max(kv.mod_revision);
            self.remove(keys, &kv.key);
        }
    }

    fn put(&mut self, keys: &RangeKeys, kv: KeyValue) {
        self.changed = self.changed.max(kv.mod_revision);
        match Self::part(keys, &kv.key) {
            Part::Type => {
                self.kind = match kv.value.as_slice() {
                    b"ipv4" => Some(RangeType::Ipv4),
                    b"mac" => Some(RangeType::Mac),
                    _ => None,
                };
            }
            Part::First => self.first = Some(RawAddress::new(kv.value)),
            Part::Last => self.last = Some(RawAddress::new(kv.value)),
            Part::Next if kv.value.is_empty() => self.next = None,
            Part::Next => self.next = Some((RawAddress::new(kv.value), kv.mod_revision)),
            Part::Name(name) => drop(self.names.insert(name, held(kv))),
            Part::List(AddressList::Hardcoded, address) => {
                self.fixed.insert(address);
            }
            Part::List(AddressList::Deleted, address) => {
                self.freed.insert(address, kv.mod_revision);
            }
            Part::List(AddressList::Planned, address) => {
                self.planned.insert(address, text(&kv.value));
            }
            Part::List(AddressList::Generated, _) | Part::Other => {}
        }
    }

    fn remove(&mut self, keys: &RangeKeys, key: &[u8]) {
        match Self::part(keys, key) {
            Part::Type => self.kind = None,
            Part::First => self.first = None,
            Part::Last => self.last = None,
            Part::Next => self.next = None,
            Part::Name(name) => drop(self.names.remove(&name)),
            Part::List(AddressList::Hardcoded, address) => {
                self.fixed.remove(&address);
            }
            Part::List(AddressList::Deleted, address) => {
                self.freed.remove(&address);
            }
            Part::List(AddressList::Planned, address) => drop(self.planned.remove(&address)),
            Part::List(AddressList::Generated, _) | Part::Other => {}
        }
    }

    fn part(keys: &RangeKeys, key: &[u8]) -> Part {
        let is = |other: Vec<u8>| key == other;
        if is(keys.kind()) {
            return Part::Type;
        } else if is(keys.first()) {
            return Part::First;
        } else if is(keys.last()) {
            return Part::Last;
        } else if is(keys.next()) {
            return Part::Next;
        } else if let Some(name) = key.strip_prefix(keys.names().as_slice()) {
            return Part::Name(text(name));
        }
        for list in
            [AddressList::Hardcoded, AddressList::Deleted, AddressList::Planned, AddressList::Generated]
        {
            if let Some(address) = key.strip_prefix(keys.list(list).as_slice()) {
                return Part::List(list, RawAddress::new(address));
            }
        }
        Part::Other
    }
}

/// The meaning of a key of a range.
enum Part {
    Type,
    First,
    Last,
    Next,
    Name(String),
    List(AddressList, RawAddress),
    Other,
}
