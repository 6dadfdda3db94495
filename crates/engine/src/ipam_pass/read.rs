//! Reads claims of the ledger and objects of the system.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
};

use netstead_ledger::{ClaimFilter, Freshness};
use netstead_model::{Ident, Name, ProviderError};
use netstead_plan::ipam::IpamClaim;
use netstead_store::Write;
use tokio::time::timeout;

use super::IpamPass;
use crate::{
    history::{EngineEvent, EngineEventKind},
    keys,
    provider_loop::{PATIENCE, Stopped, Worker},
};

impl Worker<IpamPass> {
    /// All claims of addresses; none without a ledger.
    pub(super) async fn read_claims(&self) -> Result<Option<Vec<IpamClaim>>, Stopped> {
        let Some(ledger) = self.shared.options.ledger.as_ref().filter(|_| self.state.settings.claims) else {
            return Ok(None);
        };
        // One look, so that all claims are of one moment.
        let look = |book: &netstead_ledger::Book| {
            let pools = book.pools().map(|status| (status.pool.spec.name, status.pool.spec.domain));
            let domains: BTreeMap<Ident, Option<Name>> = pools.collect();
            (book.claims(&ClaimFilter::default(), None, usize::MAX), domains)
        };
        let read = ledger.read(Freshness::Fresh, look).await;
        let unreadable = |error| Stopped::new(format!("the ledger cannot be read: {error}"));
        let (claims, domains) = read.map_err(unreadable)?.value;
        let claim = |view: &netstead_ledger::ClaimView| {
            let claim = &view.claim;
            let domain = domains.get(&claim.pool).and_then(Option::as_ref);
            let name = claim.names(domain).names.into_iter().next();
            claim.length.is_none().then(|| IpamClaim {
                pool: claim.pool.clone(),
                key: claim.key.clone(),
                owner: claim.owner.to_string(),
                address: claim.address,
                name,
            })
        };
        Ok(Some(claims.iter().filter_map(claim).collect()))
    }

    pub(super) async fn read_objects(&mut self) -> Result<(), Stopped> {
        let provider = self.setup.provider.clone();
        let doubts = std::mem::take(&mut *self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner));
        let left = self.not_before.and_then(|over| over.checked_sub(self.shared.clock.monotonic()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let error = ProviderError::Busy { server: provider.server(), retry_after: Some(left) };
            return Err(error.into());
        }
        let read = timeout(PATIENCE, provider.read()).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Unreachable { server: provider.server(), reason })
        });
        match read {
            Ok(mut objects) => {
                // A renamed source is meant by marks with its former name.
                let renames = self.shared.renames.read().unwrap_or_else(PoisonError::into_inner).clone();
                for mark in objects.iter_mut().filter_map(|object| object.mark.as_mut()) {
                    if let Some((_, name)) = renames.iter().find(|(was, _)| *was == mark.key.source) {
                        mark.key.source = name.clone();
                    }
                }
                self.state.actual = Arc::new(objects);
            }
            Err(error) => {
                self.nudges.doubts.lock().unwrap_or_else(PoisonError::into_inner).extend(doubts);
                return Err(error.into());
            }
        }
        for place in doubts {
            let key = format!("{}{}/{place}", keys::DOUBT, self.name()).into_bytes();
            if let Err(error) = self.fenced_store.put(vec![Write::Delete(key)]).await {
                tracing::warn!(%error, "A report of a late write could not be deleted; everything is read once more.");
            }
            let text = format!("{} was read anew: a former leader wrote to it late", self.name());
            self.shared.record_event(EngineEvent::new(EngineEventKind::Late, text).on(self.name())).await;
        }
        Ok(())
    }
}
