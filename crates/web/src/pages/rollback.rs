//! Rolling a provider back to an earlier generation. What would change is shown first, and exactly that is done.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{Page, ProviderOutput, RollbackInput, TokenRole, UndoOutput};
use serde_json::json;

use super::{
    history::encoded,
    plan::{Part, part},
    pool::missing,
};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    same::Same,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

#[derive(Debug, Template)]
#[template(path = "rollback.html")]
struct RollbackPage {
    shell: Shell,
    form: Form,
    providers: Vec<String>,
    /// Changes that would be taken back, once a generation was named.
    shown: Option<Shown>,
    same: Same,
}

#[derive(Debug)]
struct Shown {
    hash: String,
    provider: String,
    to: String,
    part: Part,
    notes: Vec<String>,
}

pub(crate) async fn show(visit: Visit, params: Params) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let form = Form::default().with("provider", params.text("provider")).with("to", params.text("to"));
    if params.text("to").is_empty() {
        return render(&visit, form, None, StatusCode::OK).await;
    }
    let asked = match input(&form) {
        Ok(input) => {
            let input = RollbackInput { dry_run: true, ..input };
            visit.calls.post::<UndoOutput>(Target::of(["rollback"]), &input).await
        }
        Err(problem) => Err(problem),
    };
    match asked {
        Ok(output) => {
            let shown = Shown::new(&visit, &form, &output);
            render(&visit, form, Some(shown), StatusCode::OK).await
        }
        Err(problem) => again(&visit, form, None, &problem).await,
    }
}

fn input(form: &Form) -> Result<RollbackInput, Trouble> {
    let to = form.text("to").parse();
    let to =
        to.map_err(|_| missing("to", "it is the number of a plan, such as `41`; `0` is before the first"))?;
    Ok(RollbackInput { to, provider: form.maybe("provider"), ..RollbackInput::default() })
}

impl Shown {
    fn new(visit: &Visit, form: &Form, output: &UndoOutput) -> Self {
        let changes: Vec<_> = output.changes.iter().map(|undone| undone.change.clone()).collect();
        let objects: Vec<_> = output.objects.iter().map(|undone| undone.change.clone()).collect();
        Self {
            hash: output.hash.clone(),
            provider: form.text("provider").to_owned(),
            to: form.text("to").to_owned(),
            part: part(&changes, &objects, visit.base(), 0),
            notes: output.notes.clone(),
        }
    }
}

/// Does exactly what was shown.
pub(crate) async fn act(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let hash = form.maybe("hash");
    let input = match (input(&form), hash) {
        (Ok(input), Some(hash)) => RollbackInput { expect: Some(hash), ..input },
        (Ok(_), None) => {
            let problem = missing("to", "look first at what would be taken back");
            return again(&visit, form, None, &problem).await;
        }
        (Err(problem), _) => return again(&visit, form, None, &problem).await,
    };
    match visit.calls.post::<UndoOutput>(Target::of(["rollback"]), &input).await {
        Ok(output) => {
            let paused = output.paused.join(", ");
            let said = format!(
                "{} taken back; {paused} is paused until you resume it",
                if output.changes.len() == 1 {
                    "1 change".to_owned()
                } else {
                    format!("{} changes", output.changes.len())
                }
            );
            visit.done("/servers", &said)
        }
        Err(problem) => again(&visit, form, None, &problem).await,
    }
}

async fn again(visit: &Visit, form: Form, shown: Option<Shown>, problem: &Trouble) -> Response {
    if matches!(problem.status, 401 | 403 | 502..=504) {
        return visit.trouble(problem);
    }
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let query =
        format!("/rollback?provider={}&to={}", encoded(form.text("provider")), encoded(form.text("to")));
    let form = form.wrong(problem, &["provider", "to"]);
    render(&visit.at(query), form, shown, status).await
}

async fn render(visit: &Visit, form: Form, shown: Option<Shown>, status: StatusCode) -> Response {
    let providers = Target::of(["providers"]).with("limit", "1000");
    let providers = match visit.calls.get::<Page<ProviderOutput>>(providers).await {
        Ok(page) => page.items.into_iter().map(|one| one.name).collect(),
        Err(trouble) => return visit.trouble(&trouble),
    };
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let (to, provider) = (or(form.text("to"), "41"), or(form.text("provider"), "SERVER"));
    let number = to.parse::<u64>().unwrap_or(41);
    let page = RollbackPage {
        shell: visit.shell(Section::History, "Roll back"),
        same: Same::new(
            visit,
            "rollback",
            &["rollback", "--to", &to, "--provider", &provider],
            "POST",
            &Target::of(["rollback"]),
            Some(&json!({"to": number, "provider": provider, "dry_run": true})),
        ),
        form,
        providers,
        shown,
    };
    visit.page_as(status, &page)
}
