//! Applied plans in the store.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Timestamp;
use netstead_model::{Ident, UnitOutcome};
use netstead_plan::{Digest, Step};
use netstead_store::Write;
use serde::{Deserialize, Serialize};

use crate::{
    EngineError,
    fenced_store::FencedStore,
    keys::{self, Class},
    provider_loop::{LoopPlan, LoopStep},
};

/// So many plans of a provider are kept whatever their size…
const FEWEST_PLANS: usize = 10;
/// …and more, up to so many with so many names in all.
const MOST_PLANS: usize = 1000;
const MOST_STEPS: usize = 10_000;
/// Bytes of steps in one stored part of a plan.
const PART: usize = 256 << 10;
/// The end of a stored part.
const END: &[u8] = b"]}";

/// The generations of a provider that are stored, with how many names each changed.
pub(crate) type Stored = BTreeMap<u64, usize>;

/// A plan that was carried out. A large one is stored in several parts, each with some of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied<S = Step> {
    pub provider: Ident,
    pub generation: u64,
    pub hash: Digest,
    pub at: Timestamp,
    pub steps: Vec<AppliedStep<S>>,
}

/// One name's changes and what became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedStep<S = Step> {
    #[serde(flatten)]
    pub step: S,
    /// `applied`, `changed`, `unknown`, or `rejected: ` and the server's reason.
    pub outcome: String,
}

/// A step with its outcome, as [`AppliedStep`] is stored.
#[derive(Serialize)]
struct AppliedStepRef<'a, S> {
    #[serde(flatten)]
    step: &'a S,
    outcome: Cow<'static, str>,
}

/// The steps of a plan that was carried out, with their outcomes. Those that were not tried are no part of it.
fn tried<'a, P: LoopPlan>(
    plan: &'a P,
    outcomes: &'a [UnitOutcome],
) -> impl Iterator<Item = AppliedStepRef<'a, P::Step>> {
    plan.steps().iter().zip(outcomes).filter_map(|(step, outcome)| {
        let outcome = match outcome {
            UnitOutcome::Applied => "applied".into(),
            UnitOutcome::Changed => "changed".into(),
            UnitOutcome::Rejected { reason } => format!("rejected: {reason}").into(),
            UnitOutcome::Unknown => "unknown".into(),
            UnitOutcome::NotTried => return None,
        };
        Some(AppliedStepRef { step, outcome })
    })
}

/// A plan that was carried out, with the outcome of each step.
pub(crate) fn applied_plan<P: LoopPlan>(
    provider: &Ident,
    plan: &P,
    outcomes: &[UnitOutcome],
    at: Timestamp,
) -> Applied<P::Step> {
    let owned = |AppliedStepRef { step, outcome }: AppliedStepRef<'_, P::Step>| AppliedStep {
        step: step.clone(),
        outcome: outcome.into_owned(),
    };
    let steps = tried(plan, outcomes).map(owned).collect();
    Applied { provider: provider.clone(), generation: plan.generation(), hash: plan.hash(), at, steps }
}

/// The same as the store keeps it: one write per part. Each step is turned into JSON once.
pub(crate) fn plan_writes<P: LoopPlan>(
    class: Class,
    provider: &Ident,
    plan: &P,
    outcomes: &[UnitOutcome],
    at: Timestamp,
) -> Vec<Write> {
    let (generation, hash) = (plan.generation(), plan.hash());
    let empty = Applied::<P::Step> { provider: provider.clone(), generation, hash, at, steps: Vec::new() };
    // `steps` is the last field, so its values go right before this end.
    let mut head = keys::encode(&empty);
    head.truncate(head.len().saturating_sub(END.len()));
    let mut parts: Vec<Vec<u8>> = vec![head.clone()];
    let mut json = Vec::new();
    for step in tried(plan, outcomes) {
        json.clear();
        // Our own types have string keys and no failing serialiser.
        let _ = serde_json::to_writer(&mut json, &step);
        if parts.last().is_some_and(|part| part.len() + json.len() > head.len() + PART) {
            parts.push(head.clone());
        }
        if let Some(part) = parts.last_mut() {
            if part.len() > head.len() {
                part.push(b',');
            }
            part.extend_from_slice(&json);
        }
    }
    let write = |(number, mut part): (usize, Vec<u8>)| {
        part.extend_from_slice(END);
        Write::Put(keys::plan(class, provider, generation, number), part)
    };
    parts.into_iter().enumerate().map(write).collect()
}

