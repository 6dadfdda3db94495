//! `[source.NAME]` with `type = "kubernetes"`.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use netstead_model::{Address, Cidr, Name, ParseError, Source};
use netstead_settings::{
    BuildContext, Configured, Identity, Kind, OneOrMore, Parsed, SettingsError, Shape, Tables, TextShape,
    table,
};
use netstead_wire::kubernetes::KubernetesAccess;

use super::{
    Kubernetes,
    claims::{Claims, matches},
    kinds::{ObjectKind, asked::Points, custom::CustomKind, definition::Definition},
    object::ObjectName,
    selector::AnnotationSelector,
    template::NameTemplate,
};
use crate::{SourceKind, SourceTraits};

pub const KIND: SourceKind = Kind::new::<KubernetesSettings>(
    "kubernetes",
    "Ingresses, Services, routes and records of one Kubernetes cluster",
    || SourceTraits { labels: true },
);

/// An address or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultTarget {
    Address(Address),
    Name(Name),
}

impl std::str::FromStr for DefaultTarget {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.parse::<IpAddr>() {
            Ok(ip) => Ok(Self::Address(ip.into())),
            Err(_) => text.trim_end_matches('.').parse().map(Self::Name),
        }
    }
}

impl std::fmt::Display for DefaultTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl TextShape for DefaultTarget {}

/// A type of Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceTypeName(&'static str);

impl ServiceTypeName {
    const ALL: [&'static str; 5] = ["LoadBalancer", "NodePort", "ClusterIP", "Headless", "ExternalName"];
}

impl std::str::FromStr for ServiceTypeName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let found = Self::ALL.into_iter().find(|word| *word == text).map(Self);
        found.ok_or_else(|| {
            ParseError::new("type", text, None, format!("it is none of {}", Self::ALL.join(", ")))
        })
    }
}

impl std::fmt::Display for ServiceTypeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl TextShape for ServiceTypeName {
    fn text_shape() -> Shape {
        Shape::Choice(Self::ALL.to_vec())
    }
}

table! {
    /// One cluster as the file has it.
    pub struct KubernetesSettings {
        access: KubernetesAccess, all;
        /// the cluster's name for people
        cluster: Option<String>, unset "the context, if one is set";
        /// the kinds that are read: `ingress`, `service`, `httproute`, `grpcroute`, `tlsroute`, `tcproute`, `udproute`,
        /// `ingressroute`, `ingressroutetcp`, `dnsendpoint`, `dnsrecord`, `node`, `pod`, `istio-gateway`, `istio-virtualservice`,
        /// `contour-httpproxy`, `openshift-route`; a kind that the cluster does not have yet is read once it has it
        kinds: OneOrMore<ObjectKind>, unset "all up to `dnsrecord`";
        /// other kinds, by the paths of their fields: `[[source.NAME.custom]]` with `kind`, `hosts`, `targets` and
        /// `condition`
        custom: Tables<CustomKind>, unset "none";
        /// only objects of these namespaces; each is asked for by itself, so rights in them are enough
        namespaces: OneOrMore<String>, unset "all";
        /// only objects with these labels: `app=web,tier in (a, b)`
        label_selector: Option<String>, unset;
        /// only objects with these annotations, written like a selector of labels
        annotation_filter: Option<Parsed<AnnotationSelector>>, unset;
        /// only Ingresses and IngressRoutes of these classes; `""` is one without a class
        ingress_classes: OneOrMore<String>, unset "all";
        /// the hosts of an Ingress's certificates are names too
        ingress_tls_hosts: bool, default true;
        /// only routes of these Gateways: `NAMESPACE/NAME` with `*` for any text, or `NAME` in any namespace
        gateways: OneOrMore<String>, unset "all";
        /// namespaces with Gateways, where `namespaces` is set and they live elsewhere
        gateway_namespaces: OneOrMore<String>, unset "those of `namespaces`";
        /// only IngressRoutes on one of these entry points of Traefik
        entrypoints: OneOrMore<String>, unset "all";
        /// only Services of these types: `LoadBalancer`, `NodePort`, `ClusterIP`, `Headless`, `ExternalName`
        service_types: OneOrMore<ServiceTypeName>, unset "all";
        /// names of a Service of type `ClusterIP` point at its address inside of the cluster
        publish_cluster_ips: bool, default false;
        /// where names point whose object has no address: addresses, or one name
        default_targets: OneOrMore<DefaultTarget>, unset "the target of each provider";
        /// only addresses in these networks are published
        target_networks: OneOrMore<Cidr>, unset "all";
        /// addresses in these networks are not published
        exclude_target_networks: OneOrMore<Cidr>, unset "none";
        /// names of objects that ask for none: `{{ .Name }}.{{ .Namespace }}.example.com`
        template: Option<Parsed<NameTemplate>>, unset;
        /// which namespaces may claim which names: `{ "team-*" = "*.teams.example.com", shop = "shop.example.com" }`;
        /// `*` is any text
        claims: Claims, unset "every namespace any name";
        /// DNSEndpoints and DNSRecords say in their status what became of their records
        status: bool, default true;
        /// Events on objects say that their names were published, or refused and why
        events: bool, default true;
    }
}

