//! Which entry a node must have applied before it may answer a read: everything acknowledged until now is in it.
//!
//! It costs who leads a round of heartbeats, so those who ask at the same time share one.

use std::{future::Future, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

type Answer = oneshot::Sender<Result<u64, String>>;

#[derive(Debug, Clone)]
pub(super) struct ReadIndex {
    queue: mpsc::UnboundedSender<Answer>,
}

impl ReadIndex {
    /// `round` finds the index; it is called for all who wait, again and again.
    pub(super) fn start<F, R>(round: F) -> Self
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = Result<u64, String>> + Send,
    {
        let (queue, mut asked) = mpsc::unbounded_channel::<Answer>();
        tokio::spawn(async move {
            while let Some(first) = asked.recv().await {
                let mut all = vec![first];
                // Only those who asked before the round begins may use its answer.
                while let Ok(next) = asked.try_recv() {
                    all.push(next);
                }
                all.retain(|answer| !answer.is_closed());
                if all.is_empty() {
                    continue;
                }
                let outcome = round().await;
                for answer in all {
                    let _ = answer.send(outcome.clone());
                }
            }
        });
        Self { queue }
    }

    pub(super) async fn ask(&self, patience: Duration) -> Result<u64, String> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(answer).map_err(|_| "this node is starting".to_owned())?;
        match timeout(patience, answered).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err("this node stopped before it answered".into()),
            Err(_) => Err("no majority has answered in time".into()),
        }
    }
}
