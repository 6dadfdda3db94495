//! [`IpamSettings`]: the configuration of one IPAM provider, whatever its type.

use netstead_model::{Ident, Span};
use serde::{Deserialize, Serialize};

use crate::{Grace, Limits, Mode, OwnerId};

/// The addresses of workloads that are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpamScope {
    /// Addresses that have a name. A workload with a full hostname brings all of its addresses.
    #[default]
    Named,
    All,
}

/// The settings all IPAM providers share. No secrets are among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpamSettings {
    /// The provider's name, `office` of `[ipam.office]`.
    pub provider: Ident,
    /// The installation's id, part of every mark.
    pub owner: OwnerId,
    pub mode: Mode,
    /// Sources whose workloads are written there; empty means all.
    pub sources: Vec<Ident>,
    /// Claims of the ledger are written there.
    pub claims: bool,
    pub scope: IpamScope,
    pub grace: Span,
    pub ended_grace: Span,
    pub breaker: Limits,
}

impl IpamSettings {
    /// The defaults.
    pub fn new(provider: Ident, owner: OwnerId) -> Self {
        let Grace { absent, ended } = Grace::default();
        let (mode, breaker) = (Mode::default(), Limits::default());
        let (sources, claims, scope) = (Vec::new(), true, IpamScope::default());
        Self { provider, owner, mode, sources, claims, scope, grace: absent, ended_grace: ended, breaker }
    }

    pub fn graces(&self) -> Grace {
        Grace { absent: self.grace, ended: self.ended_grace }
    }
}
