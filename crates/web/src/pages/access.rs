//! Tokens and sessions: who may come in.

use askama::Template;
use axum::{http::StatusCode, response::Response};
use netstead_client::types::{Page, SessionOutput, TokenInput, TokenOutput, TokenRole};
use serde_json::json;

use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::When,
    same::{Same, Wrong},
    shell::{Section, Shell},
    visit::Visit,
};

#[derive(Debug, Template)]
#[template(path = "access.html")]
struct AccessPage {
    shell: Shell,
    sessions: Vec<Session>,
    tokens: Vec<Token>,
    /// Tokens are for admins without scopes.
    sees_tokens: bool,
    roles: Vec<String>,
    role: String,
    form: Form,
    /// The token that was just made: shown this once.
    made: Option<Made>,
    wrong: Wrong,
    create: Same,
    revoke: Same,
    end: Same,
}

#[derive(Debug)]
struct Made {
    subject: String,
    secret: String,
    curl: String,
}

#[derive(Debug)]
struct Session {
    id: String,
    subject: String,
    role: String,
    agent: String,
    created: When,
    seen: When,
    until: When,
    is_own: bool,
}

#[derive(Debug)]
struct Token {
    id: String,
    subject: String,
    role: String,
    scopes: String,
    description: String,
    created: When,
    expires: Option<When>,
    is_own: bool,
}

pub(crate) async fn show(visit: Visit) -> Response {
    if let Some(refused) = no_login(&visit) {
        return refused;
    }
    render(&visit, Form::default(), None, Wrong::default(), StatusCode::OK).await
}

/// The page is about the visitor's own sessions; those without a login share one.
fn no_login(visit: &Visit) -> Option<Response> {
    visit.is_anonymous().then(|| visit.refusal(&TokenRole::Claim)).flatten()
}

async fn render(visit: &Visit, form: Form, made: Option<Made>, wrong: Wrong, status: StatusCode) -> Response {
    let sees_tokens = visit.session.role >= TokenRole::Admin && visit.sees_all();
    let list = |what: &'static str| Target::of([what]).with("limit", "500");
    let tokens = async {
        if !sees_tokens {
            return Ok(Vec::new());
        }
        visit.calls.get::<Page<TokenOutput>>(list("tokens")).await.map(|page| page.items)
    };
    let (sessions, tokens) = tokio::join!(visit.calls.get::<Page<SessionOutput>>(list("sessions")), tokens);
    let (sessions, tokens) = match (sessions, tokens) {
        (Ok(sessions), Ok(tokens)) => (sessions.items, tokens),
        (Err(trouble), _) | (_, Err(trouble)) => return visit.trouble(&trouble),
    };
    let when = |at| When::new(at, visit.now);
    let mut sessions: Vec<_> = sessions
        .into_iter()
        .map(|session| Session {
            subject: session.subject,
            role: session.role.to_string(),
            agent: browser(session.agent.as_deref().unwrap_or_default()),
            created: when(session.created),
            seen: when(session.seen),
            until: when(session.until),
            is_own: session.current,
            id: session.id,
        })
        .collect();
    sessions.sort_by_key(|session| !session.is_own);
    let token = |token: TokenOutput| Token {
        is_own: token.id == visit.session.token,
        scopes: scopes(&token),
        subject: token.subject,
        role: token.role.to_string(),
        description: token.description.unwrap_or_default(),
        created: when(token.created),
        expires: token.expires.map(when),
        id: token.id,
    };
    let page = AccessPage {
        shell: visit.shell(Section::Access, "Access"),
        sessions,
        tokens: tokens.into_iter().map(token).collect(),
        sees_tokens,
        roles: TokenRole::KNOWN.iter().map(ToString::to_string).collect(),
        role: form.maybe("role").unwrap_or_else(|| "read".to_owned()),
        form,
        made,
        wrong,
        create: Same::new(
            visit,
            "access",
            &["token", "create", "SUBJECT", "--role", "read", "--expires", "90d"],
            "POST",
            &Target::of(["tokens"]),
            Some(&json!({"subject": "SUBJECT", "role": "read", "expires_in": "90d"})),
        ),
        revoke: Same::new(
            visit,
            "revoke",
            &["token", "revoke", "ID"],
            "DELETE",
            &Target::of(["tokens", "ID"]),
            None,
        ),
        end: Same::new(visit, "end", &[], "DELETE", &Target::of(["sessions", "ID"]), None),
    };
    visit.page_as(status, &page)
}

