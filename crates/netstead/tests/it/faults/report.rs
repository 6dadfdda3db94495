//! One line per run, for the table of `cargo xtask faults`.

use std::{fs::OpenOptions, io::Write as _, time::Duration};

use netstead_testkit::history::Summary;

/// How long no change was accepted, and whether etcd's members had to elect a leader meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) took: Duration,
    pub(crate) election: bool,
}

impl Gap {
    pub(crate) fn plain(took: Duration) -> Self {
        Self { took, election: false }
    }
}

/// At least so many operations per run.
pub(crate) fn operations() -> usize {
    let asked = std::env::var("NETSTEAD_FAULT_OPERATIONS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(1500)
}

/// Says how it went, and leaves the same in the file that `NETSTEAD_FAULT_REPORT` names.
pub(crate) fn tell(store: &str, fault: &str, summary: &Summary, failovers: &[Gap], seconds: f64) {
    let worst = |election: bool| {
        let such = failovers.iter().filter(|gap| gap.election == election);
        such.map(|gap| gap.took).max().map(|took| took.as_secs_f64())
    };
    let Summary { operations, unknown, failed, holdings } = summary;
    eprintln!(
        "{store}, {fault}: {operations} operations in {seconds:.0} s, {unknown} unknown, {failed} not done, {holdings} \
         claims, without a change {failovers:?}: all of it can have happened"
    );
    let line = serde_json::json!({
        "store": store, "fault": fault, "operations": operations - failed, "unknown": unknown, "not_done": failed,
        "claims": holdings, "failover_seconds": worst(false), "failover_with_election_seconds": worst(true),
        "seconds": seconds,
    });
    if let Some(file) = std::env::var_os("NETSTEAD_FAULT_REPORT") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
