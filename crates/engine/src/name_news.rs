//! Tells sources what became of the names of their workloads.
//!
//! Only the leader does, only when something changed, and at most once a minute for each workload: what changes in between is
//! told when the minute is over. A name that is not written is told of after a few seconds only, because most are written by
//! then: what has no address yet soon has one. A new leader tells everything once, because it does not know what the former one told.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt as _;
use netstead_model::{Ident, Key, NameState, Source, Workload, WorkloadNames, WrittenState};
use tokio::{
    sync::OnceCell,
    time::{sleep, timeout},
};

use crate::{background_task::BackgroundTask, engine_state::EngineState, records};

/// How often it is looked whether something changed.
const INTERVAL: Duration = Duration::from_secs(1);
/// A workload is not told of more often than this, in milliseconds of engine time.
const PAUSE: u64 = 60_000;
/// So long a workload may wait for its first names before its source is told that it has none that are final.
const SETTLE: u64 = 5_000;
/// Of all time at most one part in so many is spent on looking.
const SHARE: u32 = 20;
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
            let looked = tokio::select! {
                () = ends.cancelled() => return,
                looked = pass(&inside, &mut told) => looked,
            };
            tokio::select! {
                () = ends.cancelled() => return,
                () = sleep(INTERVAL.max(looked * SHARE)) => {}
            }
        }
    };
    let _ = shared.name_news.running.set(BackgroundTask::start(stop, work));
}

/// News that each workload's source got last.
#[derive(Debug, Default)]
struct ToldNames(BTreeMap<Ident, ToldOfSource>);

#[derive(Debug, Default)]
struct ToldOfSource {
    told: BTreeMap<Key, Told>,
    /// Engine time since when a workload that was not told of waits for names that are final.
    waiting: BTreeMap<Key, u64>,
}

#[derive(Debug)]
struct Told {
    /// Engine time.
    at: u64,
    names: Vec<NameState>,
    why_not: Vec<String>,
}

/// A workload that the inventory has.
#[derive(Debug)]
struct Known {
    /// It asks for names.
    asks: bool,
    why_not: Vec<String>,
}

/// One look at all sources. Returns how long the looking took, without the hearing.
async fn pass(shared: &EngineState, told: &mut ToldNames) -> Duration {
    let handles: Vec<Arc<dyn Source>> =
        shared.sources().values().map(|handle| Arc::clone(&handle.setup.source)).collect();
    let listening: Vec<&Arc<dyn Source>> =
        handles.iter().filter(|source| source.flags().hears_names).collect();
    told.0.retain(|name, _| listening.iter().any(|source| source.name() == name));
    let mut looked = Duration::ZERO;
    for source in listening {
        let begun = shared.clock.monotonic();
        let now = records::names_of_source(shared, source.name());
        let known: BTreeMap<Key, Known> = {
            let newest = shared.inventory.borrow().inventory.clone();
            let entries = newest.source(source.name()).into_iter().flat_map(|state| &state.entries);
            let known = |workload: &Workload| Known {
                asks: !workload.wishes.is_empty(),
                why_not: workload.why_not.clone(),
            };
            entries.map(|(id, entry)| (id.clone(), known(&entry.workload))).collect()
        };
        let news = told.0.entry(source.name().clone()).or_default().news(now, &known, shared.now().millis);
        looked += shared.clock.monotonic().saturating_sub(begun);
        if news.is_empty() && !source.has_unwritten() {
            continue;
        }
        // A bug in one source is that source's failure.
        let heard = AssertUnwindSafe(timeout(PATIENCE, source.hear_names(news))).catch_unwind().await;
        if !matches!(heard, Ok(Ok(()))) {
            tracing::warn!(source = %source.name(), "A source did not hear what became of its names.");
        }
    }
    looked
}

