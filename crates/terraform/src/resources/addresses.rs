//! `netstead_addresses`: many addresses in one resource, claimed in one call.

use std::collections::BTreeMap;

use async_trait::async_trait;
use netstead_client::{
    ClaimQuery, Client,
    types::{BulkEntry, BulkInput, BulkResult, ClaimInput, ClaimOutput, ClaimState, Problem, TargetInput},
};

use super::claims::{self, Place};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema,
        Value, sentence,
    },
    session::{Session, told},
};

/// More than so many entries go in several calls.
const PER_CALL: usize = 1024;

pub(super) struct Addresses;

#[async_trait]
impl Resource<Session> for Addresses {
    fn name(&self) -> &'static str {
        "netstead_addresses"
    }

    fn schema(&self) -> Schema {
        let mut attributes = vec![
            Attribute::required("pool", Kind::Text, "The pool.").replaces().check(claims::ident),
            Attribute::required(
                "keys",
                Kind::set_of(Kind::Text),
                "The names under which addresses are held, one address each. Keys can be added and removed in place; the \
                 others keep their addresses.",
            )
            .check(claims::key),
        ];
        attributes.extend(claims::note_attributes());
        attributes.extend([
            Attribute::computed(
                "id",
                Kind::Text,
                "`POOL/KEY`, with the first key at the creation. It is the identity, which stays the same while keys come and go; an import names \
                 all keys, by id or by identity: `POOL/KEY,KEY,…`.",
            ),
            Attribute::computed("addresses", Kind::map_of(Kind::Text), "The address of each key.").follows(),
            Attribute::computed("claim_ids", Kind::map_of(Kind::Text), "The id of each claim.").follows(),
        ]);
        Schema::new(
            "Many addresses of one pool in one resource. Terraform spends about 10 ms on every resource, so a thousand addresses \
             are much faster here than as a thousand `netstead_address`.",
            attributes,
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["id"]
    }

    fn import_form(&self) -> &'static str {
        "POOL/KEY,KEY,…"
    }

    fn import(&self, id: &str) -> Option<Object> {
        let (pool, keys) = id.split_once('/').filter(|(pool, keys)| !pool.is_empty() && !keys.is_empty())?;
        let keys: Vec<&str> = keys.split(',').collect();
        Some(
            [
                ("id".to_owned(), id.into()),
                ("pool".to_owned(), pool.into()),
                ("keys".to_owned(), keys.into()),
            ]
            .into(),
        )
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_addresses.tf")
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let count = |object: &Object| object.texts("keys").map_or(0, |keys| keys.len());
        let before = change.prior.map_or(0, count);
        let wanted = count(change.planned).saturating_sub(before);
        match session.map(Session::client) {
            Some(Ok(client)) if wanted > 0 => {
                claims::warn_if_full(client, change.planned, wanted as u128).await
            }
            _ => Vec::new(),
        }
    }

    async fn create(&self, session: &Session, planned: &Object, config: &Object) -> Result<Object, Failed> {
        let (held, failed) =
            claim_all(session.client()?, config, config.texts("keys").unwrap_or_default()).await;
        let state = object(planned, &held);
        match failed {
            None => Ok(state),
            // Claims that were made are in the state, so that nothing is left behind unseen.
            Some(said) => Err(Failed { diagnostics: vec![said], state: (!held.is_empty()).then_some(state) }),
        }
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        // An import by identity has the id alone.
        let imported =
            state.text("id").filter(|_| state.value("pool").is_null()).and_then(|id| self.import(id));
        let state = imported.as_ref().unwrap_or(state);
        let keys = state.texts("keys").unwrap_or_default();
        let held = held(session.client()?, state.text("pool").unwrap_or_default(), &keys).await?;
        Ok((!held.is_empty()).then(|| object(state, &held)))
    }

    async fn update(
        &self,
        session: &Session,
        prior: &Object,
        planned: &Object,
        config: &Object,
    ) -> Result<Object, Failed> {
        let client = session.client()?;
        let wanted = config.texts("keys").unwrap_or_default();
        let mut ids = prior.text_map("claim_ids").unwrap_or_default();
        ids.retain(|key, _| !wanted.contains(key));
        release_all(client, prior.text("pool").unwrap_or_default(), ids).await?;
        // All of them: labels may have changed. A key that has its address keeps it.
        let (held, failed) = claim_all(client, config, wanted).await;
        let state = object(planned, &held);
        match failed {
            None => Ok(state),
            Some(said) => {
                let keys = prior.texts("keys").unwrap_or_default();
                let there = self::held(client, prior.text("pool").unwrap_or_default(), &keys)
                    .await
                    .unwrap_or_default();
                let all: BTreeMap<_, _> = there.into_iter().chain(held).collect();
                Err(Failed { diagnostics: vec![said], state: Some(object(prior, &all)) })
            }
        }
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        let ids = state.text_map("claim_ids").unwrap_or_default();
        release_all(session.client()?, state.text("pool").unwrap_or_default(), ids).await
    }
}

