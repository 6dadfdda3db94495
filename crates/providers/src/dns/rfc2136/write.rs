//! Turns units into updates: batches, the fence, and what each refusal means.

use std::collections::VecDeque;

use netstead_model::{Name, ProviderError, UnitOutcome, WriteReply, WriteRequest};

use super::{
    Rfc2136,
    client::{Connection, Server, code_name},
    update::{Mark, Update, fence_name},
};
use crate::dns::preconditions::{ServerRecords, halves, wanted};

const NOERROR: u16 = 0;
const SERVFAIL: u16 = 2;
const NOTAUTH: u16 = 9;
/// NXDOMAIN, YXDOMAIN, YXRRSET, NXRRSET: something is not as was required.
const NOT_AS_REQUIRED: [u16; 4] = [3, 6, 7, 8];
/// Room for the fence and the signature in a message of 65,535 bytes.
const MOST_BYTES: usize = 63_000;
/// Up to this many names are asked for one by one; for more the zone is transferred.
const FEW: usize = 4;
/// BIND's default since 2024.
const BIND_LIMIT: usize = 100;
/// How often the fence may move under us within one write.
const PATIENCE: usize = 3;

struct Job<'a> {
    provider: &'a Rfc2136,
    server: &'a Server,
    connection: Connection<'a>,
    zone: &'a Name,
    request: &'a WriteRequest,
    fence: Name,
    /// The fence record as it was read or last written.
    old: Option<Mark>,
    outcomes: Vec<Option<UnitOutcome>>,
    /// The server has taken an update of ours.
    proven: bool,
    moved: usize,
}

impl Rfc2136 {
    /// Writes to one server. After an error it has changed nothing for sure, so another server may be tried.
    pub(super) async fn write_to(
        &self,
        server: &Server,
        zone: &Name,
        request: &WriteRequest,
    ) -> Result<WriteReply, ProviderError> {
        let mut connection = self.client.connect(server).await?;
        connection.serial(zone).await?;
        let fence = fence_name(&request.fence.owner, zone).map_err(|reason| connection.odd(reason))?;
        let outcomes = vec![None; request.units.len()];
        let mut job = Job {
            provider: self,
            server,
            connection,
            zone,
            request,
            fence,
            old: None,
            outcomes,
            proven: false,
            moved: 0,
        };
        let stopped = job.run().await.err();
        let harmless = |error: &ProviderError| {
            let sure = matches!(
                error,
                ProviderError::Denied { .. }
                    | ProviderError::Unreachable { .. }
                    | ProviderError::NoSuchZone { .. }
            );
            sure && !job.proven
        };
        match stopped {
            Some(error) if harmless(&error) => Err(error),
            stopped => {
                let outcomes = job.outcomes.into_iter().map(|done| done.unwrap_or(UnitOutcome::NotTried));
                Ok(WriteReply { outcomes: outcomes.collect(), stopped })
            }
        }
    }
}

impl Rfc2136 {
    /// Reads the fence record of `owner` at one server.
    pub(super) async fn fence_at(
        &self,
        server: &Server,
        zone: &Name,
        owner: &str,
    ) -> Result<Option<(u64, u64)>, ProviderError> {
        let mut connection = self.client.connect(server).await?;
        let fence = fence_name(owner, zone).map_err(|reason| connection.odd(reason))?;
        let texts = connection.texts(&fence).await?;
        let newest = texts.iter().filter_map(|text| Mark::read(text)).max();
        Ok(newest.map(|mark| (mark.epoch, mark.generation)))
    }
}

