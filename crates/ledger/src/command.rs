//! [`Command`] and [`Reply`]: what can be asked of the ledger, and what it answers.

mod draw_step;

use std::{sync::Arc, time::Duration};

use netstead_model::{
    Address, Claim, ClaimRef, ClaimRequest, Ident, Key, Pool, PoolSpec, Range, Released, Reservation, Span,
    Waiting,
};

pub use self::draw_step::{DrawReply, DrawStep, OwedPlace};

/// The caller of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The subject of the caller's token: the owner of what it claims, unless it claims for another owner.
    pub subject: Arc<str>,
    /// The owner that it claims for, if not itself.
    pub behalf: Option<Arc<str>>,
    /// It may write: touch and adopt claims of other owners, and force its way over their reservations. Part of the
    /// command, so that the Book decides it together with everything else.
    pub manager: bool,
    /// The id of the request, carried into events.
    pub request: Option<Arc<str>>,
}

impl Caller {
    pub fn new(subject: &str) -> Self {
        Self { subject: subject.into(), behalf: None, manager: false, request: None }
    }

    /// The owner of new claims.
    pub fn owner(&self) -> &Arc<str> {
        self.behalf.as_ref().unwrap_or(&self.subject)
    }

    #[must_use]
    pub fn manager(mut self) -> Self {
        self.manager = true;
        self
    }
}

/// A change that a caller asks for. All of them may be repeated after a lost answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    CreatePool(Box<PoolSpec>),
    UpdatePool {
        spec: Box<PoolSpec>,
        /// Only if the pool still has this version.
        if_version: Option<u64>,
    },
    DeletePool {
        name: Ident,
        /// Why the claims in it are released with it; without a reason a pool with claims stays.
        force: Option<String>,
        if_version: Option<u64>,
    },
    /// Removes a pool with a backend and forgets what the backend still holds for it.
    AbandonPool {
        name: Ident,
        reason: String,
        if_version: Option<u64>,
    },
    Claim(Box<ClaimRequest>),
    Release(ClaimRef),
    /// Gives the claim its full time again, or a new one.
    Renew {
        target: ClaimRef,
        ttl: Option<Span>,
    },
    /// Hands the claim's address to another key of the same pool, and to another owner if one is named.
    Move {
        target: ClaimRef,
        key: Key,
        owner: Option<Arc<str>>,
    },
    Reserve {
        pool: Ident,
        key: Key,
        range: Range,
        description: Option<String>,
    },
    Unreserve {
        pool: Ident,
        key: Key,
    },
    /// Several of the above in one commit: all or none. At most [`MOST_ENTRIES`].
    Bulk(Vec<Command>),
    Observe(Report),
    /// Leave the queue.
    Abandon {
        pool: Ident,
        key: Key,
    },
    /// Makes the pools of the configuration file as it says, and lets go of those it no longer names.
    SyncFilePools(Vec<PoolSpec>),
    /// Ends the pause after a restore.
    Resume,
    /// A step of the worker that asks pool backends.
    Draw(Box<DrawStep>),
}

impl Command {
    /// Whether it may be too much for one commit; it is sent again then until nothing is left to do.
    pub(crate) fn may_take_several_commits(&self) -> bool {
        matches!(
            self,
            Self::DeletePool { .. } | Self::AbandonPool { .. } | Self::Observe(_) | Self::SyncFilePools(_)
        )
    }
}

/// Most entries of one bulk command, which is one commit.
pub const MOST_ENTRIES: usize = 64;

/// Addresses a source has seen in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub source: Ident,
    pub vrf: Ident,
    /// The source saw all there is: what it does not name any more ends, after `grace`.
    pub complete: bool,
    pub seen: Vec<Sighting>,
    pub grace: Span,
    /// A scan's sightings end by themselves after this long; a source's never do.
    pub ttl: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    pub address: Address,
    pub note: Option<String>,
}

/// The reply to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Pool(Arc<Pool>),
    /// `left` claims are still to go, which takes more commits; the facade goes on until none is.
    ///
    /// `owed` addresses of its backend are still to be given back; the pool is removed when they are.
    PoolDeleted {
        released: u64,
        left: u64,
        owed: u64,
    },
    Claimed {
        claim: Arc<Claim>,
        outcome: Outcome,
    },
    /// The claim is in the queue; the ledger's facade waits and answers `Claimed` or `Exhausted` in the end.
    Queued(Arc<Waiting>),
    Released(Released),
    /// `left` is missing when the claim never ends.
    Renewed {
        claim: Arc<Claim>,
        left: Option<Duration>,
    },
    Moved(Arc<Claim>),
    Reserved(Arc<Reservation>),
    /// It was there and is gone, or was not there.
    Gone(bool),
    Bulk(Vec<Reply>),
    /// `more` changes are still to come, which takes more commits; the facade goes on until none is.
    Observed {
        begun: usize,
        ended: usize,
        more: bool,
    },
    /// Pools of the configuration file that were created, changed, or are no longer in it.
    Synced {
        created: Vec<Ident>,
        updated: Vec<Ident>,
        detached: Vec<Ident>,
        more: bool,
    },
    Resumed,
    Drawn(DrawReply),
}

/// How a claim came by its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    /// It was there already, just so.
    Repeated,
    /// It was there; labels, hostnames, description, time to live or owner changed.
    Updated,
}

/// Long work takes several commits: adds the answers up, and says whether there is more to do.
pub(crate) fn add_up(sum: Option<Reply>, reply: Reply) -> (Reply, bool) {
    match (sum, reply) {
        (Some(Reply::PoolDeleted { released: before, .. }), Reply::PoolDeleted { released, left, owed }) => {
            (Reply::PoolDeleted { released: before + released, left, owed }, left > 0)
        }
        (_, reply @ Reply::PoolDeleted { left, .. }) => (reply, left > 0),
        (Some(first @ Reply::Observed { .. }), Reply::Observed { more, .. }) => (first, more),
        (
            Some(Reply::Synced { created: mut c, updated: mut u, detached: mut d, .. }),
            Reply::Synced { created, updated, detached, more },
        ) => {
            c.extend(created);
            u.extend(updated);
            d.extend(detached);
            (Reply::Synced { created: c, updated: u, detached: d, more }, more)
        }
        (_, reply @ (Reply::Observed { more, .. } | Reply::Synced { more, .. })) => (reply, more),
        (_, reply) => (reply, false),
    }
}