/// The plans of a provider in the store.
pub(crate) async fn plans<S: LoopStep>(
    class: Class,
    fenced_store: &FencedStore,
    provider: &Ident,
) -> Result<BTreeMap<u64, Applied<S>>, EngineError> {
    Ok(joined(fenced_store.all(&class.key(keys::PLAN, &format!("{provider}/"))).await?))
}

/// The steps since a generation that took effect for sure, or may have, in their order.
pub(crate) async fn steps_since<S: LoopStep>(
    class: Class,
    fenced_store: &FencedStore,
    provider: &Ident,
    to: u64,
) -> Result<Vec<S>, EngineError> {
    let plans = plans::<S>(class, fenced_store, provider).await?;
    let refused = |kept: String| {
        let provider = provider.clone();
        Err(EngineError::NoSuchGeneration { provider, to, kept })
    };
    let (Some(oldest), Some(newest)) = (plans.keys().next(), plans.keys().next_back()) else {
        return refused("nothing was carried out yet".into());
    };
    if to + 1 < *oldest || to >= *newest {
        let first = oldest.saturating_sub(1);
        return refused(format!("the newest is {newest}, and {first} the oldest it can go back to"));
    }
    let later = plans.into_iter().filter(|(generation, _)| *generation > to);
    let steps = later.flat_map(|(_, plan)| plan.steps);
    let took_effect = steps.filter(|step| matches!(step.outcome.as_str(), "applied" | "unknown"));
    Ok(took_effect.map(|step| step.step).collect())
}

/// As [`plans`], without what is damaged: enough to know how many there are, and not to take one back.
pub(crate) async fn readable_plans<S: LoopStep>(
    class: Class,
    fenced_store: &FencedStore,
    provider: &Ident,
) -> Result<BTreeMap<u64, Applied<S>>, EngineError> {
    Ok(joined(fenced_store.all_readable(&class.key(keys::PLAN, &format!("{provider}/"))).await?))
}

fn joined<S>(parts: Vec<(String, Applied<S>)>) -> BTreeMap<u64, Applied<S>> {
    let mut found: BTreeMap<u64, Applied<S>> = BTreeMap::new();
    for (_, part) in parts {
        match found.get_mut(&part.generation) {
            Some(plan) => plan.steps.extend(part.steps),
            None => {
                found.insert(part.generation, part);
            }
        }
    }
    found
}

/// The generations that are too many.
pub(crate) fn surplus(stored: &Stored) -> Vec<u64> {
    let mut steps = 0;
    let newest_first = stored.iter().rev().enumerate();
    let gone = newest_first.filter(|(place, (_, changed))| {
        steps += **changed;
        *place >= FEWEST_PLANS && (*place >= MOST_PLANS || steps > MOST_STEPS)
    });
    gone.map(|(_, (generation, _))| *generation).collect()
}

#[cfg(test)]
mod tests {
    use netstead_model::{RecordSet, RecordType, SetChange, Unit};
    use netstead_plan::{Mode, Plan};
    use serde_json::{Value, json};

    use super::*;

