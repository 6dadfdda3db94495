//! Machines and containers of one Proxmox VE cluster.
//!
//! ```text
//!  every `interval`         /cluster/resources ──► State: one Guest each     look.rs
//!  new, changed, 10 min     its configuration  ──►   names, cards, tags      read_guest.rs, guest_config.rs
//!  every `address_interval` agent, container   ──►   addresses               read_guest.rs
//!                           State ──► Workload                               workload.rs
//! ```
//!
//! A guest whose agent hangs is asked in a lane of its own, so it delays no other. What cannot be known of one guest makes that
//! guest unclear: everything it had stays. Lost quorum, and credentials that may not see everything, make the whole view partial.

mod api;
mod block;
mod diagnose;
mod guest;
mod guest_config;
mod learned;
mod lenient;
mod look;
mod node_network;
mod read_guest;
mod settings;
mod sight;
mod types;
mod workload;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    net::IpAddr,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Clock, Diagnosis, Ended, Ident, Key, Report, Scope, ScopeReport, Source, View, Workload,
};
use netstead_settings::{BuildContext, SettingsError};
use tokio::sync::{Notify, Semaphore, watch};

pub use self::settings::{GuestTarget, HostnameFrom, KIND, ProxmoxSettings};
use self::{
    api::Api, guest::Guest, learned::LearnedNetworks, node_network::NodeNetworks, workload::Surroundings,
};

/// The numbers that guests can have.
const NUMBERS: RangeInclusive<u64> = 100..=999_999_999;
/// Guests whose agent hangs that are asked at once.
const SLOW_AT_ONCE: usize = 16;

/// One cluster.
#[derive(Debug)]
pub struct Proxmox {
    name: Ident,
    shared: Arc<Shared>,
    ip_map: BTreeMap<IpAddr, IpAddr>,
}

/// The part of a source that reads under way share.
#[derive(Debug)]
struct Shared {
    settings: ProxmoxSettings,
    api: Api,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    learned: LearnedNetworks,
    slow_lane: Arc<Semaphore>,
    /// Reads that a look waits for.
    waited_for: watch::Sender<usize>,
    /// A look waits now.
    is_waited_for: AtomicBool,
    /// Another look is likely to see something new.
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    guests: BTreeMap<u64, Guest>,
    /// Empty for a machine that is in no cluster; none until it is known.
    cluster: Option<String>,
    networks: Arc<NodeNetworks>,
    networks_of: Vec<String>,
    networks_due: Duration,
    /// Tasks that were seen, each with when it ended; none for one that ran.
    tasks: HashSet<(String, Option<u64>)>,
    /// Places for reads, by node.
    lanes: HashMap<String, Arc<Semaphore>>,
    /// The id under which each guest was reported last.
    ids: BTreeMap<u64, Key>,
    /// Guests that were reported and are no longer listed, and it is not certain that they were deleted.
    missing: BTreeSet<u64>,
    /// Guests in the last report whose first read had not ended.
    unread: usize,
}

impl Proxmox {
    fn new(settings: ProxmoxSettings, api: Api, context: &BuildContext) -> Result<Self, SettingsError> {
        let ip_map = settings.address_map()?;
        let shared = Shared {
            settings,
            api,
            clock: Arc::clone(&context.clock),
            state: Mutex::default(),
            learned: LearnedNetworks::default(),
            slow_lane: Arc::new(Semaphore::new(SLOW_AT_ONCE)),
            waited_for: watch::channel(0).0,
            is_waited_for: AtomicBool::new(false),
            wake: Notify::new(),
        };
        Ok(Self { name: context.name.clone(), shared: Arc::new(shared), ip_map })
    }

    /// The workloads, and those that certainly ended: another guest has their number now.
    fn workloads(&self) -> (Vec<Arc<Workload>>, Vec<Ended>) {
        let mut state = self.shared.state();
        let State { guests, cluster, networks, ids, unread, .. } = &mut *state;
        let surroundings = Surroundings {
            source: &self.name,
            settings: &self.shared.settings,
            ip_map: &self.ip_map,
            networks,
            cluster: cluster.as_deref().filter(|name| !name.is_empty()),
        };
        let (mut workloads, mut ended) = (Vec::new(), Vec::new());
        *unread = 0;
        for (vmid, guest) in guests.iter_mut().filter(|(_, guest)| self.shared.is_wanted(&guest.resource)) {
            let Some(id) = id_of(*vmid, guest, ids.get(vmid)) else { continue };
            *unread += usize::from(guest.is_unread());
            let known = guest.workload.clone().filter(|workload| workload.id == id);
            let workload = known.unwrap_or_else(|| Arc::new(surroundings.workload(*vmid, id.clone(), guest)));
            guest.workload = Some(Arc::clone(&workload));
            workloads.push(workload);
            if let Some(before) = ids.insert(*vmid, id.clone())
                && before != id
                && before.as_str().contains('/')
            {
                ended.push(Ended { id: before, asked: false });
            }
        }
        workloads.sort_by(|one, other| one.id.cmp(&other.id));
        (workloads, ended)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id of a guest: its number, and what tells it apart from an earlier guest of that number. Until its configuration is
/// read it keeps the id it was reported under before.
fn id_of(vmid: u64, guest: &Guest, before: Option<&Key>) -> Option<Key> {
    let Some(config) = &guest.config else {
        return before.cloned().or_else(|| vmid.to_string().parse().ok());
    };
    let incarnation = config.incarnation.as_deref().unwrap_or(guest.kind.word());
    format!("{vmid}/{incarnation}").parse().ok()
}

#[async_trait]
impl Source for Proxmox {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "proxmox"
    }

    async fn report(&self) -> Report {
        let begun = self.shared.clock.wall();
        let report = |view, workloads, ended| {
            let scope = ScopeReport { ended, ..ScopeReport::shared(view, workloads) };
            Report::of(self.name.clone(), begun, [(Scope::WHOLE, scope)])
        };
        match self.shared.look().await {
            Ok(doubts) => {
                let (workloads, ended) = self.workloads();
                let view = if doubts.is_empty() {
                    View::Complete
                } else {
                    View::Partial { reason: doubts.join("; ") }
                };
                report(view, workloads, ended)
            }
            Err(error) => {
                self.shared.state().unread = 0;
                report(View::Failed { reason: error.to_string() }, Vec::new(), Vec::new())
            }
        }
    }

    /// After a restart the ids of guests whose configuration cannot be read come from here, and the guests that may have been
    /// hidden meanwhile.
    fn remember(&self, reported: Vec<Key>) {
        let mut state = self.shared.state();
        for id in reported {
            let vmid = id.as_str().split('/').next().and_then(|vmid| vmid.parse().ok());
            if let Some(vmid) = vmid.filter(|vmid| NUMBERS.contains(vmid)) {
                if !state.guests.contains_key(&vmid) {
                    state.missing.insert(vmid);
                }
                state.ids.entry(vmid).or_insert(id);
            }
        }
    }

    fn unread(&self) -> usize {
        self.shared.state().unread
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(self.shared.settings.interval.into())
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        diagnose::diagnose(&self.shared.api, &self.shared.settings.pools).await
    }

    async fn changed(&self) {
        self.shared.wake.notified().await;
    }
}
