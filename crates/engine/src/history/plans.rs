//! Applied plans in the store.

use std::collections::BTreeMap;

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

/// A plan that was carried out, with the outcome of each step. Those that were not tried are no part of it.
pub(crate) fn applied_plan<P: LoopPlan>(
    provider: &Ident,
    plan: &P,
    outcomes: &[UnitOutcome],
    at: Timestamp,
) -> Applied<P::Step> {
    let step = |(step, outcome): (&P::Step, &UnitOutcome)| {
        let outcome = match outcome {
            UnitOutcome::Applied => "applied".into(),
            UnitOutcome::Changed => "changed".into(),
            UnitOutcome::Rejected { reason } => format!("rejected: {reason}"),
            UnitOutcome::Unknown => "unknown".into(),
            UnitOutcome::NotTried => return None,
        };
        Some(AppliedStep { step: step.clone(), outcome })
    };
    let (generation, hash) = (plan.generation(), plan.hash());
    let steps = plan.steps().iter().zip(outcomes).filter_map(step).collect();
    Applied { provider: provider.clone(), generation, hash, at, steps }
}

/// A plan that was carried out, as the store keeps it: one write per part.
pub(crate) fn plan_writes<S: LoopStep>(class: Class, plan: &Applied<S>) -> Vec<Write> {
    let mut parts: Vec<Vec<AppliedStep<S>>> = vec![Vec::new()];
    let mut bytes = 0;
    for step in &plan.steps {
        bytes += serde_json::to_vec(step).map_or(0, |json| json.len());
        if bytes > PART {
            bytes = 0;
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(step.clone());
        }
    }
    let Applied { provider, generation, hash, at, .. } = plan;
    let part = |(number, steps)| {
        let key = keys::plan(class, provider, *generation, number);
        let (provider, generation, hash, at) = (provider.clone(), *generation, *hash, *at);
        Write::Put(key, keys::encode(&Applied { provider, generation, hash, at, steps }))
    };
    parts.into_iter().enumerate().map(part).collect()
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
    use super::*;

    #[test]
    fn small_plans_are_kept_for_long_and_large_ones_ten_deep() {
        let stored = |plans: u64, names: usize| (1..=plans).map(|number| (number, names)).collect::<Stored>();
        assert!(surplus(&stored(1000, 1)).is_empty());
        assert_eq!(surplus(&stored(1002, 1)), [2, 1]);
        assert_eq!(surplus(&stored(12, 100_000)), [2, 1]);
        assert_eq!(surplus(&stored(14, 900)), [3, 2, 1]);
    }
}
