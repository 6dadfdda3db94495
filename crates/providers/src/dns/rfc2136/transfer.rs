//! AXFR, to its very end: the second SOA. Anything less is an error, never a shorter zone.

use netstead_model::{Name, ProviderError};
use tokio::time::timeout;

use super::{
    answer::{Data, Entry},
    client::{Connection, ExchangeError, code_name},
    query::question,
};
use crate::{Outcome, dns::preconditions::ServerRecords};

/// A transfer may take this many times as long as one answer.
const MOST_ANSWERS: u32 = 20;
/// The most bytes of a transfer: some millions of records.
const MOST_BYTES: usize = netstead_wire::MOST_OF_ANSWER;
const AXFR: u16 = 252;
const REFUSED: u16 = 5;
const NOTAUTH: u16 = 9;

/// A transfer in progress.
#[derive(Debug, Default)]
struct Transfer {
    serial: Option<u32>,
    ended: bool,
    found: ServerRecords,
}

impl Transfer {
    fn add_entry(&mut self, zone: &Name, entry: Entry) -> Result<(), String> {
        if self.ended {
            return Err("records follow the end of the transfer".into());
        }
        let Entry { name, ttl, data } = entry;
        if let Data::Soa { serial } = data
            && name.as_ref() == Some(zone)
        {
            match self.serial {
                None => self.serial = Some(serial),
                Some(first) if first == serial => self.ended = true,
                Some(first) => {
                    return Err(format!("the transfer began at serial {first} and ended at {serial}"));
                }
            }
            return Ok(());
        }
        if self.serial.is_none() {
            return Err("the transfer does not begin with the SOA of the zone".into());
        }
        // What our types cannot name we never wrote, and never will.
        let Some(name) = name else { return Ok(()) };
        match data {
            Data::Known(value) => self.found.add(name, value.kind(), ttl, value),
            Data::Opaque(kind) => drop(self.found.opaque.insert((name, kind))),
            Data::Other | Data::Soa { .. } => drop(self.found.others.insert(name)),
            Data::Signing => {}
        }
        Ok(())
    }
}

impl Connection<'_> {
    /// Everything in `zone`, and its serial.
    pub(super) async fn transfer(&mut self, zone: &Name) -> Result<(u32, ServerRecords), ProviderError> {
        let begun = self.client.clock.monotonic();
        let limit = self.client.answer.saturating_mul(MOST_ANSWERS);
        let outcome = match timeout(limit, self.frames(zone)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                Err(ExchangeError::Malformed(format!("the transfer of `{zone}` has no end after {limit:?}")))
            }
        };
        let how = match &outcome {
            Ok(Ok(_)) => Outcome::Answered,
            Ok(Err(_)) | Err(ExchangeError::Denied(_)) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        self.observe("transfer", how, begun);
        match outcome {
            Ok(Ok(content)) => Ok(content),
            Ok(Err(code)) => Err(self.refused(zone, code).await),
            Err(trouble) => Err(self.reading(trouble)),
        }
    }

    /// `Ok(Err(code))` if the server will not.
    async fn frames(&mut self, zone: &Name) -> Result<Result<(u32, ServerRecords), u16>, ExchangeError> {
        let mut verifier = self.send(question(zone, AXFR)).await?;
        let (mut transfer, mut bytes) = (Transfer::default(), 0_usize);
        while !transfer.ended {
            let answer = match self.receive(verifier.as_mut()).await {
                Err(ExchangeError::Lost(reason)) if transfer.serial.is_some() => {
                    return Err(ExchangeError::Malformed(format!(
                        "the transfer of `{zone}` is incomplete: {reason}"
                    )));
                }
                other => other?,
            };
            if answer.code != 0 && transfer.serial.is_none() {
                return Ok(Err(answer.code));
            } else if answer.code != 0 {
                let name = code_name(answer.code);
                return Err(ExchangeError::Malformed(format!(
                    "the transfer of `{zone}` is incomplete: {name}"
                )));
            }
            bytes = bytes.saturating_add(answer.length);
            if bytes > MOST_BYTES {
                return Err(ExchangeError::Malformed(format!(
                    "the transfer of `{zone}` has more than {MOST_BYTES} bytes, the most that is read"
                )));
            }
            if answer.records.is_empty() {
                return Err(ExchangeError::Malformed(format!(
                    "a message of the transfer of `{zone}` is empty"
                )));
            }
            for entry in answer.records {
                transfer.add_entry(zone, entry).map_err(ExchangeError::Malformed)?;
            }
        }
        if verifier.is_some_and(|verifier| !verifier.complete()) {
            return Err(ExchangeError::Malformed("the end of the transfer is not signed".into()));
        }
        let serial =
            transfer.serial.ok_or_else(|| ExchangeError::Malformed("the transfer has no serial".into()))?;
        Ok(Ok((serial, transfer.found)))
    }

    /// Servers say REFUSED or NOTAUTH both to strangers and about zones they do not hold; the SOA tells which.
    async fn refused(&mut self, zone: &Name, code: u16) -> ProviderError {
        let name = code_name(code);
        if !matches!(code, REFUSED | NOTAUTH) {
            return self.odd(format!("it answers {name} to a transfer of `{zone}`"));
        }
        match self.serial(zone).await {
            Err(error @ ProviderError::NoSuchZone { .. }) => error,
            _ => ProviderError::Denied {
                server: self.server.clone(),
                reason: format!(
                    "it answers {name} to a transfer of `{zone}`; allow transfers to this key there, or set `read = \
                     \"query\"`"
                ),
            },
        }
    }
}
