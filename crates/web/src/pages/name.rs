//! One name: why it is as it is, its values on every server, and records set by hand.

use askama::Template;
use axum::{extract::Path, http::StatusCode, response::Response};
use netstead_client::types::{ManualOutput, NameOutput, RecordInput, RecordType, TokenRole};

use serde_json::json;

use super::{
    history::encoded,
    names::{RecordLine, record_line},
    pool::missing,
};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::Words,
    same::{Same, Wrong},
    shell::{Section, Shell},
    visit::Visit,
};

#[derive(Debug, Template)]
#[template(path = "name.html")]
struct NamePage {
    shell: Shell,
    name: String,
    href: String,
    why: Vec<Words>,
    records: Vec<RecordLine>,
    /// Records set by hand.
    manual: Vec<ManualOutput>,
    types: Vec<String>,
    kind: String,
    form: Form,
    may_set: bool,
    set: Same,
    delete: Same,
    wrong: Wrong,
}

pub(crate) async fn show(visit: Visit, Path(name): Path<String>) -> Response {
    render(&visit, &name, Form::default(), Wrong::default(), StatusCode::OK).await
}

async fn render(visit: &Visit, name: &str, form: Form, wrong: Wrong, status: StatusCode) -> Response {
    let known: NameOutput = match visit.calls.get(Target::of(["names", name])).await {
        Ok(known) => known,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let mut manual = Vec::new();
    // Only types that something at the name has can have been set by hand.
    let mut kinds: Vec<RecordType> = known.records.iter().map(|record| record.kind.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let target = Target::of(["records", name, kind.as_str()]);
        manual.extend(visit.calls.get::<ManualOutput>(target).await.ok());
    }
    let kind = form.maybe("type").unwrap_or_else(|| "A".to_owned());
    let page = NamePage {
        shell: visit.shell(Section::Names, known.name.clone()),
        href: format!("{}/names/{}", visit.base(), encoded(&known.name)),
        why: Words::each(&known.why),
        records: known.records.iter().map(|record| record_line(record, visit.base())).collect(),
        manual,
        types: RecordType::KNOWN.iter().map(ToString::to_string).collect(),
        kind,
        form,
        may_set: visit.may(&TokenRole::Write),
        set: Same::new(
            visit,
            "set",
            &["record", "set", &known.name, "A", "10.0.3.9"],
            "PUT",
            &Target::of(["records", &known.name, "A"]),
            Some(&json!({"values": ["10.0.3.9"]})),
        ),
        delete: Same::new(
            visit,
            "delete",
            &["record", "delete", &known.name, "A"],
            "DELETE",
            &Target::of(["records", &known.name, "A"]),
            None,
        ),
        wrong,
        name: known.name,
    };
    visit.page_as(status, &page)
}

pub(crate) async fn set(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let ttl = form.maybe("ttl").map(|text| text.parse::<u32>());
    let kind = form.text("type").to_owned();
    let set: Result<ManualOutput, Trouble> = match ttl.transpose() {
        Err(_) => Err(missing("ttl", "it is a number of seconds, such as `300`")),
        Ok(ttl) => {
            let input = RecordInput { values: form.lines("values"), ttl };
            visit.calls.put(Target::of(["records", &name, &kind]), &input).await
        }
    };
    match set {
        Ok(set) => visit.done(
            &format!("/names/{}", encoded(&name)),
            &format!("{} {} is set; the servers get it in the next pass", set.name, set.kind),
        ),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            let form = form.wrong(&problem, &["type", "values", "ttl"]);
            let visit = visit.at(format!("/names/{}", encoded(&name)));
            render(&visit, &name, form, Wrong::default(), status).await
        }
    }
}

pub(crate) async fn delete(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let kind = form.text("type");
    match visit.calls.delete(Target::of(["records", &name, kind])).await {
        Ok(()) => visit.done(
            &format!("/names/{}", encoded(&name)),
            &format!("{name} {kind} is no longer set by hand; the servers follow in the next pass"),
        ),
        Err(problem) if matches!(problem.status, 401 | 403 | 502..=504) => visit.trouble(&problem),
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            let visit = visit.at(format!("/names/{}", encoded(&name)));
            render(&visit, &name, Form::default(), Wrong::new(kind, &problem), status).await
        }
    }
}
