//! Hand-written hosts: a TOML file, or one in the style of `/etc/hosts`, watched.

mod etc_hosts;
mod toml_hosts;
mod watch;

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use netstead_model::{Clock, Diagnosis, Ident, Key, Report, Source, View, Wish, Workload};
use netstead_settings::{BuildContext, Configured, Identity, Kind, SettingsError, table};
use tokio::time::{sleep, timeout};

use self::watch::FileWatch;
use crate::{
    SourceKind, SourceTraits,
    readable_path::diagnose_paths,
    settled_file::{HALF_WRITTEN, OpenedFile, SETTLE, UnfinishedFiles},
};

/// Largest file that is read.
const MOST_BYTES: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

pub const KIND: SourceKind =
    Kind::new::<Config>("hosts", "names and addresses that a person wrote into a file", || SourceTraits {
        labels: false,
    });

table! {
    /// `[source.NAME]` with `type = "hosts"`.
    pub struct Config {
        /// the file: TOML if its name ends in `.toml`, else lines of `ADDRESS NAME…` as in `/etc/hosts`; it is watched, and a
        /// last line without an end counts once the file stayed the same for three seconds
        path: PathBuf, required "\"/etc/netstead/hosts\"";
    }
}

impl Configured<dyn Source> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_path(&self.path)
    }

    fn server(&self) -> String {
        self.path.display().to_string()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn Source>, SettingsError> {
        Ok(Arc::new(Hosts::new(context.name.clone(), self.clone(), Arc::clone(&context.clock))))
    }
}

/// Names and addresses a person wrote into a file.
#[derive(Debug)]
pub struct Hosts {
    name: Ident,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    watch: FileWatch,
    unfinished: UnfinishedFiles,
}

/// One host of the file, in either style.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    name: String,
    wishes: Vec<Wish>,
}

/// The hosts of a file, and its doubtful lines.
#[derive(Debug, Default)]
struct Content {
    hosts: Vec<Host>,
    doubts: Vec<String>,
}

impl Hosts {
    pub fn new(name: Ident, config: Config, clock: Arc<dyn Clock>) -> Self {
        let (watch, unfinished) = (FileWatch::new(&config.path), UnfinishedFiles::new(Arc::clone(&clock)));
        Self { name, path: config.path, clock, watch, unfinished }
    }

    async fn read_settled_file(&self) -> Result<Content, String> {
        let text = loop {
            let path = self.path.clone();
            let mut opened = blocking(move || OpenedFile::read(&path, MOST_BYTES))
                .await?
                .map_err(|error| format!("{} cannot be read: {error}", self.path.display()))?;
            sleep(SETTLE).await;
            if let Some(text) = blocking(move || opened.is_unchanged().then(|| opened.into_text())).await? {
                break text;
            }
        };
        if text.trim().is_empty() {
            return Ok(Content { hosts: Vec::new(), doubts: vec!["the file is empty".into()] });
        }
        let whole = self.unfinished.is_whole(&self.path, &text);
        if !self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            return Ok(etc_hosts::read(&text, whole));
        }
        if !whole {
            return Err(HALF_WRITTEN.into());
        }
        toml_hosts::read(&text)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|error| format!("the file cannot be read: {error}"))
}

#[async_trait]
impl Source for Hosts {
    fn name(&self) -> &Ident {
        &self.name
    }

    fn kind(&self) -> &'static str {
        "hosts"
    }

    async fn report(&self) -> Report {
        let begun = self.clock.wall();
        let looked = timeout(PATIENCE, self.read_settled_file()).await;
        let (view, hosts) = match looked {
            Ok(Ok(content)) if content.doubts.is_empty() => (View::Complete, content.hosts),
            Ok(Ok(content)) => (View::Partial { reason: content.doubts.join("; ") }, content.hosts),
            Ok(Err(reason)) => (View::Failed { reason }, Vec::new()),
            Err(_) => (View::Failed { reason: "the file keeps changing".into() }, Vec::new()),
        };
        let workloads = hosts.into_iter().filter_map(|host| self.workload(host)).collect();
        Report::whole(self.name.clone(), begun, view, workloads)
    }

    async fn diagnose(&self) -> Vec<Diagnosis> {
        diagnose_paths(vec![self.path.clone()]).await
    }

    async fn changed(&self) {
        tokio::select! {
            () = self.watch.changed() => {}
            () = self.unfinished.due() => {}
        }
    }
}

impl Hosts {
    fn workload(&self, host: Host) -> Option<Workload> {
        let id = host.name.parse::<Key>().ok()?;
        let hostname = host.wishes.first().map(|wish| wish.name.clone());
        let workload = Workload::new(self.name.clone(), id, "host", host.name);
        Some(Workload { hostname, wishes: host.wishes, ..workload })
    }
}
