//! Changes that are planned on every server, and the button that lets parked ones happen.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{
    ApplyInput, ApplyOutput, ChangeAction, ChangeOutput, ObjectChangeOutput, Page, PlanOutput, TokenRole,
};
use serde_json::json;

use super::{drift, history::encoded};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::{When, Words},
    same::{Same, Wrong},
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
    apply: Same,
    adopt: Same,
    wrong: Wrong,
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
    changes: Part,
    more_changes: String,
    blocked: Vec<Blocked>,
    kept: Vec<Kept>,
}

/// Changes that wait for a person.
#[derive(Debug)]
struct Parked {
    hash: String,
    since: Option<When>,
    count: u64,
    part: Part,
    /// The pages of the lines before and after this part.
    before: String,
    after: String,
    same: Same,
}

#[derive(Debug)]
pub(super) struct Zone {
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
}

#[derive(Debug)]
pub(super) struct Line {
    /// `+`, `~` or `-`, with a word for those who do not see it.
    pub(super) sign: &'static str,
    pub(super) word: &'static str,
    pub(super) name: String,
    pub(super) href: String,
    pub(super) text: String,
    pub(super) why: String,
    pub(super) guard: String,
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
    render(&visit, &params, Wrong::default(), StatusCode::OK).await
}

/// The page, with the reason of a refused act beside what it is about.
pub(super) async fn render(visit: &Visit, params: &Params, wrong: Wrong, status: StatusCode) -> Response {
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
    let from = params.text("from").parse::<usize>().unwrap_or(0);
    let of_changes = params.text("changes").parse::<usize>().unwrap_or(0);
    let (mut shown, mut quiet) = (Vec::new(), Vec::new());
    for output in plans {
        let (provider, generation) = (output.provider.clone(), output.generation);
        let plan = Plan::of(output, visit, from, of_changes);
        if plan.is_quiet() && only.is_empty() {
            quiet.push(Quiet { provider, generation });
        } else {
            shown.push(plan);
        }
    }
    // What waits for a person comes first, then what is broken.
    shown.sort_by_key(|plan| (plan.parked.is_none(), plan.error.is_empty(), plan.provider.clone()));
    let input = if only.is_empty() { json!({}) } else { json!({ "provider": only }) };
    let words = if only.is_empty() { vec!["apply"] } else { vec!["apply", "--provider", &only] };
    let page = PlanPage {
        apply: Same::new(visit, "apply", &words, "POST", &Target::of(["apply"]), Some(&input)),
        adopt: drift::same_adopt(visit),
        wrong,
        may_approve: visit.may(&TokenRole::Write),
        may_apply: visit.may(&TokenRole::Write) && visit.sees_all(),
        shell: visit.shell(Section::Plan, "Plan"),
        only,
        plans: shown,
        quiet,
    };
    visit.page_as(status, &page)
}

impl Plan {
    fn of(output: PlanOutput, visit: &Visit, from: usize, of_changes: usize) -> Self {
        let base = visit.base();
        let objects = output.objects.clone().unwrap_or_default();
        let of_action = |action: ChangeAction| {
            output.changes.iter().filter(|change| change.action == action).count()
                + objects.changes.iter().filter(|change| change.action == action).count()
        };
        let changes = part(&output.changes, &objects.changes, base, of_changes);
        let href = |name: &str, from: usize| {
            format!("{base}/plan?provider={}&{name}={from}", encoded(&output.provider))
        };
        let more_changes =
            if changes.last < changes.all { href("changes", changes.last) } else { String::new() };
        let parked = output.parked.as_ref().map(|parked| {
            let part = self::part(&output.parked_changes, &objects.parked_changes, base, from);
            Parked {
                hash: parked.hash.clone(),
                since: parked.since.map(|since| When::new(since, visit.now)),
                count: parked.changes,
                before: if part.first > 1 {
                    href("from", (part.first - 1).saturating_sub(LINES))
                } else {
                    String::new()
                },
                after: if part.last < part.all { href("from", part.last) } else { String::new() },
                part,
                same: Same::new(
                    visit,
                    "approve",
                    &["apply", &parked.hash],
                    "POST",
                    &Target::of(["apply", &parked.hash]),
                    Some(&serde_json::json!({})),
                ),
            }
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
            changes,
            more_changes,
            blocked: blocked.chain(objects_blocked).take(LINES).collect(),
            kept: kept.chain(objects_kept).take(LINES).collect(),
            provider: output.provider,
        }
    }

    fn is_quiet(&self) -> bool {
        self.error.is_empty()
            && self.paused.is_none()
            && self.parked.is_none()
            && self.changes.zones.is_empty()
            && self.blocked.is_empty()
            && self.kept.is_empty()
    }

    fn has_changes(&self) -> bool {
        !self.changes.zones.is_empty()
    }
}

/// A part of the changes: dangerous ones first, over all zones.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) zones: Vec<Zone>,
    /// The place of the first line of this part, from 1 on, and of the last.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) all: usize,
    /// How many of all remove something.
    pub(super) removals: usize,
}

