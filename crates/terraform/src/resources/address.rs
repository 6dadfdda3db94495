//! `netstead_address`: one address under one key.

use async_trait::async_trait;
use netstead_client::{
    Client,
    types::{ClaimInput, ClaimOutput},
};

use super::claims::{self, Place};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema, Value,
    },
    session::{Session, told},
};

pub(super) struct Address;

#[async_trait]
impl Resource<Session> for Address {
    fn name(&self) -> &'static str {
        "netstead_address"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required(
                "key",
                Kind::Text,
                "The name under which the address is held. Asking again under the same key gives the same address, also after it \
                 was destroyed, while the pool is `sticky` and the address rests.",
            )
            .replaces()
            .check(claims::key),
        ];
        attributes.extend(claims::pool_attributes());
        attributes.extend([
            Attribute::either("address", Kind::Text, "This address or none. Without it, the next free one.")
                .replaces()
                .check(claims::address),
            Attribute::optional(
                "prefer",
                Kind::Text,
                "This address if it can be had, else the next free one. `address` says which it became.",
            )
            .replaces()
            .check(claims::address),
            Attribute::optional(
                "hostname",
                Kind::Text,
                "The name of the machine: a full name, or one that the pool's domain is added to. Netstead keeps its forward \
                 and reverse records.",
            )
            .check(claims::name),
            Attribute::optional("aliases", Kind::list_of(Kind::Text), "More names of the same address.").check(claims::name),
            Attribute::optional(
                "wait",
                Kind::Text,
                "How long a creation waits for an address when the pool is full, such as `2m`. Without it, a full pool is an \
                 error at once.",
            )
            .check(claims::span),
            claims::timeouts_attribute(),
        ]);
        attributes.extend(claims::note_attributes());
        attributes.extend(claims::computed_attributes());
        attributes.extend([
            Attribute::computed(
                "prefix_length",
                Kind::Number,
                "The length of the pool's network: 24 of `10.0.3.0/24`.",
            ),
            Attribute::computed("fqdn", Kind::Text, "The first full name that leads to the address.")
                .follows(),
            Attribute::computed(
                "names",
                Kind::list_of(Kind::Text),
                "All full names that lead to the address.",
            )
            .follows(),
        ]);
        Schema::new(
            "An address of a pool, held under a key until it is destroyed. It never expires.",
            attributes,
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["found_in_pool", "key"]
    }

    fn import_form(&self) -> &'static str {
        "POOL/KEY"
    }

    fn import(&self, id: &str) -> Option<Object> {
        claims::import(id)
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_address.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        let mut found = claims::validate_choice(config);
        found.extend(claims::validate_timeouts(config));
        if !config.value("address").is_null() && !config.value("prefer").is_null() {
            found.push(
                Diagnostic::error(
                    "`address` and `prefer` cannot both be set",
                    "`address` is exact, `prefer` falls back. Remove one.",
                )
                .at("prefer"),
            );
        }
        if !config.value("aliases").is_null() && config.value("hostname").is_null() {
            found.push(
                Diagnostic::error("`aliases` need a `hostname`", "Set `hostname` to the first name.")
                    .at("aliases"),
            );
        }
        found
    }

    async fn replaces(
        &self,
        session: Option<&Session>,
        attribute: &str,
        prior: &Object,
        planned: &Object,
    ) -> bool {
        match attribute {
            "pool" | "pools" | "selector" => claims::leaves_its_pool(session, prior, planned).await,
            "address" => !texts_agree(prior, "address", planned, "address"),
            // A wish that is fulfilled, or no wish any more, changes nothing.
            "prefer" => {
                !planned.value("prefer").is_null() && !texts_agree(prior, "address", planned, "prefer")
            }
            _ => true,
        }
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        if change.prior.is_some() {
            return Vec::new();
        }
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let planned = &*change.planned;
        if let (Some(pool), Some(key)) = (planned.text("pool"), planned.text("key"))
            && let Ok(Some(held)) = claims::look_up(client, pool, key).await
        {
            return vec![claims::taken(&held)];
        }
        match planned.text("address") {
            Some(address) => {
                let pool = planned.text("pool").unwrap_or_default();
                claims::check_fixed(client, pool, address, "address").await
            }
            None if planned.value("wait").is_null() => claims::warn_if_full(client, planned, 1).await,
            None => Vec::new(),
        }
    }

    async fn create(&self, session: &Session, planned: &Object, config: &Object) -> Result<Object, Failed> {
        let input = ClaimInput {
            address: config.owned("address"),
            prefer: config.owned("prefer"),
            wait: config.owned("wait"),
            ttl: Some("0".to_owned()),
            ..data(config)
        };
        let claim = Place::of(planned).claim(session.client()?, input, claims::patience(config)).await?;
        Ok(object(planned, &claim))
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let found = claims::find(session.client()?, state).await?;
        Ok(found.map(|claim| object(state, &claim)))
    }

    async fn update(
        &self,
        session: &Session,
        prior: &Object,
        planned: &Object,
        config: &Object,
    ) -> Result<Object, Failed> {
        let claim = change_data(session.client()?, prior, config).await?;
        Ok(object(planned, &claim))
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        claims::release(session.client()?, state).await
    }

    /// From terraform-provider-netaddr, when `netstead import netaddr` made a pool of the range: both call it by the last part of its
    /// prefix.
    fn move_from(&self, source_type: &str, state: &serde_json::Value) -> Option<Object> {
        let text = |name: &str| state.get(name).and_then(serde_json::Value::as_str);
        let range = match source_type {
            "netaddr_address_ipv4" | "netaddr_address_mac" => text("range_id")?,
            "netaddr_address_ipv4_v2" => text("found_in_range")?,
            _ => return None,
        };
        let pool = netstead_providers::netaddr::pool_name(range)?;
        let (name, address) = (text("name")?, text("address")?);
        Some(
            [
                ("pool", pool.as_str()),
                ("found_in_pool", pool.as_str()),
                ("key", name),
                ("address", address),
                ("id", &format!("{pool}/{name}")),
            ]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into(),
        )
    }
}

