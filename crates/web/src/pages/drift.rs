//! Changes that others made, as sentences, and taking them over.

use std::fmt::Write as _;

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{
    AdoptInput, DriftKind, IgnoreDriftInput, IgnoredDriftOutput, ObjectDriftOutput, Page, PlanOutput,
    PoolDriftOutput, ReleaseDriftInput, RestoreDriftInput, TakeOutput, TokenRole,
};
use serde_json::{Value, json};

use super::{history::encoded, plan};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::When,
    same::{Same, Wrong},
    shell::{Section, Shell},
    visit::Visit,
};

const LINES: usize = 300;

#[derive(Debug, Template)]
#[template(path = "drift.html")]
struct DriftPage {
    shell: Shell,
    names: Vec<Line>,
    objects: Vec<Line>,
    pools: Vec<PoolLine>,
    ignored: Vec<IgnoredLine>,
    may_adopt: bool,
    /// Everything of a provider can be brought in line by those that no scope limits.
    may_apply: bool,
    /// Pools with a backend could not be asked, and why.
    pools_missing: String,
    wrong: Wrong,
    adopt: Same,
    ignore: Same,
    report_again: Same,
    restore: Same,
    release: Same,
    apply: Same,
}

#[derive(Debug)]
struct Line {
    provider: String,
    name: String,
    kind: String,
    href: String,
    what: String,
    text: String,
    /// Taking it over makes sense: something is there.
    can_adopt: bool,
    /// The next pass sets it again.
    can_restore: bool,
    /// The values of others can be left as they are, and are no drift any more.
    can_keep: bool,
    /// All that names it, for a form with many lines.
    chosen: String,
}

/// A value of others that is left out of the drift.
#[derive(Debug)]
struct IgnoredLine {
    provider: String,
    name: String,
    kind: String,
    href: String,
    value: String,
    reason: String,
    by: String,
    at: When,
    /// The name of this line in errors.
    id: String,
}

impl IgnoredLine {
    fn of(one: IgnoredDriftOutput, visit: &Visit) -> Self {
        Self {
            href: format!("{}/names/{}", visit.base(), encoded(&one.name)),
            id: format!("{}\t{}\t{}", one.provider, one.name, one.kind),
            at: When::new(one.at, visit.now),
            kind: one.kind.to_string(),
            provider: one.provider,
            name: one.name,
            value: one.value,
            reason: one.reason,
            by: one.by,
        }
    }
}

#[derive(Debug)]
struct PoolLine {
    pool: String,
    href: String,
    text: String,
    seen: When,
    key: String,
    /// The number of a stray object, to give it back by.
    stray: Option<u64>,
    can_restore: bool,
    /// The name of this line in errors.
    id: String,
}

impl PoolLine {
    fn of(drift: PoolDriftOutput, visit: &Visit) -> Self {
        Self {
            href: format!("{}/pools/{}", visit.base(), encoded(&drift.pool)),
            can_restore: drift.kind.as_str() == "missing" && drift.key.is_some(),
            id: drift.stray.map_or_else(
                || pool_line(&drift.pool, drift.key.as_deref().unwrap_or_default()),
                |stray| format!("stray {stray}"),
            ),
            key: drift.key.unwrap_or_default(),
            stray: drift.stray,
            pool: drift.pool,
            text: drift.reason,
            seen: When::new(drift.seen, visit.now),
        }
    }
}

fn pool_line(pool: &str, key: &str) -> String {
    format!("{pool} {key}")
}

pub(crate) async fn list(visit: Visit) -> Response {
    render(&visit, Wrong::default(), StatusCode::OK).await
}

