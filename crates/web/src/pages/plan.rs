//! Changes that are planned on every server, and the button that lets parked ones happen.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::Response;
use netstead_client::types::{
    ApplyInput, ApplyOutput, ChangeAction, ChangeOutput, ObjectChangeOutput, Page, PlanOutput, TokenRole,
};

use super::history::encoded;
use crate::{
    calls::Target,
    form::Form,
    parts::{When, Words},
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// Lines of one list on the page. What is more is counted, and the command line shows it.
const LINES: usize = 200;

#[derive(Debug, Template)]
#[template(path = "plan.html")]
struct PlanPage {
    shell: Shell,
    only: String,
    plans: Vec<Plan>,
    /// Providers without anything to change, blocked or kept.
    quiet: Vec<Quiet>,
    /// A scope that covers the changes may approve them.
    may_approve: bool,
    may_apply: bool,
}

#[derive(Debug)]
struct Quiet {
    provider: String,
    generation: u64,
}

#[derive(Debug)]
struct Plan {
    provider: String,
    mode: String,
    generation: u64,
    error: String,
    paused: Option<Words>,
    add: usize,
    change: usize,
    remove: usize,
    parked: Option<Parked>,
    zones: Vec<Zone>,
    more: usize,
    blocked: Vec<Blocked>,
    kept: Vec<Kept>,
}

/// Changes that wait for a person.
#[derive(Debug)]
struct Parked {
    hash: String,
    since: Option<When>,
    count: u64,
    zones: Vec<Zone>,
    more: usize,
}

#[derive(Debug)]
struct Zone {
    name: String,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    /// `+`, `~` or `-`, with a word for those who do not see it.
    sign: &'static str,
    word: &'static str,
    name: String,
    href: String,
    text: String,
    why: String,
    guard: String,
}

#[derive(Debug)]
struct Blocked {
    name: String,
    wanted: String,
    found: String,
    why: String,
    /// Both ways out: take over what is there, or leave it.
    adopt: bool,
    free_by: Option<Words>,
}

#[derive(Debug)]
struct Kept {
    name: String,
    what: String,
    why: String,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let only = params.text("provider").to_owned();
    let plans = if only.is_empty() {
        visit
            .calls
            .get::<Page<PlanOutput>>(Target::of(["plans"]).with("limit", "1000"))
            .await
            .map(|page| page.items)
    } else {
        visit.calls.get::<PlanOutput>(Target::of(["plans", &only])).await.map(|plan| vec![plan])
    };
    let plans = match plans {
        Ok(plans) => plans,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let (mut shown, mut quiet) = (Vec::new(), Vec::new());
    for output in plans {
        let (provider, generation) = (output.provider.clone(), output.generation);
        let plan = Plan::of(output, &visit);
        if plan.is_quiet() && only.is_empty() {
            quiet.push(Quiet { provider, generation });
        } else {
            shown.push(plan);
        }
    }
    // What waits for a person comes first, then what is broken.
    shown.sort_by_key(|plan| (plan.parked.is_none(), plan.error.is_empty(), plan.provider.clone()));
    visit.page(&PlanPage {
        may_approve: visit.may(&TokenRole::Write),
        may_apply: visit.may(&TokenRole::Write) && visit.sees_all(),
        shell: visit.shell(Section::Plan, "Plan"),
        only,
        plans: shown,
        quiet,
    })
}

impl Plan {
    fn of(output: PlanOutput, visit: &Visit) -> Self {
        let base = visit.base();
        let objects = output.objects.clone().unwrap_or_default();
        let of_action = |action: ChangeAction| {
            output.changes.iter().filter(|change| change.action == action).count()
                + objects.changes.iter().filter(|change| change.action == action).count()
        };
        let (zones, more) = zones(&output.changes, &objects.changes, base);
        let parked = output.parked.map(|parked| {
            let (zones, more) = self::zones(&output.parked_changes, &objects.parked_changes, base);
            let since = parked.since.map(|since| When::new(since, visit.now));
            Parked { hash: parked.hash, since, count: parked.changes, zones, more }
        });
        let blocked = output.blocked.iter().map(|blocked| Blocked {
            name: blocked.name.clone(),
            wanted: blocked.wanted.join(", "),
            found: blocked.found.join(", "),
            why: blocked.why.clone(),
            adopt: blocked.adopt,
            free_by: blocked.free_by.as_deref().map(Words::new),
        });
        let objects_blocked = objects.blocked.iter().map(|blocked| Blocked {
            name: blocked.object.clone(),
            wanted: String::new(),
            found: String::new(),
            why: blocked.why.clone(),
            adopt: false,
            free_by: None,
        });
        let kept = output.kept.iter().map(|kept| Kept {
            name: kept.name.clone(),
            what: match (&kept.kind, &kept.value) {
                (Some(kind), Some(value)) => format!("{kind} {value}"),
                _ => String::new(),
            },
            why: kept.why.clone(),
        });
        let objects_kept = objects.kept.iter().map(|kept| Kept {
            name: kept.object.clone(),
            what: String::new(),
            why: kept.why.clone(),
        });
        Self {
            mode: output.mode.to_string(),
            generation: output.generation,
            error: output.error.unwrap_or_default(),
            paused: output.paused.as_deref().map(Words::new),
            add: of_action(ChangeAction::Add),
            change: of_action(ChangeAction::Change),
            remove: of_action(ChangeAction::Remove),
            parked,
            zones,
            more,
            blocked: blocked.chain(objects_blocked).take(LINES).collect(),
            kept: kept.chain(objects_kept).take(LINES).collect(),
            provider: output.provider,
        }
    }

    fn is_quiet(&self) -> bool {
        self.error.is_empty()
            && self.paused.is_none()
            && self.parked.is_none()
            && self.zones.is_empty()
            && self.blocked.is_empty()
            && self.kept.is_empty()
    }

    fn has_changes(&self) -> bool {
        !self.zones.is_empty()
    }
}

/// Changes by zone; dangerous ones come first. Those of objects have no zone.
fn zones(changes: &[ChangeOutput], objects: &[ObjectChangeOutput], base: &str) -> (Vec<Zone>, usize) {
    let mut by_zone: BTreeMap<&str, Vec<(u8, Line)>> = BTreeMap::new();
    let more = (changes.len() + objects.len()).saturating_sub(LINES);
    for change in changes.iter().take(LINES) {
        let (danger, sign, word) = sign(&change.action);
        let kind = change.kind.as_ref().map(|kind| format!("{kind} ")).unwrap_or_default();
        let line = Line {
            sign,
            word,
            href: format!("{base}/names/{}", encoded(&change.name)),
            name: change.name.clone(),
            text: format!("{kind}{}", change.value),
            why: change.why.clone(),
            guard: change.guard.clone().unwrap_or_default(),
        };
        by_zone.entry(&change.zone).or_default().push((danger, line));
    }
    for change in objects.iter().take(LINES.saturating_sub(changes.len())) {
        let (danger, sign, word) = sign(&change.action);
        let line = Line {
            sign,
            word,
            href: String::new(),
            name: String::new(),
            text: change.text.clone(),
            why: change.why.clone(),
            guard: change.guard.clone().unwrap_or_default(),
        };
        by_zone.entry("objects").or_default().push((danger, line));
    }
    let zones = by_zone.into_iter().map(|(zone, mut lines)| {
        lines.sort_by_key(|(danger, _)| *danger);
        Zone { name: zone.to_owned(), lines: lines.into_iter().map(|(_, line)| line).collect() }
    });
    (zones.collect(), more)
}

fn sign(action: &ChangeAction) -> (u8, &'static str, &'static str) {
    match action {
        ChangeAction::Remove => (0, "−", "remove"),
        ChangeAction::Change => (1, "~", "change"),
        _ => (2, "+", "add"),
    }
}

pub(crate) async fn apply(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let input = ApplyInput { provider: form.maybe("provider") };
    match visit.calls.post::<ApplyOutput>(Target::of(["apply"]), &input).await {
        Ok(output) => visit.back(form.text("back"), "/plan", &outcome(&output)),
        Err(trouble) => visit.trouble(&trouble),
    }
}

/// Approves exactly the changes that were shown: another plan has another hash, and is refused.
pub(crate) async fn approve(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let target = Target::of(["apply", form.text("hash")]);
    match visit.calls.post::<ApplyOutput>(target, &serde_json::json!({})).await {
        Ok(output) => visit.back(form.text("back"), "/plan", &outcome(&output)),
        Err(trouble) => visit.trouble(&trouble),
    }
}

fn outcome(output: &ApplyOutput) -> String {
    let told: Vec<_> =
        output.passes.iter().map(|pass| format!("{}: {}", pass.provider, pass.outcome)).collect();
    if told.is_empty() { "there was nothing to do".to_owned() } else { told.join(" · ") }
}
