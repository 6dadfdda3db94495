//! [`AnyProvider`]: a running loop of either kind, for commands that both answer.

use netstead_model::{Ident, Key};

use crate::{
    EngineError,
    dns_pass::ProviderHandle,
    engine_state::EngineState,
    ipam_pass::IpamHandle,
    provider_loop::{Undo, Undoing},
};

/// The loop of a DNS server or of an IPAM system.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there are a few of them, for the time of one command")]
pub(crate) enum AnyProvider {
    Dns(ProviderHandle),
    Ipam(IpamHandle),
}

impl AnyProvider {
    /// All of them, DNS servers first.
    pub(crate) fn all(shared: &EngineState) -> Vec<Self> {
        let servers: Vec<Self> = shared.providers().values().cloned().map(Self::Dns).collect();
        let systems: Vec<Self> = shared.ipam().values().cloned().map(Self::Ipam).collect();
        servers.into_iter().chain(systems).collect()
    }

    pub(crate) fn name(&self) -> &Ident {
        match self {
            Self::Dns(handle) => handle.setup.name(),
            Self::Ipam(handle) => handle.setup.name(),
        }
    }

    /// Whether something on it is ours because of a workload that `of_it`.
    pub(crate) fn holds(&self, of_it: impl Fn(&Ident, &Key) -> bool) -> bool {
        match self {
            Self::Dns(handle) => {
                let owned = handle.snapshot.read().owned.clone();
                owned.workloads().any(|(source, id)| of_it(source, id))
            }
            Self::Ipam(handle) => {
                let owned = handle.snapshot.read().owned.clone();
                owned.0.keys().any(|key| of_it(&key.source, &key.workload))
            }
        }
    }

    /// Takes something back whatever is paused, or says what that would be.
    pub(crate) async fn undo(&self, undo: Undo, dry: bool) -> Result<Undoing, EngineError> {
        match self {
            Self::Dns(handle) => handle.undo(undo, dry).await,
            Self::Ipam(handle) => handle.undo(undo, dry).await,
        }
    }
}
