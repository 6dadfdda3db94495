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
    /// The outcome of a commit without an answer is learned before its callers get one.
    Learning,
    /// A commit that was seen in the store is remembered while the rest is still being learned.
    Remembering,
    /// A new leader serves once its Book has reached the store's head.
    CatchingUp,
    /// A fresh read asks the store where the ledger stands.
    Asking,
    /// A command that changes nothing is answered once the store says that the head is still our own.
    Confirming,
    /// So is what is refused.
    ConfirmingRefusals,
    /// A follower that missed a commit notices.
    Gaps,
    /// A backend is always asked for a claim with the same key.
    DrawKey,
    /// A request to a backend is stored before it is sent.
    DrawAsked,
    /// A backend is asked by the leader only.
    DrawEpoch,
    /// A key that may have been asked for is looked up before it is asked for again.
    DrawLookUp,
    /// A given-back address stays taken until the backend confirms.
    DrawGiveBack,
    /// An ended claim is remembered until the backend holds nothing for it.
    DrawWithdrawn,
    /// A backend's answer is bound only if nothing speaks against it.
    DrawBindable,
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

    /// Those that concern pool backends; the simulation of backends looks for them.
    pub const BACKENDS: [Self; 7] = [
        Self::DrawKey,
        Self::DrawAsked,
        Self::DrawEpoch,
        Self::DrawLookUp,
        Self::DrawGiveBack,
        Self::DrawWithdrawn,
        Self::DrawBindable,
    ];
}

impl Options {
    /// Whether this is to be left out: never in a release build, where the compiler removes the question too.
    pub(crate) fn omits(&self, what: Sabotage) -> bool {
        cfg!(debug_assertions) && self.sabotage == Some(what)
    }
}
