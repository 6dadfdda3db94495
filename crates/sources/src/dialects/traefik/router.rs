//! One router, from a label or a file.

use netstead_model::Name;

use super::{TraefikSettings, rule, rule::RuleError};
use crate::dialects::{NameRequest, diagnostics::Diagnostics};

/// The parts of a router that matter for names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Router<'a> {
    /// Where its rule stands, for people.
    pub(crate) label: String,
    pub(crate) rule: Option<&'a str>,
    pub(crate) entrypoints: Vec<&'a str>,
    /// The names its certificates are for.
    pub(crate) domains: Vec<&'a str>,
}

impl<'a> Router<'a> {
    pub(crate) fn new(label: String) -> Self {
        Self { label, ..Self::default() }
    }

    /// The names it answers for, unless its rule cannot be read. `default_rule` is for one that has no rule.
    pub(crate) fn name_requests(
        &self,
        settings: &TraefikSettings,
        default_rule: Option<&'a str>,
        notes: &mut Diagnostics,
    ) -> Result<Vec<NameRequest>, RuleError> {
        let label = &self.label;
        if !self.is_wanted(settings) {
            notes.add(format!("{label}: it is on none of the wanted entrypoints"));
            return Ok(Vec::new());
        }
        let Some(text) = self.rule.filter(|text| !text.trim().is_empty()).or(default_rule) else {
            notes.add(format!("{label}: there is no rule, and no default rule either"));
            return Ok(Vec::new());
        };
        let rule = rule::read(text)?;
        let entrypoints: Vec<String> = self.entrypoints(settings).into_iter().map(str::to_owned).collect();
        let mut asks = Vec::new();
        for host in &rule.hosts {
            push(&mut asks, host, label, &entrypoints, notes);
        }
        // A router that answers for more hosts than it names says in its certificates which.
        if rule.hosts.is_empty() && rule.open && !self.domains.is_empty() {
            for domain in &self.domains {
                push(&mut asks, domain, &format!("{label} (tls.domains)"), &entrypoints, notes);
            }
            return Ok(asks);
        }
        let silent = rule.notes.is_empty() && asks.is_empty() && rule.hosts.is_empty();
        for note in rule.notes {
            notes.add(format!("{label}: {note}"));
        }
        if silent {
            notes.add(format!("{label}: the rule names no host"));
        }
        Ok(asks)
    }

    /// Where it is reached; empty means everywhere.
    fn entrypoints<'s>(&'s self, settings: &'s TraefikSettings) -> Vec<&'s str> {
        if self.entrypoints.is_empty() {
            settings.default_entrypoints.iter().map(String::as_str).collect()
        } else {
            self.entrypoints.clone()
        }
    }

    fn is_wanted(&self, settings: &TraefikSettings) -> bool {
        let own = self.entrypoints(settings);
        settings.entrypoints.is_empty()
            || own.is_empty()
            || own.iter().any(|entrypoint| settings.entrypoints.iter().any(|wanted| wanted == entrypoint))
    }
}

fn push(
    asks: &mut Vec<NameRequest>,
    host: &str,
    label: &str,
    entrypoints: &[String],
    notes: &mut Diagnostics,
) {
    match host.parse::<Name>() {
        Ok(name) => {
            asks.push(NameRequest { entrypoints: entrypoints.to_vec(), ..NameRequest::new(name, label) });
        }
        Err(error) => notes.add(format!("{label}: {error}")),
    }
}
