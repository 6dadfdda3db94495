//! The workloads that may still exist, for callers that hold something for them.

use netstead_model::{Ident, Key, Scope, Span, Workload};

use super::{GraceVerdict, Inventory};
use crate::{Now, SourceState};

/// How long something may be missed before it is believed to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For workloads that are merely absent.
    pub absent: Span,
    /// For workloads that were seen to end.
    pub ended: Span,
}

impl Default for Grace {
    fn default() -> Self {
        Self { absent: Span::from_secs(300), ended: Span::from_secs(30) }
    }
}

impl Grace {
    /// The longer of both.
    #[must_use]
    pub fn or_longer(self, other: Self) -> Self {
        Self { absent: self.absent.max(other.absent), ended: self.ended.max(other.ended) }
    }
}

/// A version of a workload that may still be there.
#[derive(Debug, Clone, Copy)]
pub struct Alive<'a> {
    pub id: &'a Key,
    /// The part of its source that it belongs to.
    pub scope: &'a Scope,
    pub workload: &'a Workload,
    /// It exists; otherwise it is missing, but not for long enough to count as gone.
    pub present: bool,
}

impl SourceState {
    /// Whether what it does not show is not there: all it brought may be given up that is not alive.
    pub fn says_all(&self) -> bool {
        self.cleaned || (!self.detached && self.settled())
    }

    /// The same for what one scope brought.
    pub fn says_all_of(&self, scope: &Scope) -> bool {
        self.is_cleaned(scope) || (!self.detached && self.settled_in(scope))
    }
}

impl Inventory {
    /// Everything of a source that may still be there, by the caution that keeps names: the newest versions first.
    pub fn alive(&self, source: &Ident, grace: Grace, now: Now) -> Vec<Alive<'_>> {
        let Some(state) = self.source(source) else { return Vec::new() };
        let (mut newest, mut older) = (Vec::new(), Vec::new());
        for (id, entry) in &state.entries {
            let standing = GraceVerdict::of(source, state, entry, grace, now);
            for former in entry.former.iter().rev() {
                let stands = GraceVerdict::of_former(source, state, entry, former, &standing, grace);
                if !matches!(stands, GraceVerdict::Gone(..)) {
                    older.push(Alive { id, scope: &entry.scope, workload: &former.workload, present: false });
                }
            }
            if !matches!(standing, GraceVerdict::Gone(..)) {
                let present = standing == GraceVerdict::Present;
                newest.push(Alive { id, scope: &entry.scope, workload: &entry.workload, present });
            }
        }
        newest.append(&mut older);
        newest
    }
}
