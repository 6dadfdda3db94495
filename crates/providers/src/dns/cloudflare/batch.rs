//! Turns units into batches, and finds a refused unit by halving.

use std::collections::VecDeque;

use netstead_model::{Name, ProviderError, Unit, UnitOutcome, WriteReply, WriteRequest};
use serde_json::{Map, Value, json};

use super::{
    Cloudflare, capabilities,
    client::Refusal,
    marked_zone::{CommentedCall, note},
    wire::to_json,
};
use crate::dns::{
    per_record::{adjusted, judge, unit_calls::RecordCall},
    preconditions::halves,
};
use netstead_model::DnsProvider as _;

/// The most changes in one batch, on the smallest plan.
const MOST_CHANGES: usize = 200;
/// Codes of a zone that is not as it was when it was read: a record is gone, or one that cannot stand beside the new one came.
const CONFLICTS: [u64; 6] = [81_044, 81_053, 81_054, 81_056, 81_057, 81_058];

/// The calls of one unit.
struct Open {
    index: usize,
    calls: Vec<CommentedCall>,
}

impl Cloudflare {
    /// Writes the units that find what they expect.
    pub(super) async fn apply(
        &self,
        zone: &Name,
        id: &str,
        request: &WriteRequest,
    ) -> Result<WriteReply, ProviderError> {
        let can = capabilities();
        let units: Vec<Unit> =
            request.units.iter().map(|unit| adjusted(unit, |set| self.adjust(set, &can))).collect();
        let there = self.marked_zone(zone, id).await?;
        let note = note(&request.fence.owner, &self.name);
        let (mut outcomes, mut open) = (Vec::with_capacity(units.len()), Vec::new());
        for (index, unit) in units.iter().enumerate() {
            let outcome = judge(&can, zone, unit, there.found());
            outcomes.push(outcome.or_else(|| match there.calls(unit, &request.fence.owner, &note) {
                Ok(calls) if calls.is_empty() => Some(UnitOutcome::Applied),
                Ok(calls) => {
                    open.push(Open { index, calls });
                    None
                }
                Err(reason) => Some(UnitOutcome::Rejected { reason }),
            }));
        }
        let mut waiting = batches(&open);
        while let Some(batch) = waiting.pop_front() {
            let sent = match request.guard.permit().await {
                Ok(()) => {
                    let calls = batch.iter().filter_map(|at| open.get(*at)).flat_map(|open| &open.calls);
                    self.client.batch(zone, id, &body(calls)).await
                }
                Err(error) => Err(error),
            };
            let (outcome, stopped) = match sent {
                Ok(Ok(())) => (UnitOutcome::Applied, None),
                Ok(Err(_)) if batch.len() > 1 => {
                    let (first, second) = halves(&batch);
                    waiting.push_front(second.to_vec());
                    waiting.push_front(first.to_vec());
                    continue;
                }
                Ok(Err(refusal)) => {
                    let unit =
                        batch.first().and_then(|at| open.get(*at)).and_then(|open| units.get(open.index));
                    match unit {
                        Some(unit) => (self.refused_unit(zone, id, unit, refusal).await, None),
                        None => continue,
                    }
                }
                Err(error) if error.may_have_acted() => (UnitOutcome::Unknown, Some(error)),
                Err(error) => (UnitOutcome::NotTried, Some(error)),
            };
            for open in batch.iter().filter_map(|at| open.get(*at)) {
                if let Some(slot) = outcomes.get_mut(open.index) {
                    *slot = Some(outcome.clone());
                }
            }
            if stopped.is_some() {
                return Ok(reply(outcomes, stopped));
            }
        }
        Ok(reply(outcomes, None))
    }

    /// The outcome of a unit that the server refuses alone. If it says that the zone is not as it was, the zone is read again.
    async fn refused_unit(&self, zone: &Name, id: &str, unit: &Unit, refusal: Refusal) -> UnitOutcome {
        let Refusal { codes, reason } = refusal;
        if codes.iter().any(|code| CONFLICTS.contains(code))
            && let Ok(there) = self.marked_zone(zone, id).await
            && let Some(outcome) = there.found().outcome(unit)
        {
            return outcome;
        }
        UnitOutcome::Rejected { reason }
    }
}

fn reply(outcomes: Vec<Option<UnitOutcome>>, stopped: Option<ProviderError>) -> WriteReply {
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(UnitOutcome::NotTried)).collect();
    WriteReply { outcomes, stopped }
}

/// As many units in one batch as the server takes, by their places in `open`.
fn batches(open: &[Open]) -> VecDeque<Vec<usize>> {
    let mut batches = VecDeque::new();
    let (mut batch, mut size) = (Vec::new(), 0);
    for (at, unit) in open.iter().enumerate() {
        if size + unit.calls.len() > MOST_CHANGES && !batch.is_empty() {
            batches.push_back(std::mem::take(&mut batch));
            size = 0;
        }
        size += unit.calls.len();
        batch.push(at);
    }
    batches.extend(Some(batch).filter(|batch| !batch.is_empty()));
    batches
}

/// The JSON of a batch. The server deletes first, then changes, then makes, whatever the order here.
fn body<'a>(calls: impl Iterator<Item = &'a CommentedCall>) -> Value {
    let (mut deletes, mut patches, mut posts) = (Vec::new(), Vec::new(), Vec::new());
    for CommentedCall { call, comment } in calls {
        let with_comment = |mut json: Map<String, Value>| {
            json.extend(comment.as_ref().map(|comment| ("comment".to_owned(), json!(comment))));
            json
        };
        match call {
            RecordCall::Delete(old) => deletes.push(json!({ "id": old.id })),
            RecordCall::Update(old, new) => {
                let mut patch = with_comment(to_json(new));
                patch.insert("id".into(), json!(old.id));
                patches.push(Value::Object(patch));
            }
            RecordCall::Create(new) => {
                posts.push(Value::Object(with_comment(to_json(new))));
            }
        }
    }
    let parts = [("deletes", deletes), ("patches", patches), ("posts", posts)];
    let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
    Value::Object(parts.map(|(name, part)| (name.to_owned(), Value::Array(part))).collect::<Map<_, _>>())
}
