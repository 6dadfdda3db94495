//! Reads a zone: by AXFR, by query, or by whichever of the two the server allows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use netstead_model::{Name, ProviderError, ZoneContent};

use super::{Read, Rfc2136, client::Server, update};
use crate::dns::preconditions::ServerRecords;

/// After so long a transfer that was refused is tried again.
const RETRY: Duration = Duration::from_hours(1);

/// How each zone was read last, where `read = "auto"` leaves that open.
#[derive(Debug, Default)]
pub(super) struct KnownWays(Mutex<BTreeMap<Name, Way>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Transfer,
    /// By query: the transfer was refused at this time.
    Query(Duration),
}

impl KnownWays {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Way>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rfc2136 {
    /// Whether a read may have to ask for single names. Until a transfer worked that is not known.
    pub(super) fn may_read_by_name(&self) -> bool {
        match self.read {
            Read::Query => true,
            Read::Transfer => false,
            Read::Auto => {
                let ways = self.ways.lock();
                ways.is_empty() || ways.values().any(|way| *way != Way::Transfer)
            }
        }
    }

    /// Whether `zone` is read by transfer, as far as that is known.
    pub(super) fn transfers(&self, zone: &Name) -> bool {
        match self.read {
            Read::Query => false,
            Read::Transfer => true,
            Read::Auto => self.ways.lock().get(zone) == Some(&Way::Transfer),
        }
    }

    pub(super) async fn read_anywhere(
        &self,
        zone: &Name,
        names: Option<&BTreeSet<Name>>,
    ) -> Result<ZoneContent, ProviderError> {
        self.steps.forget(zone);
        let mut first = None;
        for server in &self.servers {
            match self.read_from(server, zone, names).await {
                Ok(content) => return Ok(content),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or_else(|| self.no_server_error()))
    }

    async fn read_from(
        &self,
        server: &Server,
        zone: &Name,
        names: Option<&BTreeSet<Name>>,
    ) -> Result<ZoneContent, ProviderError> {
        let (serial, found) = match (self.read, names) {
            (Read::Transfer, _) => self.transfer(server, zone).await?,
            (Read::Query, Some(names)) => self.query(server, zone, names).await?,
            // A short list would read as names gone.
            (Read::Query, None) => {
                let reason = format!("no names of `{zone}` are known to ask it for");
                return Err(ProviderError::Malformed { server: server.to_string(), reason });
            }
            (Read::Auto, names) => self.transfer_or_query(server, zone, names).await?,
        };
        let mut sets = found.into_sets();
        sets.retain(|set| !update::is_fence(set, zone));
        Ok(ZoneContent { sign: Some(serial.into()), sets })
    }

    /// Without names to ask for, a refused transfer is an error: nothing read would look like names gone.
    async fn transfer_or_query(
        &self,
        server: &Server,
        zone: &Name,
        names: Option<&BTreeSet<Name>>,
    ) -> Result<(u32, ServerRecords), ProviderError> {
        let names = names.filter(|names| !names.is_empty());
        let now = self.client.clock.monotonic();
        let known = self.ways.lock().get(zone).copied();
        if let (Some(Way::Query(refused)), Some(names)) = (known, names)
            && now.saturating_sub(refused) < RETRY
        {
            return self.query(server, zone, names).await;
        }
        let error = match self.transfer(server, zone).await {
            Ok(found) => {
                self.ways.lock().insert(zone.clone(), Way::Transfer);
                return Ok(found);
            }
            Err(error @ (ProviderError::Denied { .. } | ProviderError::Malformed { .. })) => error,
            Err(error) => return Err(error),
        };
        let Some(names) = names else {
            // The next read is told which names matter.
            self.ways.lock().remove(zone);
            return Err(error);
        };
        let found = self.query(server, zone, names).await?;
        if matches!(error, ProviderError::Denied { .. }) {
            let former = self.ways.lock().insert(zone.clone(), Way::Query(now));
            if !matches!(former, Some(Way::Query(_))) {
                tracing::info!(%server, %zone, "Transfers are refused; names are asked for one by one.");
            }
        }
        Ok(found)
    }

    async fn transfer(&self, server: &Server, zone: &Name) -> Result<(u32, ServerRecords), ProviderError> {
        self.client.connect(server).await?.transfer(zone).await
    }

    async fn query(
        &self,
        server: &Server,
        zone: &Name,
        names: &BTreeSet<Name>,
    ) -> Result<(u32, ServerRecords), ProviderError> {
        self.client.connect(server).await?.query_names(zone, names).await
    }
}
