//! The ledger of this process.

use std::time::Duration;

use async_trait::async_trait;
use netstead_api::cluster::EngineSlot;
use netstead_engine::{RecordQuery, RecordState};
use netstead_ledger::{AddressState, Book, Caller, Command, Freshness, Ledger, LedgerBackend, Reply};
use netstead_model::{
    Address, BackendError, BackendErrorKind, Claim, ClaimRef, ClaimRequest, Ident, Key, Labels, Name,
    PoolBackend as _,
};

use super::{Held, Holder, LedgerAccess, LedgerPool, LedgerRequest, NameValue};

/// The owner of the claims. A token for an operator outside has the same subject in the guide, so either may go on with the
/// claims of the other.
const OWNER: &str = "operator";
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct LocalLedger {
    pub(super) ledger: Ledger,
    pub(super) engine: EngineSlot,
}

impl LocalLedger {
    async fn read<T>(&self, look: impl Fn(&Book) -> T) -> Result<T, BackendError> {
        Ok(self.ledger.read(Freshness::Fresh, look).await?.value)
    }

    async fn submit(&self, command: Command) -> Result<Reply, BackendError> {
        Ok(self.ledger.submit(Caller::new(OWNER), command, PATIENCE).await?.reply)
    }
}

fn ident(pool: &str) -> Result<Ident, BackendError> {
    pool.parse().map_err(|_| no_such_pool(pool))
}

fn key(text: &str) -> Result<Key, BackendError> {
    text.parse().map_err(|error: netstead_model::ParseError| {
        BackendError::new(BackendErrorKind::Refused, error.to_string())
    })
}

fn no_such_pool(pool: &str) -> BackendError {
    BackendError::new(BackendErrorKind::NoSuchPool, format!("Netstead has no pool `{pool}`"))
        .fact("pool", pool)
}

fn held(claim: &Claim) -> Held {
    Held { address: claim.address, length: claim.length, hostnames: claim.details().hostnames.clone() }
}

#[async_trait]
impl LedgerAccess for LocalLedger {
    async fn pool(&self, pool: &str) -> Result<LedgerPool, BackendError> {
        let name = ident(pool)?;
        let backend =
            LedgerBackend { ledger: self.ledger.clone(), caller: Caller::new(OWNER), patience: PATIENCE };
        let info = backend.describe(pool).await?;
        let domain = self.read(|book| book.domain_of(&name).map(Option::<&Name>::cloned)).await?;
        Ok(LedgerPool { info, domain: domain.ok_or_else(|| no_such_pool(pool))? })
    }

    async fn look_up(&self, pool: &str, of: &str) -> Result<Option<Held>, BackendError> {
        let (pool, key) = (ident(pool)?, key(of)?);
        self.read(|book| book.claim(&pool, &key).map(|view| held(&view.claim))).await
    }

    async fn claim(&self, request: &LedgerRequest<'_>) -> Result<Held, BackendError> {
        let labels = request.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let asked = ClaimRequest {
            want: request.want,
            labels: Labels::new(labels).ok(),
            hostnames: Some(request.hostnames.to_vec()),
            description: Some(request.description.to_owned()),
            ..ClaimRequest::any(ident(request.pool)?, key(request.key)?)
        };
        match self.submit(Command::Claim(Box::new(asked))).await? {
            Reply::Claimed { claim, .. } => Ok(held(&claim)),
            Reply::Queued(_) => Err(BackendError::unknown("the claim waits for the backend of its pool")),
            _ => Err(odd_answer()),
        }
    }

    async fn release(&self, pool: &str, of: &str) -> Result<(), BackendError> {
        let (pool, key) = (ident(pool)?, key(of)?);
        let look = |book: &Book| {
            let id = book.claim(&pool, &key).map(|view| view.claim.id);
            (id, book.waiting_claim(&pool, &key).is_some())
        };
        let (id, waits) = self.read(look).await?;
        if waits {
            self.submit(Command::Abandon { pool: pool.clone(), key: key.clone() }).await?;
        }
        let Some(id) = id else { return Ok(()) };
        match self.submit(Command::Release(ClaimRef { pool, key, id: Some(id) })).await? {
            Reply::Released(_) | Reply::Gone(_) => Ok(()),
            _ => Err(odd_answer()),
        }
    }

    async fn values_of(&self, name: &Name) -> Result<Vec<NameValue>, BackendError> {
        // Without an engine nothing is known of names: the lead is about to go.
        let Some(engine) = self.engine.engine() else {
            return Err(BackendError::unavailable("this node does not lead"));
        };
        let query = RecordQuery { name: Some(name.clone()), ..RecordQuery::default() };
        let values = engine.list_records(&query).into_iter().map(|record| {
            let text = record.value.to_string();
            NameValue {
                kind: record.kind,
                address: text.parse().ok(),
                text,
                is_pending: record.state == RecordState::Pending,
                reasons: record.reasons,
            }
        });
        Ok(values.collect())
    }

    async fn holders_of(&self, address: Address) -> Result<Vec<Holder>, BackendError> {
        let look = |book: &Book| -> Vec<Holder> {
            let views = book.explain(address).into_iter();
            let claims = views.filter_map(|view| match view.state {
                AddressState::Held(view) => Some(view.claim),
                _ => None,
            });
            let holders = claims.map(|claim| Holder {
                pool: claim.pool.to_string(),
                key: claim.key.to_string(),
                names: claim.names(book.domain_of(&claim.pool).flatten()).names,
                labels: claim
                    .details()
                    .labels
                    .iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            });
            holders.collect()
        };
        self.read(look).await
    }
}

fn odd_answer() -> BackendError {
    BackendError::unavailable("the ledger gave an answer to another question")
}
