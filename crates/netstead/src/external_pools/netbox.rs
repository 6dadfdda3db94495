//! `NetBoxIPPool`: prefixes of NetBox, tried in order.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendPoolInfo, Cidr, Family, Ident, Kind, Name,
    Want,
};
use netstead_operator::{ExternalAddress, ExternalClaim, ExternalPool, Naming};
use netstead_providers::{
    BuildContext, Secret,
    pool::netbox::{Config, NetBoxPools, NewAddressFields, PrefixFacts},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    TlsSpec,
    given_names::{GivenNames, holder},
    read_spec,
};

/// `spec` of a `NetBoxIPPool`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NetBoxSpec {
    credentials: Credentials,
    tls: TlsSpec,
    key_field: Option<String>,
    prefixes: Vec<PrefixSpec>,
    gateway_field: Option<String>,
    gateway: Option<Address>,
    tenant: Option<String>,
    tags: Vec<String>,
    status: Option<String>,
    custom_fields: Map<String, Value>,
    domain: Option<Name>,
}

/// The values of the Secret.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Credentials {
    url: String,
    token: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PrefixSpec {
    id: Option<u64>,
    cidr: Option<Cidr>,
    vrf: Option<String>,
    gateway: Option<Address>,
}

pub(super) fn open(spec: &Value, given: &Arc<GivenNames>) -> Result<Arc<dyn ExternalPool>, String> {
    let spec: NetBoxSpec = read_spec(spec)?;
    let Credentials { url, token } = spec.credentials;
    for (name, value) in [("url", &url), ("token", &token)] {
        if value.is_empty() {
            return Err(format!("spec.credentialsRef: the Secret has no key `{name}`"));
        }
    }
    let tls = {
        let mut tls = netstead_providers::Tls::default();
        spec.tls.apply_to(&mut tls);
        tls
    };
    let name = "netbox".parse::<Ident>().map_err(|error| error.to_string())?;
    let mut prefixes = Vec::new();
    for (number, prefix) in spec.prefixes.iter().enumerate() {
        let place = match (prefix.id, prefix.cidr) {
            (Some(id), None) => id.to_string(),
            (None, Some(cidr)) => cidr.to_string(),
            _ => return Err(format!("spec.prefixes[{number}]: one of id and cidr is needed")),
        };
        let mut config = Config::new(url.clone(), Secret::new(token.clone()));
        config.connection.tls = tls.clone();
        config.vrf.clone_from(&prefix.vrf);
        if let Some(field) = &spec.key_field {
            config.connection.key_field.clone_from(field);
        }
        let pools = config.open(&BuildContext::new(name.clone())).map_err(|error| {
            let field = match error.key {
                "url" => "credentialsRef: key `url`",
                "token" => "credentialsRef: key `token`",
                "key_field" => "keyField",
                _ => "tls",
            };
            format!("spec.{field}: {}", error.problem)
        })?;
        prefixes.push(OpenPrefix { pools, place, gateway: prefix.gateway.or(spec.gateway) });
    }
    if prefixes.is_empty() {
        return Err("spec.prefixes: at least one prefix is needed".to_owned());
    }
    Ok(Arc::new(NetBoxPool {
        prefixes,
        gateway_field: spec.gateway_field,
        fields: NewAddressFields {
            tenant: spec.tenant,
            tags: spec.tags,
            status: spec.status,
            custom_fields: spec.custom_fields,
            dns_name: None,
        },
        domain: spec.domain,
        given: Arc::clone(given),
        known: Mutex::default(),
    }))
}

#[derive(Debug)]
struct NetBoxPool {
    /// At least one.
    prefixes: Vec<OpenPrefix>,
    gateway_field: Option<String>,
    /// Of new addresses.
    fields: NewAddressFields,
    domain: Option<Name>,
    given: Arc<GivenNames>,
    /// The prefixes as they were described last, in the same order.
    known: Mutex<Vec<PrefixFacts>>,
}

#[derive(Debug)]
struct OpenPrefix {
    pools: NetBoxPools,
    /// Its id, or the prefix itself.
    place: String,
    /// If its custom field has none.
    gateway: Option<Address>,
}

impl NetBoxPool {
    /// Asks NetBox for the prefixes.
    async fn look(&self) -> Result<Vec<PrefixFacts>, BackendError> {
        let mut found = Vec::with_capacity(self.prefixes.len());
        for prefix in &self.prefixes {
            let field = self.gateway_field.as_deref();
            found.push(prefix.pools.prefix(&prefix.place, field, prefix.gateway).await?);
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&found);
        Ok(found)
    }

