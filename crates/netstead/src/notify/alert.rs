//! [`Alert`]: something that a person must act on.

use std::{sync::Arc, time::Duration};

use netstead_api::{BackupFailure, BackupState};
use netstead_engine::{EngineStatus, ProviderStatus, SourceStatus};
use netstead_ledger::{
    Health,
    damage::{advice, describe},
};
use netstead_model::{Ident, View};
use netstead_plan::{Digest, Plan};
use netstead_store::{Damage, Store};

use crate::node::machine_name;

/// Most troubles of a network are over by themselves before this.
const LONG: Duration = Duration::from_mins(5);
const SHORT: Duration = Duration::from_mins(1);

/// One thing a person must do something about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alert {
    /// The same while it is the same matter.
    pub(super) id: String,
    /// One sentence, without its full stop.
    pub(super) text: String,
    /// The command that helps.
    pub(super) command: String,
    /// It must last this long before anybody is bothered.
    pub(super) patience: Duration,
}

/// Everything there is now.
pub(super) fn current_alerts(
    status: &EngineStatus,
    plans: &[(Ident, Arc<Plan>)],
    health: &Health,
) -> Vec<Alert> {
    let mut matters = Vec::new();
    matters.extend(of_ledger(health));
    if status.deposed {
        let text = "Another process leads the store, and this one writes nothing".to_owned();
        let command = "netstead status".to_owned();
        matters.push(Alert { id: "deposed".to_owned(), text, command, patience: SHORT });
    }
    matters.extend(status.sources.iter().filter_map(of_source));
    for provider in &status.providers {
        let plan = plans.iter().find(|(name, _)| *name == provider.name).map(|(_, plan)| &**plan);
        matters.extend(of_provider(provider, plan));
    }
    matters
}

/// One alert for each damaged part. Of nodes that keep the store together, each has its own files.
pub(super) fn of_store(store: &dyn Store, damage: &[Damage]) -> Vec<Alert> {
    let (node, whose) = match store.membership() {
        Some(members) => (format!("node/{}/", members.id()), format!(" of node `{}`", machine_name())),
        None => Default::default(),
    };
    let alert = |one: &Damage| Alert {
        id: format!("{node}store/damaged/{}", one.part()),
        text: format!("The store{whose} is damaged: {}. To go on: {}", describe(one), advice(store, damage)),
        command: "netstead doctor".to_owned(),
        patience: Duration::ZERO,
    };
    damage.iter().map(alert).collect()
}

/// Why there is no backup of the day.
pub(super) fn of_backups(state: &BackupState) -> Option<Alert> {
    let BackupFailure { since, reason, hint } = state.failure.as_ref()?;
    let text = format!("The daily backup cannot be written since {since:.0}: {reason}. To go on: {hint}");
    let command = "netstead doctor".to_owned();
    Some(Alert { id: "backup/failing".to_owned(), text, command, patience: SHORT })
}

fn of_ledger(health: &Health) -> Option<Alert> {
    if health.paused {
        let text = "The ledger was restored and hands out no addresses by itself".to_owned();
        let command = "netstead resume".to_owned();
        return Some(Alert { id: "ledger/paused".to_owned(), text, command, patience: LONG });
    }
    if health.ready {
        return None;
    }
    let why = health.reason.clone().unwrap_or_else(|| "it does not answer".to_owned());
    let (text, command) = (format!("The ledger is not ready: {why}"), "netstead doctor".to_owned());
    Some(Alert { id: "ledger/ready".to_owned(), text, command, patience: SHORT })
}

fn of_source(source: &SourceStatus) -> Option<Alert> {
    let name = &source.name;
    if source.detached || source.begun.is_none() {
        return None;
    }
    if let Some(suspect) = source.suspect {
        let text =
            format!("{} of {} workloads of source `{name}` vanished at once", suspect.missing, suspect.of);
        let command = format!("netstead get workloads --source {name}");
        return Some(Alert { id: format!("source/{name}/suspect"), text, command, patience: Duration::ZERO });
    }
    let (what, reason) = match &source.view {
        View::Complete => return None,
        View::Partial { reason } => ("does not see everything", reason),
        View::Failed { reason } => ("sees nothing", reason),
    };
    let text = format!("Source `{name}` {what}: {reason}");
    let command = "netstead doctor".to_owned();
    Some(Alert { id: format!("source/{name}/view"), text, command, patience: LONG })
}

fn of_provider(provider: &ProviderStatus, plan: Option<&Plan>) -> Vec<Alert> {
    let name = &provider.name;
    let mut matters = Vec::new();
    if let Some(error) = &provider.error {
        // A key that is refused is not accepted by waiting.
        let denied = error.contains("refuses these credentials");
        let (kind, patience) = if denied { ("denied", Duration::ZERO) } else { ("fails", LONG) };
        let text = format!("Provider `{name}` fails: {error}");
        let command = "netstead doctor".to_owned();
        matters.push(Alert { id: format!("dns/{name}/{kind}"), text, command, patience });
    }
    if let Some(parked) = &provider.parked {
        let text = format!("A guard holds back {} on `{name}`", many(parked.count, "change"));
        let command = format!("netstead plan {name}; netstead apply {}", parked.hash);
        let id = format!("dns/{name}/parked/{}", parked.hash);
        matters.push(Alert { id, text, command, patience: Duration::ZERO });
    }
    let blocked: Vec<String> =
        plan.iter().flat_map(|plan| &plan.blocked).map(|one| one.name.to_string()).collect();
    if let Some(first) = blocked.first() {
        let text =
            format!("What is there blocks {} on `{name}`, such as {first}", many(blocked.len(), "name"));
        let command = format!("netstead plan {name}");
        let id = format!("dns/{name}/blocked/{}", Digest::of(&blocked));
        matters.push(Alert { id, text, command, patience: SHORT });
    }
    if let Some((_, rejected, why)) = provider.rejected.first() {
        let names: Vec<String> = provider.rejected.iter().map(|(_, name, _)| name.to_string()).collect();
        let text = format!(
            "The server of `{name}` will not have {}, such as {rejected}: {why}",
            many(names.len(), "name")
        );
        let command = format!("netstead explain {rejected}");
        let id = format!("dns/{name}/rejected/{}", Digest::of(&names));
        matters.push(Alert { id, text, command, patience: SHORT });
    }
    matters
}

/// `1 name`, `2 names`.
fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
