//! Kinds that are read by the paths of their fields: those of `[[source.NAME.custom]]`, and ready rows for Istio, Contour and
//! OpenShift.

mod field_path;
mod kind_name;

use netstead_settings::{OneOrMore, Parsed, table};

pub use self::{field_path::FieldPath, kind_name::KindName};
use super::{
    super::{
        annotations::external_dns,
        object::{Object, Stored},
    },
    ObjectKind,
    asked::{Asked, Points},
};

table! {
    /// One kind of object and the fields that names come from.
    pub struct CustomKind {
        /// the name of its definition, as `kubectl get crds` prints it: `ingressroutes.example.com`; with a version,
        /// `ingressroutes.v1.example.com`
        kind: Parsed<KindName>, required "\"ingressroutes.example.com\"";
        /// the fields that hold its names: `spec.hosts[]`, `spec.virtualhost.fqdn`
        hosts: OneOrMore<FieldPath>, required "\"spec.hosts[]\"";
        /// the fields that hold its addresses, or one name: `status.loadBalancer.ingress[].ip`
        targets: OneOrMore<FieldPath>, unset "where names point whose object has no address";
        /// only objects whose condition of this type is true: `Ready`
        condition: Option<String>, unset "all";
    }
}

impl Eq for CustomKind {}

impl CustomKind {
    pub(super) fn row(&self) -> Row {
        Row {
            hosts: self.hosts.to_vec(),
            targets: self.targets.to_vec(),
            condition: self.condition.clone(),
            behind: None,
        }
    }
}

/// The fields of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    hosts: Vec<FieldPath>,
    targets: Vec<FieldPath>,
    condition: Option<String>,
    /// Only objects that name a Gateway here: `mesh` alone means that nothing outside of the mesh reaches it.
    behind: Option<FieldPath>,
}

/// Istio's own word for the proxies beside the pods.
const MESH: &str = "mesh";

/// The row of one of our own kinds.
pub(super) fn ready_row(kind: ObjectKind) -> Option<Row> {
    let paths = |texts: &[&str]| texts.iter().filter_map(|text| text.parse().ok()).collect();
    let row = |hosts: &[&str], targets: &[&str]| Row {
        hosts: paths(hosts),
        targets: paths(targets),
        condition: None,
        behind: None,
    };
    match kind {
        ObjectKind::IstioGateway => Some(row(&["spec.servers[].hosts[]"], &[])),
        ObjectKind::IstioVirtualService => {
            Some(Row { behind: "spec.gateways[]".parse().ok(), ..row(&["spec.hosts[]"], &[]) })
        }
        ObjectKind::ContourHttpProxy => Some(Row {
            condition: Some("Valid".to_owned()),
            ..row(
                &["spec.virtualhost.fqdn"],
                &["status.loadBalancer.ingress[].ip", "status.loadBalancer.ingress[].hostname"],
            )
        }),
        ObjectKind::OpenshiftRoute => {
            Some(row(&["spec.host"], &["status.ingress[?Admitted].routerCanonicalHostname"]))
        }
        _ => None,
    }
}

/// The texts at the paths of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kubernetes) struct Custom {
    hosts: Vec<String>,
    targets: Vec<String>,
    /// Why it gives no name, by its own state.
    refused: Option<String>,
}

impl Row {
    pub(super) fn read(&self, object: &Object) -> Custom {
        let texts = |paths: &[FieldPath]| -> Vec<String> {
            let mut texts: Vec<String> = paths.iter().flat_map(|path| path.texts(object)).collect();
            texts.sort_unstable();
            texts.dedup();
            texts
        };
        let unmet =
            self.condition.as_deref().filter(|condition| !field_path::is_true(&object.status, condition));
        let inside =
            self.behind.as_ref().is_some_and(|path| path.texts(object).iter().all(|one| one == MESH));
        let refused = match unmet {
            Some(condition) => Some(format!("its condition `{condition}` is not true")),
            None => {
                inside.then(|| "it names no gateway, so it is reached inside of the mesh only".to_owned())
            }
        };
        Custom { hosts: texts(&self.hosts), targets: texts(&self.targets), refused }
    }
}

pub(in crate::kubernetes) fn ask(object: &Stored, custom: &Custom) -> Asked {
    let mut asked = Asked { shared: true, ..Asked::default() };
    if let Some(why) = &custom.refused {
        asked.annotated = false;
        asked.notes.add(format!("it gives no name: {why}"));
        return asked;
    }
    for host in custom.hosts.iter().map(|text| host_of(text)).filter(|host| *host != "*") {
        // Inside of a cluster a name without a dot means a service of the same namespace.
        if host.contains('.') {
            asked.ask(host, "hosts");
        } else {
            asked.notes.add(format!("hosts: `{host}` is no full name"));
        }
    }
    asked.points = Points::of_texts(custom.targets.iter().map(String::as_str), &mut asked.notes);
    if asked.points.is_empty() && external_dns(object, "target").is_none() {
        asked.points = Points::none(
            "its fields hold no address: set `target` at the provider, `default_targets`, or the annotation \
             `netstead.io/target`",
        );
    }
    asked
}

/// The host in a text: of a URL, or behind the namespace that Istio puts in front.
fn host_of(text: &str) -> &str {
    let text = text.trim();
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return host.rsplit_once(':').map_or(host, |(host, _)| host);
    }
    text.rsplit_once('/').map_or(text, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_in_a_url_and_behind_a_namespace() {
        let cases = [
            ("web.example.com", "web.example.com"),
            ("*/web.example.com", "web.example.com"),
            ("shop/*.example.com", "*.example.com"),
            ("https://web.example.com:8443/path", "web.example.com"),
            ("https://web.example.com", "web.example.com"),
        ];
        for (text, host) in cases {
            assert_eq!(host_of(text), host, "{text}");
        }
    }

    #[test]
    fn every_ready_row_has_its_paths() {
        for (kind, hosts, targets) in [
            (ObjectKind::IstioGateway, 1, 0),
            (ObjectKind::IstioVirtualService, 1, 0),
            (ObjectKind::ContourHttpProxy, 1, 2),
            (ObjectKind::OpenshiftRoute, 1, 1),
        ] {
            let row = ready_row(kind).unwrap();
            assert_eq!((row.hosts.len(), row.targets.len()), (hosts, targets), "{kind}");
        }
        assert!(ready_row(ObjectKind::IstioVirtualService).unwrap().behind.is_some());
    }
}