    /// The prefixes as they were described last, so that a claim costs no look at each.
    async fn known(&self) -> Result<Vec<PrefixFacts>, BackendError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_empty() { self.look().await } else { Ok(known) }
    }

    /// Any of the connections: keys are looked for in the whole of NetBox.
    fn netbox(&self) -> Result<&NetBoxPools, BackendError> {
        let first = self.prefixes.first().map(|prefix| &prefix.pools);
        first.ok_or_else(|| BackendError::new(BackendErrorKind::Refused, "there is no prefix"))
    }

    /// The address that a key has already. One that is a gateway is left over from a claim that was interrupted.
    async fn held_for(&self, key: &str) -> Result<Option<ExternalAddress>, BackendError> {
        let held = self.netbox()?.held_for(key).await?;
        if held.is_empty() {
            return Ok(None);
        }
        let facts = self.known().await?;
        for (object, length) in held {
            let of = facts.iter().find(|facts| facts.network.contains(object.address));
            let gateway = of.and_then(|facts| facts.gateway);
            if gateway == Some(object.address) {
                self.netbox()?.release_one(&object).await?;
                continue;
            }
            let network = Some((length, gateway.or(self.prefixes.first().and_then(|prefix| prefix.gateway))));
            return Ok(Some(ExternalAddress { network, ..object.address.into() }));
        }
        Ok(None)
    }

    /// The DNS name of a new address, or why it has none.
    async fn name(
        &self,
        naming: &Naming,
        key: &str,
        note: &str,
    ) -> Result<(Option<String>, Option<String>), BackendError> {
        let text = naming.asked.first().unwrap_or(&naming.own);
        let is_whole = text.contains('.') && !naming.asked.is_empty();
        let name = match &self.domain {
            Some(domain) if !is_whole => Name::join(text, domain),
            _ => text.parse::<Name>(),
        };
        let name = match name {
            Ok(name) => name.to_string(),
            Err(error) => return Ok((None, Some(format!("`{text}` is no DNS name: {error}")))),
        };
        let holder = holder(naming, key);
        if let Err(other) = self.given.give(&name, &holder, key) {
            return Ok((None, Some(taken(&name, &format!("{other} has it")))));
        }
        let named = match self.netbox()?.named(&name).await {
            Ok(named) => named,
            Err(error) => {
                self.given.take_back(&name, &holder);
                return Err(error);
            }
        };
        let is_ours = |description: &str| naming.machine.is_some() && description.ends_with(note);
        let other = named.iter().find(|one| one.key.as_deref() != Some(key) && !is_ours(&one.description));
        if let Some(other) = other {
            self.given.take_back(&name, &holder);
            return Ok((None, Some(taken(&name, &format!("NetBox has it for {}", other.address)))));
        }
        Ok((Some(name), None))
    }
}

fn taken(name: &str, user: &str) -> String {
    format!(
        "the name {name} is taken: {user}; choose another with the annotation netstead.io/hostname of a new claim"
    )
}

#[async_trait]
impl ExternalPool for NetBoxPool {
    async fn describe(&self) -> Result<BackendPoolInfo, BackendError> {
        let mut info: Option<BackendPoolInfo> = None;
        for (prefix, facts) in self.prefixes.iter().zip(self.look().await?) {
            let usage = prefix.pools.usage(&prefix.place, &facts).await?;
            let kind = facts.network.kind();
            let family = if kind == Kind::V6 { Family::Ipv6 } else { Family::Ipv4 };
            let info = info.get_or_insert_with(|| BackendPoolInfo {
                family,
                network: Some(facts.network),
                ranges: Vec::new(),
                exclude: Vec::new(),
                gateway: None,
                use_reserved: false,
                length: None,
                size: 0,
                free: 0,
                installations: Vec::new(),
            });
            if info.family != family {
                let message = "spec.prefixes: IPv4 and IPv6 are mixed; a pool has one of them";
                return Err(BackendError::new(BackendErrorKind::Refused, message));
            }
            if facts.gateway.is_some_and(|gateway| gateway.kind() != kind) {
                let message = format!("the gateway of {} is not of its family", facts.network);
                return Err(BackendError::new(BackendErrorKind::Refused, message));
            }
            info.ranges.push(facts.hosts);
            info.exclude.extend(facts.gateway.map(netstead_model::Range::single));
            info.size = info.size.saturating_add(usage.size);
            info.free = info.free.saturating_add(usage.free);
        }
        info.ok_or_else(|| BackendError::new(BackendErrorKind::Refused, "spec.prefixes: there is no prefix"))
    }

    async fn claim(&self, claim: &ExternalClaim) -> Result<ExternalAddress, BackendError> {
        if let Some(held) = self.held_for(&claim.key).await? {
            return Ok(held);
        }
        let naming = claim.naming.clone().unwrap_or_default();
        let of_machine =
            naming.machine.as_ref().map(|machine| format!(", Machine {machine}")).unwrap_or_default();
        let (dns_name, name_problem) = self.name(&naming, &claim.key, &of_machine).await?;
        let fields = NewAddressFields { dns_name: dns_name.clone(), ..self.fields.clone() };
        let mut last: Option<BackendError> = None;
        for (prefix, facts) in self.prefixes.iter().zip(self.known().await?) {
            if let Want::Exact(address) | Want::Prefer(address) = claim.want
                && !facts.hosts.contains(address)
            {
                continue;
            }
            let wanted = BackendClaim {
                pool: prefix.place.clone(),
                key: claim.key.clone(),
                want: claim.want,
                length: None,
                note: format!("`{}` of Cluster API{of_machine}", claim.hostname),
            };
            match prefix.pools.claim_named(&wanted, &fields, facts.gateway).await {
                Ok(object) => {
                    return Ok(ExternalAddress {
                        address: object.address,
                        network: Some((facts.network.len(), facts.gateway)),
                        names: dns_name.into_iter().collect(),
                        name_problem,
                    });
                }
                Err(error) if error.kind == BackendErrorKind::Exhausted => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            let wanted = match claim.want {
                Want::Exact(address) | Want::Prefer(address) => format!("{address} is"),
                Want::Any => "nothing is".to_owned(),
            };
            let message = format!("{wanted} in no prefix of the pool");
            BackendError::new(BackendErrorKind::NotHere, message)
        }))
    }

    async fn release(&self, claim: &ExternalClaim) -> Result<(), BackendError> {
        self.netbox()?.release_all(&claim.key).await?;
        self.given.forget(&claim.key);
        Ok(())
    }
}
