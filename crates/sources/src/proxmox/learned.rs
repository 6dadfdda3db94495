//! [`LearnedNetworks`]: addresses that EVPN learned, read once for all guests of a vnet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::Address;
use serde_json::Value;

use super::{Shared, api::ApiError, guest_config::mac_of, lenient::list_of, types::LearnedAddress};

/// A list counts for so long.
const LIFE: Duration = Duration::from_secs(10);

/// The lists of all vnets, by node and vnet. A guest whose list is being read by another waits for that.
#[derive(Debug, Default)]
pub(super) struct LearnedNetworks(Mutex<HashMap<(String, String), SharedList>>);

type SharedList = Arc<tokio::sync::Mutex<LearnedList>>;

/// The list of one vnet as one node shows it.
#[derive(Debug, Default)]
struct LearnedList {
    until: Option<Duration>,
    /// None if it could not be read.
    by_mac: Option<HashMap<Address, Vec<LearnedAddress>>>,
}

impl LearnedNetworks {
    /// The addresses of one card in `vnet`, as `node` learned them; none if that cannot be read now.
    pub(super) async fn of(
        &self,
        shared: &Shared,
        node: &str,
        vnet: &str,
        mac: Address,
    ) -> Option<Vec<LearnedAddress>> {
        let list = {
            let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry((node.to_owned(), vnet.to_owned())).or_default())
        };
        let mut list = list.lock().await;
        let now = shared.clock.monotonic();
        if list.until.is_none_or(|until| now >= until) {
            let found = shared.api.get::<Value>(&["nodes", node, "sdn", "vnets", vnet, "mac-vrf"]).await;
            list.by_mac = match found {
                Ok(found) => Some(sorted(found)),
                // These credentials may not read it, or the release does not have it.
                Err(ApiError::Forbidden { .. } | ApiError::NotImplemented { .. }) => Some(HashMap::new()),
                Err(_) => None,
            };
            list.until = Some(now.saturating_add(LIFE));
        }
        Some(list.by_mac.as_ref()?.get(&mac).cloned().unwrap_or_default())
    }
}

fn sorted(found: Value) -> HashMap<Address, Vec<LearnedAddress>> {
    let mut by_mac: HashMap<Address, Vec<LearnedAddress>> = HashMap::new();
    for one in list_of::<LearnedAddress>(found) {
        if let Some(mac) = one.mac.as_deref().and_then(mac_of) {
            by_mac.entry(mac).or_default().push(one);
        }
    }
    by_mac
}
