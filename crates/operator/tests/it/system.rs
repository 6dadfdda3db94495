//! [`System`]: another system that hands out addresses, in this process.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use netstead_model::{Address, BackendError, BackendErrorKind, BackendPoolInfo, Family, Range, Want};
use netstead_operator::{ExternalAddress, ExternalClaim, ExternalPool, ExternalPools, Naming, PoolKind};
use serde_json::Value;
use tokio::sync::watch;

/// Subnets by their id, each `10.<id>.0.0/24` with as many addresses as it was made with.
#[derive(Debug, Default)]
pub(crate) struct System {
    subnets: Mutex<BTreeMap<i64, Arc<Subnet>>>,
}

#[derive(Debug)]
pub(crate) struct Subnet {
    range: Range,
    state: Mutex<State>,
    /// Claims wait as long as this is set, after they were recorded or before.
    hangs: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    /// Addresses by key.
    records: BTreeMap<String, Address>,
    /// The claims that asked, by hostname, in order.
    asked: Vec<String>,
    released: Vec<String>,
    /// How the claims were to be called, by hostname.
    namings: BTreeMap<String, Naming>,
    waiting: BTreeSet<String>,
}

impl System {
    pub(crate) fn subnet(&self, id: i64, addresses: u8) -> Arc<Subnet> {
        let ip = |last: u8| format!("10.{id}.0.{last}").parse::<Address>().unwrap();
        let range = Range::new(ip(1), ip(addresses)).unwrap();
        let subnet = Arc::new(Subnet { range, state: Mutex::default(), hangs: watch::channel(false).0 });
        self.subnets.lock().unwrap().insert(id, Arc::clone(&subnet));
        subnet
    }
}

impl Subnet {
    pub(crate) fn hang(&self, hangs: bool) {
        self.hangs.send_replace(hangs);
    }

    /// The addresses by key.
    pub(crate) fn records(&self) -> BTreeMap<String, String> {
        let state = self.state.lock().unwrap();
        state.records.iter().map(|(key, address)| (key.clone(), address.to_string())).collect()
    }

    pub(crate) fn record(&self, key: &str, address: &str) {
        self.state.lock().unwrap().records.insert(key.to_owned(), address.parse().unwrap());
    }

    /// The claims that asked so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }

    /// How a claim was to be called.
    pub(crate) fn naming(&self, hostname: &str) -> Naming {
        self.state.lock().unwrap().namings.get(hostname).cloned().unwrap()
    }

    pub(crate) fn released(&self) -> Vec<String> {
        self.state.lock().unwrap().released.clone()
    }

    /// How many claims wait for an answer.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().unwrap().waiting.len()
    }

    fn take(&self, claim: &ExternalClaim) -> Result<Address, BackendError> {
        let mut state = self.state.lock().unwrap();
        state.asked.push(claim.hostname.clone());
        state.namings.extend(claim.naming.clone().map(|naming| (claim.hostname.clone(), naming)));
        if let Some(known) = state.records.get(&claim.key) {
            return Ok(*known);
        }
        let is_taken = |address: &Address| state.records.values().any(|one| one == address);
        let address = match claim.want {
            Want::Any => {
                let mut all = std::iter::successors(Some(self.range.first()), |address| address.succ());
                all.find(|address| !is_taken(address)).filter(|address| self.range.contains(*address))
            }
            Want::Exact(address) | Want::Prefer(address) => {
                if is_taken(&address) {
                    return Err(BackendError::new(BackendErrorKind::Held, format!("{address} is taken")));
                }
                Some(address)
            }
        };
        let address =
            address.ok_or_else(|| BackendError::new(BackendErrorKind::Exhausted, "no address is free"))?;
        state.records.insert(claim.key.clone(), address);
        Ok(address)
    }
}

#[async_trait]
impl ExternalPools for System {
    async fn open(&self, _kind: PoolKind, spec: &Value) -> Result<Arc<dyn ExternalPool>, String> {
        let id =
            spec["subnetid"].as_i64().or_else(|| spec["pool"].as_str()?.parse().ok()).unwrap_or_default();
        let subnet = self.subnets.lock().unwrap().get(&id).cloned();
        let subnet = subnet.ok_or_else(|| format!("there is no subnet {id}"))?;
        Ok(Arc::new(Opened(subnet)))
    }
}

#[derive(Debug)]
struct Opened(Arc<Subnet>);

#[async_trait]
impl ExternalPool for Opened {
    async fn describe(&self) -> Result<BackendPoolInfo, BackendError> {
        let subnet = &self.0;
        let size = subnet.range.len();
        let network = format!("{}/24", subnet.range.first().pred().unwrap()).parse().unwrap();
        Ok(BackendPoolInfo {
            family: Family::Ipv4,
            network: Some(network),
            ranges: vec![subnet.range],
            exclude: Vec::new(),
            gateway: None,
            use_reserved: false,
            length: None,
            size,
            free: size - subnet.state.lock().unwrap().records.len() as u128,
            installations: Vec::new(),
        })
    }

    async fn claim(&self, claim: &ExternalClaim) -> Result<ExternalAddress, BackendError> {
        let subnet = &self.0;
        let answer = subnet.take(claim);
        subnet.state.lock().unwrap().waiting.insert(claim.key.clone());
        let _ = subnet.hangs.subscribe().wait_for(|hangs| !*hangs).await;
        subnet.state.lock().unwrap().waiting.remove(&claim.key);
        // The name `taken` is that of something else.
        let is_taken = claim.naming.as_ref().is_some_and(|naming| naming.asked == ["taken"]);
        answer.map(|address| ExternalAddress {
            names: claim.naming.iter().filter(|_| !is_taken).map(|naming| naming.own.clone()).collect(),
            name_problem: is_taken.then(|| "the name is taken".to_owned()),
            ..address.into()
        })
    }

    async fn release(&self, claim: &ExternalClaim) -> Result<(), BackendError> {
        let mut state = self.0.state.lock().unwrap();
        if state.records.remove(&claim.key).is_some() {
            state.released.push(claim.hostname.clone());
        }
        Ok(())
    }
}
