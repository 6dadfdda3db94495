//! Compares the objects of a backend with the ledger. Differences are drift: they are shown, and a person decides.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::{
    Address, BackendObject, BackendPoolInfo, DrawState, GivenBack, Ident, Key, PoolBackend, Upstream,
};
use tracing::warn;

use super::{Backends, Described, DrawWorker, Finished, Stop, Target, asked_at::AskedAt};
use crate::book::{Book, OwnedObject};

/// Pages read of one list, at most.
const MOST_PAGES: usize = 10_000;

/// How a backend differs from the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftKind {
    /// The backend has no object for a claim.
    Missing,
    /// The backend has the address under another key.
    OtherKey,
    /// The address of a claim belongs to another account at the backend.
    OtherHolder,
    /// The backend has an object with our owner id that no claim knows.
    Unknown,
    /// The backend's answer could not be bound, and is kept.
    Stray,
    /// The backend describes the pool otherwise than when it was made.
    Description,
}

impl DriftKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::OtherKey => "other-key",
            Self::OtherHolder => "other-holder",
            Self::Unknown => "unknown",
            Self::Stray => "stray",
            Self::Description => "description",
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    pub kind: DriftKind,
    pub pool: Ident,
    /// The key of the claim, where there is one.
    pub key: Option<Key>,
    /// The key at the backend.
    pub remote_key: Option<String>,
    pub address: Option<Address>,
    /// The number of a stray, to give it back by.
    pub stray: Option<u64>,
    pub reason: String,
    pub seen: Timestamp,
}

/// A pool that is to be compared.
pub(super) struct Compare {
    pub pool: Ident,
    pub upstream: Upstream,
    pub backend: Arc<dyn PoolBackend>,
    /// As it was when everything was listed last; a list is left out if it is still so.
    pub known: Option<Known>,
    /// The number of the last comparison that was asked for.
    pub asked: u64,
    pub asked_at: Arc<AskedAt>,
    /// Duplicates are given back. Not in a ledger that is paused: what a backup does not know of may be in use.
    pub may_release: bool,
}

/// The state of both sides in short: the backend's sign of change, and a digest of the ledger's side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    sign: String,
    ours: u64,
}

pub(super) struct Comparison {
    pub known: Option<Known>,
    /// Something was seen that can be judged only when no request is on its way.
    pub unsettled: bool,
    info: BackendPoolInfo,
    /// None if nothing changed since the last comparison.
    drift: Option<Vec<Drift>>,
    at: Timestamp,
}

/// A comparison that ended.
pub(super) struct Compared {
    pub pool: Ident,
    pub backend: Ident,
    pub asked: u64,
    /// The ledger was not paused when the comparison began.
    pub may_release: bool,
    pub result: Result<Comparison, Stop>,
}

impl Comparison {
    /// Whether everything was listed.
    pub fn is_full(&self) -> bool {
        self.drift.is_some()
    }

    pub fn publish(self, backends: &Backends, pool: &Ident) {
        backends.shared.status.send_modify(|status| {
            status.described.insert(pool.clone(), Described { info: self.info, at: self.at });
            if let Some(drift) = self.drift {
                status.drift.insert(pool.clone(), drift);
            }
        });
    }
}

impl DrawWorker {
    pub(super) async fn compare(&self, what: Compare) -> Finished {
        let result = self.comparison(&what).await;
        let Compare { pool, upstream, asked, may_release, .. } = what;
        Finished::Compared(Box::new(Compared { pool, backend: upstream.backend, asked, may_release, result }))
    }

    async fn comparison(&self, what: &Compare) -> Result<Comparison, Stop> {
        let at = Target { backend: &*what.backend, pool: &what.upstream.pool, asked_at: &what.asked_at };
        let seen = self.ledger.clock().wall();
        let info = self.request(&at, "", what.backend.describe(at.pool)).await?;
        let sign = self.request(&at, "", what.backend.changed(at.pool)).await?;
        let before = self.ledger.book().owned_objects(&what.pool);
        let known = sign.map(|sign| Known { sign, ours: digest(&before, &info) });
        if known.is_some() && known == what.known {
            return Ok(Comparison { known, unsettled: false, info, drift: None, at: seen });
        }
        let mut objects: Vec<BackendObject> = Vec::new();
        let mut after: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let page = self.request(&at, "", what.backend.list(at.pool, "", after.as_deref())).await?;
            objects.extend(page.objects);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let unsettled = self.release_duplicates(&at, what, &before, &mut objects).await?;
        let drift = self.differences(what, &before, &objects, &info, seen);
        Ok(Comparison { known, unsettled, info, drift: Some(drift), at: seen })
    }

