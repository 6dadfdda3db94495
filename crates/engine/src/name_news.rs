//! Tells sources what became of the names of their workloads.
//!
//! Only the leader does, only when something changed, and at most once a minute for each workload: what changes in between is
//! told when the minute is over. A new leader tells everything once, because it does not know what the former one told.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures::FutureExt as _;
use netstead_model::{Ident, Key, NameState, Source, WorkloadNames};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::{background_task::BackgroundTask, engine_state::EngineState, records};

/// How often it is looked whether something changed.
const INTERVAL: Duration = Duration::from_secs(1);
/// A workload is not told of more often than this, in milliseconds of engine time.
const PAUSE: u64 = 60_000;
/// How long a source may take to hear.
const PATIENCE: Duration = Duration::from_secs(30);

/// The loop that tells sources about names.
#[derive(Debug, Default)]
pub(crate) struct NameNews {
    running: OnceCell<BackgroundTask>,
}

impl NameNews {
    pub(crate) async fn stop_or_abort(&self) {
        if let Some(running) = self.running.get() {
            running.stop_or_abort().await;
        }
    }
}

/// Starts telling.
pub(crate) fn start(shared: &Arc<EngineState>) {
    let stop = shared.stop.child_token();
    let (inside, ends) = (Arc::clone(shared), stop.clone());
    let work = async move {
        let mut told = ToldNames::default();
        loop {
            tokio::select! {
                () = ends.cancelled() => return,
                () = pass(&inside, &mut told) => {}
            }
            tokio::select! {
                () = ends.cancelled() => return,
                () = sleep(INTERVAL) => {}
            }
        }
    };
    let _ = shared.name_news.running.set(BackgroundTask::start(stop, work));
}

/// News that each workload's source got last.
#[derive(Debug, Default)]
struct ToldNames(BTreeMap<Ident, ToldOfSource>);

#[derive(Debug, Default)]
struct ToldOfSource(BTreeMap<Key, Told>);

#[derive(Debug)]
struct Told {
    /// Engine time.
    at: u64,
    names: Vec<NameState>,
}

async fn pass(shared: &EngineState, told: &mut ToldNames) {
    let handles: Vec<Arc<dyn Source>> =
        shared.sources().values().map(|handle| Arc::clone(&handle.setup.source)).collect();
    let listening: Vec<&Arc<dyn Source>> =
        handles.iter().filter(|source| source.flags().hears_names).collect();
    told.0.retain(|name, _| listening.iter().any(|source| source.name() == name));
    for source in listening {
        let now = records::names_of_source(shared, source.name());
        let known: BTreeSet<Key> = {
            let newest = shared.inventory.borrow().inventory.clone();
            newest.source(source.name()).into_iter().flat_map(|state| state.entries.keys().cloned()).collect()
        };
        let news = told.0.entry(source.name().clone()).or_default().news(now, &known, shared.now().millis);
        if news.is_empty() {
            continue;
        }
        // A bug in one source is that source's failure.
        let heard = AssertUnwindSafe(timeout(PATIENCE, source.hear_names(news))).catch_unwind().await;
        if !matches!(heard, Ok(Ok(()))) {
            tracing::warn!(source = %source.name(), "A source did not hear what became of its names.");
        }
    }
}

impl ToldOfSource {
    /// News that are due now; workloads that are no longer `known` are forgotten.
    fn news(
        &mut self,
        mut names: BTreeMap<Key, Vec<NameState>>,
        known: &BTreeSet<Key>,
        now: u64,
    ) -> Vec<WorkloadNames> {
        self.0.retain(|id, _| known.contains(id));
        for id in self.0.keys() {
            // It had names, and has none now.
            names.entry(id.clone()).or_default();
        }
        let mut news = Vec::new();
        for (id, names) in names.into_iter().filter(|(id, _)| known.contains(id)) {
            let last = self.0.get(&id);
            let waits = last.is_some_and(|last| now.saturating_sub(last.at) < PAUSE);
            if waits || last.is_some_and(|last| last.names == names) {
                continue;
            }
            self.0.insert(id.clone(), Told { at: now, names: names.clone() });
            news.push(WorkloadNames { id, names });
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::WrittenState;

    use super::*;

    #[test]
    fn only_changes_are_told_and_once_a_minute() {
        let key = |id: &str| -> Key { id.parse().unwrap() };
        let known: BTreeSet<Key> = [key("web"), key("db")].into();
        let state = |state: WrittenState| NameState {
            name: "web.test".parse().unwrap(),
            provider: Some("lan".parse().unwrap()),
            state,
            why: None,
        };
        let now = |state| BTreeMap::from([(key("web"), vec![state])]);
        let (pending, written) = (state(WrittenState::Pending), state(WrittenState::Written));
        let mut told = ToldOfSource::default();
        let first = told.news(now(pending.clone()), &known, 1_000);
        assert_eq!(first, [WorkloadNames { id: key("web"), names: vec![pending.clone()] }]);
        assert_eq!(told.news(now(pending), &known, 100_000), [], "it did not change");
        let second = told.news(now(written.clone()), &known, 100_000);
        assert_eq!(second, [WorkloadNames { id: key("web"), names: vec![written] }]);
        assert_eq!(told.news(BTreeMap::new(), &known, 159_999), [], "a minute has not passed");
        let gone = told.news(BTreeMap::new(), &known, 160_000);
        assert_eq!(gone, [WorkloadNames { id: key("web"), names: Vec::new() }]);
        assert_eq!(told.news(BTreeMap::new(), &[].into(), 900_000), []);
        assert!(told.0.is_empty(), "what is no longer known is forgotten");
    }
}
