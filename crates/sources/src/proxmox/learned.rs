//! [`LearnedNetworks`]: addresses that EVPN learned, read once for all guests of a vnet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::Address;
use serde_json::Value;

use super::{Shared, guest_config::mac_of, lenient::list_of, types::LearnedAddress};

/// A list counts for so long.
const LIFE: Duration = Duration::from_secs(10);

/// The lists of all vnets, by node and vnet. A guest whose list is being read by another waits for that.
#[derive(Debug, Default)]
pub(super) struct LearnedNetworks(Mutex<HashMap<(String, String), Arc<tokio::sync::Mutex<LearnedList>>>>);

/// The list of one vnet as one node shows it.
#[derive(Debug, Default)]
struct LearnedList {
    until: Option<Duration>,
    by_mac: HashMap<Address, Vec<LearnedAddress>>,
}

impl LearnedNetworks {
    /// The addresses of one card in `vnet`, as `node` learned them.
    pub(super) async fn of(
        &self,
        shared: &Shared,
        node: &str,
        vnet: &str,
        mac: Address,
    ) -> Vec<LearnedAddress> {
        let list = {
            let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry((node.to_owned(), vnet.to_owned())).or_default())
        };
        let mut list = list.lock().await;
        let now = shared.clock.monotonic();
        if list.until.is_none_or(|until| now >= until) {
            let found = shared.api.get::<Value>(&["nodes", node, "sdn", "vnets", vnet, "mac-vrf"]).await;
            list.by_mac.clear();
            for one in list_of::<LearnedAddress>(found.unwrap_or_default()) {
                if let Some(mac) = one.mac.as_deref().and_then(mac_of) {
                    list.by_mac.entry(mac).or_default().push(one);
                }
            }
            list.until = Some(now.saturating_add(LIFE));
        }
        list.by_mac.get(&mac).cloned().unwrap_or_default()
    }
}
