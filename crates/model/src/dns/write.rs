//! Parts of a write: the request, the guard that is asked on the way, and the reply.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{ProviderError, Unit};

/// Changes of one zone, and the place they have in the order of all changes.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    pub units: Vec<Unit>,
    pub fence: Fence,
    /// Asked before every request to a server without a fence.
    pub guard: WriteGuard,
}

impl WriteRequest {
    /// A request that nothing holds back.
    pub fn new(units: Vec<Unit>, fence: Fence) -> Self {
        Self { units, fence, guard: WriteGuard::open() }
    }
}

/// Newer wins: a server that can check refuses a write whose fence is not above the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// The installation's id.
    pub owner: String,
    pub epoch: u64,
    pub generation: u64,
}

/// Says whether one more request may be sent: this node still leads, and the time of the pass is not over.
#[derive(Clone)]
pub struct WriteGuard(Arc<dyn Fn() -> Permit + Send + Sync>);

type Permit = Pin<Box<dyn Future<Output = Result<(), ProviderError>> + Send>>;

impl WriteGuard {
    pub fn new<F>(ask: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), ProviderError>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(ask())))
    }

    /// Lets everything pass.
    pub fn open() -> Self {
        Self::new(|| async { Ok(()) })
    }

    /// Call right before a request that changes something. After an error nothing more is sent, and what is left is
    /// [`UnitOutcome::NotTried`].
    pub async fn permit(&self) -> Result<(), ProviderError> {
        (self.0)().await
    }
}

impl fmt::Debug for WriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteGuard")
    }
}

/// The outcome of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitOutcome {
    Applied,
    /// The server has something else there than was expected, and nothing was done. Plan again.
    Changed,
    /// The server rejects the change, and nothing of it stands there.
    Rejected {
        reason: String,
    },
    /// The unit may stand on the server wholly, in part, or not at all. Its names are read before they are planned again.
    Unknown,
    /// No request was sent for it.
    NotTried,
}

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReply {
    /// One for each unit, in order.
    pub outcomes: Vec<UnitOutcome>,
    /// Why the write ended before its end. Units that it did not reach are [`UnitOutcome::NotTried`].
    pub stopped: Option<ProviderError>,
}

impl WriteReply {
    /// Outcome of a request of so many units that ended with `error`, if nothing else is known.
    pub fn failed(units: usize, error: ProviderError) -> Self {
        let outcome = if error.may_have_acted() { UnitOutcome::Unknown } else { UnitOutcome::NotTried };
        Self { outcomes: vec![outcome; units], stopped: Some(error) }
    }
}

impl From<Vec<UnitOutcome>> for WriteReply {
    fn from(outcomes: Vec<UnitOutcome>) -> Self {
        Self { outcomes, stopped: None }
    }
}
