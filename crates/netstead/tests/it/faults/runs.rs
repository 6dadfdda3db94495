//! One run: a cluster, clients, a fault, and the judgement.

use std::fmt::Write as _;

use netstead_testkit::{
    VirtualNetwork,
    history::{Operation, check},
};

use super::{
    Backing, Cluster, Fault,
    clients::{Load, sizes},
    cluster::PATIENCE,
    dns_servers::{DOMAIN, DnsServers},
    report,
};
use crate::resolve::Stopwatch;

/// Addresses only.
pub(crate) async fn run(backing: Backing, fault: Fault) {
    let Some(lan) = VirtualNetwork::start(backing.nodes() + 1) else { return };
    let Some(cluster) = Cluster::start(lan, backing, fault, "") else { return };
    suffer(cluster, backing, fault, None).await;
}

/// The same while DNS servers are kept in line with them.
pub(crate) async fn run_with_names(backing: Backing, fault: Fault) {
    let Some(lan) = VirtualNetwork::start(backing.nodes() + 1) else { return };
    let Some(names) = DnsServers::start(lan.host()) else { return };
    let Some(cluster) = Cluster::start(lan, backing, fault, &names.configuration()) else { return };
    suffer(cluster, backing, fault, Some(names)).await;
}

async fn suffer(mut cluster: Cluster, backing: Backing, fault: Fault, names: Option<DnsServers>) {
    let begun = Stopwatch::start();
    cluster.begin().await;
    let load = Load::begin(&cluster, names.as_ref().map(|_| DOMAIN)).await;
    let watched = match &names {
        Some(names) => Some(names.watch(&cluster, &load.history).await),
        None => None,
    };
    let total = report::operations();
    let mut figures = fault.happen(backing, &mut cluster, &load, names.as_ref(), total).await;
    load.reach(total).await;
    let history = load.end(&cluster).await;
    let operations = history.operations();
    let summary = check(&operations, &sizes()).unwrap_or_else(|violations| {
        let file = dump(&operations);
        let told: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        panic!("{} impossible things, among them:\n{}\nall of it: {file}", violations.len(), told.join("\n"));
    });
    let seconds = begun.elapsed().as_secs_f64();
    if let (Some(names), Some(watched)) = (&names, watched) {
        names.judge(&cluster).await;
        // No server takes what is signed an hour off, so there the next change is that of who mended the clock.
        if fault != Fault::WrongClock {
            watched.measure(&mut figures.gaps);
        }
        eprintln!("{backing}, {fault}: {}", watched.end());
    }
    let with = if names.is_some() { ", with names" } else { "" };
    report::record_run(&format!("{backing}{with}"), &fault.to_string(), &summary, &figures, seconds);
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
