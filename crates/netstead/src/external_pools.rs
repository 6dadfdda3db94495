//! [`PoolSystems`]: the systems outside of a cluster whose pools the operator serves.

mod given_names;
mod ledger_access;
mod netbox;
mod netstead;
mod phpipam;

use std::sync::Arc;

use async_trait::async_trait;
use netstead_model::SystemClock;
use netstead_operator::{ExternalPool, ExternalPools, PoolKind};
use netstead_providers::Tls;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use self::given_names::GivenNames;
pub(crate) use self::ledger_access::LedgerPlace;

/// Opens pools of phpIPAM, of NetBox and of Netstead's ledger.
#[derive(Debug)]
pub(crate) struct PoolSystems {
    ledger: LedgerPlace,
    names: Arc<GivenNames>,
}

impl PoolSystems {
    pub(crate) fn new(ledger: LedgerPlace) -> Self {
        Self { ledger, names: Arc::new(GivenNames::new(SystemClock::shared())) }
    }
}

#[async_trait]
impl ExternalPools for PoolSystems {
    async fn open(&self, kind: PoolKind, spec: &Value) -> Result<Arc<dyn ExternalPool>, String> {
        match kind {
            PoolKind::PhpIpamPool => phpipam::open(spec),
            PoolKind::NetBoxPool | PoolKind::GlobalNetBoxPool => netbox::open(spec, &self.names),
            PoolKind::NetsteadPool | PoolKind::GlobalNetsteadPool => {
                netstead::open(spec, self.ledger.open().await?, &self.names)
            }
            _ => Err(format!("pools of the kind {kind} are in the cluster itself")),
        }
    }
}

/// `spec.tls`
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TlsSpec {
    insecure: bool,
    fingerprint: Option<String>,
    server_name: Option<String>,
}

impl TlsSpec {
    fn apply_to(self, tls: &mut Tls) {
        tls.insecure = self.insecure;
        tls.fingerprint = self.fingerprint;
        tls.server_name = self.server_name;
    }
}

/// Reads a spec. The message of a wrong type names no value, which may be a secret.
fn read_spec<T: DeserializeOwned>(spec: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(spec)
        .map_err(|error| format!("spec.{}: it is missing or has the wrong type", error.path()))
}