    /// Only what the ledger had before the list and has after it is compared: the rest was on its way.
    fn differences(
        &self,
        what: &Compare,
        before: &[OwnedObject],
        objects: &[BackendObject],
        info: &BackendPoolInfo,
        seen: Timestamp,
    ) -> Vec<Drift> {
        let book = self.ledger.book();
        let now: HashMap<Arc<str>, OwnedObject> =
            book.owned_objects(&what.pool).into_iter().map(|owned| (owned.key.clone(), owned)).collect();
        let mut by_key: HashMap<&str, Vec<Address>> = HashMap::new();
        for object in objects {
            by_key.entry(&object.key).or_default().push(object.address);
        }
        let by_address: HashMap<Address, &BackendObject> =
            objects.iter().map(|object| (object.address, object)).collect();
        let blank = Drift {
            kind: DriftKind::Missing,
            pool: what.pool.clone(),
            key: None,
            remote_key: None,
            address: None,
            stray: None,
            reason: String::new(),
            seen,
        };
        let mut drift = Vec::new();
        let lasting = before.iter().filter(|owned| now.get(&owned.key) == Some(owned));
        for owned in lasting {
            let Some(claim) = &owned.claim else { continue };
            if by_key.get(&*owned.key).is_some_and(|addresses| addresses.contains(&owned.address)) {
                continue;
            }
            let prefix = format!("{}/", what.upstream.owner);
            let (kind, reason) = match by_address.get(&owned.address) {
                Some(other) if other.key.starts_with(&prefix) => {
                    (DriftKind::OtherKey, format!("the backend has it under `{}`", other.key))
                }
                Some(other) => {
                    let holder = other.holder.as_deref().unwrap_or("another account");
                    (DriftKind::OtherHolder, format!("the backend has it for `{}` of `{holder}`", other.key))
                }
                None => (DriftKind::Missing, "the backend has no object for it".to_owned()),
            };
            drift.push(Drift {
                kind,
                key: Some(claim.key.clone()),
                remote_key: Some(owned.key.to_string()),
                address: Some(owned.address),
                reason,
                ..blank.clone()
            });
        }
        drift.extend(unknown_objects(&book, what, before, objects, &blank));
        if let Some(status) = book.pool(&what.pool)
            && (status.pool.spec.network != info.network
                || status.pool.spec.ranges != info.ranges
                || status.pool.spec.exclude != info.exclude)
        {
            let reason = "network or ranges of the backend's pool changed since the pool was made";
            drift.push(Drift { kind: DriftKind::Description, reason: reason.to_owned(), ..blank });
        }
        drift
    }

    /// Of several objects under one key the bound one counts. The others go back, once no request can be on its way, and are
    /// taken out of `objects`. True if that is still to come.
    async fn release_duplicates(
        &self,
        at: &Target<'_>,
        what: &Compare,
        before: &[OwnedObject],
        objects: &mut Vec<BackendObject>,
    ) -> Result<bool, Stop> {
        if !what.may_release {
            // The list that follows `resume` finds them again.
            return Ok(false);
        }
        let references: HashSet<&str> = objects.iter().map(|object| object.reference.as_str()).collect();
        let mut by_key: HashMap<&str, Vec<&BackendObject>> = HashMap::new();
        for object in objects.iter() {
            by_key.entry(&object.key).or_default().push(object);
        }
        let (mut unsettled, mut released) = (false, HashSet::new());
        for owned in before.iter().filter(|owned| owned.claim.is_some()) {
            let bound = references.contains(owned.reference.as_str());
            let extra = by_key.get(&*owned.key).into_iter().flatten();
            let extra: Vec<_> = extra.filter(|object| object.reference != owned.reference).collect();
            if !bound || extra.is_empty() {
                continue;
            }
            let asked = what.asked_at.last_claim(&owned.key);
            let on_its_way = self.now().saturating_sub(asked) < self.options.request_time;
            if on_its_way || self.backends.is_paused(&what.upstream.backend) {
                unsettled = true;
                continue;
            }
            for object in extra {
                let given = self.request(at, &owned.key, at.backend.release(at.pool, object)).await?;
                if given == GivenBack::Done {
                    warn!(pool = %what.pool, key = %object.key, address = %object.address,
                        "The backend had a second object under one key; it was given back.");
                }
                what.asked_at.note(&owned.key, asked);
                released.insert(object.reference.clone());
            }
        }
        objects.retain(|object| !released.contains(&object.reference));
        Ok(unsettled)
    }
}

