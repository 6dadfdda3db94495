//! Containers, and the services of a swarm, of one Docker host.
//!
//! A look is a handful of lists. Events only say that another look is due, so one that is missed costs time and
//! nothing else; the one thing they add is that a container was removed, rather than being merely absent.

mod api;
mod connect;
mod diagnose;
mod dynamic_targets;
mod host;
mod host_address;
mod network;
mod settings;
mod types;
mod watch;
mod workloads;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use netstead_model::{Clock, Diagnosis, Ended, Ident, Key, Report, Source, View, Workload};
use netstead_settings::{BuildContext, SettingsError, choice};
use netstead_wire::Tls;
use tokio::time::timeout;

use self::{
    api::{Api, ApiError, CONTAINERS, INFO, NETWORKS, SERVICES, TASKS},
    connect::Connector,
    network::Networks,
    types::{Container, Info, Inspected, InspectedConfig, Network, Service, Swarm, Task},
    watch::{Watch, encoded},
    workloads::{Environment, WorkloadBuilder},
};
pub use self::{
    host::DockerHost,
    settings::{DockerSettings, KIND},
};
use crate::{
    dialects::{Reader, TargetSpec},
    dynamic_target::TargetResolver,
};

/// A whole look.
const PATIENCE: Duration = Duration::from_secs(25);
/// Containers that are asked for their environment at once.
const AT_ONCE: usize = 8;

choice! {
    /// The part of a Docker host that is looked at.
    #[derive(Default)]
    pub enum Mode {
        /// Containers, and services too where this host manages a swarm.
        #[default]
        Auto = "auto",
        /// Services alone, of a manager.
        Swarm = "swarm",
        /// Containers alone.
        Standalone = "standalone",
    }
}

/// How one Docker host is looked at.
#[derive(Debug, Clone)]
pub struct Config {
    pub host: DockerHost,
    /// For a `tcp://` host.
    pub tls: Option<Tls>,
    pub mode: Mode,
    pub reader: Reader,
    /// Where names point that do not say it themselves; `Target::Source` is `auto`.
    pub target: TargetSpec,
    /// Also containers that do not run.
    pub keep_stopped: bool,
    /// Addresses of bridge networks are seen by the ledger too.
    pub observe: bool,
    /// Resolves dynamic targets; without it there are none.
    pub places: Option<Arc<dyn TargetResolver>>,
}

/// One Docker host.
#[derive(Debug)]
pub struct Docker {
    name: Ident,
    config: Config,
    api: Arc<Api>,
    clock: Arc<dyn Clock>,
    watch: OnceLock<Watch>,
    /// By id of the container, whose environment never changes.
    environments: Mutex<HashMap<String, Environment>>,
}

impl Docker {
    /// Fails only when the files of TLS cannot be used. Nothing is connected before the first look.
    pub fn new(config: Config, context: &BuildContext) -> Result<Self, SettingsError> {
        let (name, clock) = (context.name.clone(), Arc::clone(&context.clock));
        let tls = config.tls.as_ref().map(|tls| tls.client(&[])).transpose()?;
        let api = Arc::new(Api::new(
            Connector { host: config.host.clone(), tls },
            Arc::clone(&context.calls),
            Arc::clone(&clock),
        ));
        Ok(Self { name, config, api, clock, watch: OnceLock::new(), environments: Mutex::default() })
    }

    fn watch(&self) -> &Watch {
        let start = || Watch::start(self.name.clone(), Arc::clone(&self.api), Arc::clone(&self.clock));
        self.watch.get_or_init(start)
    }

    /// The workloads, and what was not shown.
    async fn list_workloads(&self) -> Result<(Vec<Workload>, Vec<String>), ApiError> {
        let mut doubts = Vec::new();
        let swarm = self.swarm(&mut doubts).await?;
        let manager = swarm.control_available;
        let networks = self.networks(&mut doubts).await?;
        let containers = self.containers(!swarm.local_node_state.is_empty()).await?;
        let environments = self.environments(&containers).await?;
        let (services, tasks) = if manager { self.services().await? } else { Default::default() };
        let node = Some(swarm.node_addr.as_str()).filter(|node| !node.is_empty());
        let host = host_address::of_host(&self.config.host, node, &networks).await;
        let services_told = services.iter().map(|one| &one.spec.labels);
        let told = containers.iter().map(|one| &one.labels).chain(services_told);
        let places = dynamic_targets::resolve(self.config.places.as_deref(), &self.config.target, told).await;
        let scene = WorkloadBuilder {
            source: &self.name,
            reader: &self.config.reader,
            target: &self.config.target,
            networks: &networks,
            observe: self.config.observe,
            host: &host,
            places: &places,
        };
        let none = Environment::new();
        let environment = |container: &Container| environments.get(&container.id).unwrap_or(&none);
        let containers = containers.iter().filter_map(|one| scene.container(one, environment(one)));
        let mut of_service: HashMap<&str, Vec<&Task>> = HashMap::new();
        for task in tasks.iter().filter(|task| task.status.state == "running") {
            of_service.entry(&task.service_id).or_default().push(task);
        }
        let services = services.iter().filter_map(|one| {
            let environment = self.wanted(&one.spec.task_template.container_spec);
            scene.service(one, &of_service, &environment)
        });
        let workloads: BTreeMap<Key, Workload> =
            containers.chain(services).map(|workload| (workload.id.clone(), workload)).collect();
        Ok((workloads.into_values().collect(), doubts))
    }

