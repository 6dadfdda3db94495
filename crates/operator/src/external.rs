//! Pools whose addresses are kept in another system: how the operator sees that system.

use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{Address, BackendError, BackendErrorKind, BackendPoolInfo, Want};
use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout};

use crate::{PoolKind, conditions::Ready};

/// Opens pools of other systems. It knows their settings; the operator knows their claims.
#[async_trait]
pub trait ExternalPools: Send + Sync + Debug {
    /// The pool that a spec means. Fields of the spec that come from a Secret are filled in. An error names the field.
    async fn open(&self, kind: PoolKind, spec: &Value) -> Result<Arc<dyn ExternalPool>, String>;
}

/// A claim of the cluster as the other system sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalClaim {
    /// Never changes, also not by a move to another cluster.
    pub key: String,
    /// `<claim>.<namespace>`
    pub hostname: String,
    pub want: Want,
    /// How it is to be called in DNS; none for a kind that gives no names.
    pub naming: Option<Naming>,
}

/// How the address of a claim is to be called in DNS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// The names of the claim's annotation. Without any it is called `own`.
    pub asked: Vec<String>,
    /// The name of the Machine that the claim is for, else of the claim itself.
    pub own: String,
    /// `<namespace>/<name>` of that Machine. Its addresses may have one name.
    pub machine: Option<String>,
    /// `<namespace>/<name>` of its Cluster.
    pub cluster: Option<String>,
}

/// An address that another system gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAddress {
    pub address: Address,
    /// The length of its network and the gateway, where the pool has several networks.
    pub network: Option<(u8, Option<Address>)>,
    /// The names that it has in DNS.
    pub names: Vec<String>,
    /// Why it lacks a name that it was to have.
    pub name_problem: Option<String>,
}

impl From<Address> for ExternalAddress {
    fn from(address: Address) -> Self {
        Self { address, network: None, names: Vec::new(), name_problem: None }
    }
}

/// One pool of another system.
#[async_trait]
pub trait ExternalPool: Send + Sync + Debug {
    async fn describe(&self) -> Result<BackendPoolInfo, BackendError>;

    /// The address of the claim; the same one when it is asked again.
    async fn claim(&self, claim: &ExternalClaim) -> Result<ExternalAddress, BackendError>;

    /// Gives back what the claim has. Nothing to give back is fine.
    async fn release(&self, claim: &ExternalClaim) -> Result<(), BackendError>;
}

/// Opens nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExternalPools;

#[async_trait]
impl ExternalPools for NoExternalPools {
    async fn open(&self, kind: PoolKind, _spec: &Value) -> Result<Arc<dyn ExternalPool>, String> {
        Err(format!("pools of the kind {kind} cannot be opened here"))
    }
}

/// The longest that one call may take, whatever the system does.
const PATIENCE: Duration = Duration::from_secs(30);

/// The claims of one pool of another system that are worked on at once, beside the workers that all other objects share: a
/// system that hangs holds up its own pool alone.
#[derive(Debug, Clone)]
pub(crate) struct ExternalLane(pub(crate) Arc<Semaphore>);

impl ExternalLane {
    pub(crate) const WIDTH: usize = 8;
}

impl Default for ExternalLane {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(Self::WIDTH)))
    }
}

/// Waits for another system no longer than a while.
pub(crate) async fn limited<T>(
    call: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    let slow = || {
        Err(BackendError::unknown(format!(
            "the other system does not answer within {} s",
            PATIENCE.as_secs()
        )))
    };
    timeout(PATIENCE, call).await.unwrap_or_else(|_| slow())
}

/// A pool of another system as it was found last.
#[derive(Debug)]
pub(crate) struct ExternalState {
    /// None if the spec means none.
    pub(crate) pool: Option<Arc<dyn ExternalPool>>,
    pub(crate) info: Option<BackendPoolInfo>,
    /// How it stands, for its condition.
    pub(crate) ready: Ready,
    /// The spec that was opened.
    pub(crate) generation: i64,
    /// When it was asked, and when it is to be asked again.
    pub(crate) asked: Duration,
    pub(crate) due: Duration,
    /// How many addresses the cluster held then.
    pub(crate) used: u128,
    /// It had no address for the claim that asked last.
    pub(crate) is_full: bool,
}

impl ExternalState {
    /// The pool itself and whether it was full, once it was asked.
    pub(crate) fn open(&self) -> Option<(Arc<dyn ExternalPool>, bool)> {
        self.pool.clone().map(|pool| (pool, self.is_full))
    }

    /// The gateway and the length of the network, as the status has them.
    pub(crate) fn network(&self) -> Option<(String, String)> {
        let info = self.info.as_ref()?;
        let gateway = info.gateway.map(|gateway| gateway.to_string()).unwrap_or_default();
        Some((gateway, info.network.map(|network| network.len().to_string()).unwrap_or_default()))
    }
}

/// The reasons of the condition of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reasons {
    pub(crate) ready: &'static str,
    pub(crate) ready_message: &'static str,
    /// A field or a Secret is missing or wrong.
    pub(crate) wrong: &'static str,
    pub(crate) denied: &'static str,
    pub(crate) unavailable: &'static str,
}

/// Those of capi-phpipam.
const OF_PHPIPAM: Reasons = Reasons {
    ready: "IPPoolReady",
    ready_message: "IPPool is ready",
    wrong: "InvalidPHPIPamConfiguration",
    denied: "InvalidPHPIPamCredentials",
    unavailable: "PHPIPamUnavailable",
};
const OWN: Reasons = Reasons {
    ready: "PoolReady",
    ready_message: "",
    wrong: "InvalidSpec",
    denied: "CredentialsRefused",
    unavailable: "SystemUnavailable",
};

impl Reasons {
    pub(crate) const fn of(kind: PoolKind) -> Self {
        if matches!(kind, PoolKind::PhpIpamPool) { OF_PHPIPAM } else { OWN }
    }

    /// The condition of a pool whose system answers with an error.
    pub(crate) fn not_ready(self, error: &BackendError) -> Ready {
        let reason = match error.kind {
            BackendErrorKind::Denied => self.denied,
            BackendErrorKind::NoSuchPool | BackendErrorKind::Refused => self.wrong,
            _ => self.unavailable,
        };
        Ready::no(reason, with_hint(error))
    }

    pub(crate) fn ready(self) -> Ready {
        Ready { message: self.ready_message.to_owned(), ..Ready::yes(self.ready) }
    }
}

/// The reason of a claim's condition, and how soon it is worth another attempt.
pub(crate) fn refusal(error: &BackendError) -> (Ready, Duration) {
    let (reason, seconds) = match error.kind {
        BackendErrorKind::Exhausted => ("PoolExhausted", 15),
        BackendErrorKind::Held | BackendErrorKind::NotHere | BackendErrorKind::Refused => {
            ("AllocationFailed", 30)
        }
        BackendErrorKind::Denied | BackendErrorKind::NoSuchPool => ("PoolNotReady", 30),
        _ => ("PoolNotReady", 5),
    };
    (Ready::no(reason, with_hint(error)), Duration::from_secs(seconds))
}

fn with_hint(error: &BackendError) -> String {
    match &error.hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
