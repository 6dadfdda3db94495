//! Queries: the zone of a name, and the records at names where no transfer is allowed.

use std::collections::BTreeSet;

use netstead_model::{Name, ProviderError, RecordType, Zone};

use super::{
    answer::{Answer, Data},
    client::{Connection, code_name},
    update::Update,
};
use crate::dns::preconditions::ServerRecords;

const SOA: u16 = 6;
const IN: u16 = 1;
const NOERROR: u16 = 0;
const SERVFAIL: u16 = 2;
const NXDOMAIN: u16 = 3;
const NXRRSET: u16 = 8;
const NOTAUTH: u16 = 9;
const NOTZONE: u16 = 10;
/// How often a zone may change while it is read.
const PATIENCE: usize = 3;

/// A query for `kind` at `name`, without its id.
pub(super) fn question(name: &Name, kind: u16) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    name.put_wire(&mut message);
    message.extend(kind.to_be_bytes());
    message.extend(IN.to_be_bytes());
    message
}

impl Connection<'_> {
    async fn ask(&mut self, name: &Name, kind: u16) -> Result<Answer, ProviderError> {
        let answer = self.exchange("query", question(name, kind)).await;
        let answer = answer.map_err(|trouble| self.reading(trouble))?;
        if answer.code == NOTAUTH {
            // To a plain question this can only be about the signature (PowerDNS says no more than that).
            let key = self.client.key.as_ref().map_or("?", |key| key.shown());
            let reason = format!(
                "NOTAUTH: it does not accept the key {key}; name, algorithm and secret must be the same there"
            );
            return Err(ProviderError::Denied { server: self.server.clone(), reason });
        }
        if answer.truncated {
            return Err(self.odd(format!("its answer about `{name}` is cut off, even over TCP")));
        }
        Ok(answer)
    }

    /// The zone that `name` is in, if this server holds it.
    pub(super) async fn zone_of(&mut self, name: &Name) -> Result<Option<Zone>, ProviderError> {
        let mut next = Some(name.clone());
        while let Some(name) = next {
            let answer = self.ask(&name, SOA).await?;
            if answer.code == SERVFAIL {
                return Err(self.failed(&name));
            }
            if !answer.authoritative || !matches!(answer.code, NOERROR | NXDOMAIN) {
                return Ok(None);
            }
            let zone = answer.records.iter().chain(&answer.authority).find_map(|entry| match entry.data {
                Data::Soa { serial } => {
                    let zone = entry.name.clone().filter(|zone| name.is_subdomain_of(zone))?;
                    Some(Zone { name: zone, sign: Some(serial.into()) })
                }
                _ => None,
            });
            if zone.is_some() {
                return Ok(zone);
            }
            // An alias leads elsewhere; the zone is above it.
            next = name.parent();
        }
        Ok(None)
    }

    /// The serial of `zone`, which this server must hold.
    pub(super) async fn serial(&mut self, zone: &Name) -> Result<u32, ProviderError> {
        let found = self.zone_of(zone).await?.filter(|found| found.name == *zone);
        let serial = found.and_then(|found| found.sign).and_then(|sign| sign.serial());
        serial.ok_or_else(|| ProviderError::NoSuchZone { server: self.server.clone(), zone: zone.clone() })
    }

    /// Queries the records of `names`, all at one serial.
    pub(super) async fn query_names(
        &mut self,
        zone: &Name,
        names: &BTreeSet<Name>,
    ) -> Result<(u32, ServerRecords), ProviderError> {
        let mut serial = self.serial(zone).await?;
        for _ in 0..PATIENCE {
            let mut found = ServerRecords::default();
            for name in names {
                self.query_name(zone, name, &mut found).await?;
            }
            let after = self.serial(zone).await?;
            if after == serial {
                return Ok((serial, found));
            }
            serial = after;
        }
        Err(ProviderError::Busy { server: self.server.clone(), retry_after: None })
    }

    async fn query_name(
        &mut self,
        zone: &Name,
        name: &Name,
        found: &mut ServerRecords,
    ) -> Result<(), ProviderError> {
        for kind in RecordType::ALL {
            let answer = self.ask(name, kind.number()).await?;
            match answer.code {
                NOERROR if answer.authoritative => {}
                // A referral: the name is in a zone below, and not ours to see.
                NOERROR | NXDOMAIN => return Ok(()),
                code => return Err(self.odd(format!("it answers {} about `{name}`", code_name(code)))),
            }
            let mut seen = false;
            for entry in answer.records.into_iter().filter(|entry| entry.name.as_ref() == Some(name)) {
                match entry.data {
                    Data::Known(value) if value.kind() == kind => {
                        found.add(name.clone(), kind, entry.ttl, value);
                        seen = true;
                    }
                    Data::Opaque(opaque) if opaque == kind => {
                        found.opaque.insert((name.clone(), kind));
                        seen = true;
                    }
                    _ => {}
                }
            }
            if seen && !self.set_exists(zone, name, kind).await? {
                found.sets.remove(&(name.clone(), kind));
                found.opaque.remove(&(name.clone(), kind));
            }
        }
        Ok(())
    }

    /// Whether the set is there by itself, and not what a wildcard gives: an update without changes asks that.
    async fn set_exists(
        &mut self,
        zone: &Name,
        name: &Name,
        kind: RecordType,
    ) -> Result<bool, ProviderError> {
        let mut update = Update::new(zone);
        update.require_any(name, kind);
        let answer = self.exchange("update", update.message()).await;
        match answer.map_err(|trouble| self.reading(trouble))?.code {
            NOERROR => Ok(true),
            NXRRSET => Ok(false),
            NOTZONE => Err(ProviderError::NoSuchZone { server: self.server.clone(), zone: zone.clone() }),
            code => Err(ProviderError::Denied {
                server: self.server.clone(),
                reason: format!(
                    "it answers {} to an update of `{zone}` that changes nothing",
                    code_name(code)
                ),
            }),
        }
    }

    /// Whether updates of `zone` are taken: one without changes is sent. Rules that let in some names only are not
    /// seen this way.
    pub(super) async fn may_update(&mut self, zone: &Name) -> Result<(), ProviderError> {
        self.serial(zone).await?;
        self.set_exists(zone, zone, RecordType::Ns).await.map(drop)
    }

    /// The TXT values at `name`.
    pub(super) async fn texts(&mut self, name: &Name) -> Result<Vec<Vec<u8>>, ProviderError> {
        let answer = self.ask(name, RecordType::Txt.number()).await?;
        if !matches!(answer.code, NOERROR | NXDOMAIN) {
            return Err(self.odd(format!("it answers {} about `{name}`", code_name(answer.code))));
        }
        let own = answer.records.into_iter().filter(|entry| entry.name.as_ref() == Some(name));
        Ok(own
            .filter_map(|entry| match entry.data {
                Data::Known(netstead_model::RecordData::Txt(strings)) => Some(strings.concat()),
                _ => None,
            })
            .collect())
    }

    pub(super) fn odd(&self, reason: String) -> ProviderError {
        ProviderError::Malformed { server: self.server.clone(), reason }
    }

    fn failed(&self, name: &Name) -> ProviderError {
        let reason = format!("it answers SERVFAIL about `{name}`");
        ProviderError::Unreachable { server: self.server.clone(), reason }
    }
}