/// Changes names, labels and description of the claim in `prior`, which stays where it is.
async fn change_data(client: &Client, prior: &Object, config: &Object) -> Result<ClaimOutput, Failed> {
    let pool = prior.owned("found_in_pool");
    let place =
        Place { key: prior.owned("key").unwrap_or_default(), pool, pools: Vec::new(), selector: None };
    place.claim(client, data(config), claims::patience(config)).await
}

/// The data that can be changed in place. All of it is said, so that what is no longer configured is removed.
fn data(config: &Object) -> ClaimInput {
    let names = config.owned("hostname").into_iter().chain(config.texts("aliases").unwrap_or_default());
    ClaimInput {
        labels: Some(config.text_map("labels").unwrap_or_default()),
        hostnames: Some(names.collect()),
        description: Some(config.owned("description").unwrap_or_default()),
        ..ClaimInput::default()
    }
}

fn object(state: &Object, claim: &ClaimOutput) -> Object {
    let mut found = claims::values(claim);
    found.insert("hostname".into(), claim.hostnames.first().cloned().into());
    let aliases: Vec<String> = claim.hostnames.iter().skip(1).cloned().collect();
    found.insert("aliases".into(), if aliases.is_empty() { Value::Null } else { aliases.into() });
    claims::with_choice(state, found, &["prefer", "wait", "timeouts"])
}

fn texts_agree(one: &Object, name: &str, other: &Object, other_name: &str) -> bool {
    match (one.text(name), other.text(other_name)) {
        (Some(one), Some(other)) => claims::same(one, other),
        _ => false,
    }
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_address"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("pool", Kind::Text, "The pool.").check(claims::ident),
            Attribute::required("key", Kind::Text, "The key that holds the address.").check(claims::key),
        ];
        attributes.extend(claims::computed_attributes());
        attributes.extend([
            Attribute::computed("address", Kind::Text, "The address."),
            Attribute::computed("prefix_length", Kind::Number, "The length of the pool's network."),
            Attribute::computed("fqdn", Kind::Text, "The first full name that leads to the address."),
            Attribute::computed(
                "names",
                Kind::list_of(Kind::Text),
                "All full names that lead to the address.",
            ),
            Attribute::computed("labels", Kind::map_of(Kind::Text), "Labels of the claim."),
            Attribute::computed("description", Kind::Text, "A note for people."),
        ]);
        Schema::new("An address that a key holds, of any owner.", attributes)
    }

    fn example(&self) -> &'static str {
        "data \"netstead_address\" \"dns\" {\n  pool = \"lan\"\n  key  = \"dns-1\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        look_up(session, config).await.map(|claim| claims::values(&claim))
    }
}

/// The claim that a data source names, or an error that says so.
pub(super) async fn look_up(session: &Session, config: &Object) -> Result<ClaimOutput, Failed> {
    let (pool, key) = (config.text("pool").unwrap_or_default(), config.text("key").unwrap_or_default());
    let what = || format!("`{key}` of pool `{pool}` cannot be read");
    match session.client()?.look_up(pool, key).await {
        Ok(Some(claim)) => Ok(claim),
        Ok(None) => Err(Diagnostic::error(
            format!("`{key}` holds nothing in pool `{pool}`"),
            format!("See `netstead get claims --pool {pool}` for what is held."),
        )
        .at("key")
        .into()),
        Err(error) => Err(told(what(), &error).into()),
    }
}
