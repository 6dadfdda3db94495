//! [`Place`]: where a claim is made, and how long it is asked for.

use std::time::Duration;

use netstead_client::{
    Client, ClientError,
    types::{ClaimFrom, ClaimInput, ClaimOutput},
};
use netstead_model::{Clock as _, Span, SystemClock};

use super::is_bound;
use crate::{
    protocol::{Diagnostic, Failed, Fields as _, Object, sentence},
    session::told,
};

/// How long one call waits for a backend.
const ONE_WAIT: Duration = Duration::from_secs(20);
/// Between two calls, so that a server that answers at once is not asked all the time.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a claim that is given up is taken back again when the server does not answer.
const LEAVING_TRIES: usize = 5;

/// Where a claim is made, and how it is called in messages.
pub(in crate::resources) struct Place {
    pub(in crate::resources) key: String,
    pub(in crate::resources) pool: Option<String>,
    pub(in crate::resources) pools: Vec<String>,
    pub(in crate::resources) selector: Option<String>,
}

impl Place {
    pub(in crate::resources) fn of(object: &Object) -> Self {
        Self {
            key: object.owned("key").unwrap_or_default(),
            pool: object.owned("pool"),
            pools: object.texts("pools").unwrap_or_default(),
            selector: object.owned("selector"),
        }
    }

    /// `pool lan`, `pools lan, lab`.
    pub(in crate::resources) fn words(&self) -> String {
        match (&self.pool, &self.selector) {
            (Some(pool), _) => format!("pool `{pool}`"),
            (None, Some(selector)) => format!("the pools with {selector}"),
            (None, None) => format!("the pools {}", self.pools.join(", ")),
        }
    }

    pub(in crate::resources) fn request(&self, claim: ClaimInput) -> ClaimFrom {
        let pools = self.pool.clone().map_or_else(|| self.pools.clone(), |pool| vec![pool]);
        ClaimFrom {
            key: self.key.clone(),
            any: pools,
            select: self.selector.clone(),
            claim,
            ..ClaimFrom::default()
        }
    }

    /// Claims, and waits as long as `claim` says, or `patience` for the backend of the pool. A claim that still waits then is given
    /// up; the next apply asks again.
    pub(in crate::resources) async fn claim(
        &self,
        client: &Client,
        claim: ClaimInput,
        patience: Duration,
    ) -> Result<ClaimOutput, Failed> {
        let end = SystemClock.monotonic().saturating_add(patience);
        let mut asked = self.ask(client, &claim).await.map_err(|error| self.failed(&error))?;
        if let Asked::ForBackend { pool, .. } = &asked {
            let pool = pool.clone();
            match self.ask_backend(client, claim, end, asked).await {
                Ok(answer) => asked = answer,
                Err(error) => {
                    // A refusal leaves nothing; after any other error the claim may still wait.
                    if !matches!(error, ClientError::Refused(_)) {
                        self.give_up(client, &pool).await?;
                    }
                    return Err(self.failed(&error));
                }
            }
        }
        let (pool, detail) = match asked {
            Asked::Bound(claim) => return Ok(*claim),
            Asked::InLine { pool } => (
                pool,
                "It waited as long as `wait` says, and no address became free. Make the pool larger, or release what is not needed."
                    .to_owned(),
            ),
            Asked::ForBackend { pool, why } => {
                (pool, format!("{} The time of `timeouts` is over: apply again later.", sentence(&why)))
            }
        };
        self.give_up(client, &pool).await?;
        Err(self.no_address(detail).at("pool").into())
    }

