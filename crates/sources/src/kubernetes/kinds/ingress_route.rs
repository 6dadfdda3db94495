//! IngressRoute and IngressRouteTCP of Traefik: rules in the same grammar as its labels.

use serde::Deserialize;

use super::{
    super::{
        annotations::INGRESS_CLASS,
        object::{Object, Stored},
        settings::KubernetesSettings,
    },
    asked::{Asked, Points},
};
use crate::dialects::{TraefikSettings, traefik::Router};

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::kubernetes) struct IngressRoute {
    entry_points: Vec<String>,
    routes: Vec<Rule>,
    tls: Option<Certificates>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Rule {
    r#match: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Certificates {
    domains: Vec<Domain>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Domain {
    main: String,
    sans: Vec<String>,
}

pub(super) fn read(object: &Object) -> Result<IngressRoute, String> {
    object.spec()
}

/// None if its class is not one of those that are wanted.
pub(in crate::kubernetes) fn ask(
    object: &Stored,
    route: &IngressRoute,
    settings: &KubernetesSettings,
) -> Option<Asked> {
    if !settings.wants_class(object.annotations.get(INGRESS_CLASS).map(String::as_str)) {
        return None;
    }
    let mut asked = Asked { shared: true, ..Asked::default() };
    let traefik =
        TraefikSettings { entrypoints: settings.entrypoints.to_vec(), ..TraefikSettings::default() };
    for (number, rule) in route.routes.iter().enumerate() {
        let mut router = Router::new(format!("routes[{number}].match"));
        router.rule = Some(&rule.r#match);
        router.entrypoints = route.entry_points.iter().map(String::as_str).collect();
        for domain in route.tls.iter().flat_map(|tls| &tls.domains) {
            router.domains.extend(Some(domain.main.as_str()).filter(|main| !main.is_empty()));
            router.domains.extend(domain.sans.iter().map(String::as_str));
        }
        match router.name_requests(&traefik, None, &mut asked.notes) {
            Ok(names) => asked.names.extend(names),
            Err(error) => asked.notes.unreadable(format!("{}: {error}", router.label)),
        }
    }
    // Traefik writes no address into the status of its own kinds.
    asked.points = Points::none(
        "an IngressRoute has no address of its own: set `target` at the provider, `default_targets`, or the annotation \
         `netstead.io/target`",
    );
    Some(asked)
}
