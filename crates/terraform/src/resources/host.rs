//! `netstead_host`: a name with an IPv4 address, an IPv6 address and a MAC address, claimed in one commit.

use async_trait::async_trait;
use netstead_client::{
    Client,
    types::{BulkEntry, BulkInput, ClaimFrom, ClaimInput, ClaimOutput, TargetInput},
};

use super::claims;
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema,
        Value, sentence,
    },
    session::{Session, told},
};

/// The attribute of the pool, of the address and of the claim, for each family.
const PARTS: [(&str, &str, &str); 3] = [
    ("ipv4_pool", "ipv4", "ipv4_claim_id"),
    ("ipv6_pool", "ipv6", "ipv6_claim_id"),
    ("mac_pool", "mac", "mac_claim_id"),
];

pub(super) struct Host;

#[async_trait]
impl Resource<Session> for Host {
    fn name(&self) -> &'static str {
        "netstead_host"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("name", Kind::Text, "The key under which all its addresses are held.").replaces().check(claims::key),
            Attribute::optional("ipv4_pool", Kind::Text, "The pool of its IPv4 address.").replaces().check(claims::ident),
            Attribute::optional("ipv6_pool", Kind::Text, "The pool of its IPv6 address.").replaces().check(claims::ident),
            Attribute::optional("mac_pool", Kind::Text, "The pool of its MAC address.").replaces().check(claims::ident),
            Attribute::optional(
                "hostname",
                Kind::Text,
                "The name of the machine: a full name, or one that the pools' domain is added to. Without it, the key is the name \
                 where a pool has a domain. Netstead keeps its A, AAAA and PTR records.",
            )
            .check(claims::name),
            Attribute::optional("aliases", Kind::list_of(Kind::Text), "More names of the same addresses.").check(claims::name),
        ];
        attributes.extend(claims::note_attributes());
        attributes.extend([
            Attribute::computed("id", Kind::Text, "The id of an import."),
            Attribute::computed("ipv4", Kind::Text, "Its IPv4 address."),
            Attribute::computed("ipv6", Kind::Text, "Its IPv6 address."),
            Attribute::computed("mac", Kind::Text, "Its MAC address."),
            Attribute::computed("fqdn", Kind::Text, "The first full name that leads to it.").follows(),
            Attribute::computed("names", Kind::list_of(Kind::Text), "All full names that lead to it.")
                .follows(),
            Attribute::computed(
                "gateway",
                Kind::Text,
                "The gateway of the IPv4 pool, else of the IPv6 pool.",
            ),
            Attribute::computed("ipv4_claim_id", Kind::Text, "The id of the claim of the IPv4 address."),
            Attribute::computed("ipv6_claim_id", Kind::Text, "The id of the claim of the IPv6 address."),
            Attribute::computed("mac_claim_id", Kind::Text, "The id of the claim of the MAC address."),
        ]);
        Schema::new(
            "A machine: one name, up to three addresses, and their forward and reverse records. All addresses are claimed in one \
             commit, so there is never half a host.",
            attributes,
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["id"]
    }

    fn import_form(&self) -> &'static str {
        "IPV4_POOL,IPV6_POOL,MAC_POOL/NAME, with nothing between the commas where there is no pool"
    }

    fn import(&self, id: &str) -> Option<Object> {
        let (pools, name) =
            id.split_once('/').filter(|(pools, name)| !pools.is_empty() && !name.is_empty())?;
        let mut state: Object = [("name".to_owned(), name.into()), ("id".to_owned(), id.into())].into();
        for ((attribute, ..), pool) in PARTS.iter().zip(pools.split(',')) {
            state.insert((*attribute).to_owned(), Some(pool).filter(|pool| !pool.is_empty()).into());
        }
        Some(state)
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_host.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        if PARTS.iter().any(|(pool, ..)| !config.value(pool).is_null()) {
            return Vec::new();
        }
        let said = Diagnostic::error(
            "the host has no address",
            "Set at least one of `ipv4_pool`, `ipv6_pool` and `mac_pool`.",
        );
        vec![said.at("ipv4_pool")]
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let planned = &*change.planned;
        let (None, Some(name)) = (change.prior, planned.text("name")) else { return Vec::new() };
        let mut found = Vec::new();
        for (attribute, ..) in PARTS {
            let Some(pool) = planned.text(attribute) else { continue };
            if let Ok(Some(held)) = claims::look_up(client, pool, name).await {
                found.push(claims::taken(&held).at("name"));
                continue;
            }
            // A pool that the same apply makes is not there yet.
            let Ok(known) = client.pool(pool).await else { continue };
            let words = format!("pool `{pool}`");
            let full = claims::warn_if_all_full(&[known.value], &words, 1);
            found.extend(full.map(|said| said.at(attribute)));
        }
        found
    }

    async fn create(&self, session: &Session, planned: &Object, config: &Object) -> Result<Object, Failed> {
        let claims = claim(session.client()?, config).await?;
        Ok(object(planned, &claims))
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        // An import by identity has the id alone.
        let imported =
            state.text("id").filter(|_| state.value("name").is_null()).and_then(|id| self.import(id));
        let state = imported.as_ref().unwrap_or(state);
        let claims = find(session.client()?, state).await?;
        // Half a host is none: the rest is claimed again, and what is there keeps its address.
        let complete = claims.len() == pools(state).len() && !claims.is_empty();
        Ok(complete.then(|| object(state, &claims)))
    }

    async fn update(
        &self,
        session: &Session,
        _prior: &Object,
        planned: &Object,
        config: &Object,
    ) -> Result<Object, Failed> {
        let claims = claim(session.client()?, config).await?;
        Ok(object(planned, &claims))
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        let name = state.owned("name").unwrap_or_default();
        let entries: Vec<BulkEntry> = PARTS
            .iter()
            .filter_map(|(pool, _, id)| {
                let target =
                    TargetInput { pool: state.owned(pool)?, key: name.clone(), id: Some(state.owned(id)?) };
                Some(BulkEntry::Release(target))
            })
            .collect();
        if entries.is_empty() {
            return Ok(());
        }
        let client = session.client()?;
        match release(client, &name, entries.clone()).await? {
            Released::All => Ok(()),
            // All or none of them are released, so with one pool that is gone the other addresses are still held.
            Released::NoPool => {
                for entry in entries {
                    release(client, &name, vec![entry]).await?;
                }
                Ok(())
            }
        }
    }
}

