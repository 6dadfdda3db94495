//! One line per run, for the table of `cargo xtask faults`.

use std::{fs::OpenOptions, io::Write as _, time::Duration};

use netstead_testkit::history::Summary;

use super::fault_effects::Lead;

/// Measurements during the fault.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) gaps: Vec<Gap>,
    /// From when something was claimed after the fault until PowerDNS had its name.
    pub(crate) powerdns: Vec<Duration>,
}

/// How long no change was accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// When the fault was, by the clock of the history.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    /// Whether etcd's members had to elect a leader meanwhile.
    pub(crate) election: bool,
    /// Of the leader whom another one followed.
    pub(crate) epoch: Option<u64>,
    /// How long it was until something was changed at a DNS server.
    pub(crate) dns: Option<Duration>,
}

impl Gap {
    /// Everybody may have gone on to lead.
    pub(crate) fn plain(at: Duration, took: Duration) -> Self {
        Self { at, took, election: false, epoch: None, dns: None }
    }

    pub(crate) fn led_by_another(at: Duration, took: Duration, before: Lead) -> Self {
        Self { epoch: Some(before.epoch), ..Self::plain(at, took) }
    }
}

/// At least so many operations per run.
pub(crate) fn operations() -> usize {
    let asked = std::env::var("NETSTEAD_FAULT_OPERATIONS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(1500)
}

/// Says how it went, and leaves the same in the file that `NETSTEAD_FAULT_REPORT` names.
pub(crate) fn record_run(store: &str, fault: &str, summary: &Summary, figures: &Figures, seconds: f64) {
    let longest = |all: &mut dyn Iterator<Item = Duration>| all.max().map(|took| took.as_secs_f64());
    let failover = |election: bool| {
        let such = figures.gaps.iter().filter(|gap| gap.election == election);
        longest(&mut such.map(|gap| gap.took))
    };
    let dns = |election: bool| {
        let such = figures.gaps.iter().filter(|gap| gap.election == election);
        longest(&mut such.filter_map(|gap| gap.dns))
    };
    let Summary { operations, unknown, failed, exhausted, holdings } = summary;
    eprintln!(
        "{store}, {fault}: {operations} operations in {seconds:.0} s, {unknown} unknown, {failed} not done, \
         {exhausted} times no address left, {holdings} claims, {figures:?}: all of it can have happened"
    );
    let line = serde_json::json!({
        "store": store, "fault": fault, "operations": operations - failed, "unknown": unknown, "not_done": failed,
        "claims": holdings, "failover_seconds": failover(false), "failover_with_election_seconds": failover(true),
        "dns_seconds": dns(false), "dns_with_election_seconds": dns(true),
        "powerdns_seconds": longest(&mut figures.powerdns.iter().copied()), "seconds": seconds,
    });
    if let Some(file) = std::env::var_os("NETSTEAD_FAULT_REPORT") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
