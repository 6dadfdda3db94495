//! `target = "public"` and `target = "interface:NAME"`: where names point is found out while the server runs.

use netstead_model::Span;
use netstead_sources::dynamic_target::{DynamicTarget, ENDPOINTS};
use serde::Serialize;

use super::Section;

/// The keys that say how it is found out.
pub(super) const KEYS: &[&str] = &["target_endpoints", "target_interval"];

/// How often it is looked for, unless said otherwise.
const PUBLIC: Span = Span::from_secs(300);
const INTERFACE: Span = Span::from_secs(30);

/// Where the target is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DynamicTargetConfig {
    pub(crate) place: LookupMethod,
    pub(crate) interval: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LookupMethod {
    /// These servers say it.
    Public(Vec<String>),
    /// This interface has it.
    Interface(String),
}

impl std::fmt::Display for LookupMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Public(_) => f.write_str("public"),
            Self::Interface(name) => write!(f, "interface:{name}"),
        }
    }
}

/// How targets that move are found out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LookupSettings {
    /// Who is asked for the public address; nobody named means the usual ones.
    #[serde(rename = "target_endpoints")]
    endpoints: Vec<String>,
    #[serde(rename = "target_interval")]
    interval: Option<Span>,
}

impl LookupSettings {
    pub(super) fn read(section: &mut Section<'_, '_>) -> Self {
        let endpoints = section.texts("target_endpoints");
        for endpoint in &endpoints {
            if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
                let hint = "write a URL that answers with nothing but the address";
                section.wrong("target_endpoints", &format!("`{endpoint}` is no URL"), Some(hint));
            }
        }
        let interval: Option<Span> = section.parsed("target_interval");
        if interval.is_some_and(|interval| interval < Span::from_secs(1)) {
            section.wrong("target_interval", "that is too often", Some("a second is the least"));
        }
        Self { endpoints, interval }
    }

    /// How this place is followed.
    pub(crate) fn of(&self, place: &DynamicTarget) -> DynamicTargetConfig {
        let (place, usual) = match place {
            DynamicTarget::Public if self.endpoints.is_empty() => {
                (LookupMethod::Public(ENDPOINTS.map(str::to_owned).to_vec()), PUBLIC)
            }
            DynamicTarget::Public => (LookupMethod::Public(self.endpoints.clone()), PUBLIC),
            DynamicTarget::Interface(name) => (LookupMethod::Interface(name.clone()), INTERFACE),
        };
        DynamicTargetConfig { place, interval: self.interval.unwrap_or(usual) }
    }
}

/// The moving target of a provider, if `target` is one.
pub(super) fn read(section: &mut Section<'_, '_>) -> Option<DynamicTargetConfig> {
    let finding = LookupSettings::read(section);
    let texts = section.one_or_more("target");
    let place = match texts.as_slice() {
        [text] if text == "public" => DynamicTarget::Public,
        [text] => {
            let name = text.strip_prefix("interface:")?;
            if name.is_empty() {
                section.wrong("target", "it names no interface", Some("write `interface:eth0`"));
            }
            DynamicTarget::Interface(name.to_owned())
        }
        _ => return None,
    };
    if !finding.endpoints.is_empty() && place != DynamicTarget::Public {
        section.wrong("target_endpoints", "only `target = \"public\"` asks them", None);
    }
    Some(finding.of(&place))
}
