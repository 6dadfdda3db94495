//! Reads one guest: its configuration, its name and its addresses.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Shared,
    api::{Api, ApiError},
    guest::{GuestKind, GuestReading},
    guest_config::{GuestConfig, Nic},
    lenient::list_of,
    types::{GuestInterface, LearnedAddress, RawConfig},
};

/// The longest that a guest agent is waited for. Proxmox VE itself gives up after eight seconds.
pub(super) const AGENT: Duration = Duration::from_secs(10);

/// A request to read parts of a guest.
#[derive(Debug, Clone)]
pub(super) struct GuestQuery {
    pub(super) vmid: u64,
    pub(super) node: String,
    pub(super) kind: GuestKind,
    pub(super) running: bool,
    /// The configuration that is known; none to read it.
    pub(super) known: Option<GuestConfig>,
    /// Ask the guest itself.
    pub(super) addresses: bool,
    /// Ask for its name as well.
    pub(super) hostname: bool,
    /// Vnets that learn addresses.
    pub(super) learning: Vec<String>,
}

#[derive(Default, Deserialize)]
struct AgentAnswer {
    #[serde(default)]
    result: Value,
}

impl GuestQuery {
    /// Everything up to the agent, which may hang.
    pub(super) async fn read_config(&self, api: &Api) -> (GuestReading, Option<GuestConfig>) {
        let mut reading = GuestReading::default();
        if let Some(known) = &self.known {
            return (reading, Some(known.clone()));
        }
        let id = self.vmid.to_string();
        let raw: Result<RawConfig, ApiError> =
            api.get(&["nodes", &self.node, self.kind.word(), &id, "config"]).await;
        let config = raw.map(|raw| GuestConfig::read(&raw));
        let known = config.as_ref().ok().cloned();
        reading.config = Some(config);
        (reading, known)
    }

    /// Asks the guest itself.
    pub(super) async fn read_addresses(
        &self,
        shared: &Shared,
        config: &GuestConfig,
        reading: &mut GuestReading,
    ) {
        if !self.running || !self.addresses {
            return;
        }
        let api = &shared.api;
        let id = self.vmid.to_string();
        let interfaces = match self.kind {
            GuestKind::Container => {
                let path = ["nodes", &self.node, "lxc", &id, "interfaces"];
                api.get::<Value>(&path).await.map(list_of::<GuestInterface>)
            }
            GuestKind::Machine if !config.agent => Err(ApiError::AgentOff),
            GuestKind::Machine => {
                let interfaces = self.ask_agent(api, "network-get-interfaces").await.map(list_of);
                if self.hostname && interfaces.is_ok() {
                    let told = self.ask_agent(api, "get-host-name").await.ok();
                    reading.hostname = told
                        .and_then(|told| told.get("host-name")?.as_str().map(str::to_owned))
                        .filter(|name| !name.is_empty());
                }
                interfaces
            }
        };
        if interfaces.is_err() {
            reading.learned = self.read_learned(shared, &config.nics).await;
        }
        reading.interfaces = Some(interfaces);
    }

    async fn ask_agent(&self, api: &Api, command: &str) -> Result<Value, ApiError> {
        let path = ["nodes", &self.node, "qemu", &self.vmid.to_string(), "agent", command];
        let answer: AgentAnswer = api.get_within(&path, AGENT).await.map_err(|error| match error {
            // The node answers for the others: it is this guest that is slow.
            ApiError::Lost(reason) => ApiError::AgentSilent { reason },
            other => other,
        })?;
        if let Some(error) = answer.result.get("error") {
            let text = error.get("desc").and_then(Value::as_str).unwrap_or("the guest agent refuses");
            return Err(ApiError::Other { server: self.node.clone(), status: 200, reason: text.to_owned() });
        }
        Ok(answer.result)
    }

    /// Addresses of its cards that EVPN learned; none if some cannot be read now.
    async fn read_learned(&self, shared: &Shared, nics: &[Nic]) -> Option<Vec<LearnedAddress>> {
        let mut learned = Vec::new();
        for nic in nics {
            let (Some(vnet), Some(mac)) = (&nic.bridge, nic.mac) else { continue };
            if self.learning.contains(vnet) {
                learned.extend(shared.learned.of(shared, &self.node, vnet, mac).await?);
            }
        }
        Some(learned)
    }
}
