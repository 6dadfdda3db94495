//! One look at a cluster: the list of guests, and everything of them that is due.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Shared, State,
    api::ApiError,
    guest::{Asked, Guest, GuestKind},
    lenient::list_of,
    node_network::NodeNetworks,
    read_guest::GuestQuery,
    sight::doubt_about,
    types::{Resource, StatusItem, Task},
    workload::split_tags,
};

/// Guests of one node that are read at once.
const AT_ONCE_OF_NODE: usize = 8;
/// A guest whose agent takes longer is left to the slow lane.
const SLOW: Duration = Duration::from_millis(750);
/// How long a look waits for guests that are read. The rest is seen by the looks after it, which follow at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the networks of the nodes are read.
const NETWORKS_LIFE: Duration = Duration::from_mins(10);
/// How soon they are read again when a node did not answer.
const NETWORKS_PAUSE: Duration = Duration::from_mins(1);
/// A look no longer waits once no read has ended for so long: a node that hangs delays the guests of no other.
const STALL: Duration = Duration::from_secs(3);

/// Parts that a look could not see, for people.
pub(super) type Doubts = Vec<String>;

impl Shared {
    /// Looks once and starts every read that is due. Returns when those that do not hang have ended.
    pub(super) async fn look(self: &Arc<Self>) -> Result<Doubts, ApiError> {
        let listed = list_of::<Resource>(self.api.get(&["cluster", "resources"]).await?);
        let Listed { nodes, mut guests, pools } = sorted(listed);
        let mut doubts = self.check_quorum(&nodes).await?;
        let named = self.named_by_tasks().await;
        let hidden = self.hidden_pools(&pools).await;
        doubts.extend(doubt_about(&hidden));
        {
            let mut state = self.state();
            state.keep_hidden_pools(&mut guests, &hidden);
            state.note_missing(&guests, |resource| self.is_wanted(resource));
        }
        doubts.extend(self.check_sight(&guests).await);
        let online: Vec<String> =
            nodes.iter().filter(|(_, online)| **online).map(|(node, _)| node.clone()).collect();
        self.refresh_networks(&online).await;
        let queries = {
            let mut state = self.state();
            state.update(guests, &named);
            self.due(&mut state)
        };
        self.start(queries);
        self.wait_for_reads().await;
        Ok(doubts)
    }

    /// Lost quorum: what the list says of other nodes may be old.
    async fn check_quorum(&self, nodes: &BTreeMap<String, bool>) -> Result<Doubts, ApiError> {
        if nodes.len() < 2 && self.state().cluster.is_some() {
            return Ok(Vec::new());
        }
        let online = nodes.values().filter(|online| **online).count();
        let lost = |quorate: bool| {
            let text = format!("the cluster has no quorum: {online} of {} nodes are online", nodes.len());
            if quorate { Vec::new() } else { vec![text] }
        };
        match self.api.get(&["cluster", "status"]).await {
            Ok(value) => {
                let items = list_of::<StatusItem>(value);
                let cluster = items.iter().find(|item| item.kind.as_deref() == Some("cluster"));
                let name = cluster.and_then(|cluster| cluster.name.clone());
                self.state().cluster = Some(name.unwrap_or_default());
                Ok(lost(cluster.is_none_or(|cluster| cluster.quorate)))
            }
            // Without `Sys.Audit` the list of nodes has to do.
            Err(ApiError::Forbidden { .. }) => {
                self.state().cluster.get_or_insert_default();
                Ok(lost(nodes.is_empty() || online * 2 > nodes.len()))
            }
            Err(error) => Err(error),
        }
    }

    /// Guests that a task is about which began or ended since the look before.
    async fn named_by_tasks(&self) -> BTreeSet<u64> {
        let Ok(tasks) = self.api.get(&["cluster", "tasks"]).await else { return BTreeSet::new() };
        let tasks = list_of::<Task>(tasks);
        let state_of = |task: &Task| Some((task.upid.clone()?, task.endtime));
        let now: HashSet<(String, Option<u64>)> = tasks.iter().filter_map(state_of).collect();
        let before = std::mem::replace(&mut self.state().tasks, now);
        let new = tasks.iter().filter(|task| state_of(task).is_some_and(|state| !before.contains(&state)));
        new.filter_map(|task| task.id.as_ref()?.parse().ok()).collect()
    }