    fn plan(steps: usize) -> Plan {
        let step = |number: usize| {
            let name: netstead_model::Name = format!("w{number}.example.com").parse().unwrap();
            let data = netstead_model::RecordData::parse(RecordType::A, "192.0.2.1").unwrap();
            let after = Some(RecordSet::new(name.clone(), RecordType::A, 300, [data]));
            let unit = Unit { name, changes: vec![SetChange { before: None, after }] };
            let zone = "example.com".parse().unwrap();
            Step {
                zone,
                unit,
                lines: Vec::new(),
                puts: Vec::new(),
                forgets: Vec::new(),
                counted: 0,
                approved: None,
            }
        };
        Plan {
            provider: "lan".parse().unwrap(),
            mode: Mode::Managed,
            hash: Digest::of(["bench"]),
            generation: 7,
            steps: (0..steps).map(step).collect(),
            parked: None,
            blocked: Vec::new(),
            kept: Vec::new(),
            drift: Vec::new(),
            restated: Vec::new(),
            refused: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    #[test]
    fn a_stored_plan_is_the_plan_that_was_carried_out() {
        let (provider, at) = ("lan".parse().unwrap(), Timestamp::UNIX_EPOCH);
        for steps in [0, 1, 3, 4_000] {
            let plan = plan(steps);
            let mut outcomes = vec![UnitOutcome::Applied; steps];
            outcomes.iter_mut().skip(1).step_by(2).for_each(|outcome| {
                *outcome = UnitOutcome::Rejected { reason: "a \"reason\"".into() };
            });
            outcomes.iter_mut().take(1).for_each(|outcome| *outcome = UnitOutcome::NotTried);
            let mut stored = Vec::new();
            for write in plan_writes(Class::Dns, &provider, &plan, &outcomes, at) {
                let Write::Put(key, value) = write else { panic!("nothing is deleted") };
                assert!(value.len() < PART + 256, "{} bytes in one part", value.len());
                let part: Applied = keys::decode(&key, &value).unwrap();
                assert_eq!(keys::encode(&part), value, "as a part is stored by any release");
                stored.push((String::new(), part));
            }
            assert_eq!(stored.len() > 1, steps == 4_000);
            let stored = joined(stored).remove(&7).unwrap();
            assert_eq!(stored, applied_plan(&provider, &plan, &outcomes, at));
        }
    }

    /// Kept values, whose reasons 0.1.0 would not read, are not stored: a member of that version may lead next.
    #[test]
    fn steps_alone_are_stored_of_a_plan_in_the_form_that_0_1_0_reads() {
        let golden = include_str!("../../../plan/tests/it/plan_bytes/0.1.0.json");
        let (plan, whole): (Plan, Value) =
            (serde_json::from_str(golden).unwrap(), serde_json::from_str(golden).unwrap());
        assert!(!plan.steps.is_empty() && !plan.kept.is_empty());
        let outcomes = vec![UnitOutcome::Applied; plan.steps.len()];
        let writes = plan_writes(Class::Dns, &plan.provider, &plan, &outcomes, Timestamp::UNIX_EPOCH);
        let [Write::Put(_, stored)] = writes.as_slice() else { panic!("one part: {writes:?}") };
        let mut steps = whole["steps"].clone();
        for step in steps.as_array_mut().unwrap() {
            step["outcome"] = "applied".into();
        }
        let wanted = json!({
            "provider": whole["provider"],
            "generation": whole["generation"],
            "hash": whole["hash"],
            "at": "1970-01-01T00:00:00Z",
            "steps": steps,
        });
        assert_eq!(serde_json::from_slice::<Value>(&stored[1..]).unwrap(), wanted);
    }

    #[test]
    fn small_plans_are_kept_for_long_and_large_ones_ten_deep() {
        let stored = |plans: u64, names: usize| (1..=plans).map(|number| (number, names)).collect::<Stored>();
        assert!(surplus(&stored(1000, 1)).is_empty());
        assert_eq!(surplus(&stored(1002, 1)), [2, 1]);
        assert_eq!(surplus(&stored(12, 100_000)), [2, 1]);
        assert_eq!(surplus(&stored(14, 900)), [3, 2, 1]);
    }
}
