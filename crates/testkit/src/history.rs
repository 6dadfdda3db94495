//! Was what many clients saw of the ledger possible at all?
//!
//! Each client notes every operation with its start, its end and what it was told. [`check`] then decides whether there
//! is *one* order of all of them, true to real time, in which the ledger answered as promised: whether the history is
//! linearizable. The promises are those of the ledger: an address has at most one holder, a key holds at most one
//! address, claiming again gives the same, what was acknowledged stays until it is released, and a read sees everything
//! acknowledged before it began.
//!
//! # Why this takes no search
//!
//! To decide linearizability is hard in general, because it is not known which write a read saw. Here it is: every claim
//! has an id that no later claim shares, so each answer names the one *holding* it speaks of. A holding is a stretch of
//! time in which one key holds one address. All that an order has to choose is where each holding begins and ends:
//!
//! - it must reach from the first *end* of an operation that saw it to the last *start* of one, and to the start of the
//!   release that ended it, because each of them saw it at some moment of its own (if the stretch is negative, all of
//!   them overlap and a single moment is enough);
//! - two holdings of one key, or of one address, must not overlap;
//! - who saw nothing under a key or an address needs a moment outside of its holdings.
//!
//! The last two get easier the shorter the holdings are, all at the same time: so the shortest stretch of each is the
//! best choice for all, and the history is possible exactly if those are. Keys and addresses meet in holdings only,
//! which is why looking at each key and each address alone is enough once the stretches are fixed: nothing else is
//! shared. A list of everything needs one moment at which all of it was true; that is checked against what holdings
//! must and can cover.
//!
//! Who was told that a pool is exhausted needs a moment at which every address of it may have been held: not by the
//! shortest stretches, but by the longest. What one holding can reach does not say that all can reach it together, so
//! this finds what is certainly wrong, and not everything. Rests are not known here: it is for pools without them.
//!
//! What is not known is allowed: a request without an answer may have been done at any time after it began, or never.

#[cfg(test)]
mod brute_force;
mod check;
mod holding;
mod recorder;
mod spans;
#[cfg(test)]
mod tests;
mod violation;

use std::{sync::Arc, time::Duration};

pub use self::{
    check::check,
    recorder::{Begun, History},
    violation::{Summary, Violation},
};

/// One request of one client, as that client saw it. All times are of one clock that only goes forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub client: usize,
    pub start: Duration,
    pub end: Duration,
    pub action: Action,
    pub outcome: Outcome,
}

/// A client's request. The key includes the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An address, or just this one.
    Claim {
        key: Arc<str>,
        exact: Option<Arc<str>>,
    },
    Release {
        key: Arc<str>,
        id: Arc<str>,
    },
    Renew {
        key: Arc<str>,
        id: Arc<str>,
    },
    ReadKey {
        key: Arc<str>,
    },
    ReadAddress {
        address: Arc<str>,
    },
    /// Everything that is held, of all keys whose name starts like this.
    List {
        prefix: Arc<str>,
    },
}

/// The answer that a client got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// This is held: claimed, renewed or read.
    Holds(Held),
    /// The release ended the claim.
    Released,
    /// The claim that was named is not there.
    Gone,
    /// Nothing is held there.
    Nothing,
    /// All that is held.
    All(Vec<Held>),
    /// Another key holds the exact address, or the key holds another address. Nothing was done.
    Taken,
    /// The pool has no address left. Nothing was done.
    Exhausted,
    /// It was certainly not done, and nothing else is known.
    Failed,
    /// It may have been done, or may still be.
    Unknown,
}

/// A pool whose addresses rest for no time: all keys that start like this, and how many addresses they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub prefix: Arc<str>,
    pub size: usize,
}

impl Pool {
    pub fn new(prefix: &str, size: usize) -> Self {
        Self { prefix: prefix.into(), size }
    }

    fn has(&self, key: &str) -> bool {
        key.starts_with(&*self.prefix)
    }
}

/// A key with its address and id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    pub key: Arc<str>,
    pub address: Arc<str>,
    pub id: Arc<str>,
}

impl Held {
    pub fn new(key: &str, address: &str, id: &str) -> Self {
        Self { key: key.into(), address: address.into(), id: id.into() }
    }
}
