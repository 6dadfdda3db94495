//! [`Plan`]: the changes for one provider, and what is held back.

mod display;
mod wrap;

use std::sync::Arc;

use netstead_model::{Ident, Name, RecordData, RecordType, Unit};
use serde::{Deserialize, Serialize};

pub use self::{display::ShownPlan, wrap::wrap};
use crate::{Digest, KeptReason, Mode, OwnedValue};

/// A plan is data: what would change on one provider, what would not, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub provider: Ident,
    pub mode: Mode,
    /// Over the changes, not the generation.
    pub hash: Digest,
    pub generation: u64,
    /// The changes, sorted by zone and name.
    pub steps: Vec<Step>,
    /// Changes that a person must agree to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    /// Names with foreign values in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// Values that stay although no workload asks for them, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Changes that others made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// Values whose reasons changed while the server stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restated: Vec<(Name, OwnedValue)>,
    /// Records that the server cannot hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// Values of ours that are gone from the server and that no workload wants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<(Name, RecordData)>,
}

impl Plan {
    /// Whether nothing would be written.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The part of the plan that is about names which are `shown`. Its hashes are still those of the whole.
    #[must_use]
    pub fn only(mut self, shown: impl Fn(&Name) -> bool) -> Self {
        self.steps.retain(|step| shown(&step.unit.name));
        if let Some(parked) = &mut self.parked {
            parked.changes.retain(|change| shown(&change.name));
        }
        self.parked = self.parked.filter(|parked| !parked.changes.is_empty());
        self.blocked.retain(|blocked| shown(&blocked.name));
        self.kept.retain(|kept| shown(&kept.name));
        self.drift.retain(|drift| shown(&drift.name));
        self.restated.retain(|(name, _)| shown(name));
        self.refused.retain(|refused| shown(&refused.name));
        self.forgotten.retain(|(name, _)| shown(name));
        self
    }
}

/// All changes of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub zone: Name,
    pub unit: Unit,
    /// For people.
    pub lines: Vec<Line>,
    /// Values that the store must know before the server does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<OwnedValue>,
    /// Values that the store forgets once the server has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgets: Vec<RecordData>,
    /// For the breaker.
    #[serde(default)]
    pub counted: u32,
    /// The approval this uses up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Digest>,
}

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub sign: Sign,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    pub text: String,
    pub why: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    Add,
    Change,
    Remove,
}

impl Sign {
    /// As a diff shows it.
    pub fn as_char(self) -> char {
        match self {
            Self::Add => '+',
            Self::Change => '~',
            Self::Remove => '-',
        }
    }
}

/// Changes a guard holds back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Over these changes and the values they expect alone.
    pub hash: Digest,
    /// Engine time.
    pub since: u64,
    pub changes: Vec<ParkedChange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkedChange {
    pub id: Digest,
    pub zone: Name,
    pub name: Name,
    pub lines: Vec<Line>,
    /// Which guard: the end of the sentence "parked because".
    pub guard: Arc<str>,
}

/// A record that is not written, because the server cannot hold it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refused {
    pub name: Name,
    /// One sentence without its full stop.
    pub why: String,
}

/// A name where nothing is written, because of what stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    pub name: Name,
    /// Values that would be written.
    pub wanted: Vec<RecordData>,
    /// Values that are there.
    pub found: Vec<RecordData>,
    pub why: String,
    /// The installation of Netstead whose marks stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// `adopt` takes over what stands there.
    pub adopt: bool,
    /// `share` puts ours beside it.
    pub share: bool,
    /// The workload of ours that has the name, as `source/workload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Way to make that workload give the name up: a command, or a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_by: Option<String>,
}

impl Blocked {
    /// A name that cannot be written, without a way out.
    pub(crate) fn new(name: Name, wanted: Vec<RecordData>, why: impl Into<String>) -> Self {
        let (found, why, owner, holder, free_by) = (Vec::new(), why.into(), None, None, None);
        Self { name, wanted, found, why, owner, adopt: false, share: false, holder, free_by }
    }
}

/// A value that stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RecordData>,
    pub why: KeptReason,
}

/// Something on the server that is not as we left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    pub name: Name,
    pub value: RecordData,
    pub kind: DriftKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftKind {
    /// Ours, and removed by others: it is put back.
    Missing,
    /// Put beside ours by others: it is left.
    Foreign,
    /// A mark with our owner id for values we know nothing of: it is left for `recover`.
    Mark,
}