    async fn ask(&self, client: &Client, claim: &ClaimInput) -> Result<Asked, ClientError> {
        let claimed = match &self.pool {
            Some(pool) => client.claim(pool, &self.key, claim).await.map(|(claim, _)| Some(claim)),
            None => {
                client.claim_from(&self.request(claim.clone())).await.map(|claims| claims.into_iter().next())
            }
        };
        match claimed {
            Ok(Some(claim)) if is_bound(&claim) => Ok(Asked::Bound(Box::new(claim))),
            Ok(Some(ClaimOutput { pool, why: Some(why), .. })) => Ok(Asked::ForBackend { pool, why }),
            Ok(Some(ClaimOutput { pool, .. })) => Ok(Asked::InLine { pool }),
            Ok(None) => {
                let reason = "it answered without a claim".to_owned();
                Err(ClientError::Foreign { url: client.url().clone(), reason })
            }
            Err(error) if error.is("backend-does-not-answer") => {
                let said = error.problem().and_then(|problem| problem.facts.get("pool"));
                let pool = said.map(String::as_str).or(self.pool.as_deref()).unwrap_or_default();
                Ok(Asked::ForBackend { pool: pool.to_owned(), why: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    /// Asks again with `wait` until the backend has answered, or it is `end`. A server that does not answer meanwhile is asked again
    /// too, because the claim waits there already.
    async fn ask_backend(
        &self,
        client: &Client,
        claim: ClaimInput,
        end: Duration,
        mut last: Asked,
    ) -> Result<Asked, ClientError> {
        loop {
            let left = end.saturating_sub(SystemClock.monotonic());
            if left < PAUSE {
                return Ok(last);
            }
            let wait = Span::from_millis(u64::try_from(left.min(ONE_WAIT).as_millis()).unwrap_or_default());
            match self.ask(client, &ClaimInput { wait: Some(wait.to_string()), ..claim.clone() }).await {
                Ok(waits @ Asked::ForBackend { .. }) => last = waits,
                Ok(answer) => return Ok(answer),
                Err(
                    ClientError::Unavailable { .. }
                    | ClientError::Unknown { .. }
                    | ClientError::Unreachable { .. }
                    | ClientError::BrokenOff { .. },
                ) => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Leaves nothing of a claim behind, neither a place in line nor an address that it got meanwhile.
    async fn give_up(&self, client: &Client, pool: &str) -> Result<(), Failed> {
        let mut tries = 0;
        loop {
            match client.leave_queue(pool, &self.key).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is("no-such-pool") => return Ok(()),
                Err(_) if tries < LEAVING_TRIES => tries += 1,
                Err(error) => {
                    let said = told(
                        format!("`{}` may still wait for an address of pool `{pool}`", self.key),
                        &error,
                    );
                    let detail = format!(
                        "{}\n\nIt was to be taken out of the line. Apply again to get the address, or do it by hand: `netstead release \
                         {pool} {}`.",
                        said.detail, self.key
                    );
                    return Err(Diagnostic { detail, ..said }.at("pool").into());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn no_address(&self, detail: impl Into<String>) -> Diagnostic {
        Diagnostic::error(format!("`{}` gets no address from {}", self.key, self.words()), detail)
    }

    fn failed(&self, error: &ClientError) -> Failed {
        let said = told(format!("`{}` gets no address from {}", self.key, self.words()), error);
        let at = match error.problem().map(netstead_client::types::Problem::slug) {
            Some("exhausted" | "no-such-pool" | "quota-reached" | "pool-closing" | "backend-refuses") => {
                Some("pool")
            }
            Some("address-held" | "not-in-pool" | "withheld" | "reserved" | "observed" | "resting") => {
                Some("address")
            }
            Some("key-held" | "holds-another") => Some("key"),
            Some("nothing-selected") => Some("selector"),
            _ => None,
        };
        at.map_or_else(|| said.clone(), |at| said.clone().at(at)).into()
    }
}

/// Outcome of one call for an address.
enum Asked {
    Bound(Box<ClaimOutput>),
    /// No address is free; it has a place in the queue.
    InLine {
        pool: String,
    },
    /// The backend of the pool has not answered yet.
    ForBackend {
        pool: String,
        why: String,
    },
}
