//! Label dialects: reads the names that workloads ask for from the labels of several tools.
//!
//! Each dialect is one small file that turns labels into [`NameRequest`]s. All dialects may be in use at once. A source gives
//! a [`Reader`] the [`WorkloadLabels`] of one workload and gets a [`Reading`]: the names, and for every label that looked like
//! a name and gave none, the reason.

pub(crate) mod boolean;
mod caddy;
mod defaults;
pub(crate) mod diagnostics;
mod dialect;
mod external_dns;
mod fields;
pub(crate) mod list;
mod merge;
mod name_request;
mod native;
mod nginx_proxy;
mod reading;
mod record;
mod target_spec;
pub(crate) mod traefik;

use std::collections::{BTreeMap, BTreeSet};

use self::{defaults::Defaults, diagnostics::Diagnostics, merge::RequestMerger};
pub use self::{
    dialect::Dialect,
    name_request::{NameRequest, RequestedContent},
    reading::Reading,
    target_spec::TargetSpec,
    traefik::{DefaultRule, TraefikSettings},
};

/// Labels that silence every dialect.
const SILENCERS: [&str; 2] = ["netstead.enabled", "dnsweaver.enabled"];

/// A workload's name, labels and facts, as the platform reports them.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadLabels<'a> {
    /// The workload's own name: of a container without its `/`, of a service as it is.
    pub name: &'a str,
    pub labels: &'a BTreeMap<String, String>,
    /// Of the environment only what [`Reader::wanted_environment`] names; nothing else need be kept.
    pub environment: &'a BTreeMap<String, String>,
}

/// Reads the labels of workloads in the chosen dialects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    dialects: BTreeSet<Dialect>,
    traefik: TraefikSettings,
}

impl Default for Reader {
    /// Every dialect, with the settings the tools themselves have when nothing is set.
    fn default() -> Self {
        Self::new(Dialect::ALL)
    }
}

impl Reader {
    pub fn new(dialects: impl IntoIterator<Item = Dialect>) -> Self {
        Self { dialects: dialects.into_iter().collect(), traefik: TraefikSettings::default() }
    }

    #[must_use]
    pub fn with_traefik(self, traefik: TraefikSettings) -> Self {
        Self { traefik, ..self }
    }

    /// The variables of a workload's environment that a chosen dialect looks at.
    pub fn wanted_environment(&self) -> &'static [&'static str] {
        if self.dialects.contains(&Dialect::NginxProxy) { &nginx_proxy::VARIABLES } else { &[] }
    }

    /// Whether a chosen dialect looks at this label. Others may hold secrets of the workload and need not be kept.
    pub fn is_read(&self, label: &str) -> bool {
        SILENCERS.contains(&label)
            || self.dialects.iter().any(|dialect| match dialect {
                Dialect::Netstead => native::NETSTEAD.reads(label),
                Dialect::Dnsweaver => native::DNSWEAVER.reads(label),
                Dialect::ExternalDns => external_dns::reads(label),
                Dialect::Traefik => traefik::reads(label),
                Dialect::Caddy => caddy::reads(label),
                Dialect::NginxProxy => nginx_proxy::reads(label),
            })
    }

    /// Reads what the workload asks for. Never fails: a label that cannot be read becomes a reason.
    ///
    /// A name that several dialects ask for is asked for once, as the first of [`Dialect::ALL`] has it, and all their
    /// reasons are kept. `netstead.enabled=false` silences every dialect.
    pub fn read(&self, told: &WorkloadLabels<'_>) -> Reading {
        self.read_with(told, Vec::new(), Diagnostics::default())
    }

    /// As [`Reader::read`], for a workload that asks for names in another way too. Labels come before those, and complete them.
    pub(crate) fn read_with(
        &self,
        told: &WorkloadLabels<'_>,
        own: Vec<NameRequest>,
        mut notes: Diagnostics,
    ) -> Reading {
        if let Some(label) = silencer(self, told, &mut notes) {
            let why_not = vec![format!("{label} is false")];
            return Reading { silenced: true, why_not, ..Reading::default() };
        }
        let (mut pile, mut defaults) = (RequestMerger::default(), Vec::new());
        for dialect in &self.dialects {
            let (asks, more) = match dialect {
                Dialect::Netstead => native::NETSTEAD.read(told, &mut notes),
                Dialect::Dnsweaver => native::DNSWEAVER.read(told, &mut notes),
                Dialect::ExternalDns => (external_dns::read(told, &mut notes), Defaults::default()),
                Dialect::Traefik => (traefik::read(&self.traefik, told, &mut notes), Defaults::default()),
                Dialect::Caddy => (caddy::read(told, &mut notes), Defaults::default()),
                Dialect::NginxProxy => (nginx_proxy::read(told, &mut notes), Defaults::default()),
            };
            pile.add(asks, &mut notes);
            defaults.push(more);
        }
        pile.add(own, &mut notes);
        let complete = |ask| defaults.iter().try_fold(ask, |ask, defaults| defaults.complete(ask));
        let asks = pile.merged().into_iter().filter_map(complete).collect();
        let pool = defaults.iter_mut().find_map(|defaults| defaults.pool.take());
        let unclear = notes.is_unclear();
        Reading { requests: asks, why_not: notes.into_sentences(), pool, unclear, silenced: false }
    }
}

/// The label that silences this workload, if one does.
fn silencer(reader: &Reader, told: &WorkloadLabels<'_>, notes: &mut Diagnostics) -> Option<&'static str> {
    let mut says = |label: &'static str| {
        let text = told.labels.get(label)?;
        boolean::read(text).map_err(|error| notes.add(format!("{label}: {error}"))).ok()
    };
    match says("netstead.enabled") {
        Some(false) => return Some("netstead.enabled"),
        Some(true) => return None,
        None => {}
    }
    let here = reader.dialects.contains(&Dialect::Dnsweaver);
    (here && says("dnsweaver.enabled") == Some(false)).then_some("dnsweaver.enabled")
}
