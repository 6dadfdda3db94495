//! The routers of Traefik, in labels.

mod router;
mod rule;
mod template;

use std::collections::BTreeMap;

pub(crate) use self::router::Router;
pub use self::template::DefaultRule;
use self::template::{Subject, normalize};
use super::{
    NameRequest, WorkloadLabels, boolean,
    diagnostics::{Diagnostics, excerpt},
    list,
};

/// Traefik's own settings that decide which routers count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraefikSettings {
    /// A container counts without `traefik.enable=true`.
    pub exposed_by_default: bool,
    /// Only routers on one of these give names; empty means all do.
    pub entrypoints: Vec<String>,
    /// Where routers are that name no entrypoint.
    pub default_entrypoints: Vec<String>,
    /// The rule of containers and routers that have none. Without it they give no name.
    pub default_rule: Option<DefaultRule>,
}

impl Default for TraefikSettings {
    fn default() -> Self {
        Self {
            exposed_by_default: true,
            entrypoints: Vec::new(),
            default_entrypoints: Vec::new(),
            default_rule: None,
        }
    }
}

/// The routers of a workload.
#[derive(Debug, Default)]
struct Routers<'a> {
    /// By kind (`http`, `tcp`) and name.
    all: BTreeMap<(&'a str, String), Router<'a>>,
    enable: Option<(&'a str, &'a str)>,
    /// It has something of tcp or udp, and nothing of http.
    other: bool,
    http: bool,
}

/// Labels that name a compose service and its project: Traefik's default rule may be made of them.
const OF_COMPOSE: [&str; 2] = ["com.docker.compose.service", "com.docker.compose.project"];

/// Of Traefik's own labels only those about names: middlewares have passwords in theirs.
pub(super) fn reads(label: &str) -> bool {
    let Some(path) = after(label, "traefik.") else { return OF_COMPOSE.contains(&label) };
    if path.eq_ignore_ascii_case("enable") {
        return true;
    }
    let router = after(path, "http.routers.").or_else(|| after(path, "tcp.routers."));
    let field = router.and_then(|router| router.split_once('.')).map(|(_, field)| field.to_ascii_lowercase());
    field.is_some_and(|field| match field.strip_prefix("tls.domains[") {
        Some(rest) => rest.ends_with("].main") || rest.ends_with("].sans"),
        None => matches!(field.as_str(), "rule" | "entrypoints"),
    })
}

pub(super) fn read(
    settings: &TraefikSettings,
    told: &WorkloadLabels<'_>,
    notes: &mut Diagnostics,
) -> Vec<NameRequest> {
    let mut routers = Routers::gather(told);
    if !is_exposed(settings, &routers, notes) {
        return Vec::new();
    }
    let default_rule = settings.default_rule.as_ref().map(|rule| rule.fill(subject(told, &name(told))));
    let default_rule = match default_rule.transpose() {
        Ok(rule) => rule,
        Err(error) => {
            notes.add(format!("the default rule: {error}"));
            None
        }
    };
    let only_other = routers.other && !routers.http;
    if routers.all.is_empty() && default_rule.is_some() && !only_other {
        let label = "Traefik's default rule".to_owned();
        routers.all.insert(("http", String::new()), Router { label, ..Router::default() });
    }
    let mut asks = Vec::new();
    for ((kind, _), router) in &routers.all {
        let default_rule = default_rule.as_deref().filter(|_| *kind == "http");
        match router.name_requests(settings, default_rule, notes) {
            Ok(more) => asks.extend(more),
            Err(trouble) => notes.unreadable(format!("{}: {trouble}", router.label)),
        }
    }
    asks
}

fn is_exposed(settings: &TraefikSettings, routers: &Routers<'_>, notes: &mut Diagnostics) -> bool {
    let said = routers.enable.map(|(label, text)| (label, boolean::read(text)));
    let exposed = match &said {
        Some((_, Ok(enable))) => *enable,
        Some((label, Err(error))) => {
            notes.add(format!("{}: {error}", excerpt(label)));
            settings.exposed_by_default
        }
        None => settings.exposed_by_default,
    };
    if !exposed && !routers.all.is_empty() {
        notes.add(if matches!(said, Some((_, Ok(_)))) {
            "traefik.enable is false, so its Traefik routers give no name"
        } else {
            "traefik.enable is not set to true, so its Traefik routers give no name"
        });
    }
    exposed
}

impl<'a> Routers<'a> {
    /// Label names are read without regard to case, as Traefik does.
    fn gather(told: &WorkloadLabels<'a>) -> Self {
        let mut routers = Self::default();
        for (label, value) in told.labels {
            let (label, value) = (label.as_str(), value.as_str());
            let Some(path) = after(label, "traefik.") else { continue };
            if path.eq_ignore_ascii_case("enable") {
                routers.enable = Some((label, value));
                continue;
            }
            let kind = match path.split_once('.') {
                Some((kind, _)) if kind.eq_ignore_ascii_case("http") => "http",
                Some((kind, _)) if kind.eq_ignore_ascii_case("tcp") => "tcp",
                Some((kind, _)) if kind.eq_ignore_ascii_case("udp") => "udp",
                _ => continue,
            };
            routers.http |= kind == "http";
            routers.other |= kind != "http";
            let rest = path.get(kind.len() + 1..).and_then(|rest| after(rest, "routers."));
            let Some((name, field)) = rest.and_then(|rest| rest.split_once('.')) else { continue };
            if kind != "udp" && !name.is_empty() {
                let new = || Router::new(excerpt(&format!("traefik.{kind}.routers.{name}.rule")));
                routers.all.entry((kind, name.to_owned())).or_insert_with(new).set(field, value);
            }
        }
        routers
    }
}

impl<'a> Router<'a> {
    fn set(&mut self, field: &str, value: &'a str) {
        let field = field.to_ascii_lowercase();
        match field.as_str() {
            "rule" => self.rule = Some(value),
            "entrypoints" => self.entrypoints.extend(list::parts(value)),
            _ => {
                let domain = field.strip_prefix("tls.domains[").and_then(|rest| rest.split_once("]."));
                match domain {
                    Some((_, "main")) => self.domains.push(value.trim()),
                    Some((_, "sans")) => self.domains.extend(list::parts(value)),
                    _ => {}
                }
            }
        }
    }
}

/// The rest of `text` after `beginning`, ignoring case.
fn after<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let (front, rest) = text.split_at_checked(beginning.len())?;
    front.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// Traefik's name of a workload: `service-project` for a compose service.
fn name(told: &WorkloadLabels<'_>) -> String {
    let label = |key: &str| told.labels.get(key).filter(|text| !text.is_empty());
    let [service, project] = OF_COMPOSE;
    match (label(service), label(project)) {
        (Some(service), Some(project)) => normalize(&format!("{service}_{project}")),
        _ => normalize(told.name),
    }
}

fn subject<'a>(told: &WorkloadLabels<'a>, name: &'a str) -> Subject<'a> {
    Subject { name, container: told.name, labels: told.labels }
}