enum Released {
    All,
    /// Nothing was released: a pool does not exist any more, and with it what was held in it.
    NoPool,
}

/// Releases these claims of the host in one commit.
async fn release(client: &Client, name: &str, entries: Vec<BulkEntry>) -> Result<Released, Failed> {
    let what = || format!("the host `{name}` cannot be released");
    let output = match client.bulk(&BulkInput { entries }).await {
        Ok(output) => output,
        Err(error) if error.is("no-such-pool") => return Ok(Released::NoPool),
        Err(error) => return Err(told(what(), &error).into()),
    };
    match output.at_fault() {
        None => Ok(Released::All),
        Some((_, problem)) if problem.slug() == "no-such-pool" => Ok(Released::NoPool),
        Some((_, problem)) => Err(Diagnostic::error(what(), sentence(&problem.detail)).into()),
    }
}

fn pools(object: &Object) -> Vec<String> {
    PARTS.iter().filter_map(|(pool, ..)| object.owned(pool)).collect()
}

async fn claim(client: &Client, config: &Object) -> Result<Vec<ClaimOutput>, Failed> {
    let name = config.owned("name").unwrap_or_default();
    let names = config.owned("hostname").into_iter().chain(config.texts("aliases").unwrap_or_default());
    let claim = ClaimInput {
        ttl: Some("0".to_owned()),
        labels: Some(config.text_map("labels").unwrap_or_default()),
        hostnames: Some(names.collect()),
        description: Some(config.owned("description").unwrap_or_default()),
        ..ClaimInput::default()
    };
    let each = pools(config);
    let from = ClaimFrom { key: name.clone(), each: each.clone(), claim, ..ClaimFrom::default() };
    let what = || format!("the host `{name}` gets no addresses from {}", each.join(", "));
    client.claim_from(&from).await.map_err(|error| told(what(), &error).into())
}