impl KubernetesSettings {
    /// The kinds that are read.
    pub(super) fn wanted_kinds(&self) -> Vec<ObjectKind> {
        if self.kinds.is_empty() {
            return ObjectKind::DEFAULT.to_vec();
        }
        let mut kinds = self.kinds.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The kinds that are read, those of `custom` too.
    pub(super) fn definitions(&self) -> Vec<Definition> {
        let own = self.wanted_kinds().into_iter().map(Definition::of);
        own.chain(self.custom.iter().map(Definition::custom)).collect()
    }

    pub(super) fn cluster_name(&self) -> Option<String> {
        self.cluster.clone().or_else(|| self.access.context.clone())
    }

    pub(super) fn wants_class(&self, class: Option<&str>) -> bool {
        self.ingress_classes.is_empty()
            || self.ingress_classes.iter().any(|wanted| wanted == class.unwrap_or_default())
    }

    pub(super) fn wants_gateway(&self, gateway: &ObjectName) -> bool {
        let whole = gateway.to_string();
        let wanted = |pattern: &String| {
            let text = if pattern.contains('/') { &whole } else { &gateway.name };
            matches(pattern, text)
        };
        self.gateways.is_empty() || self.gateways.iter().any(wanted)
    }

    pub(super) fn wants_service(&self, kind: &str) -> bool {
        self.service_types.is_empty() || self.service_types.iter().any(|wanted| wanted.0 == kind)
    }

    pub(super) fn wants_annotations(&self, annotations: &BTreeMap<String, String>) -> bool {
        self.annotation_filter.as_ref().is_none_or(|filter| filter.matches(annotations))
    }

    pub(super) fn wants_address(&self, address: Address) -> bool {
        let inside = |networks: &[Cidr]| networks.iter().any(|network| network.contains(address));
        (self.target_networks.is_empty() || inside(&self.target_networks))
            && !inside(&self.exclude_target_networks)
    }

    /// Where an object's names point, with the default for one that points nowhere.
    pub(super) fn narrowed(&self, points: Points) -> Points {
        if !points.is_empty() || self.default_targets.is_empty() {
            return points;
        }
        let (mut addresses, mut name) = (Vec::new(), None);
        for target in self.default_targets.iter() {
            match target {
                DefaultTarget::Address(address) => addresses.push(*address),
                DefaultTarget::Name(target) => name = Some(target.clone()),
            }
        }
        Points { addresses, name, why: None }
    }
}

impl Configured<dyn Source> for KubernetesSettings {
    fn identity(&self) -> Identity {
        self.access.identity()
    }

    fn server(&self) -> String {
        self.access.describe()
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.access.check()?;
        let kinds = self.definitions();
        for custom in self.custom.iter().map(Definition::custom) {
            let same = |other: &&Definition| other.plural == custom.plural && other.group == custom.group;
            if kinds.iter().filter(same).count() > 1 {
                let problem = format!("`{}` is read already, by `kinds` or another table", custom.word);
                return Err(SettingsError::new("custom", problem).hint("name each kind once"));
            }
        }
        let names =
            self.default_targets.iter().filter(|target| matches!(target, DefaultTarget::Name(_))).count();
        if names > 0 && self.default_targets.len() > 1 {
            let problem = "a name is alone: a record has addresses, or points at one name";
            return Err(SettingsError::new("default_targets", problem));
        }
        if !self.gateway_namespaces.is_empty() && self.namespaces.is_empty() {
            let problem = "Gateways of all namespaces are read while `namespaces` is not set";
            return Err(
                SettingsError::new("gateway_namespaces", problem).hint("leave it out, or set `namespaces`")
            );
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn Source>, SettingsError> {
        Ok(Arc::new(Kubernetes::new(self.clone(), context)))
    }
}

#[cfg(test)]
mod tests {
    use netstead_settings::{Problems, Section};

    use super::*;

    /// The problems of a table, one line each.
    fn wrong(text: &str) -> Vec<String> {
        let mut problems = Problems::new(std::path::Path::new("x.toml"), text);
        let table = netstead_settings::parse(text, &mut problems);
        drop(KIND.read(&mut Section::open("source.k", &table, &mut problems)));
        let found = problems.none_or(()).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_wrong_with_a_custom_kind_is_told_by_line_and_column() {
        let good = "[[custom]]\nkind = \"doors.example.com\"\nhosts = \"spec.host\"\n";
        assert_eq!(wrong(good), [""; 0]);
        let told = wrong(
            "[[custom]]\nkind = \"Door\"\nhosts = [\"spec.host\", \"host\"]\nhost = 1\n\n[[custom]]\nkind = \"doors.example.com\"\n",
        );
        assert_eq!(told.len(), 4, "{told:#?}");
        for text in [
            "x.toml:4:1: unknown key `host` in `source.k.custom`",
            "x.toml:2:8: source.k.custom.kind: ",
            "x.toml:3:23: source.k.custom.hosts: ",
            "x.toml:6:",
        ] {
            assert!(told.iter().any(|line| line.starts_with(text)), "{text} is not in {told:#?}");
        }
        let twice = wrong(&format!("kinds = \"ingress\"\n{good}\n{good}"));
        assert_eq!(twice.len(), 1);
        assert!(
            twice[0].contains("`doors.example.com` is read already, by `kinds` or another table"),
            "{twice:?}"
        );
    }
}
