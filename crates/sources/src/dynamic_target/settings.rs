//! `target = "public"` and `target = "interface:NAME"`: how such a target is found.

use std::sync::Arc;

use netstead_model::{Ident, Span};
use netstead_settings::{SettingsError, table};
use serde::Serialize;

use super::{DynamicTarget, ENDPOINTS, TargetResolver};

/// How often a target is looked for, unless the file says otherwise.
const PUBLIC: Span = Span::from_secs(300);
const INTERFACE: Span = Span::from_secs(30);

table! {
    /// How targets that move are found.
    #[derive(Default)]
    pub struct LookupSettings {
        /// URLs that answer with nothing but the public address; a new address is taken only if all that answer agree
        target_endpoints: Vec<String>, unset "ipify, icanhazip, ident.me";
        /// how often a target that moves is looked for, also one that a label names; the last good one stays meanwhile
        target_interval: Option<Span>, unset "`5m` for `public`, `30s` for an interface";
    }
}

/// One target that moves, with how it is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DynamicTargetConfig {
    pub place: LookupMethod,
    pub interval: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LookupMethod {
    /// These servers are asked.
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

impl LookupSettings {
    pub fn check(&self) -> Result<(), SettingsError> {
        let is_url = |text: &&String| text.starts_with("https://") || text.starts_with("http://");
        if let Some(endpoint) = self.target_endpoints.iter().find(|endpoint| !is_url(endpoint)) {
            let problem = format!("`{endpoint}` is no URL");
            let hint = "write a URL that answers with nothing but the address";
            return Err(SettingsError::new("target_endpoints", problem).hint(hint));
        }
        if self.target_interval.is_some_and(|interval| interval < Span::from_secs(1)) {
            return Err(
                SettingsError::new("target_interval", "that is too often").hint("a second is the least")
            );
        }
        Ok(())
    }

    /// How this target is followed.
    pub fn of(&self, place: &DynamicTarget) -> DynamicTargetConfig {
        let (place, usual) = match place {
            DynamicTarget::Public if self.target_endpoints.is_empty() => {
                (LookupMethod::Public(ENDPOINTS.map(str::to_owned).to_vec()), PUBLIC)
            }
            DynamicTarget::Public => (LookupMethod::Public(self.target_endpoints.clone()), PUBLIC),
            DynamicTarget::Interface(name) => (LookupMethod::Interface(name.clone()), INTERFACE),
        };
        DynamicTargetConfig { place, interval: self.target_interval.unwrap_or(usual) }
    }
}

/// Makes the resolver of each source. The process gives it to the context in which sources are built.
pub trait TargetResolvers: Send + Sync + std::fmt::Debug {
    fn of_source(&self, source: &Ident, lookup: &LookupSettings) -> Arc<dyn TargetResolver>;
}
