//! Finds the log entry that a node must have applied before it may answer a read.
//!
//! A node may not answer from its own data alone:
//!
//! 1. A led in term 4 and is cut off. It has not noticed yet. B leads in term 5 and acknowledges a commit X.
//! 2. A client reads at A. The data of A does not have X, although X was acknowledged before the read began.
//!
//! So every read first asks for the *read index*, as raft describes it:
//!
//! 1. The node asks the leader, or itself if it believes to lead. The leader sends a round of heartbeats.
//! 2. A majority answers in the leader's term: no later leader existed when the round began. The leader returns the index of
//!    its last committed entry. In the example A gets no majority, and the read fails or is sent to B.
//! 3. The node waits until it has applied that entry (`RaftStore::catch_up`), and answers from its own data.
//!
//! Reads that ask at the same time share a round, but only one that begins after they asked:
//!
//! 1. Read 1 asks, and a round begins.
//! 2. Commit X is acknowledged.
//! 3. Read 2 asks. The index of the round under way may be from before X, so read 2 waits for the next round.

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
    /// `round` finds the index. It is called once for all reads that wait.
    pub(super) fn start<F, R>(round: F) -> Self
    where
        F: Fn() -> R + Send + 'static,
        R: Future<Output = Result<u64, String>> + Send,
    {
        let (queue, mut asked) = mpsc::unbounded_channel::<Answer>();
        tokio::spawn(async move {
            while let Some(first) = asked.recv().await {
                let mut all = vec![first];
                // Only reads that asked before the round begins may use its index.
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