/// Claims all keys, and says what was claimed and why the rest was not.
async fn claim_all(
    client: &Client,
    config: &Object,
    keys: Vec<String>,
) -> (BTreeMap<String, ClaimOutput>, Option<Diagnostic>) {
    let place = Place::of(config);
    let input = ClaimInput {
        ttl: Some("0".to_owned()),
        labels: Some(config.text_map("labels").unwrap_or_default()),
        description: Some(config.owned("description").unwrap_or_default()),
        ..ClaimInput::default()
    };
    let mut held = BTreeMap::new();
    for part in keys.chunks(PER_CALL) {
        let entry = |key: &String| {
            BulkEntry::Claim(
                Place { key: key.clone(), pool: place.pool.clone(), pools: Vec::new(), selector: None }
                    .request(input.clone()),
            )
        };
        let bulk = BulkInput { entries: part.iter().map(entry).collect() };
        let output = match client.bulk(&bulk).await {
            Ok(output) => output,
            Err(error) => {
                let said = told(format!("{} keys get no address from {}", part.len(), place.words()), &error);
                return (held, Some(said));
            }
        };
        let fault = output.at_fault().map(|(at, problem)| refused(part.get(at), &place, problem));
        for result in output.results {
            let BulkResult::Claimed(claims) = result else { continue };
            held.extend(claims.into_iter().map(|claim| (claim.key.clone(), claim)));
        }
        if fault.is_some() {
            return (held, fault);
        }
    }
    (held, None)
}

fn refused(key: Option<&String>, place: &Place, problem: &Problem) -> Diagnostic {
    let key = key.map(String::as_str).unwrap_or_default();
    let detail = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    let at = if problem.slug() == "exhausted" { "pool" } else { "keys" };
    Diagnostic::error(format!("`{key}` gets no address from {}", place.words()), sentence(detail)).at(at)
}

async fn release_all(client: &Client, pool: &str, ids: BTreeMap<String, String>) -> Result<(), Failed> {
    let entries: Vec<BulkEntry> = ids
        .into_iter()
        .map(|(key, id)| BulkEntry::Release(TargetInput { pool: pool.to_owned(), key, id: Some(id) }))
        .collect();
    for part in entries.chunks(PER_CALL) {
        let what = || format!("addresses of pool `{pool}` cannot be released");
        let output = match client.bulk(&BulkInput { entries: part.to_vec() }).await {
            Ok(output) => output,
            Err(error) if error.is("no-such-pool") => return Ok(()),
            Err(error) => return Err(told(what(), &error).into()),
        };
        if let Some((_, problem)) = output.at_fault()
            && !matches!(problem.slug(), "already-gone" | "no-such-claim" | "no-such-pool")
        {
            return Err(Diagnostic::error(what(), sentence(&problem.detail)).into());
        }
    }
    Ok(())
}

/// Those of `keys` that hold an address, out of the list of all that the pool has.
async fn held(client: &Client, pool: &str, keys: &[String]) -> Result<BTreeMap<String, ClaimOutput>, Failed> {
    let what = || format!("the addresses of pool `{pool}` cannot be read");
    let query = ClaimQuery { pool: Some(pool.to_owned()), ..ClaimQuery::default() };
    let all = match client.all(query).await {
        Ok(all) => all,
        Err(error) if error.is("no-such-pool") => return Ok(BTreeMap::new()),
        Err(error) => return Err(told(what(), &error).into()),
    };
    let wanted: std::collections::HashSet<&String> = keys.iter().collect();
    let ours =
        all.into_iter().filter(|claim| claim.state == ClaimState::Bound && wanted.contains(&claim.key));
    Ok(ours.map(|claim| (claim.key.clone(), claim)).collect())
}

