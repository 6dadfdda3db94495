//! A background task that can be stopped: gracefully, or with an abort after a timeout.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

/// How long a loop may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The loop of a source or a provider. All clones are the same loop.
#[derive(Debug, Clone)]
pub(crate) struct BackgroundTask {
    stop: CancellationToken,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl BackgroundTask {
    /// Starts a loop that ends soon after `stop` says so.
    pub(crate) fn start(stop: CancellationToken, work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stop, task: Arc::new(Mutex::new(Some(tokio::spawn(work)))) }
    }

    /// Tells the loop to end, and lets what it is in the middle of come to its own end.
    pub(crate) async fn stop_gracefully(&self) {
        self.stop.cancel();
        if let Some(task) = self.task.lock().await.take() {
            let _ = timeout(PATIENCE, task).await;
        }
    }

    /// Ends the loop. Whatever keeps it waiting is left as a crash would leave it.
    pub(crate) async fn stop_or_abort(&self) {
        self.stop.cancel();
        if let Some(task) = self.task.lock().await.take() {
            let abort = task.abort_handle();
            if timeout(PATIENCE, task).await.is_err() {
                abort.abort();
            }
        }
    }
}
