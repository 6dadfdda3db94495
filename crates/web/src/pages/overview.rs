//! The first page: how things are, and what a person must do.

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use netstead_client::types::{
    Degradation, EventOutput, FillingPool, HistoryOutput, Page, ProviderOutput, ServerState, SourceView,
    StatusOutput,
};

use crate::{
    calls::{Calls, Target},
    pages::{
        history::{Happened, merged},
        usage::{self, ChangesChart},
    },
    parts::{Bar, When, Words, count, percent},
    shell::{Section, Shell},
    visit::Visit,
};

/// Changes that are shown.
const CHANGES: usize = 15;
/// Pools that are shown; the fullest come first.
const POOLS: usize = 12;

#[derive(Debug, Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    shell: Shell,
    state: State,
    todo: Vec<Words>,
    parked: Vec<Parked>,
    /// Pools that will be full soon.
    forecasts: Vec<Forecast>,
    waiting: Vec<Words>,
    warnings: Vec<Words>,
    pools: Vec<PoolLine>,
    more_pools: usize,
    sources: Vec<SourceLine>,
    providers: Vec<ProviderLine>,
    changes: Vec<Happened>,
    /// Why changes of names are not among them.
    changes_missing: String,
    per_day: Option<ChangesChart>,
}

/// A pool that will be full soon.
#[derive(Debug)]
struct Forecast {
    pool: String,
    text: String,
}

/// How things are, in one sentence.
#[derive(Debug)]
struct State {
    /// `good`, `wait` or `bad`: a class, and a mark beside the sentence.
    mood: &'static str,
    sentence: String,
    detail: String,
}

/// A provider with changes that wait for a person.
#[derive(Debug)]
struct Parked {
    provider: String,
    changes: u64,
}

#[derive(Debug)]
struct PoolLine {
    name: String,
    network: String,
    bar: Bar,
    percent: String,
    free: String,
}

#[derive(Debug)]
struct SourceLine {
    name: String,
    kind: String,
    mood: &'static str,
    text: String,
    seen: Option<When>,
    workloads: u64,
}

#[derive(Debug)]
struct ProviderLine {
    name: String,
    kind: String,
    mood: &'static str,
    text: String,
    seen: Option<When>,
}

pub(crate) async fn show(visit: Visit) -> Response {
    let status: StatusOutput = match visit.calls.look(Target::of(["status"])).await {
        Ok(status) => status,
        Err(problem) => return visit.trouble(&problem),
    };
    let ((changes, changes_missing), usage) =
        tokio::join!(newest(&visit.calls, visit.now), usage::all(&visit));
    let state = state(&status, &visit);
    let parked = status.providers.iter().filter_map(|provider| {
        let parked = provider.parked.as_ref()?;
        Some(Parked { provider: provider.name.clone(), changes: parked.changes })
    });
    let mut pools: Vec<_> = status.pools.iter().collect();
    pools.sort_by_key(|pool| std::cmp::Reverse(pool.usage.used_permyriad));
    let forecast = |one: FillingPool| Forecast {
        text: format!("{} left: {}", count(&one.free), one.forecast.sentence()),
        pool: one.pool,
    };
    let more_pools = pools.len().saturating_sub(POOLS);
    let pool_line = |pool: &&netstead_client::types::PoolOutput| PoolLine {
        name: pool.name.clone(),
        network: crate::parts::extent(pool),
        bar: Bar::new(&pool.usage),
        percent: percent(&pool.usage),
        free: count(&pool.usage.free),
    };
    visit.page(&OverviewPage {
        state,
        // What is parked has a button of its own.
        todo: Words::each(&without_parked(&status)),
        parked: parked.collect(),
        forecasts: usage.filling.into_iter().map(forecast).collect(),
        per_day: usage::changes(&usage.days),
        waiting: Words::each(&status.waiting),
        warnings: Words::each(&status.warnings),
        pools: pools.iter().take(POOLS).map(pool_line).collect(),
        more_pools,
        sources: status.sources.iter().map(|source| source_line(source, visit.now)).collect(),
        providers: status.providers.iter().map(|provider| provider_line(provider, visit.now)).collect(),
        changes,
        changes_missing,
        shell: visit.shell(Section::Overview, "Overview"),
    })
}

