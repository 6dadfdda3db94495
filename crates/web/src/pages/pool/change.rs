//! Changing and deleting a pool. What would become of it is shown before it is done.

use askama::Template;
use axum::{extract::Path, http::StatusCode, response::Response};
use netstead_client::types::{PoolInput, PoolOutput, Problem, TokenRole};
use serde_json::Value;

use super::missing;
use crate::{
    calls::{Target, Trouble},
    form::Form,
    pages::history::encoded,
    same::Same,
    shell::{Section, Shell},
    visit::Visit,
};

/// Fields of the form, as the API calls them.
const FIELDS: [&str; 10] = [
    "network",
    "ranges",
    "exclude",
    "gateway",
    "domain",
    "description",
    "cooldown",
    "order",
    "length",
    "max_per_owner",
];

#[derive(Debug, Template)]
#[template(path = "pool_edit.html")]
struct EditPage {
    shell: Shell,
    pool: PoolOutput,
    href: String,
    form: Form,
    /// The version that was looked at; another one is not changed.
    tag: String,
    /// Settings that would be otherwise; shown before it is done.
    changes: Vec<Changed>,
    orders: Vec<String>,
    same: Same,
}

/// One setting, before and after.
#[derive(Debug, PartialEq, Eq)]
struct Changed {
    name: &'static str,
    before: String,
    after: String,
}

#[derive(Debug, Template)]
#[template(path = "pool_delete.html")]
struct DeletePage {
    shell: Shell,
    pool: PoolOutput,
    href: String,
    form: Form,
    tag: String,
    same: Same,
}

/// A pool that may be changed here, with its version.
async fn changeable(visit: &Visit, name: &str) -> Result<(PoolOutput, String), Response> {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return Err(refused);
    }
    let found = visit.calls.get_tagged::<PoolOutput>(Target::of(["pools", name])).await;
    let (pool, tag) = found.map_err(|trouble| visit.trouble(&trouble))?;
    if pool.origin.as_str() == "file" {
        let detail = format!("pool {name} is one of the configuration file: change it there");
        return Err(visit.trouble(&Box::new(Problem { status: 409, detail, ..Problem::default() })));
    }
    Ok((pool, tag))
}

pub(crate) async fn edit(visit: Visit, Path(name): Path<String>) -> Response {
    let (pool, tag) = match changeable(&visit, &name).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let form = filled(&pool);
    visit.page(&EditPage::new(&visit, pool, tag, form, Vec::new()))
}

/// The form with the settings as they are.
fn filled(pool: &PoolOutput) -> Form {
    let settings = settings(pool);
    settings.into_iter().fold(Form::default(), |form, (name, _, text)| form.with(name, text))
}

/// Settings that the form has: field, name for people, and value.
fn settings(pool: &PoolOutput) -> [(&'static str, &'static str, String); 10] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        ("network", "Network", text(&pool.network)),
        ("ranges", "Ranges that are handed out", pool.ranges.join(", ")),
        ("exclude", "Never handed out", pool.exclude.join(", ")),
        ("gateway", "Gateway", text(&pool.gateway)),
        ("domain", "Domain", text(&pool.domain)),
        ("description", "Description", text(&pool.description)),
        ("cooldown", "Rest after release", pool.cooldown.clone()),
        ("order", "Order", pool.order.to_string()),
        ("length", "Length of a prefix", pool.length.map(|length| length.to_string()).unwrap_or_default()),
        (
            "max_per_owner",
            "Most addresses of one owner",
            pool.max_per_owner.map(|most| most.to_string()).unwrap_or_default(),
        ),
    ]
}

impl EditPage {
    fn new(visit: &Visit, pool: PoolOutput, tag: String, form: Form, changes: Vec<Changed>) -> Self {
        let input = serde_json::to_value(input(&pool, &form).unwrap_or_default()).unwrap_or_default();
        let words: Vec<String> = changes.iter().flat_map(flags).collect();
        let words: Vec<&str> =
            ["pool", "update", &pool.name].into_iter().chain(words.iter().map(String::as_str)).collect();
        Self {
            shell: visit.shell(Section::Addresses, format!("Change pool {}", pool.name)),
            href: format!("{}/pools/{}", visit.base(), encoded(&pool.name)),
            orders: netstead_client::types::PoolOrder::KNOWN.iter().map(ToString::to_string).collect(),
            same: Same::new(visit, "edit", &words, "PUT", &Target::of(["pools", &pool.name]), Some(&input)),
            pool,
            form,
            tag,
            changes,
        }
    }
}

