//! Turns Docker's lists into workloads. No I/O.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use jiff::Timestamp;
use netstead_model::{Address, Content, Facts, Ident, Interface, Key, RecordData, Wish, Workload};

use super::{
    dynamic_targets::ResolvedTargets,
    network::{Networks, without_length},
    types::{Container, Service, Task},
};
use crate::dialects::{Reader, TargetSpec, WorkloadLabels};

/// Longer labels are not kept: no name is that long.
const LONGEST_LABEL: usize = 1024;
/// The label that Docker gives to containers of swarm services.
const OF_SERVICE: &str = "com.docker.swarm.service.id";

/// Everything that is known when workloads are made.
#[derive(Debug)]
pub(super) struct WorkloadBuilder<'a> {
    pub(super) source: &'a Ident,
    pub(super) reader: &'a Reader,
    /// Where names point that do not say it themselves.
    pub(super) target: &'a TargetSpec,
    pub(super) networks: &'a Networks,
    /// Addresses of the network alone, or also those of bridges.
    pub(super) observe: bool,
    pub(super) host: &'a Result<Vec<Address>, String>,
    /// The dynamic targets that some label asks for.
    pub(super) places: &'a ResolvedTargets,
}

/// The variables of a container's environment that a dialect reads.
pub(super) type Environment = BTreeMap<String, String>;

/// The common part of containers and services.
struct ContainerOrService<'a> {
    id: Key,
    kind: &'static str,
    name: &'a str,
    labels: &'a BTreeMap<String, String>,
    environment: &'a Environment,
    interfaces: Vec<Interface>,
    /// Of a network by its name.
    on_network: BTreeMap<String, Vec<Address>>,
    /// Its addresses reach further than the host, but it may have none now.
    own: bool,
    created: Option<Timestamp>,
    /// The state of a container.
    status: Option<String>,
}

/// A container's name, which it keeps when it is made anew; its id would not.
pub(super) fn name(container: &Container) -> &str {
    let names = container.names.iter().map(|name| name.strip_prefix('/').unwrap_or(name));
    // A name with a slash is what a linked container calls it.
    names.clone().find(|name| !name.contains('/')).or(names.clone().next()).unwrap_or(&container.id)
}

pub(super) fn is_of_service(container: &Container) -> bool {
    container.labels.contains_key(OF_SERVICE)
}

/// Names of services live beside those of containers.
pub(super) fn service_id(name: &str) -> Option<Key> {
    format!("service/{name}").parse().ok()
}

