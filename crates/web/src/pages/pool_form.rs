//! Makes a pool.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{PoolInput, PoolOutput, TokenRole};
use serde_json::json;

use super::{history::encoded, pool::missing};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    same::Same,
    shell::{Section, Shell},
    visit::Visit,
};

#[derive(Debug, Template)]
#[template(path = "pool_new.html")]
struct NewPoolPage {
    shell: Shell,
    form: Form,
    same: Same,
}

fn same(visit: &Visit) -> Same {
    Same::new(
        visit,
        "new",
        &["pool", "create", "NAME", "--network", "10.0.3.0/24", "--range", "10.0.3.50-10.0.3.200"],
        "PUT",
        &Target::of(["pools", "NAME"]),
        Some(&json!({"network": "10.0.3.0/24", "ranges": ["10.0.3.50-10.0.3.200"]})),
    )
}

pub(crate) async fn blank(visit: Visit) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let shell = visit.shell(Section::Addresses, "New pool");
    visit.page(&NewPoolPage { shell, form: Form::default(), same: same(&visit) })
}

pub(crate) async fn create(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let name = form.text("name").to_owned();
    let input = PoolInput {
        network: form.maybe("network"),
        ranges: form.words("ranges"),
        exclude: form.words("exclude"),
        gateway: form.maybe("gateway"),
        domain: form.maybe("domain"),
        description: form.maybe("description"),
        vrf: form.maybe("vrf"),
        ..PoolInput::default()
    };
    let made: Result<PoolOutput, Trouble> = if name.is_empty() {
        Err(missing("name", "give the pool a name, such as `lan`"))
    } else {
        visit.calls.create(Target::of(["pools", &name]), &input).await
    };
    match made {
        Ok(pool) => {
            visit.done(&format!("/pools/{}", encoded(&pool.name)), &format!("pool {} is made", pool.name))
        }
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            let fields = ["name", "network", "ranges", "exclude", "gateway", "domain", "description", "vrf"];
            let mut problem = problem;
            if problem.status == 412 || problem.slug() == "pool-exists" {
                problem.detail = format!("there is a pool `{name}` already");
                problem.field = Some("name".to_owned());
            }
            let form = form.wrong(&problem, &fields);
            let visit = visit.at("/pools/new");
            let shell = visit.shell(Section::Addresses, "New pool");
            visit.page_as(status, &NewPoolPage { shell, form, same: same(&visit) })
        }
    }
}