/// The tasks beside those of parked changes, which name the hash of what is parked.
fn without_parked(status: &StatusOutput) -> Vec<String> {
    let parked = status.providers.iter().filter_map(|provider| provider.parked.as_ref());
    let commands: Vec<String> = parked.map(|parked| format!("`netstead apply {}`", parked.hash)).collect();
    let is_parked = |sentence: &&String| commands.iter().any(|command| sentence.contains(command));
    status.todo.iter().filter(|sentence| !is_parked(sentence)).cloned().collect()
}

/// The newest changes of addresses and of names, and why those of names are missing. Without them the rest of the page is
/// worth as much, so a leader is not waited for.
async fn newest(calls: &Calls, now: Timestamp) -> (Vec<Happened>, String) {
    let list =
        |what: &'static str| Target::of([what]).with("order", "newest").with("limit", CHANGES.to_string());
    let (events, changes) = tokio::join!(
        calls.look::<Page<EventOutput>>(list("events")),
        calls.aside::<Page<HistoryOutput>>(list("changes"))
    );
    let events = events.map(|page| page.items).unwrap_or_default();
    let missing = changes.as_ref().err().map(|problem| problem.detail.clone()).unwrap_or_default();
    let changes = changes.map(|page| page.items).unwrap_or_default();
    (merged(&events, &changes, now, CHANGES), missing)
}

fn state(status: &StatusOutput, visit: &Visit) -> State {
    let plain = |mood, sentence: String| State { mood, sentence, detail: String::new() };
    let reason = status.reason.clone().unwrap_or_default();
    if visit.calls.is_stale() || status.state == ServerState::NotReady {
        let sentence = "The store cannot be asked. This is what this node knew last.".to_owned();
        return State { mood: "bad", sentence, detail: reason };
    }
    if status.state != ServerState::Ready {
        return State { mood: "bad", sentence: degraded(status).to_owned(), detail: reason };
    }
    if status.paused {
        let sentence = "The ledger is paused: it hands out no addresses until `netstead resume`.".to_owned();
        return plain("wait", sentence.replace('`', ""));
    }
    let pending: u64 = status.providers.iter().map(|provider| provider.pending).sum();
    let parked: u64 =
        status.providers.iter().filter_map(|provider| provider.parked.as_ref()).map(|one| one.changes).sum();
    let failing = status.providers.iter().filter(|provider| provider.error.is_some()).count()
        + status.sources.iter().filter(|source| source.view == SourceView::Failed).count();
    let newest =
        status.providers.iter().filter_map(|provider| provider.pass.as_ref()).map(|pass| pass.at).max();
    let detail = newest
        .map(|at| format!("The last pass ended {}.", crate::parts::relative(at, visit.now)))
        .unwrap_or_default();
    let (mood, sentence) = match (failing, parked, pending, status.todo.len()) {
        (0, 0, 0, 0) => ("good", "All is in line.".to_owned()),
        (1.., ..) => ("bad", format!("{} cannot be asked.", some(failing as u64, "server"))),
        (_, 1.., ..) => ("wait", format!("{} for your approval.", waits(parked))),
        (_, _, _, 1..) => ("wait", format!("{} needs you.", some(status.todo.len() as u64, "thing"))),
        _ => (
            "wait",
            format!(
                "{} being made.",
                if pending == 1 { "1 change is".to_owned() } else { format!("{pending} changes are") }
            ),
        ),
    };
    State { mood, sentence, detail }
}

/// The worst that is not as it should be, while the ledger answers.
fn degraded(status: &StatusOutput) -> &'static str {
    match status.degraded.iter().min() {
        Some(Degradation::Damaged) => "A part of the store is damaged.",
        Some(Degradation::ReadOnly) => "The store takes no changes.",
        Some(Degradation::ConfigurationRefused) => "The changed configuration is not in force.",
        _ => "Not all is well.",
    }
}

