//! Sources that are looked at while another process leads: what they hold open stays open, and nobody is told.
//!
//! A new leader plans from looks that it begins itself. Those are quick, and are not the first that this process takes,
//! when connections, watches and caches of its sources are warm.

use std::panic::AssertUnwindSafe;

use futures::{FutureExt as _, future::join_all};
use netstead_model::View;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{SourceSetup, look::PATIENCE};

/// Looks at every source now and then, until `stop`. Nothing of it is kept.
pub async fn keep_warm(sources: &[SourceSetup], stop: &CancellationToken) {
    if sources.is_empty() {
        return stop.cancelled().await;
    }
    stop.run_until_cancelled(join_all(sources.iter().map(keep_one_warm))).await;
}

async fn keep_one_warm(setup: &SourceSetup) {
    let source = &setup.source;
    loop {
        // A bug in one source is that source's failure.
        match AssertUnwindSafe(timeout(PATIENCE, source.report())).catch_unwind().await {
            Ok(Ok(report)) => {
                if let View::Failed { reason } = &report.view {
                    tracing::debug!(source = %source.name(), reason, "A source does not show anything here.");
                }
            }
            Ok(Err(_)) => tracing::debug!(source = %source.name(), "A source does not answer here."),
            Err(_) => tracing::error!(source = %source.name(), "Looking failed; this is a bug."),
        }
        // However much happens there: nobody waits for it here.
        sleep(setup.interval).await;
    }
}
