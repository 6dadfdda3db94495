//! One run: a cluster, clients, a fault, and the judgement.

use std::fmt::Write as _;

use netstead_testkit::history::{Operation, check};

use super::{Backing, Cluster, Fault, clients::Load, report};
use crate::resolve::Stopwatch;

pub(crate) async fn run(backing: Backing, fault: Fault) {
    let Some(mut cluster) = Cluster::start(backing, fault) else { return };
    let begun = Stopwatch::start();
    cluster.begin().await;
    let load = Load::begin(&cluster).await;
    let total = report::operations();
    let failovers = fault.happen(backing, &mut cluster, &load, total).await;
    load.reach(total).await;
    let history = load.end(&cluster).await;
    let operations = history.operations();
    match check(&operations) {
        Ok(summary) => {
            let seconds = begun.elapsed().as_secs_f64();
            report::tell(&backing.to_string(), &fault.to_string(), &summary, &failovers, seconds);
        }
        Err(violations) => {
            let file = dump(&operations);
            let told: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
            panic!(
                "{} impossible things, among them:\n{}\nall of it: {file}",
                violations.len(),
                told.join("\n")
            );
        }
    }
    let clients = cluster.clients(super::cluster::PATIENCE);
    let checked = clients[cluster.leader().await].check().await.unwrap();
    assert!(checked.problems.is_empty(), "{checked:?}");
}

/// Leaves everything for a person to look at.
fn dump(operations: &[Operation]) -> String {
    let mut sorted: Vec<&Operation> = operations.iter().collect();
    sorted.sort_by_key(|operation| operation.start);
    let mut text = String::new();
    for operation in sorted {
        writeln!(text, "{operation} {:?}", operation.outcome).unwrap();
    }
    let file = std::env::temp_dir().join(format!("netstead-history-{}.txt", std::process::id()));
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}
