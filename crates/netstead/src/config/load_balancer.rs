//! `kubernetes` of `[pool.NAME]`: load balancers of a cluster get their addresses from the pool.

use netstead_model::{Family, Ident, Span};
use netstead_settings::{Problems, Section, Setting, Shape, ValueOrigin};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::SourceConfig;

const KEYS: [&str; 3] = ["load_balancer_class", "source", "grace"];
/// How long the addresses of a Service that is gone are kept.
const GRACE: Span = Span::from_secs(300);

/// The value of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubernetesPool {
    class: String,
    source: Option<Ident>,
    grace: Span,
}

/// A pool for the load balancers of one cluster, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LoadBalancerConfig {
    pub(crate) pool: Ident,
    pub(crate) family: Family,
    pub(crate) class: String,
    /// Without it, every source of type `kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Ident>,
    pub(crate) grace: Span,
}

impl KubernetesPool {
    pub(super) fn of_pool(self, pool: Ident, family: Family) -> LoadBalancerConfig {
        let Self { class, source, grace } = self;
        LoadBalancerConfig { pool, family, class, source, grace }
    }
}

impl Setting for KubernetesPool {
    fn shape() -> Shape {
        Shape::Table
    }

    fn read(section: &mut Section<'_, '_>, key: &str) -> Option<Self> {
        let mut inner = section.section(key, &KEYS);
        let class = inner.needed("load_balancer_class", "write `load_balancer_class = \"netstead.io/lan\"`");
        let class = class.map(str::to_owned);
        if class.as_deref().is_some_and(|class| !is_class(class)) {
            let hint = Some("write a domain, `/` and a name: `netstead.io/lan`");
            inner.wrong("load_balancer_class", "Kubernetes takes no such class", hint);
            return None;
        }
        let source = if inner.origin_of("source").is_some() { Some(inner.parsed("source")?) } else { None };
        let grace = if inner.origin_of("grace").is_some() { inner.parsed("grace")? } else { GRACE };
        Some(Self { class: class?, source, grace })
    }

    fn shown(&self) -> Json {
        let mut shown = json!({ "load_balancer_class": self.class, "grace": self.grace.to_string() });
        if let (Some(source), Some(shown)) = (&self.source, shown.as_object_mut()) {
            shown.insert("source".to_owned(), Json::from(source.to_string()));
        }
        shown
    }
}

fn is_class(text: &str) -> bool {
    let part = |text: &str, more: &[char]| {
        !text.is_empty()
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(&c))
    };
    let Some((domain, name)) = text.split_once('/') else { return false };
    domain.len() <= 253 && name.len() <= 63 && part(domain, &['-', '.']) && part(name, &['-', '_', '.'])
}

/// Refuses a class that two pools of a family have, and a source that is none or of another kind.
pub(super) fn check_together(
    pools: &[(&ValueOrigin, LoadBalancerConfig)],
    sources: &[(&ValueOrigin, SourceConfig)],
    problems: &mut Problems,
) {
    let clusters: Vec<&Ident> = sources
        .iter()
        .filter(|(_, source)| source.table.kind.name == "kubernetes")
        .map(|(_, source)| &source.name)
        .collect();
    for (number, (place, one)) in pools.iter().enumerate() {
        let path = format!("pool.{}.kubernetes", one.pool);
        let known = match &one.source {
            Some(source) => clusters.contains(&source),
            None => !clusters.is_empty(),
        };
        if !known {
            let hint = "write `[source.NAME]` with `type = \"kubernetes\"`".to_owned();
            problems.add(place, format!("{path}: there is no such cluster"), Some(hint));
        }
        let same = |(_, other): &&(&ValueOrigin, LoadBalancerConfig)| {
            other.class == one.class
                && other.family == one.family
                && (other.source.is_none() || one.source.is_none() || other.source == one.source)
        };
        if let Some((_, other)) = pools.iter().take(number).find(same) {
            let problem = format!("{path}: pool.{} has the class `{}` already", other.pool, one.class);
            problems.add(place, problem, Some("give each pool of a family a class of its own".to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_one_that_kubernetes_takes() {
        for good in ["netstead.io/lan", "example.com/a_b-c.d", "a/1"] {
            assert!(is_class(good), "{good}");
        }
        for bad in ["lan", "/lan", "netstead.io/", "netstead.io/-lan", "net stead/lan", "a/b/c"] {
            assert!(!is_class(bad), "{bad}");
        }
    }
}
