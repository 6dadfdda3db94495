//! [`LoopPlan`]: a plan as the loop sees it, whatever it is about.

use std::{fmt, sync::Arc};

use netstead_model::{Ident, Name, ObjectKey};
use netstead_plan::{
    Digest, Line, Plan, Step,
    ipam::{IpamPlan, IpamStep},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::history::{Applied, Change, ChangePosition};

/// A plan: a hash, a generation, steps, and what a guard holds back.
pub(crate) trait LoopPlan: Clone + Send + Sync + fmt::Debug + 'static {
    type Step: LoopStep;

    fn hash(&self) -> Digest;
    fn generation(&self) -> u64;
    fn set_generation(&mut self, generation: u64);
    fn steps(&self) -> &[Self::Step];
    fn retain_steps(&mut self, keep: impl FnMut(&Self::Step) -> bool);
    fn parked(&self) -> Option<ParkedSummary<'_>>;
    /// For readers that know both kinds.
    fn shared(plan: Arc<Self>) -> ProviderPlan;
}

/// One change of a plan.
pub(crate) trait LoopStep:
    Clone + PartialEq + Send + Sync + fmt::Debug + Serialize + DeserializeOwned + 'static
{
    /// Where it happens; no two steps of a plan share one.
    type Place: Clone + Ord + fmt::Debug + Send + Sync + 'static;

    fn place(&self) -> Self::Place;
    /// The places whose steps must be applied first; those steps come before this one.
    fn needs(&self) -> Vec<Self::Place> {
        Vec::new()
    }
    /// Whether both would ask the server for the same.
    fn asks_the_same(&self, other: &Self) -> bool;
    fn lines(&self) -> &[Line];
    fn subject(&self) -> String;
    /// The change as the history shows it, with its outcome.
    fn change(position: ChangePosition, plan: &Applied<Self>, step: &Self, outcome: &str) -> Change;
}

/// Changes that a guard holds back, in short.
pub(crate) struct ParkedSummary<'a> {
    pub(crate) hash: Digest,
    pub(crate) changes: usize,
    /// Ends of the sentence "parked because", one per change.
    pub(crate) guards: Vec<&'a str>,
    /// The zone that all changes are in.
    pub(crate) zone: Option<&'a Name>,
}

/// The plan of a provider of either kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ProviderPlan {
    Dns(Arc<Plan>),
    Ipam(Arc<IpamPlan>),
}

impl ProviderPlan {
    pub fn as_dns(&self) -> Option<&Arc<Plan>> {
        match self {
            Self::Dns(plan) => Some(plan),
            Self::Ipam(_) => None,
        }
    }

    pub fn as_ipam(&self) -> Option<&Arc<IpamPlan>> {
        match self {
            Self::Dns(_) => None,
            Self::Ipam(plan) => Some(plan),
        }
    }

    pub fn provider(&self) -> &Ident {
        match self {
            Self::Dns(plan) => &plan.provider,
            Self::Ipam(plan) => &plan.provider,
        }
    }

    pub fn steps(&self) -> usize {
        match self {
            Self::Dns(plan) => plan.steps.len(),
            Self::Ipam(plan) => plan.steps.len(),
        }
    }

    /// Each step as text: equal where the same would be done.
    pub(crate) fn step_texts(&self) -> Vec<String> {
        match self {
            Self::Dns(plan) => {
                let text = |step: &Step| serde_json::to_string(&(&step.zone, &step.unit)).unwrap_or_default();
                plan.steps.iter().map(text).collect()
            }
            Self::Ipam(plan) => {
                let text = |step: &IpamStep| serde_json::to_string(&step.unit).unwrap_or_default();
                plan.steps.iter().map(text).collect()
            }
        }
    }

    /// The hash of what is parked, and how many changes that is.
    pub fn parked(&self) -> Option<(Digest, usize)> {
        match self {
            Self::Dns(plan) => plan.parked.as_ref().map(|parked| (parked.hash, parked.changes.len())),
            Self::Ipam(plan) => plan.parked.as_ref().map(|parked| (parked.hash, parked.changes.len())),
        }
    }
}

impl LoopPlan for Plan {
    type Step = Step;

    fn hash(&self) -> Digest {
        self.hash
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn retain_steps(&mut self, keep: impl FnMut(&Step) -> bool) {
        self.steps.retain(keep);
    }

    fn parked(&self) -> Option<ParkedSummary<'_>> {
        let parked = self.parked.as_ref()?;
        let mut zones = parked.changes.iter().map(|change| &change.zone);
        let first = zones.next();
        Some(ParkedSummary {
            hash: parked.hash,
            changes: parked.changes.len(),
            guards: parked.changes.iter().map(|change| &*change.guard).collect(),
            zone: first.filter(|first| zones.all(|zone| zone == *first)),
        })
    }

    fn shared(plan: Arc<Self>) -> ProviderPlan {
        ProviderPlan::Dns(plan)
    }
}

impl LoopStep for Step {
    /// The zone and the name.
    type Place = (Name, Name);

    fn place(&self) -> Self::Place {
        (self.zone.clone(), self.unit.name.clone())
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.unit == other.unit
    }

    fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn subject(&self) -> String {
        self.unit.name.to_string()
    }

    fn change(position: ChangePosition, plan: &Applied<Self>, step: &Self, outcome: &str) -> Change {
        let change = Change::of_outcome(position, plan, outcome);
        let lines = step.lines.clone();
        Change { zone: Some(step.zone.clone()), name: Some(step.unit.name.clone()), lines, ..change }
    }
}

impl LoopPlan for IpamPlan {
    type Step = IpamStep;

    fn hash(&self) -> Digest {
        self.hash
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    fn steps(&self) -> &[IpamStep] {
        &self.steps
    }

    fn retain_steps(&mut self, keep: impl FnMut(&IpamStep) -> bool) {
        self.steps.retain(keep);
    }

    fn parked(&self) -> Option<ParkedSummary<'_>> {
        let parked = self.parked.as_ref()?;
        let guards = parked.changes.iter().map(|change| &*change.guard).collect();
        Some(ParkedSummary { hash: parked.hash, changes: parked.changes.len(), guards, zone: None })
    }

    fn shared(plan: Arc<Self>) -> ProviderPlan {
        ProviderPlan::Ipam(plan)
    }
}

impl LoopStep for IpamStep {
    type Place = ObjectKey;

    fn place(&self) -> ObjectKey {
        self.unit.key.clone()
    }

    fn needs(&self) -> Vec<ObjectKey> {
        self.unit.needs.clone()
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.unit == other.unit
    }

    fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn subject(&self) -> String {
        self.unit.key.to_string()
    }

    fn change(position: ChangePosition, plan: &Applied<Self>, step: &Self, outcome: &str) -> Change {
        let change = Change::of_outcome(position, plan, outcome);
        Change { object: Some(step.unit.key.clone()), lines: step.lines.clone(), ..change }
    }
}