/// The options of `pool update` for a change.
fn flags(changed: &Changed) -> Vec<String> {
    let option = match changed.name {
        "Network" => "network",
        "Ranges that are handed out" => "range",
        "Never handed out" => "exclude",
        "Gateway" => "gateway",
        "Domain" => "domain",
        "Description" => "description",
        "Rest after release" => "cooldown",
        "Order" => "order",
        "Length of a prefix" => "length",
        _ => "max-per-owner",
    };
    let several = matches!(option, "range" | "exclude") && !changed.after.is_empty();
    let values: Vec<&str> = if several { changed.after.split(", ").collect() } else { vec![&changed.after] };
    values.into_iter().map(|value| format!("--{option}={value}")).collect()
}

/// The pool as the form has it; what the form does not have stays as it is.
fn input(pool: &PoolOutput, form: &Form) -> Result<PoolInput, Trouble> {
    let number = |field: &str| -> Result<Option<u32>, Trouble> {
        let text = form.text(field).trim_start_matches('/');
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| missing(field, "it is a number"))
    };
    let length = number("length")?.map(u8::try_from).transpose();
    let is_prefix = pool.family.as_str() == "prefix";
    Ok(PoolInput {
        family: Some(pool.family.clone()).filter(|_| is_prefix),
        vrf: Some(pool.vrf.clone()),
        network: form.maybe("network"),
        ranges: form.words("ranges"),
        exclude: form.words("exclude"),
        gateway: form.maybe("gateway"),
        use_reserved: Some(pool.use_reserved),
        length: length.map_err(|_| missing("length", "a prefix has at most 128 bits"))?,
        domain: form.maybe("domain"),
        order: form.maybe("order").map(|order| order.as_str().into()),
        cooldown: form.maybe("cooldown"),
        cooldown_min: Some(pool.cooldown_min.clone()),
        sticky: Some(pool.sticky),
        max_per_owner: number("max_per_owner")?,
        labels: pool.labels.clone(),
        description: form.maybe("description"),
        backend: pool.backend.clone(),
        backend_pool: pool.backend_pool.clone(),
    })
}

