//! Changes of names, and events of the engine.

use netstead_client::types::{ChangeOutput, EngineEventOutput, HistoryOutput};
use netstead_engine::Change;
use netstead_plan::Line;

use super::plan;

pub(crate) fn output(change: &Change) -> HistoryOutput {
    let lines: Vec<String> = change.lines.iter().map(said).collect();
    let (text, reason) = match &change.text {
        text if !lines.is_empty() => (lines.join(", "), text.clone()),
        text => (text.clone().unwrap_or_default(), None),
    };
    let changes: Vec<ChangeOutput> = match (&change.zone, &change.name) {
        (Some(zone), Some(name)) => {
            change.lines.iter().map(|line| plan::change(zone, name, line, None)).collect()
        }
        _ => Vec::new(),
    };
    HistoryOutput {
        id: change.position.to_string(),
        at: change.at,
        what: change.what.into(),
        provider: change.provider.as_ref().map(ToString::to_string),
        source: change.source.as_ref().map(ToString::to_string),
        zone: change.zone.as_ref().map(ToString::to_string),
        name: change.name.as_ref().map(ToString::to_string),
        object: change.object.as_ref().map(ToString::to_string),
        generation: change.generation,
        by: change.by.clone(),
        text,
        reason,
        changes,
    }
}

/// A change as the stream sends it: without a place in the history.
pub(crate) fn live(change: &Change) -> EngineEventOutput {
    let HistoryOutput { at, provider, source, zone, name, object, generation, by, text, reason, .. } =
        output(change);
    let what = change.what.into();
    EngineEventOutput { at, what, provider, source, zone, name, object, generation, by, text, reason }
}

/// As a plan shows it.
fn said(line: &Line) -> String {
    let kind = line.kind.map(|kind| format!("{kind} ")).unwrap_or_default();
    format!("{} {kind}{}", line.sign.as_char(), line.text)
}
