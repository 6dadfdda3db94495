//! One workload over time: when it was seen, since when it is missing, and its earlier versions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use netstead_model::{Name, Scope, Span, Workload};
use serde::{Deserialize, Serialize};

use super::{Clock, ScopeState};
use crate::{Digest, Grace, Now};

/// A workload, when it was seen, and what it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub workload: Arc<Workload>,
    /// The part of its source that showed it last, and that alone can remove it.
    #[serde(default, skip_serializing_if = "Scope::is_whole")]
    pub scope: Scope,
    /// Engine time of the first sight: the workload that came first has the name.
    pub first: u64,
    pub first_at: Timestamp,
    /// When it was last seen, unless its scope was Complete later: [`SourceState::last_seen`](super::SourceState::last_seen).
    pub last_at: Timestamp,
    /// The source's configuration when it was last seen.
    pub config: Digest,
    pub presence: Presence,
    /// Earlier versions that asked for something else. What vanishes from a running workload is absent, not gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Former>,
    /// Names that it began to ask for later than at its first sight, with the engine time of that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<Name, u64>,
}

impl Entry {
    /// Engine time since which it asks for `name`; without a name, since which it asks for what it does now.
    pub(crate) fn asks_since(&self, name: Option<&Name>) -> u64 {
        let latest = || self.asked.values().copied().max();
        name.map_or_else(latest, |name| self.asked.get(name).copied()).unwrap_or(self.first)
    }

    /// Takes a new version in: names that neither the present version nor one within grace asked for are asked for from
    /// now on. A claim of another owner begins anew with all of its names.
    pub(super) fn note_names(&mut self, new: &Workload, scope: &ScopeState, now: Now) {
        let another = self.workload.owner.is_some() && self.workload.owner != new.owner;
        let grace = Grace::default().absent;
        let recent = self.former.iter().filter(|former| !scope.passed(&former.absence, grace));
        let versions = recent.map(|former| &former.workload).chain([&self.workload]).filter(|_| !another);
        let known: BTreeSet<&Name> =
            versions.flat_map(|version| version.wishes.iter().map(|wish| &wish.name)).collect();
        let mut asked: BTreeMap<Name, u64> = self
            .asked
            .iter()
            .filter(|(name, _)| known.contains(name))
            .map(|(n, at)| (n.clone(), *at))
            .collect();
        for wish in new.wishes.iter().filter(|wish| !known.contains(&wish.name)) {
            asked.insert(wish.name.clone(), now.millis);
        }
        self.asked = asked;
    }
}

/// Whether a workload is there, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    Present,
    Absent(Absence),
    /// Its end was seen.
    Ended {
        since: u64,
    },
    /// Its end was asked for by name.
    Asked,
}

/// A tombstone. How long it lasted is told by the clocks of the scope: [`ScopeState::passed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absence {
    /// Engine time of the first report without it.
    pub since: u64,
    /// The clocks of the scope when it began.
    #[serde(default)]
    pub from: Clock,
    /// The source was Suspect because of it and said so again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmed: bool,
    /// As version 0.1.0 counted, which reads no clocks. A new leader counts anew, so it is zero when it is written.
    pub(super) waited: Span,
    pub(super) reports: u32,
}

/// An earlier version of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    pub workload: Arc<Workload>,
    pub absence: Absence,
    pub config: Digest,
}

/// Whether two versions ask for the same: everything names are made of is equal.
pub(super) fn asks_the_same(one: &Workload, other: &Workload) -> bool {
    one.name == other.name
        && one.kind == other.kind
        && one.hostname == other.hostname
        && one.wishes == other.wishes
        && one.pool == other.pool
        && one
            .interfaces
            .iter()
            .flat_map(|i| &i.addresses)
            .eq(other.interfaces.iter().flat_map(|i| &i.addresses))
}