/// The limits of a token, in words.
fn scopes(token: &TokenOutput) -> String {
    let mut parts = Vec::new();
    for (what, names) in [("pools", &token.pools), ("VRFs", &token.vrfs), ("zones", &token.zones)] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") }
}

/// The browser in a few words, out of what it calls itself.
fn browser(agent: &str) -> String {
    let of = |known: &[&'static str]| known.iter().find(|name| agent.contains(**name)).copied();
    let name = of(&["Firefox", "Edg", "OPR", "Chrome", "Safari", "curl"]);
    let system = of(&["Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux"]);
    match (name, system) {
        (Some(name), Some(system)) => format!("{} on {system}", name.replace("Edg", "Edge")),
        (Some(name), None) => name.to_owned(),
        _ => agent.chars().take(40).collect(),
    }
}

pub(crate) async fn create(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Admin) {
        return refused;
    }
    let input = TokenInput {
        subject: form.text("subject").to_owned(),
        role: form.text("role").into(),
        pools: form.words("pools"),
        vrfs: form.words("vrfs"),
        zones: form.words("zones"),
        expires_in: form.maybe("expires_in"),
        description: form.maybe("description"),
    };
    match visit.calls.post::<TokenOutput>(Target::of(["tokens"]), &input).await {
        Ok(token) => {
            let secret = token.secret.unwrap_or_default();
            let curl = format!("curl -H \"Authorization: Bearer {secret}\" {}/api/v1/status", visit.url());
            let made = Made { subject: token.subject, secret, curl };
            render(&visit.at("/access"), Form::default(), Some(made), Wrong::default(), StatusCode::CREATED)
                .await
        }
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
            let known = ["subject", "role", "pools", "vrfs", "zones", "expires_in", "description"];
            let form = form.wrong(&problem, &known);
            render(&visit.at("/access"), form, None, Wrong::default(), status).await
        }
    }
}

pub(crate) async fn revoke(visit: Visit, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Admin) {
        return refused;
    }
    let id = form.text("id");
    match visit.calls.delete(Target::of(["tokens", id])).await {
        Ok(()) => visit.done("/access", &format!("the token {id} is revoked, and its sessions have ended")),
        Err(trouble) => again(&visit, id, &trouble).await,
    }
}

/// Ends a session. It takes no right away that the visitor does not have, so any role may, in read-only pages too.
pub(crate) async fn end(visit: Visit, form: Form) -> Response {
    if let Some(refused) = no_login(&visit) {
        return refused;
    }
    let id = form.text("id");
    match visit.calls.delete(Target::of(["sessions", id])).await {
        Ok(()) => visit.done("/access", "the session has ended"),
        Err(trouble) => again(&visit, id, &trouble).await,
    }
}

/// The page again, with the reason beside the token or session.
async fn again(visit: &Visit, id: &str, trouble: &Trouble) -> Response {
    if matches!(trouble.status, 401 | 403 | 502..=504) {
        return visit.trouble(trouble);
    }
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let wrong = Wrong::new(id, trouble);
    render(&visit.at("/access"), Form::default(), None, wrong, status).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_told_in_a_few_words() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36";
        assert_eq!(browser(chrome), "Chrome on Linux");
        assert_eq!(browser("curl/8.14"), "curl");
        assert_eq!(browser("something else"), "something else");
    }
}
