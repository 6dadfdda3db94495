//! Sources and providers: how each stands, and pausing.

use std::fmt::Write as _;

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{
    DoctorOutput, Page, PauseInput, PauseOutput, ProviderOutput, ResumeInput, SourceOutput, SourceView,
    TokenRole,
};
use serde_json::{Value, json};

use super::{
    doctor::{Finding, finding},
    history::encoded,
    overview::provider_state,
};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::When,
    same::{Same, Wrong},
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// Zones of a provider that are named.
const ZONES: usize = 20;

#[derive(Debug, Template)]
#[template(path = "servers.html")]
struct ServersPage {
    shell: Shell,
    sources: Vec<Source>,
    providers: Vec<Provider>,
    may_pause: bool,
    may_resume: bool,
    may_test: bool,
    /// The subject that is tested, as the doctor calls it: `dns.own`.
    tested: String,
    findings: Vec<Finding>,
    wrong: Wrong,
    /// The form of a refused pause.
    form: Form,
    pause: Same,
    resume: Same,
}

#[derive(Debug)]
struct Source {
    name: String,
    kind: String,
    mood: &'static str,
    view: String,
    text: String,
    seen: Option<When>,
    workloads: u64,
    workloads_href: String,
    scopes: Vec<Scope>,
    /// As the doctor calls it.
    about: String,
}

#[derive(Debug)]
struct Scope {
    name: String,
    view: String,
    text: String,
    workloads: u64,
}

#[derive(Debug)]
struct Provider {
    name: String,
    kind: String,
    server: String,
    mode: String,
    mood: &'static str,
    text: String,
    last: Option<Last>,
    zones: Vec<String>,
    more_zones: usize,
    owned: u64,
    generation: u64,
    pauses: Vec<Pause>,
    rejections: Vec<(String, String)>,
    plan_href: String,
    /// As the doctor calls it.
    about: String,
}

#[derive(Debug)]
struct Last {
    at: When,
    outcome: String,
    took_ms: u64,
}

#[derive(Debug)]
struct Pause {
    text: String,
    zone: String,
    until: Option<When>,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    render(&visit, params.text("test"), Form::default(), Wrong::default(), StatusCode::OK).await
}

async fn render(visit: &Visit, tested: &str, form: Form, wrong: Wrong, status: StatusCode) -> Response {
    let all = |what: &'static str| Target::of([what]).with("limit", "1000");
    let examined = async {
        if tested.is_empty() {
            return Ok(Vec::new());
        }
        visit.calls.get::<DoctorOutput>(Target::of(["doctor"])).await.map(|output| output.findings)
    };
    let (sources, providers, findings) = tokio::join!(
        visit.calls.get::<Page<SourceOutput>>(all("sources")),
        visit.calls.get::<Page<ProviderOutput>>(all("providers")),
        examined
    );
    let (sources, providers, findings) = match (sources, providers, findings) {
        (Ok(sources), Ok(providers), Ok(findings)) => (sources.items, providers.items, findings),
        (Err(trouble), ..) | (_, Err(trouble), _) | (.., Err(trouble)) => return visit.trouble(&trouble),
    };
    let page = ServersPage {
        sources: sources.iter().map(|source| Source::of(source, visit)).collect(),
        providers: providers.iter().map(|provider| Provider::of(provider, visit)).collect(),
        may_pause: visit.may(&TokenRole::Write) && visit.sees_all(),
        may_resume: visit.may(&TokenRole::Write) && visit.sees_all(),
        may_test: visit.sees_all(),
        findings: findings.into_iter().filter(|one| one.about == tested).map(finding).collect(),
        tested: tested.to_owned(),
        wrong,
        form,
        pause: Same::new(
            visit,
            "pause",
            &["pause", "--provider", "SERVER", "--for", "2h", "--reason", "WHY"],
            "POST",
            &Target::of(["pause"]),
            Some(&json!({"provider": "SERVER", "for": "2h", "reason": "WHY"})),
        ),
        resume: Same::new(
            visit,
            "resume",
            &["resume", "--provider", "SERVER"],
            "POST",
            &Target::of(["resume"]),
            Some(&json!({"provider": "SERVER"})),
        ),
        shell: visit.shell(Section::Servers, "Sources and providers"),
    };
    visit.page_as(status, &page)
}