    async fn refresh_networks(self: &Arc<Self>, online: &[String]) {
        let now = self.clock.monotonic();
        let due = {
            let state = self.state();
            now >= state.networks_due || online.iter().any(|node| !state.networks_of.contains(node))
        };
        if !due {
            return;
        }
        let is_first = {
            let mut state = self.state();
            state.networks_due = now.saturating_add(NETWORKS_PAUSE);
            let before = std::mem::replace(&mut state.networks_of, online.to_vec());
            before.is_empty()
        };
        let (shared, online) = (Arc::clone(self), online.to_vec());
        let read = async move {
            let before = Arc::clone(&shared.state().networks);
            let networks = NodeNetworks::read(&shared, &online, &before).await;
            let mut state = shared.state();
            if networks.is_complete {
                state.networks_due = now.saturating_add(NETWORKS_LIFE);
            }
            state.networks = Arc::new(networks);
            state.guests.values_mut().for_each(|guest| guest.workload = None);
        };
        // Later it goes on by itself: a node that hangs delays no look.
        if is_first {
            read.await;
        } else {
            drop(tokio::spawn(read));
        }
    }

    /// The reads that are due; their guests are busy from now on.
    fn due(&self, state: &mut State) -> Vec<(GuestQuery, bool)> {
        let now = self.clock.monotonic();
        let learning: Vec<String> = state.networks.learning.iter().cloned().collect();
        let mut queries = Vec::new();
        for (vmid, guest) in &mut state.guests {
            let wanted = self.is_wanted(&guest.resource) && !guest.is_lost() && !guest.busy;
            let (config, addresses) = (now >= guest.config_due, now >= guest.addresses_due);
            let Some(node) = guest.resource.node.clone().filter(|_| wanted && (config || addresses)) else {
                continue;
            };
            guest.busy = true;
            let hostname = config || !guest.is_name_settled() || guest.told.is_none();
            let known = guest.config.clone().filter(|_| !config);
            let query = GuestQuery {
                vmid: *vmid,
                node,
                kind: guest.kind,
                running: guest.is_running(),
                known,
                addresses,
                hostname,
                learning: learning.clone(),
            };
            queries.push((query, guest.failures > 0));
        }
        queries
    }

