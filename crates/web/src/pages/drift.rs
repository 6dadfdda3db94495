//! Changes that others made, as sentences, and taking them over.

use std::fmt::Write as _;

use askama::Template;
use axum::response::Response;
use netstead_client::types::{
    AdoptInput, DriftKind, ObjectDriftOutput, Page, PlanOutput, PoolDriftOutput, TakeOutput, TokenRole,
};

use super::history::encoded;
use crate::{
    calls::Target,
    form::Form,
    parts::When,
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
    may_adopt: bool,
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
}

#[derive(Debug)]
struct PoolLine {
    pool: String,
    href: String,
    text: String,
    seen: When,
}

pub(crate) async fn list(visit: Visit) -> Response {
    let (plans, pools) = tokio::join!(
        visit.calls.get::<Page<PlanOutput>>(Target::of(["plans"]).with("limit", "1000")),
        visit.calls.get::<Page<PoolDriftOutput>>(Target::of(["drift"]).with("limit", "300"))
    );
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
            });
        }
        let of_objects = plan.objects.as_ref().map(|objects| objects.drift.as_slice()).unwrap_or_default();
        objects.extend(of_objects.iter().map(|drift| object_line(&plan.provider, drift)));
    }
    names.truncate(LINES);
    objects.truncate(LINES);
    let pool_line = |drift: PoolDriftOutput| PoolLine {
        href: format!("{base}/pools/{}", encoded(&drift.pool)),
        pool: drift.pool,
        text: drift.reason,
        seen: When::new(drift.seen, visit.now),
    };
    visit.page(&DriftPage {
        shell: visit.shell(Section::Drift, "Drift"),
        names,
        objects,
        pools: pools.map(|page| page.items).unwrap_or_default().into_iter().map(pool_line).collect(),
        may_adopt: visit.may(&TokenRole::Write),
    })
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
        ..AdoptInput::default()
    };
    match visit.calls.post::<TakeOutput>(Target::of(["adopt"]), &input).await {
        Ok(output) => {
            let taken = output.taken.len() + output.objects.len();
            let mut said = format!("{taken} taken over");
            if let Some(failed) = output.failed.first() {
                let _ = write!(said, "; {}: {}", failed.provider, failed.reason);
            }
            if let (0, Some(left)) = (taken, output.left.first()) {
                let _ = write!(said, "; {} stays as it is: {}", left.name, left.why);
            }
            visit.back(form.text("back"), "/drift", &said)
        }
        Err(trouble) => visit.trouble(&trouble),
    }
}