impl Job<'_> {
    async fn run(&mut self) -> Result<(), ProviderError> {
        self.read_fence().await?;
        let mut waiting = self.batches();
        while let Some(batch) = waiting.pop_front() {
            if batch.is_empty() {
                continue;
            }
            let update = self.update(&batch);
            if !update.fits(MOST_BYTES) {
                let reason = "it does not fit into one DNS message".to_owned();
                self.give_up_or_split(&batch, &mut waiting, &UnitOutcome::Rejected { reason });
                continue;
            }
            self.request.guard.permit().await?;
            let sent = self.send(&update).await;
            if sent.as_ref().is_err_and(ProviderError::may_have_acted) {
                self.settle(&batch, &UnitOutcome::Unknown);
            }
            match sent? {
                NOERROR => self.settle(&batch, &UnitOutcome::Applied),
                code if NOT_AS_REQUIRED.contains(&code) => {
                    self.find_failed_precondition(batch, &mut waiting).await?;
                }
                code => {
                    self.prove(code).await?;
                    let reason = self.reason(&batch, code);
                    self.give_up_or_split(&batch, &mut waiting, &UnitOutcome::Rejected { reason });
                }
            }
        }
        Ok(())
    }

    /// Servers give a code and no more; what is known to be behind it is added.
    fn reason(&self, batch: &[usize], code: u16) -> String {
        let mut reason = format!("the server answers {}", code_name(code));
        let units = batch.iter().filter_map(|index| self.request.units.get(*index));
        let mut sets = units.flat_map(|unit| &unit.changes).filter_map(wanted);
        if code == SERVFAIL && sets.any(|set| set.values.len() > BIND_LIMIT) {
            reason.push_str("; BIND takes 100 records per set unless `max-records-per-type` allows more");
        }
        reason
    }

    fn mark(&self) -> Mark {
        Mark::from(&self.request.fence)
    }

    /// Reads the fence record; a newer one ends this write.
    async fn read_fence(&mut self) -> Result<(), ProviderError> {
        let texts = self.connection.texts(&self.fence).await?;
        // A text from a wildcard is no fence; the server itself refuses if another record is there.
        self.old = texts.iter().filter_map(|text| Mark::read(text)).max();
        if self.old.as_ref().is_some_and(|old| *old > self.mark()) {
            return Err(ProviderError::Late { server: self.server.to_string(), zone: self.zone.clone() });
        }
        Ok(())
    }

    /// As many units in one message as fit.
    fn batches(&self) -> VecDeque<Vec<usize>> {
        let mut batches = VecDeque::new();
        let mut batch = Vec::new();
        let mut size = 0;
        for (index, unit) in self.request.units.iter().enumerate() {
            let mut alone = Update::new(self.zone);
            alone.unit(unit);
            if size + alone.size() > MOST_BYTES && !batch.is_empty() {
                batches.push_back(std::mem::take(&mut batch));
                size = 0;
            }
            size += alone.size();
            batch.push(index);
        }
        batches.push_back(batch);
        batches
    }

    fn update(&self, batch: &[usize]) -> Update {
        let mut update = Update::new(self.zone);
        update.fence(&self.fence, self.old.as_ref(), &self.mark());
        for unit in batch.iter().filter_map(|index| self.request.units.get(*index)) {
            update.unit(unit);
        }
        update
    }

    async fn send(&mut self, update: &Update) -> Result<u16, ProviderError> {
        let answer = self.connection.exchange("update", update.message()).await;
        let code = answer.map_err(|trouble| self.connection.writing(trouble))?.code;
        if code == NOERROR {
            self.proven = true;
            self.provider.steps.add(self.zone);
            self.old = Some(self.mark());
        }
        Ok(code)
    }

    fn settle(&mut self, batch: &[usize], outcome: &UnitOutcome) {
        for index in batch {
            if let Some(slot) = self.outcomes.get_mut(*index) {
                *slot = Some(outcome.clone());
            }
        }
    }

    fn give_up_or_split(
        &mut self,
        batch: &[usize],
        waiting: &mut VecDeque<Vec<usize>>,
        outcome: &UnitOutcome,
    ) {
        if batch.len() < 2 {
            self.settle(batch, outcome);
            return;
        }
        let (first, second) = halves(batch);
        waiting.push_front(second.to_vec());
        waiting.push_front(first.to_vec());
    }

    /// Something was not as required: the fence, or what some units expect.
    async fn find_failed_precondition(
        &mut self,
        batch: Vec<usize>,
        waiting: &mut VecDeque<Vec<usize>>,
    ) -> Result<(), ProviderError> {
        let before = self.old.clone();
        self.read_fence().await?;
        if self.old != before {
            self.moved += 1;
            if self.moved > PATIENCE {
                return Err(self.connection.odd(format!("the fence `{}` keeps moving", self.fence)));
            }
            waiting.push_front(batch);
            return Ok(());
        }
        let found = self.current(&batch).await?;
        // That may have taken longer than a server keeps an idle connection.
        self.connection = self.provider.client.connect(self.server).await?;
        let mut open = Vec::new();
        for index in &batch {
            let Some(unit) = self.request.units.get(*index) else { continue };
            let conflict = found.cname_conflict(unit).map(|reason| UnitOutcome::Rejected { reason });
            match found.outcome(unit).or(conflict) {
                Some(outcome) => self.settle(&[*index], &outcome),
                None => open.push(*index),
            }
        }
        if open.len() < batch.len() {
            waiting.push_front(open);
        } else {
            // All is as expected now: another client changed it twice, or the fence is not what it seems.
            self.give_up_or_split(&batch, waiting, &UnitOutcome::Changed);
        }
        Ok(())
    }

    /// Reads the records at the names of `batch`, over a connection of its own: some servers close one after a transfer.
    async fn current(&self, batch: &[usize]) -> Result<ServerRecords, ProviderError> {
        let mut connection = self.provider.client.connect(self.server).await?;
        if batch.len() > FEW && self.provider.transfers(self.zone) {
            return Ok(connection.transfer(self.zone).await?.1);
        }
        let units = batch.iter().filter_map(|index| self.request.units.get(*index));
        let names = units.flat_map(|unit| unit.names()).cloned();
        Ok(connection.query_names(self.zone, &names.collect()).await?.1)
    }

    /// A refusal of a whole update: if not even the fence alone is taken, no unit is to blame.
    async fn prove(&mut self, code: u16) -> Result<(), ProviderError> {
        if self.proven {
            return Ok(());
        }
        let server = self.server.to_string();
        let alone = self.update(&[]);
        match self.send(&alone).await? {
            NOERROR => Ok(()),
            again if NOT_AS_REQUIRED.contains(&again) => self.read_fence().await,
            NOTAUTH => Err(ProviderError::NoSuchZone { server, zone: self.zone.clone() }),
            SERVFAIL => Err(ProviderError::Busy { server, retry_after: None }),
            _ => {
                let name = code_name(code);
                let reason = format!(
                    "it answers {name} to an update of `{}`; allow updates with this key there, `{}` too",
                    self.zone, self.fence
                );
                Err(ProviderError::Denied { server, reason })
            }
        }
    }
}
