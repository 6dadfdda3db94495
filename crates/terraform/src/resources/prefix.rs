//! `netstead_prefix`: a prefix out of a pool of prefixes.

use async_trait::async_trait;
use netstead_client::types::{ClaimInput, ClaimOutput};
use netstead_model::{Cidr, Kind as AddressKind};

use super::{
    address,
    claims::{self, Place},
};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema, Value,
    },
    session::Session,
};

pub(super) struct Prefix;

fn prefix(text: &str) -> Result<(), String> {
    text.parse::<Cidr>().map(drop).map_err(|error| error.to_string())
}

#[async_trait]
impl Resource<Session> for Prefix {
    fn name(&self) -> &'static str {
        "netstead_prefix"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("key", Kind::Text, "The name under which the prefix is held.")
                .replaces()
                .check(claims::key),
        ];
        attributes.extend(claims::pool_attributes());
        attributes.extend([
            Attribute::either(
                "length",
                Kind::Number,
                "The length of the prefix: 24. Without it, the length that the pool says.",
            )
            .replaces(),
            Attribute::either(
                "prefix",
                Kind::Text,
                "This prefix or none: `10.8.4.0/24`. Without it, the next free one.",
            )
            .replaces()
            .check(prefix),
            claims::timeouts_attribute(),
        ]);
        attributes.extend(claims::note_attributes());
        attributes.extend(claims::computed_attributes());
        Schema::new(
            "A prefix of a pool of prefixes (`family = \"prefix\"`), held under a key until it is destroyed. A pool may lie in it.",
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
        include_str!("../../examples/netstead_prefix.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        let mut found = claims::validate_choice(config);
        found.extend(claims::validate_timeouts(config));
        if config.int("length").is_some_and(|length| !(0..=128).contains(&length)) {
            found.push(
                Diagnostic::error("`length` is not usable", "It is a number from 0 to 128.").at("length"),
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
            _ => true,
        }
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let planned = &*change.planned;
        let (None, Some(pool), Some(key)) = (change.prior, planned.text("pool"), planned.text("key")) else {
            return Vec::new();
        };
        if let Ok(Some(held)) = claims::look_up(client, pool, key).await {
            return vec![claims::taken(&held)];
        }
        if let Some(prefix) = planned.text("prefix") {
            return claims::check_fixed(client, pool, prefix, "prefix").await;
        }
        let Ok(known) = client.pool(pool).await else { return Vec::new() };
        let length = planned.int("length").and_then(|length| u8::try_from(length).ok());
        let Some(length) = length.or(known.value.length) else { return Vec::new() };
        let bits = if claims::extent(&known.value).iter().any(|part| part.kind() == AddressKind::V4) {
            32
        } else {
            128
        };
        let wanted = 1_u128.checked_shl(u32::from(bits_below(bits, length))).unwrap_or(u128::MAX);
        let words = format!("pool `{pool}`");
        claims::warn_if_all_full(&[known.value], &words, wanted)
            .map(|said| said.at("pool"))
            .into_iter()
            .collect()
    }

    async fn create(&self, session: &Session, planned: &Object, config: &Object) -> Result<Object, Failed> {
        let length = config.int("length").and_then(|length| u8::try_from(length).ok());
        let input =
            ClaimInput { address: config.owned("prefix"), length, ttl: Some("0".to_owned()), ..data(config) };
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
        let key = prior.owned("key").unwrap_or_default();
        let place = Place { key, pool: prior.owned("found_in_pool"), pools: Vec::new(), selector: None };
        let claim = place.claim(session.client()?, data(config), claims::patience(config)).await?;
        Ok(object(planned, &claim))
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        claims::release(session.client()?, state).await
    }
}

/// The bits of an address that a prefix of this length leaves open.
fn bits_below(bits: u8, length: u8) -> u8 {
    bits.saturating_sub(length)
}

fn data(config: &Object) -> ClaimInput {
    ClaimInput {
        labels: Some(config.text_map("labels").unwrap_or_default()),
        description: Some(config.owned("description").unwrap_or_default()),
        ..ClaimInput::default()
    }
}

fn values(claim: &ClaimOutput) -> Object {
    let mut found = claims::values(claim);
    let length = claim.address.as_deref().and_then(|text| text.parse::<Cidr>().ok()).map(|cidr| cidr.len());
    found.insert("length".into(), Value::from(length));
    found.insert("prefix".into(), claim.address.clone().into());
    found
}

fn object(state: &Object, claim: &ClaimOutput) -> Object {
    claims::with_choice(state, values(claim), &["timeouts"])
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_prefix"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("pool", Kind::Text, "The pool.").check(claims::ident),
            Attribute::required("key", Kind::Text, "The key that holds the prefix.").check(claims::key),
        ];
        attributes.extend(claims::computed_attributes());
        attributes.extend([
            Attribute::computed("prefix", Kind::Text, "The prefix."),
            Attribute::computed("length", Kind::Number, "Its length."),
            Attribute::computed("labels", Kind::map_of(Kind::Text), "Labels of the claim."),
            Attribute::computed("description", Kind::Text, "A note for people."),
        ]);
        Schema::new("A prefix that a key holds, of any owner.", attributes)
    }

    fn example(&self) -> &'static str {
        "data \"netstead_prefix\" \"site\" {\n  pool = \"sites\"\n  key  = \"ams\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        address::look_up(session, config).await.map(|claim| values(&claim))
    }
}
