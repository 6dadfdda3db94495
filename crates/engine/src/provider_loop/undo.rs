//! [`Undo`]: what an operator takes back (`clean`, `rollback`).

use netstead_model::{Ident, Scope};

use super::{PassReport, ProviderPlan};

/// The part that is taken back.
#[derive(Debug, Clone)]
pub(crate) enum Undo {
    /// Everything of ours.
    All,
    /// Everything that is ours because of a source that is no longer configured.
    Source(Ident),
    /// Values that are ours because of one scope of a source.
    Scope(Ident, Scope),
    /// Everything since this generation.
    To(u64),
}

/// A plan that takes something back, and the report of its pass unless it was a dry run.
pub(crate) type Undoing = (ProviderPlan, Option<PassReport>);
