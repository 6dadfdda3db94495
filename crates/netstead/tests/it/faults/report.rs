//! One line per run, for the table of `cargo xtask faults`.

use std::{fs::OpenOptions, io::Write as _, time::Duration};

use netstead_testkit::history::Summary;

/// At least so many operations per run.
pub(crate) fn operations() -> usize {
    let asked = std::env::var("NETSTEAD_FAULT_OPERATIONS").ok();
    asked.and_then(|count| count.parse().ok()).unwrap_or(1500)
}

/// Says how it went, and leaves the same in the file that `NETSTEAD_FAULT_REPORT` names.
pub(crate) fn tell(store: &str, fault: &str, summary: &Summary, failovers: &[Duration], seconds: f64) {
    let worst = failovers.iter().max().map(Duration::as_secs_f64);
    let Summary { operations, unknown, failed, holdings } = summary;
    eprintln!(
        "{store}, {fault}: {operations} operations in {seconds:.0} s, {unknown} unknown, {failed} not done, {holdings} \
         claims, longest without a change {worst:?} s: all of it can have happened"
    );
    let line = serde_json::json!({
        "store": store, "fault": fault, "operations": operations - failed, "unknown": unknown, "not_done": failed,
        "claims": holdings, "failover_seconds": worst, "seconds": seconds,
    });
    if let Some(file) = std::env::var_os("NETSTEAD_FAULT_REPORT") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}