impl WorkloadBuilder<'_> {
    pub(super) fn container(&self, container: &Container, environment: &Environment) -> Option<Workload> {
        let name = name(container);
        let interfaces = self.networks.interfaces(container);
        let networks = &container.network_settings.networks;
        let mut on_network: BTreeMap<String, Vec<Address>> =
            networks.keys().map(|name| (name.clone(), Vec::new())).collect();
        for interface in &interfaces {
            let addresses = on_network.entry(interface.name.clone().unwrap_or_default()).or_default();
            addresses.extend_from_slice(&interface.addresses);
        }
        let own = networks.values().any(|endpoint| self.networks.gives_own(&endpoint.network_id));
        let labels = &container.labels;
        let thing = ContainerOrService {
            id: name.parse().ok()?,
            kind: "container",
            name,
            labels,
            environment,
            interfaces,
            on_network,
            own,
            created: Timestamp::from_second(container.created).ok().filter(|at| *at > Timestamp::UNIX_EPOCH),
            status: Some(container.state.clone()).filter(|state| !state.is_empty()),
        };
        Some(self.workload(thing))
    }

    /// A service has the addresses of its tasks that run, and a virtual one per network.
    pub(super) fn service(
        &self,
        service: &Service,
        tasks: &HashMap<&str, Vec<&Task>>,
        environment: &Environment,
    ) -> Option<Workload> {
        let mut virtuals: BTreeMap<&str, Vec<Address>> = BTreeMap::new();
        for ip in &service.endpoint.virtual_ips {
            virtuals.entry(&ip.network_id).or_default().extend(without_length(&ip.address));
        }
        let mut running: BTreeMap<&str, Vec<Address>> = BTreeMap::new();
        let tasks = tasks.get(service.id.as_str()).into_iter().flatten();
        for attachment in tasks.flat_map(|task| &task.networks_attachments) {
            let addresses = attachment.addresses.iter().filter_map(|text| without_length(text));
            running.entry(&attachment.network.id).or_default().extend(addresses);
        }
        let mut interfaces = Vec::new();
        let mut on_network: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        // A service on a network means all of its tasks, and the virtual address leads to them.
        for (ids, suffix) in [(virtuals, " (virtual)"), (running, "")] {
            for (id, mut addresses) in ids {
                addresses.sort_unstable();
                addresses.dedup();
                let name = self.networks.name(id);
                on_network.entry(name.to_owned()).or_insert_with(|| addresses.clone());
                interfaces.extend(self.networks.of_network(id, &format!("{name}{suffix}"), None, addresses));
            }
        }
        let name = service.spec.name.as_str();
        let own = interfaces.iter().any(|interface| !interface.local);
        let labels = &service.spec.labels;
        let id = service_id(name)?;
        Some(self.workload(ContainerOrService {
            id,
            kind: "service",
            name,
            labels,
            environment,
            interfaces,
            on_network,
            own,
            created: service.created_at.parse().ok(),
            status: None,
        }))
    }

    fn workload(&self, thing: ContainerOrService<'_>) -> Workload {
        let told = WorkloadLabels { name: thing.name, labels: thing.labels, environment: thing.environment };
        let reading = self.reader.read(&told);
        let (unclear, pool) = (reading.unclear, reading.pool.clone());
        let unknown: RefCell<Option<String>> = RefCell::default();
        let (mut wishes, mut why_not) = reading.wishes(|target| match target {
            // Without an address the name stands all the same: a provider may have a target of its own.
            TargetSpec::Source => Ok(self.resolve(self.target, &thing).unwrap_or_else(|why| {
                unknown.replace(Some(why));
                Vec::new()
            })),
            target => self.resolve(target, &thing),
        });
        why_not.extend(unknown.into_inner().map(|why| format!("it has no address: {why}")));
        for wish in &mut wishes {
            wish.borrowed = !thing.has_all(&wish.content);
            // Only what names of the source do by themselves is left as addresses.
            wish.moves |= self.target.is_dynamic() && matches!(wish.content, Content::Addresses(_));
        }
        mark_main(&mut wishes);
        let mut interfaces = thing.interfaces;
        if self.observe {
            for interface in &mut interfaces {
                interface.local = false;
            }
        }
        // The rest is of no use here, and may be secret: what is kept comes into the store and its backups.
        let kept = |name: &str, value: &str| self.reader.is_read(name) && value.len() <= LONGEST_LABEL;
        let labels = thing.labels.iter().filter(|(name, value)| kept(name, value));
        Workload {
            labels: labels.map(|(name, value)| (name.clone(), value.clone())).collect(),
            interfaces,
            wishes,
            why_not,
            unclear,
            pool,
            created: thing.created,
            facts: Facts { status: thing.status, ..Facts::default() }.known(),
            ..Workload::new(self.source.clone(), thing.id, thing.kind, thing.name)
        }
    }

    fn resolve(&self, target: &TargetSpec, thing: &ContainerOrService<'_>) -> Result<Vec<Address>, String> {
        match target {
            TargetSpec::Source => self.automatic(thing),
            TargetSpec::Addresses(addresses) => Ok(addresses.clone()),
            TargetSpec::Host => self.host.clone(),
            TargetSpec::Network(network) => match thing.on_network.get(network) {
                Some(addresses) if !addresses.is_empty() => Ok(addresses.clone()),
                Some(_) => Err(format!("it has no address on the network {network} now")),
                None => Err(format!("it is not on the network {network}")),
            },
            TargetSpec::Public | TargetSpec::Interface(_) => {
                match target.to_dynamic().and_then(|at| self.places.get(&at)) {
                    Some(found) => found.clone(),
                    None => Err(format!("{target} is not followed here")),
                }
            }
            TargetSpec::Name(name) => Err(format!("{name} is a name, and an address is wanted")),
        }
    }

    /// Its own address where others can reach it, else that of the host, where a proxy or a published port is.
    fn automatic(&self, thing: &ContainerOrService<'_>) -> Result<Vec<Address>, String> {
        let own: Vec<Address> = thing.own_addresses().collect();
        if own.is_empty() && thing.own {
            return Err("it has no address on its network now".into());
        }
        if own.is_empty() { self.host.clone() } else { Ok(own) }
    }
}

impl ContainerOrService<'_> {
    fn own_addresses(&self) -> impl Iterator<Item = Address> + '_ {
        let own = self.interfaces.iter().filter(|interface| !interface.local);
        own.flat_map(|interface| &interface.addresses).copied()
    }

    /// Whether every address here is one of its own, wherever that can be reached.
    fn has_all(&self, content: &Content) -> bool {
        let has = |address: Address| self.interfaces.iter().any(|one| one.addresses.contains(&address));
        match content {
            Content::Addresses(addresses) => addresses.iter().all(|address| has(*address)),
            Content::Records { values, .. } => {
                values.iter().filter_map(RecordData::to_address).all(|ip| has(ip.into()))
            }
        }
    }
}

/// The first name of the workload's own addresses is what they are called.
fn mark_main(wishes: &mut [Wish]) {
    let of_itself = |wish: &&mut Wish| {
        let some = matches!(&wish.content, Content::Addresses(addresses) if !addresses.is_empty());
        some && !wish.borrowed && !wish.name.is_wildcard()
    };
    if let Some(wish) = wishes.iter_mut().find(of_itself) {
        wish.main = true;
    }
}