    fn start(self: &Arc<Self>, queries: Vec<(GuestQuery, bool)>) {
        for (query, slow) in queries {
            let lane = Arc::clone(
                self.state()
                    .lanes
                    .entry(query.node.clone())
                    .or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_OF_NODE))),
            );
            if !slow {
                self.waited_for.send_modify(|count| *count += 1);
            }
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.read(query, slow, lane).await });
        }
    }

    /// Reads one guest. One whose agent hangs leaves its place to others after a moment.
    async fn read(&self, query: GuestQuery, slow: bool, lane: Arc<Semaphore>) {
        let mut place = Place { permit: None, counted: (!slow).then_some(self) };
        place.permit = if slow {
            Arc::clone(&self.slow_lane).acquire_owned().await.ok()
        } else {
            lane.acquire_owned().await.ok()
        };
        let (mut reading, config) = query.read_config(&self.api).await;
        if let Some(config) = config {
            let ask = query.read_addresses(self, &config, &mut reading);
            let mut ask = std::pin::pin!(ask);
            let in_time = tokio::time::timeout(SLOW, &mut ask).await;
            if in_time.is_err() {
                if slow {
                    ask.await;
                } else {
                    // Others need neither wait for this guest nor for its place. It was asked already, so its answer is
                    // read whenever it comes.
                    drop(place);
                    place = Place { permit: None, counted: None };
                    tokio::select! {
                        () = &mut ask => {}
                        permit = Arc::clone(&self.slow_lane).acquire_owned() => {
                            place.permit = permit.ok();
                            ask.await;
                        }
                    }
                }
            }
        }
        let now = self.clock.monotonic();
        let every = Duration::from(self.settings.address_interval);
        let mut news = false;
        if let Some(guest) = self.state().guests.get_mut(&query.vmid) {
            let (first, before) = (guest.config.is_none(), guest.asked.clone());
            guest.apply(reading, now, every);
            news = guest.asked == Asked::Answered || guest.asked != before;
            if first && guest.failures == 0 && guest.is_name_settled() {
                // Spreads the guests over the interval.
                let share = u32::try_from(query.vmid.wrapping_mul(7919) % 1000).unwrap_or_default();
                guest.addresses_due = now.saturating_add(every.saturating_mul(share) / 1000 + every / 4);
            }
        }
        // A look that waits for it shows it.
        if news && (place.counted.is_none() || !self.is_waited_for.load(Ordering::Relaxed)) {
            self.wake.notify_one();
        }
        drop(place);
    }

    async fn wait_for_reads(&self) {
        self.is_waited_for.store(true, Ordering::Relaxed);
        let mut waited_for = self.waited_for.subscribe();
        let all = async {
            while *waited_for.borrow_and_update() > 0 {
                let ended = tokio::time::timeout(STALL, waited_for.changed()).await;
                if !matches!(ended, Ok(Ok(()))) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, all).await;
        self.is_waited_for.store(false, Ordering::Relaxed);
    }

    /// Whether the filters let a guest through. One of an offline node is let through: little is known of it.
    pub(super) fn is_wanted(&self, resource: &Resource) -> bool {
        let settings = &self.settings;
        let is_in = |list: &[String], text: Option<&String>| {
            list.is_empty() || text.is_some_and(|text| list.iter().any(|one| one == text))
        };
        let lost = resource.status.as_deref().is_none_or(|status| status == "unknown");
        let fits = |pattern: &String, tag: &str| match pattern.strip_suffix('*') {
            Some(start) => tag.starts_with(start),
            None => tag == pattern,
        };
        let tags = resource.tags.as_deref().unwrap_or_default();
        let tagged = settings.tags.is_empty()
            || split_tags(tags).any(|tag| settings.tags.iter().any(|pattern| fits(pattern, tag)));
        !resource.template
            && is_in(&settings.nodes, resource.node.as_ref())
            && (lost
                || (is_in(&settings.states, resource.status.as_ref())
                    && is_in(&settings.pools, resource.pool.as_ref())
                    && tagged))
    }
}

/// The place of a read among others; dropping it frees the place.
struct Place<'a> {
    permit: Option<OwnedSemaphorePermit>,
    counted: Option<&'a Shared>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit.take();
        if let Some(shared) = self.counted {
            shared.waited_for.send_modify(|count| *count = count.saturating_sub(1));
        }
    }
}

/// The list of a cluster, by what its elements are.
struct Listed {
    /// Each with whether it is online.
    nodes: BTreeMap<String, bool>,
    guests: BTreeMap<u64, (GuestKind, Resource)>,
    /// Those that these credentials may see.
    pools: BTreeSet<String>,
}

fn sorted(resources: Vec<Resource>) -> Listed {
    let mut listed = Listed { nodes: BTreeMap::new(), guests: BTreeMap::new(), pools: BTreeSet::new() };
    for resource in resources {
        // A guest shows its pool only to those that may see the pool.
        listed.pools.extend(resource.pool.clone());
        let kind = match resource.kind.as_deref() {
            Some("qemu") => GuestKind::Machine,
            Some("lxc") => GuestKind::Container,
            Some("node") => {
                let online = resource.status.as_deref() == Some("online");
                listed.nodes.extend(resource.node.map(|node| (node, online)));
                continue;
            }
            _ => continue,
        };
        if let Some(vmid) = resource.vmid {
            listed.guests.insert(vmid, (kind, resource));
        }
    }
    listed
}

impl State {
    /// Takes over the list of guests.
    fn update(&mut self, listed: BTreeMap<u64, (GuestKind, Resource)>, named: &BTreeSet<u64>) {
        self.guests.retain(|vmid, guest| listed.get(vmid).is_some_and(|(kind, _)| *kind == guest.kind));
        for (vmid, (kind, resource)) in listed {
            match self.guests.get_mut(&vmid) {
                Some(guest) => guest.update(resource),
                None => drop(self.guests.insert(vmid, Guest::new(kind, resource))),
            }
            if named.contains(&vmid)
                && let Some(guest) = self.guests.get_mut(&vmid)
            {
                (guest.config_due, guest.addresses_due) = (Duration::ZERO, Duration::ZERO);
            }
        }
    }
}
