//! One run: a cluster, clients, a fault, and the judgement.

use std::fmt::Write as _;

use netstead_testkit::{
    Lan,
    history::{Operation, check},
};

use super::{
    Backing, Cluster, Fault,
    clients::Load,
    cluster::{NODES, PATIENCE},
    names::{DOMAIN, Names},
    report,
};
use crate::resolve::Stopwatch;

/// Addresses only.
pub(crate) async fn run(backing: Backing, fault: Fault) {
    let Some(lan) = Lan::start(NODES + 1) else { return };
    let Some(cluster) = Cluster::start(lan, backing, fault, "") else { return };
    suffer(cluster, backing, fault, None).await;
}

/// The same while DNS servers are kept in line with them.
pub(crate) async fn run_with_names(backing: Backing, fault: Fault) {
    let Some(lan) = Lan::start(NODES + 1) else { return };
    let Some(names) = Names::start(lan.host()) else { return };
    let Some(cluster) = Cluster::start(lan, backing, fault, &names.configuration()) else { return };
    suffer(cluster, backing, fault, Some(names)).await;
}

async fn suffer(mut cluster: Cluster, backing: Backing, fault: Fault, names: Option<Names>) {
    let begun = Stopwatch::start();
    cluster.begin().await;
    let load = Load::begin(&cluster, names.as_ref().map(|_| DOMAIN)).await;
    let watched = names.as_ref().map(|names| names.watch(&cluster));
    let total = report::operations();
    let failovers = fault.happen(backing, &mut cluster, &load, total).await;
    load.reach(total).await;
    let history = load.end(&cluster).await;
    let operations = history.operations();
    match check(&operations) {
        Ok(summary) => {
            let seconds = begun.elapsed().as_secs_f64();
            let with = if names.is_some() { ", with names" } else { "" };
            report::tell(&format!("{backing}{with}"), &fault.to_string(), &summary, &failovers, seconds);
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
    if let Some(names) = &names {
        names.judge(&cluster).await;
    }
    if let Some(watched) = watched {
        eprintln!("{backing}, {fault}: {}", watched.end());
    }
    let clients = cluster.clients(PATIENCE);
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
