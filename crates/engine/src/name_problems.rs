//! Workloads that ask for a name and do not get it, with the reasons: counted in the status, listed on request, and logged once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use netstead_model::{Ident, Key, Name, RecordType, address_of_reverse, is_on_purpose};
use netstead_plan::{Desired, Inventory, Presence, names_of_workload};
use tokio::{sync::OnceCell, time::sleep};

use crate::{background_task::BackgroundTask, dns_pass::ProviderHandle, engine_state::EngineState};

/// Sentences without their full stop, by source and workload.
pub type ProblemsByWorkload = BTreeMap<(Ident, Key), Vec<String>>;

/// How often it is looked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Of all time at most one part in so many is spent on looking.
const SHARE: u32 = 20;
/// A problem is logged when it was seen so many times in a row: most that a start brings are gone by then.
const SETTLED: u32 = 4;
/// So many are logged at one time; the rest is counted.
const MOST_LOGGED: usize = 20;

/// The result of the last look.
#[derive(Debug, Default)]
pub(crate) struct NameProblems {
    found: RwLock<Arc<ProblemsByWorkload>>,
    running: OnceCell<BackgroundTask>,
}

impl NameProblems {
    pub(crate) fn newest(&self) -> Arc<ProblemsByWorkload> {
        self.found.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn stop_or_abort(&self) {
        if let Some(running) = self.running.get() {
            running.stop_or_abort().await;
        }
    }
}

/// Starts looking.
pub(crate) fn start(shared: &Arc<EngineState>) {
    let stop = shared.stop.child_token();
    let (inside, ends) = (Arc::clone(shared), stop.clone());
    let work = async move {
        let mut logged = LoggedProblems::default();
        loop {
            let begun = inside.clock.monotonic();
            let found = Arc::new(look(&inside));
            logged.log(&found);
            *inside.name_problems.found.write().unwrap_or_else(PoisonError::into_inner) = found;
            let took = inside.clock.monotonic().saturating_sub(begun);
            tokio::select! {
                () = ends.cancelled() => return,
                () = sleep(INTERVAL.max(took * SHARE)) => {}
            }
        }
    };
    let _ = shared.name_problems.running.set(BackgroundTask::start(stop, work));
}

/// How often each problem was seen in a row.
#[derive(Debug, Default)]
struct LoggedProblems(BTreeMap<(Ident, Key, String), u32>);

impl LoggedProblems {
    fn log(&mut self, found: &ProblemsByWorkload) {
        let mut seen = BTreeMap::new();
        let mut due = Vec::new();
        for ((source, workload), sentences) in found {
            for sentence in sentences {
                let at = (source.clone(), workload.clone(), sentence.clone());
                let times = self.0.get(&at).copied().unwrap_or_default().saturating_add(1);
                if times == SETTLED {
                    due.push(at.clone());
                }
                seen.insert(at, times);
            }
        }
        self.0 = seen;
        for (source, workload, sentence) in due.iter().take(MOST_LOGGED) {
            tracing::warn!(%source, %workload, "No name: {sentence}.");
        }
        let more = due.len().saturating_sub(MOST_LOGGED);
        if more > 0 {
            tracing::warn!(
                more,
                "More workloads have no name; `netstead get workloads --problems` lists them."
            );
        }
    }
}

fn look(shared: &EngineState) -> ProblemsByWorkload {
    let newest = shared.inventory.borrow().inventory.clone();
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let desired: Vec<Arc<Desired>> =
        handles.iter().map(|handle| handle.snapshot.read().desired.clone()).collect();
    let mut found = of_workloads(shared, &newest);
    for (at, sentences) in lost_names(&newest, &desired) {
        found.entry(at).or_default().extend(sentences);
    }
    found
}

/// Problems that sources and the ledger know, and names of one label.
fn of_workloads(shared: &EngineState, newest: &Inventory) -> ProblemsByWorkload {
    let domains = shared.domains();
    let mut found = ProblemsByWorkload::new();
    for (source, state) in newest.sources() {
        for (id, entry) in state.entries.iter().filter(|(_, entry)| entry.presence == Presence::Present) {
            let workload = &entry.workload;
            let mut sentences: Vec<String> =
                workload.why_not.iter().filter(|why| !is_on_purpose(why)).cloned().collect();
            if workload.wishes.iter().any(|wish| wish.name.labels().nth(1).is_none()) {
                let names = names_of_workload(workload, &domains);
                sentences.extend(names.iter().filter(|name| name.labels().nth(1).is_none()).map(one_label));
            }
            sentences.extend(shared.ledger_sync.troubles(source, id));
            if !sentences.is_empty() {
                found.insert((source.clone(), id.clone()), sentences);
            }
        }
    }
    found
}

fn one_label(name: &Name) -> String {
    format!(
        "{name} is a name of one label, which is a top-level domain; write the full name, such as {name}.home.example.com"
    )
}

/// Names that workloads ask for and that no provider has a record for.
fn lost_names(newest: &Inventory, desired: &[Arc<Desired>]) -> ProblemsByWorkload {
    let mut lost: BTreeMap<(&Ident, &Key, Option<&Name>), BTreeSet<&str>> = BTreeMap::new();
    for one in desired.iter().flat_map(|desired| &desired.why_not) {
        // A workload's own sentences have no name and are known already; a rule about the whole workload has none either.
        if one.name.is_some() || one.refused {
            lost.entry((&one.source, &one.workload, one.name.as_ref())).or_default().insert(&one.why);
        }
    }
    let present = |source: &Ident, workload: &Key| {
        newest.entry(source, workload).is_some_and(|entry| entry.presence == Presence::Present)
    };
    let has = |source: &Ident, workload: &Key, name: &Name| {
        let values = desired.iter().flat_map(|desired| desired.of(name)).flat_map(|set| &set.values);
        values.flat_map(|value| &value.reasons).any(|one| one.source == *source && one.workload == *workload)
    };
    let mut found = ProblemsByWorkload::new();
    for ((source, workload, name), whys) in lost {
        // An address has one PTR record, of whichever workload.
        let reverse = name.is_some_and(|name| address_of_reverse(name).is_some());
        if reverse || name.is_some_and(|name| has(source, workload, name)) || !present(source, workload) {
            continue;
        }
        let whys = whys.into_iter().collect::<Vec<_>>().join("; ");
        let sentence = name.map_or_else(|| whys.clone(), |name| format!("{name}: {whys}"));
        found.entry((source.clone(), workload.clone())).or_default().push(sentence);
    }
    found
}

/// Why a record that a person sets at `name` may not come into being.
pub(crate) fn doubts_about_record(shared: &EngineState, name: &Name, kind: RecordType) -> Vec<String> {
    let handles: Vec<ProviderHandle> = shared.providers().values().cloned().collect();
    let mut doubts = Vec::new();
    if name.labels().nth(1).is_none() {
        doubts.push(one_label(name));
    }
    let reverse = address_of_reverse(name).is_some();
    if !reverse
        && !handles.is_empty()
        && !handles.iter().any(|handle| handle.setup.settings.answers_for(name))
    {
        doubts.push(format!("no provider answers for {name}; add it to the `domains` of one"));
    }
    let own = shared.manual.source();
    let mut others = BTreeSet::new();
    for handle in &handles {
        let desired = handle.snapshot.read().desired.clone();
        // A CNAME is alone at its name.
        let meets = |other: RecordType| (kind == RecordType::Cname) != (other == RecordType::Cname);
        for set in desired.of(name).iter().filter(|set| meets(set.kind)) {
            for value in &set.values {
                let others_of_it = value.reasons.iter().filter(|reason| reason.source != *own);
                others.extend(others_of_it.map(|reason| {
                    format!("{}/{} has it with {} {}", reason.source, reason.workload, set.kind, value.data)
                }));
            }
        }
    }
    doubts.extend(others.into_iter().map(|other| {
        format!("{name} gets no {kind} record: {other}, and a CNAME cannot be beside other records")
    }));
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_logged_once_it_has_settled_and_again_when_it_comes_back() {
        let at = ("docker".parse::<Ident>().unwrap(), "web".parse::<Key>().unwrap());
        let found = ProblemsByWorkload::from([(at, vec!["no address".to_owned()])]);
        let mut logged = LoggedProblems::default();
        let times = |logged: &LoggedProblems| logged.0.values().copied().next();
        for look in 1..=5 {
            logged.log(&found);
            assert_eq!(times(&logged), Some(look));
        }
        logged.log(&ProblemsByWorkload::new());
        assert_eq!(times(&logged), None);
        logged.log(&found);
        assert_eq!(times(&logged), Some(1));
    }
}
