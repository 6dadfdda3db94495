//! Logs what was written, record by record; of a large plan the first of them.

use netstead_model::{Ident, UnitOutcome};
use netstead_plan::Sign;

use super::LoopStep;

/// So many changes of a plan are logged one by one; the line after them counts all.
const MOST_LOGGED: usize = 20;

pub(super) fn log_changes<S: LoopStep>(provider: &Ident, steps: &[S], outcomes: &[UnitOutcome]) {
    let written = steps.iter().zip(outcomes).filter(|(_, outcome)| matches!(outcome, UnitOutcome::Applied));
    let lines = written.flat_map(|(step, _)| step.lines().iter().map(move |line| (step, line)));
    for (step, line) in lines.take(MOST_LOGGED) {
        let action = match line.sign {
            Sign::Add => "create",
            Sign::Change => "update",
            Sign::Remove => "delete",
        };
        let kind = line.kind.map(netstead_model::RecordType::as_str);
        tracing::info!(%provider, name = step.subject(), r#type = kind, action, value = line.text, "A record was changed.");
    }
}
