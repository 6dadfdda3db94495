//! Turns units into requests, and finds a refused unit by halving.

use std::collections::VecDeque;

use netstead_model::{
    Name, ProviderError, RecordData, RecordType, Unit, UnitOutcome, WriteReply, WriteRequest,
};
use netstead_wire::http::StatusCode;

use super::{
    Creation, PowerDns, SINGLE_VALUES, Version, no_such_zone,
    wire::{self, Changes, Edit, NewZone, Patch, Record},
};
use crate::dns::preconditions::{halves, removals_first, wanted};

/// The server takes 2 MB in one request unless told otherwise.
const MOST_BYTES: usize = 1_500_000;
const REFRESH: u32 = 10_800;
const RETRY: u32 = 3_600;
const EXPIRE: u32 = 604_800;
const MINIMUM: u32 = 300;
/// Time to live of the SOA and NS of a new zone.
const APEX_TTL: u32 = 3_600;

impl PowerDns {
    /// Writes the units that find what they expect.
    pub(super) async fn apply(
        &self,
        zone: &Name,
        request: &WriteRequest,
        current: &Changes,
    ) -> Result<WriteReply, ProviderError> {
        let mut outcomes: Vec<Option<UnitOutcome>> =
            request.units.iter().map(|unit| current.found.outcome(unit)).collect();
        if outcomes.iter().any(Option::is_none) {
            let version = self.version().await?;
            for (outcome, unit) in outcomes.iter_mut().zip(&request.units).filter(|(done, _)| done.is_none())
            {
                *outcome = corrupted(unit, version);
            }
        }
        let open: Vec<usize> =
            outcomes.iter().enumerate().filter(|(_, done)| done.is_none()).map(|(index, _)| index).collect();
        let single = !open.is_empty() && self.version().await? >= SINGLE_VALUES;
        let mut waiting = batches(request, current, single, open);
        while let Some(batch) = waiting.pop_front() {
            if batch.is_empty() {
                continue;
            }
            let rrsets = batch.iter().flat_map(|index| edits(request, current, single, *index)).collect();
            let sent = match request.guard.permit().await {
                Ok(()) => self.patch(zone, &Patch { rrsets }).await,
                Err(error) => Err(error),
            };
            let (outcome, stopped) = match sent {
                Ok(Ok(())) => (UnitOutcome::Applied, None),
                Ok(Err(reason)) if batch.len() == 1 => (UnitOutcome::Rejected { reason }, None),
                Ok(Err(_)) => {
                    let (first, second) = halves(&batch);
                    waiting.push_front(second.to_vec());
                    waiting.push_front(first.to_vec());
                    continue;
                }
                Err(error) if error.may_have_acted() => (UnitOutcome::Unknown, Some(error)),
                Err(error) => (UnitOutcome::NotTried, Some(error)),
            };
            for index in batch {
                if let Some(slot) = outcomes.get_mut(index) {
                    *slot = Some(outcome.clone());
                }
            }
            if stopped.is_some() {
                return Ok(reply(outcomes, stopped));
            }
        }
        Ok(reply(outcomes, None))
    }

    /// `Ok(Err(reason))` if the server took nothing of it because of what it says.
    async fn patch(&self, zone: &Name, patch: &Patch) -> Result<Result<(), String>, ProviderError> {
        let reply = self.http.patch(&self.zone_path(zone)).json(patch).send().await?;
        match reply.status {
            status if status.is_success() => {
                self.steps.add(zone);
                Ok(Ok(()))
            }
            _ if no_such_zone(&reply) => Err(self.missing(zone)),
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {
                Ok(Err(wire::reason(&reply)))
            }
            _ => Err(self.odd(&reply)),
        }
    }

    pub(super) async fn create(&self, zone: &Name, creation: &Creation) -> Result<(), ProviderError> {
        let Some(first) = creation.nameservers.first() else { return Err(self.missing(zone)) };
        let hostmaster = creation.hostmaster.clone().map_or_else(|| Name::join("hostmaster", zone), Ok);
        let hostmaster = hostmaster.map_err(|error| self.malformed(error.to_string()))?;
        let soa = format!("{first}. {hostmaster}. 1 {REFRESH} {RETRY} {EXPIRE} {MINIMUM}");
        let nameservers = creation.nameservers.iter().map(|name| Record::new(&RecordData::Ns(name.clone())));
        let rrsets = vec![
            Edit::replace(zone, "SOA", APEX_TTL, vec![Record::new(&soa)]),
            Edit::replace(zone, RecordType::Ns.as_str(), APEX_TTL, nameservers.collect()),
        ];
        let zone = NewZone { name: zone.absolute(), kind: "Native", nameservers: Vec::new(), rrsets };
        let reply = self.http.post(&format!("{}/zones", self.root)).json(&zone).send().await?;
        match reply.status {
            status if status.is_success() => {
                tracing::info!(server = self.http.server(), zone = zone.name, "Zone is made.");
                Ok(())
            }
            // Another client was faster, which is as good.
            StatusCode::CONFLICT => Ok(()),
            _ => Err(self.odd(&reply)),
        }
    }
}

fn reply(outcomes: Vec<Option<UnitOutcome>>, stopped: Option<ProviderError>) -> WriteReply {
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(UnitOutcome::NotTried)).collect();
    WriteReply { outcomes, stopped }
}

/// 5.1 takes the escapes out of TXT before it stores them: a quote is refused for it, a backslash is lost without a word.
fn corrupted(unit: &Unit, version: Version) -> Option<UnitOutcome> {
    let hurt = |value: &RecordData| match value {
        RecordData::Txt(strings) => strings.iter().flatten().any(|byte| matches!(byte, b'"' | b'\\')),
        _ => false,
    };
    let mut values = unit.changes.iter().filter_map(wanted).flat_map(|set| &set.values);
    let reason =
        "PowerDNS 5.1 damages quotes and backslashes in TXT that come by its API; DNS UPDATE does not";
    (matches!(version, (5, 1, _)) && values.any(hurt))
        .then(|| UnitOutcome::Rejected { reason: reason.into() })
}

fn edits(request: &WriteRequest, current: &Changes, single: bool, index: usize) -> Vec<Edit> {
    let changes = request.units.get(index).into_iter().flat_map(removals_first);
    changes.flat_map(|change| current.edits(change, single)).collect()
}

/// As many units in one request as the server takes.
fn batches(
    request: &WriteRequest,
    current: &Changes,
    single: bool,
    open: Vec<usize>,
) -> VecDeque<Vec<usize>> {
    let mut batches = VecDeque::new();
    let mut batch = Vec::new();
    let mut size = 0;
    for index in open {
        let bytes: usize = edits(request, current, single, index).iter().map(Edit::size).sum();
        if size + bytes > MOST_BYTES && !batch.is_empty() {
            batches.push_back(std::mem::take(&mut batch));
            size = 0;
        }
        size += bytes;
        batch.push(index);
    }
    batches.push_back(batch);
    batches
}
