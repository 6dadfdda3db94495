//! Sends the calls of external-dns that a node cannot answer to the leader.
//!
//! 1. external-dns posts changes to node B, which follows. B believes that A leads.
//! 2. B sends the call to `/external-dns/NAME` of A's API, with the caller's own password. A checks the password against its own
//!    configuration, so a node that sends calls on grants no rights.
//! 3. One of these happens:
//!    - A answers. B passes the answer on.
//!    - There is no connection to A, or A says that it does not lead. B waits for a leader and goes back to step 2, for at most 5 s.
//!    - No answer comes. The change may have been done. B answers 503, and external-dns sends the same again with its next
//!      turn: repeating a change of endpoints changes nothing.
//! 4. If B itself comes to lead while it waits, it answers the call itself.

use std::time::Duration;

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use netstead_engine::Pushed;
use tokio_util::sync::CancellationToken;

use super::{Call, ExternalDns, ExternalDnsOptions, PATIENCE, Refusal, Way};
use crate::{
    cluster::{Cluster, Leader, NodeRole, Peers},
    http::forward::{FORWARDED, NOT_LEADING, root_cause, streamed},
};

/// How long the leader may take: external-dns waits for 15 s.
const ANSWER: Duration = Duration::from_secs(9);
/// The pause before a leader that cannot be reached is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// The headers of the caller that the leader needs.
const SENT_ON: [HeaderName; 3] = [header::AUTHORIZATION, header::ACCEPT, header::CONTENT_TYPE];

/// Why the leader gave no answer.
enum Unanswered {
    /// It began nothing.
    Never(String),
    Perhaps(String),
}

impl ExternalDns {
    /// The endpoints, if this node leads; else the answer, which is the leader's if there is one.
    pub(super) async fn pushed(
        &self,
        table: &ExternalDnsOptions,
        call: Call,
        way: Way,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Pushed, Box<Response>> {
        let refused = |told: &str| -> Box<Response> {
            let refusal: Refusal = (StatusCode::SERVICE_UNAVAILABLE, format!("{told}\n"));
            Box::new(refusal.into_response())
        };
        let begun = self.0.clock.monotonic();
        let left = || PATIENCE.saturating_sub(self.0.clock.monotonic().saturating_sub(begun));
        let Some((cluster, peers)) = &self.0.cluster else {
            return self.own(table, PATIENCE).await.ok_or_else(|| refused("the engine has not started yet"));
        };
        let mut why = "none is known".to_owned();
        loop {
            if let NodeRole::Leading { .. } = cluster.role() {
                let told = "this node leads and has not started its work yet";
                return self.own(table, left()).await.ok_or_else(|| refused(told));
            }
            if way == Way::Forwarded {
                let mut response = refused("this node does not lead");
                response.headers_mut().insert(NOT_LEADING, HeaderValue::from_static("1"));
                return Err(response);
            }
            if let Some(leader) = cluster.leader().filter(|leader| leader.node != cluster.me().id) {
                match send(cluster, peers, &leader, table, call, headers, body).await {
                    Ok(response) => return Err(Box::new(response)),
                    Err(Unanswered::Never(reason)) => why = reason,
                    Err(Unanswered::Perhaps(reason)) => return Err(refused(&reason)),
                }
            }
            if left().is_zero() {
                return Err(refused(&format!("no leader takes the records: {why}")));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The endpoints as the engine of this node has them.
    async fn own(&self, table: &ExternalDnsOptions, patience: Duration) -> Option<Pushed> {
        self.0.engine_slot.await_engine(patience).await?.pushed(&table.source)
    }
}

async fn send(
    cluster: &Cluster,
    peers: &Peers,
    leader: &Leader,
    table: &ExternalDnsOptions,
    call: Call,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Unanswered> {
    let (method, end) = call.target();
    let url = format!("{}/external-dns/{}{end}", leader.url.trim_end_matches('/'), table.source);
    let sent_on = SENT_ON.iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
    let request = peers
        .http
        .request(method, url)
        .headers(sent_on.collect())
        .header(FORWARDED, &cluster.me().id)
        .timeout(ANSWER)
        .body(body.clone());
    let at = &leader.url;
    match request.send().await {
        Ok(answer) if answer.headers().contains_key(NOT_LEADING) => {
            Err(Unanswered::Never(format!("{at} does not lead")))
        }
        // A program that does not know the route yet.
        Ok(answer) if answer.status() == StatusCode::NOT_FOUND => Err(Unanswered::Perhaps(format!(
            "the leader at {at} takes no records of other nodes; upgrade it"
        ))),
        Ok(answer) => Ok(streamed(answer, CancellationToken::new())),
        Err(error) if error.is_connect() || error.is_builder() => {
            Err(Unanswered::Never(format!("{at}: {}", root_cause(&error.without_url()))))
        }
        Err(error) => {
            let cause = root_cause(&error.without_url());
            Err(Unanswered::Perhaps(format!("the leader at {at} did not answer: {cause}")))
        }
    }
}