/// Objects with our owner id that no claim knows: of this pool, or of a pool that does not exist any more.
fn unknown_objects(
    book: &Book,
    what: &Compare,
    before: &[OwnedObject],
    objects: &[BackendObject],
    blank: &Drift,
) -> Vec<Drift> {
    let (owner, pool) = (format!("{}/", what.upstream.owner), format!("{}/", what.pool));
    let siblings: Vec<&Ident> = book.upstreams().map(|(name, _)| name).collect();
    let just_known: HashSet<&str> = before.iter().map(|owned| &*owned.key).collect();
    let mut unknown = Vec::new();
    for object in objects {
        let Some(rest) = object.key.strip_prefix(&owner) else { continue };
        let own = rest.strip_prefix(&pool);
        let of_sibling =
            || rest.split_once('/').is_some_and(|(name, _)| siblings.iter().any(|s| s.as_str() == name));
        let known = book.uses_remote_key(&what.pool, &object.key) || just_known.contains(object.key.as_str());
        if known || (own.is_none() && of_sibling()) {
            continue;
        }
        let reason = match own {
            Some(_) => "no claim knows it; claim its key to adopt it",
            None => "no claim knows it, and its pool does not exist here; remove it at the backend",
        };
        unknown.push(Drift {
            kind: DriftKind::Unknown,
            key: own.and_then(|key| key.parse().ok()),
            remote_key: Some(object.key.clone()),
            address: Some(object.address),
            reason: reason.to_owned(),
            ..blank.clone()
        });
    }
    unknown
}

/// A digest of what the ledger has of a pool, and of how the backend describes it.
fn digest(owned: &[OwnedObject], info: &BackendPoolInfo) -> u64 {
    let mut hasher = DefaultHasher::new();
    for object in owned {
        (&*object.key, &object.reference, object.address.to_string(), object.claim.is_some())
            .hash(&mut hasher);
    }
    format!("{:?} {:?} {:?}", info.network, info.ranges, info.exclude).hash(&mut hasher);
    hasher.finish()
}

impl Backends {
    /// Forgets a difference that was repaired.
    pub(super) fn drop_drift(&self, pool: &Ident, remote_key: &str) {
        self.shared.status.send_modify(|status| {
            if let Some(drift) = status.drift.get_mut(pool) {
                drift.retain(|drift| drift.remote_key.as_deref() != Some(remote_key));
            }
        });
    }

    /// Everything that differs, with the answers that could not be bound.
    pub fn drift(&self, book: &Book, wall: Timestamp) -> Vec<Drift> {
        let mut drift: Vec<Drift> = self.status().drift.into_values().flatten().collect();
        for waiting in book.waitings() {
            let (Some(draw), Some(pool)) = (waiting.draw.as_deref(), waiting.pools.first()) else { continue };
            let DrawState::Stray { address, .. } = &draw.state else { continue };
            drift.push(Drift {
                kind: DriftKind::Stray,
                pool: pool.clone(),
                key: Some(waiting.key.clone()),
                remote_key: Some(draw.key.to_string()),
                address: Some(*address),
                stray: Some(waiting.seq),
                reason: draw.why.as_ref().map(|why| why.message.clone()).unwrap_or_default(),
                seen: wall,
            });
        }
        drift.sort_by(|one, other| (&one.pool, one.address).cmp(&(&other.pool, other.address)));
        drift
    }
}
