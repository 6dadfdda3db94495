//! Sending what must not be sent twice, and waiting for its answer as long as one can come.
//!
//! A member that is cut off from the others, or was when its leader died, keeps a request that is lost until its own time
//! is over. Who waits for that waits for nothing, and everybody who waits for them does too.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tonic::Status;

use super::{
    KV_RANGE, KV_TXN, Shared,
    messages::{RangeRequest, RangeResponse, ResponseHeader, TxnRequest, TxnResponse},
};

/// A request that takes longer is looked after.
const LONG: Duration = Duration::from_secs(1);
/// How long a member that works needs to answer a question.
const SHORT: Duration = Duration::from_millis(500);

/// What is known of a request that got no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hope {
    /// It may be slow.
    Some,
    /// Its member has lost it, or is lost itself, while others go on.
    None,
}

impl Shared {
    /// Sends this once. Without an answer it is not known whether it was done.
    pub(super) async fn send(&self, question: TxnRequest) -> Result<TxnResponse, Status> {
        let (at, term) = (self.client.place(), self.term());
        let sent = self.client.once_at::<_, TxnResponse>(at, KV_TXN, question);
        tokio::pin!(sent);
        let looking_after = async {
            loop {
                sleep(LONG).await;
                if self.hope_for(at, term).await == Hope::None {
                    return;
                }
            }
        };
        let answer = tokio::select! {
            biased;
            answer = &mut sent => answer,
            () = looking_after => {
                // It may have been on its way just then.
                let late = timeout(SHORT, sent).await;
                late.unwrap_or_else(|_| Err(Status::deadline_exceeded("the answer is lost, and others go on")))
            }
        };
        if let Ok(answer) = &answer {
            self.heard(answer.header.as_ref());
        }
        self.client.note(at, &answer);
        answer
    }

    /// Asks until a member answers that has a majority behind it; at which place it is.
    pub(super) async fn hear(&self) -> Result<usize, Status> {
        let answer: RangeResponse = self.client.read(KV_RANGE, self.anything()).await?;
        self.heard(answer.header.as_ref());
        Ok(self.client.place())
    }

    /// A question of which only matters that it is answered.
    pub(super) fn anything(&self) -> RangeRequest {
        RangeRequest { key: self.leader.clone(), keys_only: true, ..RangeRequest::default() }
    }

    /// Asks the member that has a request, and if it is silent any other, how things are.
    async fn hope_for(&self, at: usize, term: u64) -> Hope {
        let same = self.client.once_at::<_, RangeResponse>(at, KV_RANGE, self.anything());
        if let Ok(Ok(answer)) = timeout(SHORT, same).await {
            self.heard(answer.header.as_ref());
            // What was sent to a leader of the members who is none any more is lost, unless it landed.
            return if self.term() == term { Hope::Some } else { Hope::None };
        }
        match self.client.read_urgently::<_, RangeResponse>(KV_RANGE, self.anything()).await {
            Ok(_) => Hope::None,
            // Nobody else would do better.
            Err(_) => Hope::Some,
        }
    }

    /// Notes which leader of the members speaks.
    pub(super) fn heard(&self, header: Option<&ResponseHeader>) {
        let term = header.map_or(0, |header| header.raft_term);
        self.term.fetch_max(term, std::sync::atomic::Ordering::Relaxed);
    }

    fn term(&self) -> u64 {
        self.term.load(std::sync::atomic::Ordering::Relaxed)
    }
}