impl ToldOfSource {
    /// News that are due now; workloads that are no longer `known` are forgotten.
    fn news(
        &mut self,
        mut names: BTreeMap<Key, Vec<NameState>>,
        known: &BTreeMap<Key, Known>,
        now: u64,
    ) -> Vec<WorkloadNames> {
        self.told.retain(|id, _| known.contains_key(id));
        self.waiting.retain(|id, _| known.contains_key(id));
        let mut news = Vec::new();
        for (id, workload) in known {
            let names = names.remove(id).unwrap_or_default();
            let last = self.told.get(id);
            if last.is_none() && names.is_empty() && !workload.asks && workload.why_not.is_empty() {
                continue;
            }
            let paused = last.is_some_and(|last| now.saturating_sub(last.at) < PAUSE);
            if paused || last.is_some_and(|last| last.names == names && last.why_not == workload.why_not) {
                continue;
            }
            let unsettled = names.iter().any(|one| one.state != WrittenState::Written)
                || (names.is_empty() && workload.asks);
            if last.is_none() && unsettled {
                let since = *self.waiting.entry(id.clone()).or_insert(now);
                if now.saturating_sub(since) < SETTLE {
                    continue;
                }
            }
            self.waiting.remove(id);
            let why_not = workload.why_not.clone();
            self.told.insert(id.clone(), Told { at: now, names: names.clone(), why_not: why_not.clone() });
            news.push(WorkloadNames { id: id.clone(), names, why_not });
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        id.parse().unwrap()
    }

    fn state(state: WrittenState) -> NameState {
        let (name, provider) = ("web.test".parse().unwrap(), Some("lan".parse().unwrap()));
        NameState { name, provider, state, why: None }
    }

    fn now(one: WrittenState) -> BTreeMap<Key, Vec<NameState>> {
        BTreeMap::from([(key("web"), vec![state(one)])])
    }

    fn known(workloads: &[(&str, bool, &[&str])]) -> BTreeMap<Key, Known> {
        let sentences = |why_not: &[&str]| why_not.iter().map(|why| (*why).to_owned()).collect();
        workloads
            .iter()
            .map(|(id, asks, why_not)| (key(id), Known { asks: *asks, why_not: sentences(why_not) }))
            .collect()
    }

    fn news(id: &str, names: Vec<NameState>, why_not: &[&str]) -> WorkloadNames {
        let why_not = why_not.iter().map(|why| (*why).to_owned()).collect();
        WorkloadNames { id: key(id), names, why_not }
    }

    #[test]
    fn only_changes_are_told_and_once_a_minute() {
        let known = known(&[("web", true, &[]), ("db", false, &[])]);
        let mut told = ToldOfSource::default();
        let written = told.news(now(WrittenState::Written), &known, 1_000);
        assert_eq!(written, [news("web", vec![state(WrittenState::Written)], &[])]);
        assert_eq!(told.news(now(WrittenState::Written), &known, 100_000), [], "it did not change");
        let pending = told.news(now(WrittenState::Pending), &known, 100_000);
        assert_eq!(pending, [news("web", vec![state(WrittenState::Pending)], &[])]);
        assert_eq!(told.news(BTreeMap::new(), &known, 159_999), [], "a minute has not passed");
        assert_eq!(told.news(BTreeMap::new(), &known, 160_000), [news("web", Vec::new(), &[])]);
        assert_eq!(told.news(BTreeMap::new(), &BTreeMap::new(), 900_000), []);
        assert!(told.told.is_empty(), "what is no longer known is forgotten");
    }

    #[test]
    fn a_name_that_is_not_final_is_told_of_after_a_moment() {
        let known = known(&[("web", true, &[])]);
        let mut told = ToldOfSource::default();
        assert_eq!(told.news(BTreeMap::new(), &known, 1_000), []);
        assert_eq!(told.news(now(WrittenState::Pending), &known, 5_999), []);
        assert_eq!(
            told.news(now(WrittenState::Pending), &known, 6_000),
            [news("web", vec![state(WrittenState::Pending)], &[])]
        );
        let mut other = ToldOfSource::default();
        assert_eq!(other.news(BTreeMap::new(), &known, 1_000), []);
        assert_eq!(
            other.news(BTreeMap::new(), &known, 6_000),
            [news("web", Vec::new(), &[])],
            "no provider has it"
        );
    }

    #[test]
    fn a_workload_whose_wish_is_refused_before_it_is_a_wish_is_told_of() {
        let mut told = ToldOfSource::default();
        let refused = known(&[("web", false, &["it may not claim that"])]);
        let first = told.news(BTreeMap::new(), &refused, 1_000);
        assert_eq!(first, [news("web", Vec::new(), &["it may not claim that"])]);
        assert_eq!(told.news(BTreeMap::new(), &refused, 100_000), []);
        let other = known(&[("web", false, &["it may not claim this"])]);
        let second = told.news(BTreeMap::new(), &other, 200_000);
        assert_eq!(second, [news("web", Vec::new(), &["it may not claim this"])]);
    }
}