fn object(state: &Object, held: &BTreeMap<String, ClaimOutput>) -> Object {
    let mut found = Object::new();
    let pool = state.text("pool").unwrap_or_default();
    let first = held.keys().next().map(String::as_str).unwrap_or_default();
    let id = state.owned("id").unwrap_or_else(|| format!("{pool}/{first}"));
    let of = |part: fn(&ClaimOutput) -> Option<String>| {
        Value::from(
            held.iter()
                .filter_map(|(key, claim)| Some((key.clone(), part(claim)?)))
                .collect::<BTreeMap<_, _>>(),
        )
    };
    let one = held.values().next();
    found.insert("id".into(), id.into());
    found.insert("pool".into(), pool.into());
    found.insert("keys".into(), held.keys().map(String::as_str).collect::<Vec<_>>().into());
    found.insert("addresses".into(), of(|claim| claim.address.clone()));
    found.insert("claim_ids".into(), of(|claim| claim.id.clone()));
    let labels = one.map(|claim| claim.labels.clone()).filter(|labels| !labels.is_empty());
    found.insert("labels".into(), labels.into());
    let description = one.and_then(|claim| claim.description.clone()).filter(|text| !text.is_empty());
    found.insert("description".into(), description.into());
    let mut found = claims::with_stated(state, found, &[]);
    // A set has no order: the same keys in another order are the same.
    let sorted = |value: &Value| value.as_texts().map(|mut keys| (keys.sort(), keys).1);
    if sorted(state.value("keys")) == sorted(found.value("keys")) {
        found.insert("keys".into(), state.value("keys").clone());
    }
    found
}

pub(super) struct List;

#[async_trait]
impl DataSource<Session> for List {
    fn name(&self) -> &'static str {
        "netstead_addresses"
    }

    fn schema(&self) -> Schema {
        let text = |name| (name, Kind::Text);
        let claim = Kind::Object(vec![
            text("pool"),
            text("key"),
            text("address"),
            text("owner"),
            text("family"),
            text("description"),
            ("labels", Kind::map_of(Kind::Text)),
            ("names", Kind::list_of(Kind::Text)),
        ]);
        Schema::new(
            "Addresses and prefixes that are held, filtered.",
            vec![
                Attribute::optional("pool", Kind::Text, "Only those of this pool.").check(claims::ident),
                Attribute::optional("owner", Kind::Text, "Only those of this owner."),
                Attribute::optional("selector", Kind::Text, "Only those whose labels match: `site=ams`.")
                    .check(claims::selector),
                Attribute::optional("vrf", Kind::Text, "Only those of this VRF.").check(claims::ident),
                Attribute::computed("addresses", Kind::list_of(claim), "What is held, by pool and key."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_addresses\" \"web\" {\n  pool     = \"lan\"\n  selector = \"role=web\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let query = ClaimQuery {
            pool: config.owned("pool"),
            owner: config.owned("owner"),
            selector: config.owned("selector"),
            vrf: config.owned("vrf"),
            ..ClaimQuery::default()
        };
        let mut all = session
            .client()?
            .all(query)
            .await
            .map_err(|error| told("the addresses cannot be listed", &error))?;
        all.sort_by(|one, other| (&one.pool, &one.key).cmp(&(&other.pool, &other.key)));
        let row = |claim: &ClaimOutput| {
            let mut row = claims::values(claim);
            row.insert("pool".into(), claim.pool.as_str().into());
            row.insert("labels".into(), claim.labels.clone().into());
            let wanted = ["pool", "key", "address", "owner", "family", "description", "labels", "names"];
            row.retain(|name, _| wanted.contains(&name.as_str()));
            Value::Map(row)
        };
        Ok([("addresses".to_owned(), Value::List(all.iter().map(row).collect()))].into())
    }
}