async fn render(visit: &Visit, wrong: Wrong, status: StatusCode) -> Response {
    let (plans, pools, ignored) = tokio::join!(
        visit.calls.get::<Page<PlanOutput>>(Target::of(["plans"]).with("limit", "1000")),
        visit.calls.aside::<Page<PoolDriftOutput>>(Target::of(["drift"]).with("limit", "300")),
        visit.calls.aside::<Page<IgnoredDriftOutput>>(Target::of(["drift", "ignored"]).with("limit", "300"))
    );
    let ignored = ignored.map(|page| page.items).unwrap_or_default();
    let plans = match plans {
        Ok(plans) => plans.items,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let base = visit.base().to_owned();
    let (mut names, mut objects) = (Vec::new(), Vec::new());
    for plan in &plans {
        for drift in &plan.drift {
            let (kind, name, value) = (&drift.kind, &drift.name, &drift.value);
            let (what, text) = match drift.drift {
                DriftKind::Missing => (
                    "missing",
                    format!("others removed {kind} {value}, which is ours; the next pass sets it again"),
                ),
                DriftKind::Foreign => ("foreign", format!("others put {kind} {value} beside ours")),
                DriftKind::Mark => {
                    ("mark", format!("a mark of ours for {kind} {value}, which the store does not know"))
                }
                DriftKind::Unknown(_) => ("other", format!("{kind} {value} differs")),
            };
            names.push(Line {
                provider: plan.provider.clone(),
                kind: kind.to_string(),
                href: format!("{base}/names/{}", encoded(name)),
                name: name.clone(),
                what: what.to_owned(),
                text,
                can_adopt: drift.drift != DriftKind::Missing,
                can_restore: drift.drift == DriftKind::Missing,
                can_keep: false,
                chosen: format!("{}\t{name}\t{kind}", plan.provider),
            });
        }
        let of_objects = plan.objects.as_ref().map(|objects| objects.drift.as_slice()).unwrap_or_default();
        objects.extend(of_objects.iter().map(|drift| object_line(&plan.provider, drift)));
    }
    names.truncate(LINES);
    objects.truncate(LINES);
    let pools_missing = pools.as_ref().err().map(|problem| problem.detail.clone()).unwrap_or_default();
    let pools = pools.map(|page| page.items).unwrap_or_default();
    let [ignore, report_again] = same_ignore(visit);
    let page = DriftPage {
        shell: visit.shell(Section::Drift, "Drift"),
        names,
        objects,
        pools: pools.into_iter().map(|drift| PoolLine::of(drift, visit)).collect(),
        ignored: ignored.into_iter().map(|one| IgnoredLine::of(one, visit)).collect(),
        pools_missing,
        may_adopt: visit.may(&TokenRole::Write),
        may_apply: visit.may(&TokenRole::Write) && visit.sees_all(),
        wrong,
        adopt: same_adopt(visit),
        ignore,
        report_again,
        restore: Same::new(
            visit,
            "restore",
            &["pool", "restore", "POOL", "KEY"],
            "POST",
            &Target::of(["drift", "restore"]),
            Some(&json!({"pool": "POOL", "key": "KEY"})),
        ),
        release: Same::new(
            visit,
            "give-back",
            &["pool", "give-back", "NUMBER"],
            "POST",
            &Target::of(["drift", "release"]),
            Some(&json!({"stray": 17})),
        ),
        apply: Same::new(
            visit,
            "apply",
            &["apply", "--provider", "SERVER"],
            "POST",
            &Target::of(["apply"]),
            Some(&json!({"provider": "SERVER"})),
        ),
    };
    visit.page_as(status, &page)
}

/// How anything is adopted by a command.
pub(super) fn same_adopt(visit: &Visit) -> Same {
    Same::new(
        visit,
        "adopt",
        &["adopt", "NAME", "--provider", "SERVER"],
        "POST",
        &Target::of(["adopt"]),
        Some(&json!({"name": "NAME", "provider": "SERVER"})),
    )
}

/// How drift is ignored, and reported again, by a command.
fn same_ignore(visit: &Visit) -> [Same; 2] {
    let target = Target::of(["drift", "ignored"]);
    let body = json!({"name": "NAME", "provider": "SERVER", "reason": "TEXT"});
    let words = ["ignore", "NAME", "--provider", "SERVER", "--reason", "TEXT"];
    let ignore = Same::new(visit, "ignore", &words, "POST", &target, Some(&body));
    let words = ["ignore", "NAME", "--provider", "SERVER", "--end"];
    let target = target.with("name", "NAME").with("provider", "SERVER");
    [ignore, Same::new(visit, "report-again", &words, "DELETE", &target, None)]
}

fn object_line(provider: &str, drift: &ObjectDriftOutput) -> Line {
    let found = drift.found.as_deref().unwrap_or("nothing");
    let text = match (&drift.field, &drift.wanted) {
        (Some(field), Some(wanted)) => format!("others set {field} to “{found}”; “{wanted}” is wanted"),
        (Some(field), None) => format!("others set {field} to “{found}”"),
        (None, _) => "others removed or replaced it".to_owned(),
    };
    Line {
        provider: provider.to_owned(),
        name: drift.object.clone(),
        kind: String::new(),
        href: String::new(),
        what: "changed".to_owned(),
        text,
        can_adopt: drift.field.is_some(),
        can_restore: drift.field.is_none(),
        can_keep: drift.field.is_some(),
        chosen: format!("{provider}\t{}", drift.object),
    }
}

pub(crate) async fn adopt(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let input = AdoptInput {
        name: form.maybe("name"),
        kind: form.maybe("type").map(|kind| kind.as_str().into()),
        object: form.maybe("object"),
        provider: form.maybe("provider"),
        keep: form.is_set("keep"),
        ..AdoptInput::default()
    };
    match visit.calls.post::<TakeOutput>(Target::of(["adopt"]), &input).await {
        Ok(output) => visit.back(form.text("back"), "/drift", &outcome(&output)),
        Err(trouble) if form.text("back").starts_with("/plan") => {
            plan::refused(&visit, &form, form.text("name"), &trouble).await
        }
        Err(trouble) => {
            let parts = ["provider", "object", "name", "type"].map(|field| form.text(field));
            let line: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            again(&visit, &line.join("\t"), &trouble).await
        }
    }
}

fn outcome(output: &TakeOutput) -> String {
    let taken = output.taken.len() + output.objects.len();
    let mut said = format!("{taken} taken over");
    if let Some(failed) = output.failed.first() {
        let _ = write!(said, "; {}: {}", failed.provider, failed.reason);
    }
    if let (0, Some(left)) = (taken, output.left.first()) {
        let _ = write!(said, "; {} stays as it is: {}", left.name, left.why);
    }
    said
}

/// Ignores the drift of one line until it changes.
pub(crate) async fn ignore(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let line = ["provider", "name", "type"].map(|field| form.text(field)).join("\t");
    ignore_lines(&visit, &[line.as_str()], form.text("reason")).await
}

/// Ignores the drift of these lines, one after the other; the first refusal ends it, and says how far it came.
async fn ignore_lines(visit: &Visit, lines: &[&str], reason: &str) -> Response {
    let mut ignored = 0;
    for line in lines.iter().take(2 * LINES) {
        let mut parts = line.split('\t').map(str::to_owned);
        let (provider, name, kind) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
        let kind = kind.map(|kind| kind.as_str().into());
        let input = IgnoreDriftInput { name, kind, provider, reason: reason.to_owned() };
        match visit.calls.post::<Vec<IgnoredDriftOutput>>(Target::of(["drift", "ignored"]), &input).await {
            Ok(now) => ignored += now.len(),
            Err(mut trouble) => {
                if ignored > 0 {
                    trouble.detail = format!("{}; before it, {ignored} were ignored", trouble.detail);
                }
                return again(visit, line, &trouble).await;
            }
        }
    }
    let them = if ignored == 1 {
        "1 is ignored until it changes".to_owned()
    } else {
        format!("{ignored} are ignored until they change")
    };
    visit.done("/drift", &them)
}

/// Reports what is ignored at a name as drift again.
pub(crate) async fn report_again(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let [name, kind, provider] = ["name", "type", "provider"].map(|field| form.text(field));
    let target =
        Target::of(["drift", "ignored"]).with("name", name).with("type", kind).with("provider", provider);
    match visit.calls.delete(target).await {
        Ok(()) => visit.done("/drift", &format!("drift at {name} is reported again")),
        Err(trouble) => again(&visit, &[provider, name, kind].join("\t"), &trouble).await,
    }
}

/// Adopts or ignores all lines that are ticked, one after the other; the first refusal ends it, and says how far it came.
pub(crate) async fn adopt_many(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let lines = form.all("line");
    if form.text("act") == "ignore" && !lines.is_empty() {
        // Objects of IPAM systems have no type: their fields are left with a button of their own.
        let names: Vec<&str> =
            lines.iter().map(String::as_str).filter(|line| line.matches('\t').count() == 2).collect();
        if names.is_empty() {
            return visit.done(
                "/drift",
                "nothing was ignored: what others wrote to an object is left with “Leave it so”",
            );
        }
        return ignore_lines(&visit, &names, form.text("reason")).await;
    }
    if lines.is_empty() {
        return visit.done("/drift", "no line was ticked, and nothing was done");
    }
    let (mut taken, mut left) = (0, 0);
    for line in lines.iter().take(2 * LINES) {
        let mut parts = line.split('\t').map(str::to_owned);
        let (provider, subject, kind) = (parts.next(), parts.next(), parts.next());
        let input = match kind {
            Some(kind) => AdoptInput {
                name: subject,
                kind: Some(kind.as_str().into()),
                provider,
                ..AdoptInput::default()
            },
            None => AdoptInput { object: subject, provider, ..AdoptInput::default() },
        };
        match visit.calls.post::<TakeOutput>(Target::of(["adopt"]), &input).await {
            Ok(output) => {
                taken += output.taken.len() + output.objects.len();
                left += output.left.len() + output.failed.len();
            }
            Err(mut trouble) => {
                trouble.detail = format!("{}; before it, {taken} were taken over", trouble.detail);
                return again(&visit, line, &trouble).await;
            }
        }
    }
    let mut said = format!("{taken} taken over");
    if left > 0 {
        let _ = write!(said, "; {left} stay as they are");
    }
    visit.done("/drift", &said)
}

/// Lets the backend of a pool hold the address of a claim again.
pub(crate) async fn restore(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let input = RestoreDriftInput { pool: form.text("pool").to_owned(), key: form.text("key").to_owned() };
    match visit.calls.post::<Value>(Target::of(["drift", "restore"]), &input).await {
        Ok(_) => visit.done("/drift", &format!("the backend holds the address of {} again", input.key)),
        Err(trouble) => again(&visit, &pool_line(&input.pool, &input.key), &trouble).await,
    }
}

/// Gives an object back to a backend that no claim has.
pub(crate) async fn give_back(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let input = ReleaseDriftInput { stray: form.text("stray").parse().unwrap_or_default() };
    match visit.calls.post::<Value>(Target::of(["drift", "release"]), &input).await {
        Ok(_) => visit.done("/drift", "it is given back to the backend"),
        Err(trouble) => again(&visit, &format!("stray {}", input.stray), &trouble).await,
    }
}

/// The page again, with the reason beside the line.
async fn again(visit: &Visit, line: &str, trouble: &Trouble) -> Response {
    if matches!(trouble.status, 401 | 403 | 502..=504) {
        return visit.trouble(trouble);
    }
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    render(&visit.at("/drift"), Wrong::new(line, trouble), status).await
}