impl Part {
    pub(super) fn is_cut(&self) -> bool {
        self.all > self.last.saturating_sub(self.first) + 1
    }
}

/// A change of a name, or of an object of an IPAM system.
enum Each<'c> {
    Name(&'c ChangeOutput),
    Object(&'c ObjectChangeOutput),
}

/// The lines from place `from` on, by zone. Those of objects have no zone.
pub(super) fn part(
    changes: &[ChangeOutput],
    objects: &[ObjectChangeOutput],
    base: &str,
    from: usize,
) -> Part {
    let line = |action: &ChangeAction, why: &str, guard: Option<&String>| {
        let (_, sign, word) = sign(action);
        Line {
            sign,
            word,
            name: String::new(),
            href: String::new(),
            text: String::new(),
            why: why.to_owned(),
            guard: guard.cloned().unwrap_or_default(),
        }
    };
    let mut all: Vec<(u8, &str, Each<'_>)> = changes
        .iter()
        .map(|change| (sign(&change.action).0, change.zone.as_str(), Each::Name(change)))
        .collect();
    all.extend(objects.iter().map(|change| (sign(&change.action).0, "objects", Each::Object(change))));
    // Stable: within a zone they stay in the order of the plan.
    all.sort_by_key(|(danger, zone, _)| (*danger, *zone));
    let from = if from < all.len() { from } else { 0 };
    let mut part = Part {
        removals: all.iter().filter(|(danger, ..)| *danger == 0).count(),
        all: all.len(),
        first: from + 1,
        last: (from + LINES).min(all.len()),
        zones: Vec::new(),
    };
    for (_, zone, each) in all.iter().skip(from).take(LINES) {
        let line = match each {
            Each::Name(change) => {
                let kind = change.kind.as_ref().map(|kind| format!("{kind} ")).unwrap_or_default();
                Line {
                    href: format!("{base}/names/{}", encoded(&change.name)),
                    name: change.name.clone(),
                    text: format!("{kind}{}", change.value),
                    ..line(&change.action, &change.why, change.guard.as_ref())
                }
            }
            Each::Object(change) => {
                Line { text: change.text.clone(), ..line(&change.action, &change.why, change.guard.as_ref()) }
            }
        };
        match part.zones.last_mut().filter(|last| last.name == *zone) {
            Some(last) => last.lines.push(line),
            None => part.zones.push(Zone { name: (*zone).to_owned(), lines: vec![line] }),
        }
    }
    part
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
        Err(trouble) => refused(&visit, &form, "apply", &trouble).await,
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
        Err(trouble) => refused(&visit, &form, form.text("hash"), &trouble).await,
    }
}

/// The page again, with the reason beside the button that was pressed.
pub(super) async fn refused(visit: &Visit, form: &Form, of: &str, trouble: &Trouble) -> Response {
    if matches!(trouble.status, 401 | 403 | 502..=504) {
        return visit.trouble(trouble);
    }
    let provider = form.text("provider");
    let place = if provider.is_empty() {
        "/plan".to_owned()
    } else {
        format!("/plan?provider={}", encoded(provider))
    };
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let params = Params::of([("provider", provider)]);
    render(&visit.at(place), &params, Wrong::new(of, trouble), status).await
}

fn outcome(output: &ApplyOutput) -> String {
    let told: Vec<_> =
        output.passes.iter().map(|pass| format!("{}: {}", pass.provider, pass.outcome)).collect();
    if told.is_empty() { "there was nothing to do".to_owned() } else { told.join(" · ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(zone: &str, name: &str, action: ChangeAction) -> ChangeOutput {
        ChangeOutput {
            zone: zone.to_owned(),
            name: name.to_owned(),
            action,
            kind: None,
            value: "10.0.0.1".to_owned(),
            why: String::new(),
            guard: None,
        }
    }

    #[test]
    fn a_removal_is_never_behind_the_cut() {
        let mut changes: Vec<_> =
            (0..450).map(|n| change("a.test", &format!("n{n}.a.test"), ChangeAction::Add)).collect();
        changes.push(change("z.test", "gone.z.test", ChangeAction::Remove));
        let names = |part: &Part| -> Vec<String> {
            part.zones.iter().flat_map(|zone| zone.lines.iter().map(|line| line.name.clone())).collect()
        };
        let first = part(&changes, &[], "", 0);
        assert_eq!(names(&first).first().map(String::as_str), Some("gone.z.test"));
        assert_eq!((first.first, first.last, first.all, first.removals), (1, 200, 451, 1));
        assert!(first.is_cut());
        // All lines are reached, each once.
        let mut all = names(&first);
        all.extend(names(&part(&changes, &[], "", 200)));
        all.extend(names(&part(&changes, &[], "", 400)));
        let mut once = all.clone();
        once.sort();
        once.dedup();
        assert_eq!((all.len(), once.len()), (451, 451));
        assert_eq!(part(&changes, &[], "", 9999).first, 1, "no such part: the first");
        assert!(!part(&changes[..3], &[], "", 0).is_cut());
    }
}
