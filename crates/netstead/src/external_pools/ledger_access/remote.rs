//! The ledger of a server, through its API.

use async_trait::async_trait;
use netstead_client::{
    Client, ClientError, RecordQuery, pool_info,
    types::{ClaimInput, ClaimOutput, RecordState},
};
use netstead_model::{Address, BackendError, BackendErrorKind, Cidr, Name, Want};

use super::{Held, Holder, LedgerAccess, LedgerPool, LedgerRequest, NameValue};

#[derive(Debug)]
pub(super) struct RemoteLedger {
    pub(super) client: Client,
}

/// The claim if it has an address.
fn held(claim: &ClaimOutput) -> Result<Option<Held>, BackendError> {
    let Some(text) = &claim.address else { return Ok(None) };
    let unreadable = || BackendError::unavailable(format!("the server's answer cannot be used: `{text}`"));
    let (address, length) = if text.contains('/') {
        let prefix: Cidr = text.parse().map_err(|_| unreadable())?;
        (prefix.network(), Some(prefix.len()))
    } else {
        (text.parse().map_err(|_| unreadable())?, None)
    };
    let hostnames = claim.hostnames.iter().filter_map(|name| name.parse().ok()).collect();
    Ok(Some(Held { address, length, hostnames }))
}

fn failed(error: ClientError) -> BackendError {
    let error = BackendError::from(error);
    match error.kind {
        BackendErrorKind::Denied => error.hint("the token needs the role `claim` and the scope of the pool"),
        _ => error,
    }
}

#[async_trait]
impl LedgerAccess for RemoteLedger {
    async fn pool(&self, pool: &str) -> Result<LedgerPool, BackendError> {
        let output = self.client.pool(pool).await.map_err(failed)?.value;
        let domain = output.domain.as_ref().and_then(|domain| domain.parse().ok());
        Ok(LedgerPool { info: pool_info(output)?, domain })
    }

    async fn look_up(&self, pool: &str, key: &str) -> Result<Option<Held>, BackendError> {
        match self.client.look_up(pool, key).await.map_err(failed)? {
            Some(claim) => held(&claim),
            None => Ok(None),
        }
    }

    async fn claim(&self, request: &LedgerRequest<'_>) -> Result<Held, BackendError> {
        let (address, prefer) = match request.want {
            Want::Any => (None, None),
            Want::Exact(address) => (Some(address.to_string()), None),
            Want::Prefer(address) => (None, Some(address.to_string())),
        };
        let labels = request.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let input = ClaimInput {
            address,
            prefer,
            labels: Some(labels.collect()),
            hostnames: Some(request.hostnames.iter().map(ToString::to_string).collect()),
            description: Some(request.description.to_owned()),
            ..ClaimInput::default()
        };
        let (claim, _) = self.client.claim(request.pool, request.key, &input).await.map_err(failed)?;
        held(&claim)?.ok_or_else(|| {
            let why = claim.why.as_deref().unwrap_or("it has not answered yet");
            BackendError::unknown(format!("the claim waits for the backend of its pool: {why}"))
        })
    }

    async fn release(&self, pool: &str, key: &str) -> Result<(), BackendError> {
        let Some(claim) = self.client.look_up(pool, key).await.map_err(failed)? else { return Ok(()) };
        match &claim.id {
            Some(id) => self.client.release(pool, key, id).await.map_err(failed)?,
            None => self.client.leave_queue(pool, key).await.map_err(failed)?,
        };
        Ok(())
    }

    async fn values_of(&self, name: &Name) -> Result<Vec<NameValue>, BackendError> {
        let query = RecordQuery { name: Some(name.to_string()), ..RecordQuery::default() };
        let records = match self.client.all(query).await {
            Ok(records) => records,
            // A token for some pools may not look at every name.
            Err(ClientError::Denied { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let values = records.into_iter().filter_map(|record| {
            Some(NameValue {
                kind: record.kind.as_str().parse().ok()?,
                address: record.value.parse().ok(),
                text: record.value,
                is_pending: record.state == RecordState::Pending,
                reasons: record.reasons,
            })
        });
        Ok(values.collect())
    }

    async fn holders_of(&self, address: Address) -> Result<Vec<Holder>, BackendError> {
        let explained = match self.client.explain(&address.to_string()).await {
            Ok(explained) => explained,
            Err(ClientError::Denied { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let claims = explained.places.into_iter().filter_map(|place| place.claim);
        let holders = claims.map(|claim| Holder {
            pool: claim.pool,
            key: claim.key,
            names: claim.names.iter().filter_map(|name| name.parse().ok()).collect(),
            labels: claim.labels.into_iter().collect(),
        });
        Ok(holders.collect())
    }
}
