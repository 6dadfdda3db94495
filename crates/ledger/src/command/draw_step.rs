//! [`DrawStep`]: what the worker that asks pool backends tells the ledger.

use std::sync::Arc;

use netstead_model::{BackendObject, Claim, ClaimId, DrawFailure, Ident, Key};

use crate::record::Rest;

/// One step of a claim on its way to a backend or back. Each names the key at the backend, so a step that comes too late
/// changes nothing and is answered with [`DrawReply::Stale`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrawStep {
    /// A request is about to be sent for the first time with this key.
    Asking { seq: u64, key: Arc<str> },
    /// The backend has this object for the claim.
    Bind {
        seq: u64,
        key: Arc<str>,
        object: Box<BackendObject>,
        /// Only false where a test leaves the check out.
        checked: bool,
    },
    /// The backend refused, or did not answer. With `over`, the claim cannot be served and ends.
    Failed { seq: u64, key: Arc<str>, failure: DrawFailure, over: bool },
    /// The backend holds nothing for a withdrawn claim any more. `gave` if an object was given back.
    Gone { seq: u64, key: Arc<str>, gave: bool },
    /// A person decided to give a stray object back.
    ReleaseStray { seq: u64 },
    /// The rest of this address is over, or with `early` long enough: it is about to be given back.
    GiveBack { place: OwedPlace, early: bool },
    /// The backend has the address again.
    GaveBack { place: OwedPlace },
    /// The backend calls the object of a claim by another name now.
    Rebound { pool: Ident, key: Key, id: ClaimId, reference: String },
}

/// A resting address that a backend has not got back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwedPlace {
    pub pool: Ident,
    pub number: u128,
    /// The key at the backend.
    pub key: Arc<str>,
}

/// The result of a [`DrawStep`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrawReply {
    Done,
    /// The claim or the address is no longer as the step expects. Nothing changed.
    Stale,
    Bound(Arc<Claim>),
    /// The address is being given back under another key: ask again once that is done.
    Later,
    /// The ledger may not bind the address. The object is kept, and the claim asks again under another key.
    Stray,
    GivingBack(Arc<Rest>),
}
