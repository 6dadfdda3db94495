//! [`Shell`]: the frame of every page, and how pages are sent.

use askama::Template;
use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use netstead_client::types::TokenRole;

use crate::{assets, visit::Visit, web::WebState};

/// The part of the site that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Addresses,
    Names,
    Workloads,
    Plan,
    Drift,
    Servers,
    History,
    Doctor,
    Access,
    Cluster,
    None,
}

/// Where the menu leads.
const MENU: [(Section, &str, &str); 11] = [
    (Section::Overview, "Overview", "/"),
    (Section::Addresses, "Addresses", "/addresses"),
    (Section::Names, "Names", "/names"),
    (Section::Workloads, "Workloads", "/workloads"),
    (Section::Plan, "Plan", "/plan"),
    (Section::Drift, "Drift", "/drift"),
    (Section::Servers, "Sources and providers", "/servers"),
    (Section::History, "History", "/history"),
    (Section::Doctor, "Doctor", "/doctor"),
    (Section::Access, "Access", "/access"),
    (Section::Cluster, "Nodes", "/cluster"),
];

impl Section {
    /// Whether the API shows it to those without scopes only.
    const fn needs_everything(self) -> bool {
        matches!(self, Self::Workloads | Self::Doctor)
    }
}

/// The colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    pub(crate) fn of(text: Option<&str>) -> Self {
        match text {
            Some("light") => Self::Light,
            Some("dark") => Self::Dark,
            _ => Self::System,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A line of the menu.
#[derive(Debug)]
pub(crate) struct MenuItem {
    pub(crate) text: &'static str,
    pub(crate) href: String,
    pub(crate) is_here: bool,
}

/// The frame of a page.
#[allow(clippy::struct_excessive_bools, reason = "each is a question that a template asks")]
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) title: String,
    pub(crate) base: String,
    pub(crate) assets: String,
    pub(crate) menu: Vec<MenuItem>,
    pub(crate) subject: String,
    pub(crate) role: String,
    pub(crate) theme: &'static str,
    /// The address of this page, below the base; that of the page before, if this is the answer to a form.
    pub(crate) place: String,
    pub(crate) posted: bool,
    pub(crate) said: String,
    pub(crate) searched: String,
    pub(crate) stale: bool,
    pub(crate) read_only: bool,
    /// Without a login.
    pub(crate) anonymous: bool,
    /// Where one logs in, and comes back from.
    pub(crate) login: String,
    pub(crate) may_claim: bool,
    pub(crate) may_write: bool,
    pub(crate) may_admin: bool,
}

impl Shell {
    pub(crate) fn new(visit: &Visit, section: Section, title: String) -> Self {
        let base = visit.base().to_owned();
        let item = |(at, text, href): &(Section, &'static str, &str)| MenuItem {
            text,
            href: format!("{base}{href}"),
            is_here: *at == section,
        };
        Self {
            title,
            assets: assets::root(&base),
            menu: MENU
                .iter()
                .filter(|(at, ..)| visit.sees_all() || !at.needs_everything())
                .filter(|(at, ..)| !visit.is_anonymous() || *at != Section::Access)
                .map(item)
                .collect(),
            subject: visit.session.subject.clone(),
            role: visit.session.role.to_string(),
            theme: visit.theme().as_str(),
            place: visit.place.clone(),
            posted: visit.is_post(),
            said: visit.said().unwrap_or_default().to_owned(),
            searched: String::new(),
            stale: visit.calls.is_stale(),
            read_only: visit.web.options.read_only,
            anonymous: visit.is_anonymous(),
            login: visit.login_address(),
            may_claim: visit.may(&TokenRole::Claim),
            may_write: visit.may(&TokenRole::Write),
            may_admin: visit.may(&TokenRole::Admin),
            base,
        }
    }
}

/// A page that says why there is none, or why an act was refused.
#[derive(Debug, Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage<'a> {
    pub(crate) shell: Shell,
    pub(crate) heading: &'static str,
    pub(crate) told: &'a str,
    /// Outcome of an act; empty where none was tried.
    pub(crate) outcome: &'static str,
    /// The page comes by itself when what is missing is there again.
    pub(crate) comes_back: bool,
}

/// Sends a page.
pub(crate) fn render(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => {
            let mut response = (status, html).into_response();
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Err(error) => {
            tracing::error!(%error, "A page could not be rendered.");
            (StatusCode::INTERNAL_SERVER_ERROR, "this page could not be made\n").into_response()
        }
    }
}

/// A page without a frame, for a visitor that is not known.
#[derive(Debug, Template)]
#[template(path = "bare.html")]
struct BarePage<'a> {
    base: &'a str,
    assets: String,
    title: &'a str,
    told: &'a str,
}

pub(crate) fn bare(web: &WebState, status: StatusCode, title: &str, told: &str) -> Response {
    render(status, &BarePage { base: &web.base, assets: assets::root(&web.base), title, told })
}
