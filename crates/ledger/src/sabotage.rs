//! Parts of the ledger that a test can switch off, to see that the simulation in `tests/it` notices.

use crate::options::Options;

/// Something the ledger's promises stand on.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Commits land only on the head they were decided from.
    HeadCondition,
    /// Answers leave when what they tell of is durable.
    DurableAnswers,
    /// Readers see what is durable.
    DurableReads,
    /// What became of a commit without an answer is learned before its callers hear anything.
    Learning,
    /// That a commit was seen in the store is remembered while the rest is still being learned.
    Remembering,
    /// Who takes over serves once its Book stands where the store does.
    CatchingUp,
    /// A fresh read asks the store where the ledger stands.
    Asking,
    /// What changes nothing is answered once the store says that the head is still our own.
    Confirming,
    /// So is what is refused.
    ConfirmingRefusals,
    /// A follower that missed a commit notices.
    Gaps,
}

impl Sabotage {
    pub const ALL: [Self; 10] = [
        Self::HeadCondition,
        Self::DurableAnswers,
        Self::DurableReads,
        Self::Learning,
        Self::Remembering,
        Self::CatchingUp,
        Self::Asking,
        Self::Confirming,
        Self::ConfirmingRefusals,
        Self::Gaps,
    ];
}

impl Options {
    /// Whether this is to be left out: never in a release build, where the compiler removes the question too.
    pub(crate) fn omits(&self, what: Sabotage) -> bool {
        cfg!(debug_assertions) && self.sabotage == Some(what)
    }
}