async fn find(client: &Client, state: &Object) -> Result<Vec<ClaimOutput>, Failed> {
    let mut found = Vec::new();
    for pool in pools(state) {
        found.extend(claims::look_up(client, &pool, state.text("name").unwrap_or_default()).await?);
    }
    Ok(found)
}

fn object(state: &Object, claims: &[ClaimOutput]) -> Object {
    let mut found = Object::new();
    let mut ids = Vec::new();
    for (pool, address, id) in PARTS {
        let claim = state.text(pool).and_then(|pool| claims.iter().find(|claim| claim.pool == pool));
        found.insert(pool.to_owned(), state.value(pool).clone());
        found.insert(address.to_owned(), claim.and_then(|claim| claim.address.clone()).into());
        found.insert(id.to_owned(), claim.and_then(|claim| claim.id.clone()).into());
        ids.push(state.text(pool).unwrap_or_default());
    }
    let name = state.text("name").unwrap_or_default();
    found.insert("id".into(), format!("{}/{name}", ids.join(",")).into());
    found.insert("name".into(), name.into());
    if let Some(one) = claims.first() {
        let values = claims::values(one);
        for attribute in ["labels", "description"] {
            found.insert(attribute.to_owned(), values.value(attribute).clone());
        }
        found.insert("hostname".into(), one.hostnames.first().cloned().into());
        let aliases: Vec<String> = one.hostnames.iter().skip(1).cloned().collect();
        found.insert("aliases".into(), if aliases.is_empty() { Value::Null } else { aliases.into() });
    }
    let mut names: Vec<String> = claims.iter().flat_map(|claim| claim.names.iter().cloned()).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    found.insert("fqdn".into(), names.first().cloned().into());
    found.insert("names".into(), names.into());
    found.insert("gateway".into(), claims.iter().find_map(|claim| claim.gateway.clone()).into());
    claims::with_stated(state, found, &[])
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_host"
    }

    fn schema(&self) -> Schema {
        let pool =
            |name, description| Attribute::optional(name, Kind::Text, description).check(claims::ident);
        Schema::new(
            "The addresses that one name holds in up to three pools.",
            vec![
                Attribute::required("name", Kind::Text, "The key under which its addresses are held.")
                    .check(claims::key),
                pool("ipv4_pool", "The pool of its IPv4 address."),
                pool("ipv6_pool", "The pool of its IPv6 address."),
                pool("mac_pool", "The pool of its MAC address."),
                Attribute::computed("ipv4", Kind::Text, "Its IPv4 address."),
                Attribute::computed("ipv6", Kind::Text, "Its IPv6 address."),
                Attribute::computed("mac", Kind::Text, "Its MAC address."),
                Attribute::computed("fqdn", Kind::Text, "The first full name that leads to it."),
                Attribute::computed("names", Kind::list_of(Kind::Text), "All full names that lead to it."),
                Attribute::computed(
                    "gateway",
                    Kind::Text,
                    "The gateway of the IPv4 pool, else of the IPv6 pool.",
                ),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_host\" \"web\" {\n  name      = \"web-1\"\n  ipv4_pool = \"lan\"\n  mac_pool  = \"macs\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let found = find(session.client()?, config).await?;
        if found.is_empty() {
            let name = config.text("name").unwrap_or_default();
            let detail = "It holds no address in these pools. See `netstead get claims`.";
            return Err(Diagnostic::error(format!("there is no host `{name}`"), detail).at("name").into());
        }
        Ok(object(config, &found))
    }
}
