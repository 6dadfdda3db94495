//! Polls sources while another node leads, so that a takeover finds their connections, watches and caches ready.
//!
//! The reports are thrown away: a new leader plans from reports that it asked for itself.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, future::join_all};
use netstead_model::View;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{SourceSetup, source_poller::PATIENCE};

/// The pause after something was heard.
const BREATH: Duration = Duration::from_millis(100);

/// Listens to every source and looks at it now and then, until `stop`. Nothing of it is kept.
pub async fn poll_on_standby(sources: &[SourceSetup], stop: &CancellationToken) {
    if sources.is_empty() {
        return stop.cancelled().await;
    }
    stop.run_until_cancelled(join_all(sources.iter().map(poll_source_on_standby))).await;
}

async fn poll_source_on_standby(setup: &SourceSetup) {
    let source = &setup.source;
    loop {
        // A bug in one source is that source's failure.
        match AssertUnwindSafe(timeout(PATIENCE, source.report())).catch_unwind().await {
            Ok(Ok(report)) => {
                if let View::Failed { reason } = report.view() {
                    tracing::debug!(source = %source.name(), reason, "A source does not show anything here.");
                }
            }
            Ok(Err(_)) => tracing::debug!(source = %source.name(), "A source does not answer here."),
            Err(_) => tracing::error!(source = %source.name(), "Looking failed; this is a bug."),
        }
        wait(setup).await;
    }
}

/// Waits until the next look. Changes are listened to, because some sources watch only while a caller listens. But a change
/// is no reason for a look here: nothing waits for it.
async fn wait(setup: &SourceSetup) {
    let hearing = async {
        loop {
            setup.source.changed().await;
            // One that always has something to say must not keep a core busy.
            sleep(BREATH).await;
        }
    };
    let heard = AssertUnwindSafe(timeout(setup.interval, hearing)).catch_unwind().await;
    if heard.is_err() {
        tracing::error!(source = %setup.source.name(), "Listening failed; this is a bug.");
        sleep(setup.interval).await;
    }
}