/// The settings that the form would change.
fn changes(pool: &PoolOutput, form: &Form) -> Vec<Changed> {
    let plain = |text: &str| {
        let between = |c: char| c == ',' || c.is_whitespace();
        text.split(between).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let changed = settings(pool).into_iter().map(|(field, name, before)| {
        let after = if matches!(field, "ranges" | "exclude") {
            plain(form.text(field))
        } else {
            form.text(field).to_owned()
        };
        Changed { name, before, after }
    });
    changed.filter(|changed| changed.before != changed.after).collect()
}

/// Shows what would be otherwise; does it when that was seen.
pub(crate) async fn change(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    let (pool, tag) = match changeable(&visit, &name).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let visit = visit.at(format!("/pools/{}/edit", encoded(&name)));
    let shown = changes(&pool, &form);
    let again = |form: Form, tag: String, problem: &Trouble, shown: Vec<Changed>| {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
        let form = form.wrong(problem, &FIELDS);
        visit.page_as(status, &EditPage::new(&visit, pool.clone(), tag, form, shown))
    };
    let input = match input(&pool, &form) {
        Ok(input) => input,
        Err(problem) => return again(form, tag, &problem, Vec::new()),
    };
    if shown.is_empty() {
        return visit.done(&format!("/pools/{}", encoded(&name)), "nothing was to be changed");
    }
    if !form.is_set("sure") {
        return visit.page(&EditPage::new(&visit, pool, tag, form, shown));
    }
    let target = Target::of(["pools", &name]);
    match visit.calls.replace::<PoolOutput>(target, &input, form.text("tag")).await {
        Ok(pool) => {
            visit.done(&format!("/pools/{}", encoded(&pool.name)), &format!("pool {} is changed", pool.name))
        }
        Err(problem) if problem.status == 412 => {
            let told = "the pool was changed meanwhile: look again at what would be otherwise";
            let problem = Box::new(Problem { status: 412, detail: told.to_owned(), ..Problem::default() });
            again(form, tag, &problem, shown)
        }
        Err(problem) => again(form, tag, &problem, shown),
    }
}

impl DeletePage {
    fn new(visit: &Visit, pool: PoolOutput, tag: String, form: Form) -> Self {
        let target = Target::of(["pools", &pool.name]);
        let (words, target) = if pool.usage.claims > 0 {
            (vec!["pool", "delete", &*pool.name, "--force", "REASON"], target.with("force", "REASON"))
        } else {
            (vec!["pool", "delete", &*pool.name], target)
        };
        Self {
            shell: visit.shell(Section::Addresses, format!("Delete pool {}", pool.name)),
            href: format!("{}/pools/{}", visit.base(), encoded(&pool.name)),
            same: Same::new(visit, "delete", &words, "DELETE", &target, None),
            pool,
            form,
            tag,
        }
    }
}

pub(crate) async fn sure(visit: Visit, Path(name): Path<String>) -> Response {
    match changeable(&visit, &name).await {
        Ok((pool, tag)) => visit.page(&DeletePage::new(&visit, pool, tag, Form::default())),
        Err(response) => response,
    }
}

pub(crate) async fn delete(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    let (pool, tag) = match changeable(&visit, &name).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let deleted: Result<Value, Trouble> = if form.text("name") != name {
        Err(missing("name", "type the name of the pool, to be sure that it is this one"))
    } else if pool.usage.claims > 0 && form.text("reason").is_empty() {
        Err(missing("reason", "claims end with this pool: give the reason, which is kept in their events"))
    } else {
        let target = Target::of(["pools", &name]).with("force", form.text("reason"));
        visit.calls.delete_tagged(target, form.text("tag")).await
    };
    match deleted {
        Ok(_) => visit.done("/addresses", &format!("pool {name} is deleted")),
        Err(mut problem) => {
            if problem.field.as_deref() == Some("force") {
                problem.field = Some("reason".to_owned());
            }
            if problem.status == 412 {
                "the pool was changed meanwhile: look at it again".clone_into(&mut problem.detail);
            }
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            let form = form.wrong(&problem, &["name", "reason"]);
            let visit = visit.at(format!("/pools/{}/delete", encoded(&name)));
            visit.page_as(status, &DeletePage::new(&visit, pool, tag, form))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool() -> PoolOutput {
        serde_json::from_value(json!({
            "name": "lan", "family": "ipv4", "vrf": "default", "network": "10.0.3.0/24",
            "ranges": ["10.0.3.50-10.0.3.99", "10.0.3.120-10.0.3.130"], "order": "lowest", "cooldown": "10m",
            "cooldown_min": "1m", "sticky": false, "origin": "api", "created": "2026-01-01T00:00:00Z", "version": 1,
            "labels": {"site": "ams"}, "usage": {"size": "1", "held": "0", "resting": "0", "reserved": "0",
            "observed": "0", "free": "1", "claims": 0, "waiting": 0, "used_permyriad": 0},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_is_otherwise_is_a_change_and_the_rest_stays() {
        let pool = pool();
        assert_eq!(changes(&pool, &filled(&pool)), []);
        // Spaces and lines make no other ranges.
        let form = filled(&pool).with("ranges", "10.0.3.50-10.0.3.99\n 10.0.3.120-10.0.3.130");
        assert_eq!(changes(&pool, &form), []);
        let form = filled(&pool).with("domain", "home.test").with("cooldown", "1h");
        let shown = changes(&pool, &form);
        let names: Vec<_> = shown.iter().map(|changed| (changed.name, changed.after.as_str())).collect();
        assert_eq!(names, [("Domain", "home.test"), ("Rest after release", "1h")]);
        assert_eq!(shown.iter().flat_map(flags).collect::<Vec<_>>(), ["--domain=home.test", "--cooldown=1h"]);
        let input = input(&pool, &form).unwrap();
        assert_eq!((input.sticky, input.labels.len(), input.ranges.len()), (Some(false), 1, 2));
    }
}