    /// The part this host has in a swarm; `local_node_state` is empty outside of one.
    async fn swarm(&self, doubts: &mut Vec<String>) -> Result<Swarm, ApiError> {
        let mode = self.config.mode;
        if mode == Mode::Standalone {
            return Ok(Swarm::default());
        }
        let mut swarm = match self.api.get::<Info>(INFO, "").await {
            Ok(info) => info.swarm,
            Err(error @ ApiError::Forbidden { .. }) if mode == Mode::Auto => {
                doubts.push(error.to_string());
                return Ok(Swarm::default());
            }
            Err(error) => return Err(error),
        };
        if swarm.local_node_state == "inactive" {
            swarm.local_node_state.clear();
        }
        if swarm.control_available {
            return Ok(swarm);
        }
        let host = &self.config.host;
        let state = match swarm.local_node_state.as_str() {
            "" if mode == Mode::Auto => return Ok(swarm),
            "" => format!("{host} is in no swarm: set `mode = \"standalone\"`"),
            "active" => format!(
                "{host} is a worker of a swarm, and only a manager shows services: set `host` to a manager, \
                 or `mode = \"standalone\"`"
            ),
            other => format!("the swarm of {host} is {other}"),
        };
        if mode == Mode::Swarm {
            return Err(ApiError::Unreachable(state));
        }
        doubts.push(state);
        Ok(swarm)
    }

    /// Without this list every address counts as one of the host alone, which only some targets can live with.
    async fn networks(&self, doubts: &mut Vec<String>) -> Result<Networks, ApiError> {
        match self.api.get::<Vec<Network>>(NETWORKS, "").await {
            Ok(networks) => Ok(networks.into()),
            Err(error @ ApiError::Forbidden { .. }) => {
                if matches!(self.config.target, TargetSpec::Source | TargetSpec::Host) || self.config.observe
                {
                    doubts.push(error.to_string());
                }
                Ok(Networks::default())
            }
            Err(error) => Err(error),
        }
    }

    async fn containers(&self, in_swarm: bool) -> Result<Vec<Container>, ApiError> {
        if self.config.mode == Mode::Swarm {
            return Ok(Vec::new());
        }
        let query = if self.config.keep_stopped { "?all=true" } else { "" };
        let mut containers: Vec<Container> = self.api.get(CONTAINERS, query).await?;
        // Those of a service are shown by the service.
        containers.retain(|container| !(in_swarm && workloads::is_of_service(container)));
        Ok(containers)
    }

    async fn services(&self) -> Result<(Vec<Service>, Vec<Task>), ApiError> {
        let services = self.api.get(SERVICES, "").await?;
        let running = encoded(r#"{"desired-state":["running"]}"#);
        let tasks = self.api.get(TASKS, &format!("?filters={running}")).await?;
        Ok((services, tasks))
    }

    /// Reads the variables of each container that the dialects need. Each container is asked once in its life.
    async fn environments(&self, containers: &[Container]) -> Result<HashMap<String, Environment>, ApiError> {
        if self.config.reader.wanted_environment().is_empty() {
            return Ok(HashMap::new());
        }
        let mut known =
            std::mem::take(&mut *self.environments.lock().unwrap_or_else(PoisonError::into_inner));
        let here: BTreeSet<&str> = containers.iter().map(|container| container.id.as_str()).collect();
        known.retain(|id, _| here.contains(id.as_str()));
        let new: Vec<String> =
            here.into_iter().filter(|id| !known.contains_key(*id)).map(str::to_owned).collect();
        let api = &self.api;
        let asked: Vec<(String, Result<Inspected, ApiError>)> = stream::iter(new)
            .map(|id| async move {
                let inspected = api.get_one(&format!("/containers/{id}/json")).await;
                (id, inspected)
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut failed = None;
        for (id, inspected) in asked {
            match inspected {
                Ok(inspected) => drop(known.insert(id, self.wanted(&inspected.config))),
                // It was removed a moment ago.
                Err(ApiError::Status { status: 404, .. }) => {}
                Err(error) => failed = Some(error),
            }
        }
        self.environments.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&known);
        failed.map_or(Ok(known), Err)
    }

    fn wanted(&self, config: &InspectedConfig) -> Environment {
        let wanted = self.config.reader.wanted_environment();
        let pairs = config.env.iter().filter_map(|line| line.split_once('='));
        let pairs = pairs.filter(|(name, _)| wanted.contains(name));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

#[async_trait]
impl Source for Docker {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "docker"
    }

    async fn report(&self) -> Report {
        let begun = self.clock.wall();
        let ended = self.watch().take_ended();
        let looked = timeout(PATIENCE, self.list_workloads()).await;
        let failed = |reason: String, ended| {
            self.watch().failed(ended);
            Report::whole(self.name.clone(), begun, View::Failed { reason }, Vec::new())
        };
        let (workloads, doubts) = match looked {
            Ok(Ok(seen)) => seen,
            Ok(Err(error)) => return failed(error.to_string(), ended),
            Err(_) => {
                let reason = format!("{} takes longer than {} s", self.config.host, PATIENCE.as_secs());
                return failed(reason, ended);
            }
        };
        let view =
            if doubts.is_empty() { View::Complete } else { View::Partial { reason: doubts.join("; ") } };
        // What came back under the same name did not end.
        let here = |id: &Key| workloads.binary_search_by(|workload| workload.id.cmp(id)).is_ok();
        let ended = ended.into_iter().filter(|id| !here(id)).map(|id| Ended { id, asked: false }).collect();
        Report::whole(self.name.clone(), begun, view, workloads).with_ended(ended)
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        diagnose::diagnose(&self.config.host, &self.api).await
    }

    async fn changed(&self) {
        match &self.config.places {
            None => self.watch().changed().await,
            Some(places) => tokio::select! {
                () = self.watch().changed() => {}
                () = places.changed() => {}
            },
        }
    }
}