impl Source {
    fn of(source: &SourceOutput, visit: &Visit) -> Self {
        let mood = match source.view {
            SourceView::Complete if source.suspect.is_none() => "good",
            SourceView::Failed => "bad",
            _ => "wait",
        };
        let told = [&source.suspect, &source.reason, &source.waiting];
        let mut text: Vec<String> = told.into_iter().flatten().cloned().collect();
        if source.detached {
            text.push("it is no longer in the configuration; what it brought stays".to_owned());
        }
        let scope = |scope: &netstead_client::types::ScopeOutput| Scope {
            name: if scope.name.is_empty() { "(not seen yet)".to_owned() } else { scope.name.clone() },
            view: scope.view.to_string(),
            text: scope.suspect.clone().or_else(|| scope.reason.clone()).unwrap_or_default(),
            workloads: scope.workloads,
        };
        Self {
            name: source.name.clone(),
            kind: source.kind.to_string(),
            mood,
            view: source.view.to_string(),
            text: text.join(". "),
            seen: source.begun.map(|at| When::new(at, visit.now)),
            workloads: source.workloads,
            workloads_href: format!("{}/workloads?source={}", visit.base(), encoded(&source.name)),
            scopes: source.scopes.iter().map(scope).collect(),
            about: format!("source.{}", source.name),
        }
    }
}

impl Provider {
    fn of(provider: &ProviderOutput, visit: &Visit) -> Self {
        let (mood, text) = provider_state(provider);
        Self {
            name: provider.name.clone(),
            kind: provider.kind.to_string(),
            server: provider.server.clone(),
            mode: provider.mode.to_string(),
            mood,
            text,
            last: provider.pass.as_ref().map(|pass| Last {
                at: When::new(pass.at, visit.now),
                outcome: pass.outcome.clone(),
                took_ms: pass.took_ms,
            }),
            zones: provider.zones.iter().take(ZONES).cloned().collect(),
            more_zones: provider.zones.len().saturating_sub(ZONES),
            owned: provider.owned,
            generation: provider.generation,
            pauses: provider.paused.iter().map(|pause| Pause::of(pause, visit)).collect(),
            rejections: provider
                .rejections
                .iter()
                .map(|rejection| (rejection.name.clone(), rejection.reason.clone()))
                .collect(),
            plan_href: format!("{}/plan?provider={}", visit.base(), encoded(&provider.name)),
            about: format!("{}.{}", if provider.ipam { "ipam" } else { "dns" }, provider.name),
        }
    }
}

impl Pause {
    fn of(pause: &PauseOutput, visit: &Visit) -> Self {
        let zone = pause.zone.clone().unwrap_or_default();
        let mut text = if zone.is_empty() { "paused".to_owned() } else { format!("zone {zone} paused") };
        if let Some(by) = &pause.by {
            let _ = write!(text, " by {by}");
        }
        if let Some(reason) = &pause.reason {
            let _ = write!(text, ": {reason}");
        }
        Self { text, zone, until: pause.until.map(|until| When::new(until, visit.now)) }
    }
}

pub(crate) async fn pause(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let provider = form.text("provider").to_owned();
    let input = PauseInput {
        provider: Some(provider.clone()),
        span: form.maybe("for"),
        reason: form.maybe("reason"),
        ..PauseInput::default()
    };
    match visit.calls.post::<PauseOutput>(Target::of(["pause"]), &input).await {
        Ok(_) => visit.done("/servers", &format!("{provider} is paused")),
        Err(trouble) => again(&visit, form, &provider, &trouble).await,
    }
}

pub(crate) async fn resume(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    // Without a provider all pauses would end, and a restored ledger would go on.
    let provider = form.text("provider").to_owned();
    if provider.is_empty() {
        return visit.trouble(&super::pool::missing("provider", "say which provider resumes"));
    }
    let input = ResumeInput { provider: Some(provider.clone()), zone: form.maybe("zone"), backend: None };
    match visit.calls.post::<Value>(Target::of(["resume"]), &input).await {
        Ok(_) => visit.done("/servers", &format!("{provider} is resumed")),
        Err(trouble) => again(&visit, Form::default(), &provider, &trouble).await,
    }
}

/// The page again, with the reason beside the provider.
async fn again(visit: &Visit, form: Form, provider: &str, trouble: &Trouble) -> Response {
    if matches!(trouble.status, 401 | 403 | 502..=504) {
        return visit.trouble(trouble);
    }
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let form = form.wrong(trouble, &["for", "reason"]);
    render(&visit.at("/servers"), "", form, Wrong::new(provider, trouble), status).await
}
