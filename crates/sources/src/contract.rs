//! Contract of all sources.

#![allow(clippy::panic, clippy::missing_panics_doc, reason = "checks for tests: a broken promise is a panic")]

use std::{collections::BTreeSet, time::Duration};

use netstead_model::{Report, Source, View};

/// How long one look may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A look that works: complete, in its own name, each workload once, and the same when nothing changed.
pub async fn sees_the_same_twice(source: &dyn Source) {
    let first = report_in_time(source).await;
    assert_eq!(first.view(), View::Complete, "a source that can see says so");
    assert_eq!(&first.source, source.name(), "a report carries the name of its source");
    let ids: BTreeSet<_> = first.workloads().into_iter().map(|workload| &workload.id).collect();
    assert_eq!(ids.len(), first.workloads().len(), "each workload is reported once");
    for workload in first.workloads() {
        assert_eq!(&workload.source, source.name(), "a workload carries the name of its source");
    }
    let second = report_in_time(source).await;
    assert_eq!(
        first.workloads(),
        second.workloads(),
        "looking twice at the same shows the same, in the same order"
    );
    assert!(second.begun >= first.begun, "a later look began later");
}

/// A look that cannot work: it says so, and never that there is nothing.
pub async fn admits_what_it_cannot_see(source: &dyn Source) {
    let report = report_in_time(source).await;
    assert_ne!(
        report.view(),
        View::Complete,
        "a source that cannot see must not claim to have seen everything"
    );
    let (View::Failed { reason } | View::Partial { reason }) = report.view() else { return };
    assert!(!reason.is_empty(), "what went wrong is said");
}

async fn report_in_time(source: &dyn Source) -> Report {
    let report = tokio::time::timeout(PATIENCE, source.report()).await;
    report.unwrap_or_else(|_| panic!("a look is bounded in time"))
}
