//! Traefik's dynamic configuration in files: YAML or TOML, single or in directories, watched.

mod dynamic;
mod file_pattern;
mod files;
mod settings;
mod watch;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{Address, Clock, Diagnosis, Ident, Key, Report, Source, View, Workload};
use tokio::time::{sleep, timeout};

use self::{
    dynamic::FileRouter,
    files::{Listing, list},
    watch::Watch,
};
pub use self::{
    file_pattern::FilePattern,
    settings::{KIND, TraefikFileSettings},
};
use crate::{
    dialects::{Reading, RequestedContent, TargetSpec, TraefikSettings, diagnostics::Diagnostics},
    dynamic_target::TargetResolver,
    readable_path::diagnose_paths,
    settled_file::{HALF_WRITTEN, SETTLE, UnfinishedFiles},
};

const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Config {
    /// Files, and directories with all below them.
    pub paths: Vec<PathBuf>,
    /// Names of the files to read in a directory.
    pub patterns: Vec<FilePattern>,
    /// How often the files are looked at though no change was noticed.
    pub poll: Duration,
    /// Only routers on one of these give names; empty means all do.
    pub entrypoints: Vec<String>,
    /// Where routers are that name no entrypoint.
    pub default_entrypoints: Vec<String>,
    /// Where the names point, for providers without a target of their own: addresses, one name, or a place that moves.
    pub target: Option<TargetSpec>,
    /// Resolves dynamic targets; without it there are none.
    pub places: Option<Arc<dyn TargetResolver>>,
}

/// The routers in Traefik's files.
#[derive(Debug)]
pub struct TraefikFiles {
    name: Ident,
    config: Config,
    settings: TraefikSettings,
    clock: Arc<dyn Clock>,
    watch: Watch,
    /// The last routers that could be read from each file: a file that is half written keeps its names.
    good: Mutex<BTreeMap<PathBuf, Vec<FileRouter>>>,
    unfinished: UnfinishedFiles,
}

impl TraefikFiles {
    pub fn new(name: Ident, config: Config, clock: Arc<dyn Clock>) -> Self {
        let settings = TraefikSettings {
            entrypoints: config.entrypoints.clone(),
            default_entrypoints: config.default_entrypoints.clone(),
            ..TraefikSettings::default()
        };
        let watch = Watch::new(config.paths.clone());
        let unfinished = UnfinishedFiles::new(Arc::clone(&clock));
        Self { name, config, settings, clock, watch, good: Mutex::default(), unfinished }
    }

    /// The files once the same ones are there for a while, and none of those that were opened is written to.
    async fn list_settled_files(&self) -> Result<Listing, String> {
        let mut seen = self.list().await?;
        loop {
            sleep(SETTLE).await;
            let again = self.list().await?;
            let settled =
                tokio::task::spawn_blocking(move || seen.is_settled(&again).then_some(seen).ok_or(again));
            match settled.await.map_err(|error| unreadable(&error))? {
                Ok(seen) => return Ok(seen),
                Err(again) => seen = again,
            }
        }
    }

    async fn list(&self) -> Result<Listing, String> {
        let (paths, patterns) = (self.config.paths.clone(), self.config.patterns.clone());
        tokio::task::spawn_blocking(move || list(&paths, &patterns)).await.map_err(|error| unreadable(&error))
    }

    /// The routers of all files, and what is doubtful about them.
    fn routers(&self, listing: Listing) -> (Vec<FileRouter>, Vec<String>) {
        let mut doubts = listing.doubts;
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = BTreeMap::new();
        self.unfinished.retain(&listing.files.keys().map(PathBuf::as_path).collect());
        for (path, opened) in listing.files {
            let text = opened.into_text();
            let read = if self.unfinished.is_whole(&path, &text) {
                dynamic::read(&path, &text, &self.settings)
            } else {
                Err(HALF_WRITTEN.to_owned())
            };
            match read {
                Ok(found) => drop(now.insert(path, found)),
                Err(why) => {
                    doubts.push(format!("{}: {why}", path.display()));
                    now.extend(good.remove(&path).map(|found| (path, found)));
                }
            }
        }
        good.clone_from(&now);
        if now.is_empty() && doubts.is_empty() {
            // A directory that is not mounted looks like this, too.
            doubts.push("there is no file of Traefik's".into());
        }
        (now.into_values().flatten().collect(), doubts)
    }

    fn workloads(&self, routers: Vec<FileRouter>, at: &Result<Vec<Address>, String>) -> Vec<Workload> {
        let moves = self.config.target.as_ref().is_some_and(TargetSpec::is_dynamic);
        let mut by_id: BTreeMap<Key, Workload> = BTreeMap::new();
        for router in routers {
            let id = router.id;
            let workload = by_id
                .entry(id.clone())
                .or_insert_with(|| Workload::new(self.name.clone(), id, "router", router.name.clone()));
            workload.unclear |= router.reading.unclear;
            let (mut wishes, why_not) = self.pointed(router.reading).wishes(|_| at.clone());
            // Where Traefik listens, which is nothing of the router's own.
            for wish in &mut wishes {
                (wish.borrowed, wish.moves) = (true, moves);
            }
            workload.wishes.extend(wishes);
            workload.why_not.extend(why_not);
        }
        by_id.into_values().collect()
    }

    fn pointed(&self, mut reading: Reading) -> Reading {
        if let Some(TargetSpec::Name(name)) = &self.config.target {
            for ask in &mut reading.requests {
                ask.content = RequestedContent::Points { target: TargetSpec::Name(name.clone()), kind: None };
            }
        }
        reading
    }

    /// Where the names point, if they point at addresses.
    async fn addresses(&self) -> Result<Vec<Address>, String> {
        match (&self.config.target, &self.config.places) {
            (Some(TargetSpec::Addresses(addresses)), _) => Ok(addresses.clone()),
            (Some(target), Some(places)) => match target.to_dynamic() {
                Some(place) => {
                    places.addresses_of(&place).await.map(|ips| ips.into_iter().map(Address::from).collect())
                }
                None => Ok(Vec::new()),
            },
            _ => Ok(Vec::new()),
        }
    }
}

fn unreadable(error: &tokio::task::JoinError) -> String {
    format!("the files cannot be read: {error}")
}

#[async_trait]
impl Source for TraefikFiles {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "traefik"
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(self.config.poll)
    }

    async fn report(&self) -> Report {
        let begun = self.clock.wall();
        self.watch.renew();
        let (view, routers) = match timeout(PATIENCE, self.list_settled_files()).await {
            Ok(Ok(listing)) => {
                let failed = listing.files.is_empty() && !listing.doubts.is_empty();
                let (routers, doubts) = self.routers(listing);
                let mut notes = Diagnostics::default();
                for doubt in doubts {
                    notes.add(doubt);
                }
                let reason = notes.into_sentences().join("; ");
                let view = if reason.is_empty() {
                    View::Complete
                } else if failed {
                    View::Failed { reason }
                } else {
                    View::Partial { reason }
                };
                (view, routers)
            }
            Ok(Err(reason)) => (View::Failed { reason }, Vec::new()),
            Err(_) => (View::Failed { reason: "the files keep changing".into() }, Vec::new()),
        };
        let workloads = self.workloads(routers, &self.addresses().await);
        Report::whole(self.name.clone(), begun, view, workloads)
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        diagnose_paths(self.config.paths.clone()).await
    }

    async fn changed(&self) {
        let moved = async {
            match &self.config.places {
                Some(places) => places.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.watch.changed() => {}
            () = self.unfinished.due() => {}
            () = moved => {}
        }
    }
}
