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
use crate::dns::preconditions::{removals_first, wanted};

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
        let single = outcomes.iter().any(Option::is_none) && self.version().await? >= SINGLE_VALUES;
        let open = request.units.iter().enumerate().zip(&outcomes).filter(|(_, done)| done.is_none());
        let mut waiting = batches(open.map(|((index, unit), _)| Open::new(index, unit, current, single)));
        while let Some(mut batch) = waiting.pop_front() {
            let rrsets = batch.iter().flat_map(|open| &open.edits).collect();
            let sent = match request.guard.permit().await {
                Ok(()) => self.patch(zone, &Patch { rrsets }).await,
                Err(error) => Err(error),
            };
            let (outcome, stopped) = match sent {
                Ok(Ok(())) => (UnitOutcome::Applied, None),
                Ok(Err(reason)) if batch.len() == 1 => (UnitOutcome::Rejected { reason }, None),
                Ok(Err(_)) => {
                    let second = batch.split_off(batch.len() / 2);
                    waiting.push_front(second);
                    waiting.push_front(batch);
                    continue;
                }
                Err(error) if error.may_have_acted() => (UnitOutcome::Unknown, Some(error)),
                Err(error) => (UnitOutcome::NotTried, Some(error)),
            };
            for open in batch {
                if let Some(slot) = outcomes.get_mut(open.index) {
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
    async fn patch(&self, zone: &Name, patch: &Patch<'_>) -> Result<Result<(), String>, ProviderError> {
        let reply = self.http.patch(&self.zone_path(zone)).json(patch).send().await?;
        match reply.status {
            status if status.is_success() => {
                self.steps.add_at(zone, self.clock.wall());
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

/// A unit that is to be written.
struct Open {
    /// Its place in the request.
    index: usize,
    edits: Vec<Edit>,
}

impl Open {
    fn new(index: usize, unit: &Unit, current: &Changes, single: bool) -> Self {
        Self { index, edits: removals_first(unit).flat_map(|change| current.edits(change, single)).collect() }
    }
}

/// As many units in one request as the server takes.
fn batches(open: impl Iterator<Item = Open>) -> VecDeque<Vec<Open>> {
    let mut batches: VecDeque<Vec<Open>> = VecDeque::new();
    let mut size = 0;
    for one in open {
        let bytes: usize = one.edits.iter().map(Edit::size).sum();
        if let Some(batch) = batches.back_mut().filter(|_| size + bytes <= MOST_BYTES) {
            size += bytes;
            batch.push(one);
        } else {
            size = bytes;
            batches.push_back(vec![one]);
        }
    }
    batches
}
