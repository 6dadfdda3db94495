//! Sends a write once, and waits for its answer only as long as one can come.
//!
//! 1. A request is sent to a member of etcd. That member is cut off from the others, or the members' leader just died.
//! 2. The request is lost, but the member keeps it until its own timeout. Waiting for that would hold up every later commit.
//! 3. So after `LONG` the member is asked a small question. If it answers and the members have had no election since, the
//!    request is only slow. If there was an election, or the member is silent while another endpoint answers, the answer
//!    counts as lost: the commit is `Unknown`.

use std::time::Duration;

use netstead_wire::etcd::{
    KV_RANGE, KV_TXN,
    messages::{RangeRequest, RangeResponse, ResponseHeader, TxnRequest, TxnResponse},
};
use tokio::time::{sleep, timeout};
use tonic::Status;

use super::EtcdShared;

/// A request that takes longer is looked after.
const LONG: Duration = Duration::from_secs(1);
/// How long a member that works needs to answer a question.
const SHORT: Duration = Duration::from_millis(500);

/// The state of a request that got no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expectation {
    /// It may be slow.
    Some,
    /// Its member has lost it, or is lost itself, while others go on.
    None,
}

impl EtcdShared {
    /// Sends this once. Without an answer it is not known whether it was done.
    pub(super) async fn send_once(&self, question: TxnRequest) -> Result<TxnResponse, Status> {
        let (at, term) = (self.client.current_endpoint(), self.term());
        let sent = self.client.once_at::<_, TxnResponse>(at, KV_TXN, question);
        tokio::pin!(sent);
        let looking_after = async {
            loop {
                sleep(LONG).await;
                if self.answer_expected(at, term).await == Expectation::None {
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
            self.note_term(answer.header.as_ref());
        }
        self.client.note(at, &answer);
        answer
    }

    /// Asks until a member answers that has a majority behind it; at which place it is.
    pub(super) async fn find_live_endpoint(&self) -> Result<usize, Status> {
        let answer: RangeResponse = self.client.read(KV_RANGE, self.probe_request()).await?;
        self.note_term(answer.header.as_ref());
        Ok(self.client.current_endpoint())
    }

    /// A question of which only matters that it is answered.
    pub(super) fn probe_request(&self) -> RangeRequest {
        RangeRequest { key: self.leader.clone(), keys_only: true, ..RangeRequest::default() }
    }

    /// Asks the member that has a request, and if it is silent any other, how things are.
    async fn answer_expected(&self, at: usize, term: u64) -> Expectation {
        let same = self.client.once_at::<_, RangeResponse>(at, KV_RANGE, self.probe_request());
        if let Ok(Ok(answer)) = timeout(SHORT, same).await {
            self.note_term(answer.header.as_ref());
            // A request to a former leader of the members is lost, unless it landed.
            return if self.term() == term { Expectation::Some } else { Expectation::None };
        }
        match self.client.read_urgently::<_, RangeResponse>(KV_RANGE, self.probe_request()).await {
            Ok(_) => Expectation::None,
            // No other endpoint would do better.
            Err(_) => Expectation::Some,
        }
    }

    /// Notes which leader of the members speaks.
    pub(super) fn note_term(&self, header: Option<&ResponseHeader>) {
        let term = header.map_or(0, |header| header.raft_term);
        self.term.fetch_max(term, std::sync::atomic::Ordering::Relaxed);
    }

    fn term(&self) -> u64 {
        self.term.load(std::sync::atomic::Ordering::Relaxed)
    }
}
