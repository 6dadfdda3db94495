//! [`LedgerAccess`]: Netstead's ledger, in this process or through the API of another.

mod local;
mod remote;

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use netstead_api::cluster::EngineSlot;
use netstead_ledger::Ledger;
use netstead_model::{Address, BackendError, BackendPoolInfo, Name, RecordType, Want};

use self::{local::LocalLedger, remote::RemoteLedger};
use crate::cli::Global;

/// Where the ledger of `NetsteadIPPool`s is.
#[derive(Debug)]
pub(crate) enum LedgerPlace {
    /// In this process, which leads.
    Here { ledger: Ledger, engine: EngineSlot },
    /// Behind the API of a server, found like that of any other command.
    There(Box<Global>),
}

impl LedgerPlace {
    /// The server is looked for anew each time: its token may be another.
    pub(super) async fn open(&self) -> Result<Arc<dyn LedgerAccess>, String> {
        Ok(match self {
            Self::Here { ledger, engine } => {
                Arc::new(LocalLedger { ledger: ledger.clone(), engine: engine.clone() })
            }
            Self::There(global) => {
                let client = crate::session::connect(global).await;
                let client =
                    client.map_err(|error| format!("no server of Netstead can be asked: {error:#}"))?;
                Arc::new(RemoteLedger { client })
            }
        })
    }
}

/// A pool of the ledger.
#[derive(Debug, Clone)]
pub(super) struct LedgerPool {
    pub(super) info: BackendPoolInfo,
    pub(super) domain: Option<Name>,
}

/// A claim that is asked for.
#[derive(Debug, Clone)]
pub(super) struct LedgerRequest<'a> {
    pub(super) pool: &'a str,
    pub(super) key: &'a str,
    pub(super) want: Want,
    pub(super) hostnames: &'a [Name],
    pub(super) labels: &'a [(&'static str, String)],
    pub(super) description: &'a str,
}

/// A claim that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) address: Address,
    pub(super) length: Option<u8>,
    pub(super) hostnames: Vec<Name>,
}

/// A value of a name on a server of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameValue {
    pub(super) kind: RecordType,
    /// As in a zone file.
    pub(super) text: String,
    pub(super) address: Option<Address>,
    /// It comes or goes, and is not there or gone yet.
    pub(super) is_pending: bool,
    pub(super) reasons: Vec<String>,
}

/// A claim that holds an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pool: String,
    pub(super) key: String,
    pub(super) names: Vec<Name>,
    pub(super) labels: Vec<(String, String)>,
}

impl Holder {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The ledger, as pools of Cluster API use it.
#[async_trait]
pub(super) trait LedgerAccess: Send + Sync + Debug {
    async fn pool(&self, pool: &str) -> Result<LedgerPool, BackendError>;

    async fn look_up(&self, pool: &str, key: &str) -> Result<Option<Held>, BackendError>;

    /// Makes the claim, or gives the one that has the key these names, labels and this description.
    async fn claim(&self, request: &LedgerRequest<'_>) -> Result<Held, BackendError>;

    /// Ends the claim of a key, bound or waiting. None is fine.
    async fn release(&self, pool: &str, key: &str) -> Result<(), BackendError>;

    /// The values that servers of names have for a name, or are about to have. Empty where they may not be looked at.
    async fn values_of(&self, name: &Name) -> Result<Vec<NameValue>, BackendError>;

    /// The claims that hold an address, one for each VRF.
    async fn holders_of(&self, address: Address) -> Result<Vec<Holder>, BackendError>;
}