fn waits(changes: u64) -> String {
    if changes == 1 { "1 change waits".to_owned() } else { format!("{changes} changes wait") }
}

/// `1 server`, `2 servers`.
fn some(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn source_line(source: &netstead_client::types::SourceOutput, now: Timestamp) -> SourceLine {
    let mood = match source.view {
        SourceView::Complete if source.suspect.is_none() && !source.detached => "good",
        SourceView::Failed => "bad",
        _ => "wait",
    };
    let text = if source.detached {
        "no longer in the configuration; what it brought stays".to_owned()
    } else {
        source.suspect.clone().or_else(|| source.reason.clone()).unwrap_or_else(|| source.view.to_string())
    };
    SourceLine {
        name: source.name.clone(),
        kind: source.kind.to_string(),
        mood,
        text,
        seen: source.begun.map(|at| When::new(at, now)),
        workloads: source.workloads,
    }
}

fn provider_line(provider: &ProviderOutput, now: Timestamp) -> ProviderLine {
    let (mood, text) = provider_state(provider);
    ProviderLine {
        name: provider.name.clone(),
        kind: provider.kind.to_string(),
        mood,
        text,
        seen: provider.pass.as_ref().map(|pass| When::new(pass.at, now)),
    }
}

/// How a provider stands, in a few words.
pub(crate) fn provider_state(provider: &ProviderOutput) -> (&'static str, String) {
    if let Some(error) = &provider.error {
        return ("bad", error.clone());
    }
    if provider.detached {
        return ("wait", "no longer in the configuration; its records stay".to_owned());
    }
    if let Some(pause) = provider.paused.first() {
        let reason = pause.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return ("wait", format!("paused{reason}"));
    }
    if let Some(parked) = &provider.parked {
        return ("wait", format!("{} for approval", waits(parked.changes)));
    }
    if provider.rejected > 0 {
        return ("bad", format!("rejects {}", some(provider.rejected, "name")));
    }
    if provider.blocked > 0 {
        return ("wait", format!("{} blocked by what others put there", some(provider.blocked, "name")));
    }
    if provider.in_sync {
        return ("good", "in line".to_owned());
    }
    match provider.pending {
        0 => ("wait", "not read yet".to_owned()),
        pending => ("wait", format!("{} pending", some(pending, "change"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(more: &serde_json::Value) -> StatusOutput {
        let mut status = json!({
            "version": "0.1.0", "state": "degraded", "store": "memory", "ledger": "00000001", "seq": 1, "epoch": 1,
            "paused": false, "started": "2026-01-01T00:00:00Z", "pools": [],
        });
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn only_tasks_of_parked_changes_are_left_out() {
        let provider = json!({
            "name": "own", "type": "builtin", "server": "here", "mode": "managed", "zones": [], "owned": 1,
            "generation": 1, "in_sync": false, "pending": 0, "blocked": 0, "drift": 0,
            "parked": {"changes": 2, "hash": "4f00aa"},
        });
        let failing = "Provider `ns1` fails: it does not answer. It is tried again; `netstead apply --provider ns1` tries now.";
        let parked = "A guard holds back 2 changes on `own`. `netstead plan own` shows them, `netstead apply 4f00aa` does them.";
        let status = status(&json!({"providers": [provider], "todo": [failing, parked]}));
        assert_eq!(without_parked(&status), [failing]);
    }

    #[test]
    fn a_refused_configuration_is_no_damage() {
        let said = |reasons: &[&str]| degraded(&status(&json!({"degraded": reasons})));
        assert_eq!(said(&["configuration-refused"]), "The changed configuration is not in force.");
        assert_eq!(said(&["configuration-refused", "read-only"]), "The store takes no changes.");
        assert_eq!(said(&["read-only", "damaged"]), "A part of the store is damaged.");
        assert_eq!(said(&["something-new"]), "Not all is well.");
    }
}
