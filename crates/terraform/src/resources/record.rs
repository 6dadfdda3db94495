//! `netstead_record`: all values of one type at one name.

use async_trait::async_trait;
use netstead_client::{
    RecordQuery,
    types::{ManualOutput, RecordInput, RecordType},
};

use super::{claims, pool::one_of};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema, Value,
    },
    session::{Session, told},
};

pub(super) struct Record;

fn kind(text: &str) -> Result<(), String> {
    one_of(text, RecordType::KNOWN)
}

#[async_trait]
impl Resource<Session> for Record {
    fn name(&self) -> &'static str {
        "netstead_record"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A DNS record: all values of one type at one name. Netstead writes it to every DNS server that answers for the name.",
            vec![
                Attribute::required("name", Kind::Text, "The full name.").replaces().check(claims::name),
                Attribute::required(
                    "type",
                    Kind::Text,
                    "The type: `A`, `AAAA`, `CNAME`, `TXT`, `MX`, `SRV`, …",
                )
                .replaces()
                .check(kind),
                Attribute::required(
                    "values",
                    Kind::set_of(Kind::Text),
                    "The values, each as in a zone file.",
                ),
                Attribute::optional(
                    "ttl",
                    Kind::Number,
                    "The time to live in seconds; each DNS server's own by default.",
                ),
                Attribute::computed("id", Kind::Text, "`NAME/TYPE`, the id of an import."),
            ],
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["name", "type"]
    }

    fn import_form(&self) -> &'static str {
        "NAME/TYPE"
    }

    fn import(&self, id: &str) -> Option<Object> {
        let (name, kind) = id.rsplit_once('/').filter(|(name, kind)| !name.is_empty() && !kind.is_empty())?;
        Some([("name".to_owned(), name.into()), ("type".to_owned(), kind.into())].into())
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_record.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if config.int("ttl").is_some_and(|ttl| !(0..=i64::from(i32::MAX)).contains(&ttl)) {
            found.push(
                Diagnostic::error("`ttl` is not usable", format!("It is a number from 0 to {}.", i32::MAX))
                    .at("ttl"),
            );
        }
        if matches!(config.value("values"), Value::List(values) if values.is_empty()) {
            found.push(
                Diagnostic::error("the record has no value", "Set at least one, or remove the resource.")
                    .at("values"),
            );
        }
        found
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let (None, Some(name), Some(kind)) =
            (change.prior, change.planned.text("name"), change.planned.text("type"))
        else {
            return Vec::new();
        };
        match client.record(name, kind).await {
            Ok(Some(there)) => vec![
                Diagnostic::warning(
                    format!("`{name}` has a record of type {kind} already"),
                    format!(
                        "It was set by hand: {}. The apply replaces it. To see the difference first, import it: \
                         `terraform import ADDRESS {name}/{kind}`.",
                        there.values.join(", ")
                    ),
                )
                .at("name"),
            ],
            _ => Vec::new(),
        }
    }

    async fn create(&self, session: &Session, planned: &Object, _config: &Object) -> Result<Object, Failed> {
        set(session, planned).await
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let (name, kind) = place(state);
        match session.client()?.record(name, kind).await {
            Ok(found) => Ok(found.map(|record| object(state, &record))),
            Err(error) => Err(told(format!("the record `{name}` {kind} cannot be read"), &error).into()),
        }
    }

    async fn update(
        &self,
        session: &Session,
        _prior: &Object,
        planned: &Object,
        _config: &Object,
    ) -> Result<Object, Failed> {
        set(session, planned).await
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        let (name, kind) = place(state);
        let gone = session.client()?.delete_record(name, Some(kind)).await;
        gone.map(drop)
            .map_err(|error| told(format!("the record `{name}` {kind} cannot be deleted"), &error).into())
    }
}

fn place(object: &Object) -> (&str, &str) {
    (object.text("name").unwrap_or_default(), object.text("type").unwrap_or_default())
}

async fn set(session: &Session, planned: &Object) -> Result<Object, Failed> {
    let (name, kind) = place(planned);
    let ttl = planned.int("ttl").and_then(|ttl| u32::try_from(ttl).ok());
    let input = RecordInput { values: planned.texts("values").unwrap_or_default(), ttl };
    let record = session.client()?.set_record(name, kind, &input).await;
    let record = record.map_err(|error| told(format!("the record `{name}` {kind} cannot be set"), &error))?;
    Ok(object(planned, &record))
}

fn object(state: &Object, record: &ManualOutput) -> Object {
    let found: Object = [
        ("id", Value::from(format!("{}/{}", record.name, record.kind))),
        ("name", record.name.as_str().into()),
        ("type", record.kind.to_string().into()),
        ("values", record.values.clone().into()),
        ("ttl", record.ttl.into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let mut found = claims::with_stated(state, found, &[]);
    // A set has no order, and the server may write a value in another way: `fe80::0` is `fe80::`.
    let alike = |one: &[String], other: &[String]| {
        let plain = |text: &str| text.trim_end_matches('.').trim_matches('"').to_ascii_lowercase();
        let has = |all: &[String], text: &String| {
            all.iter().any(|one| claims::same(one, text) || plain(one) == plain(text))
        };
        one.len() == other.len()
            && one.iter().all(|text| has(other, text))
            && other.iter().all(|text| has(one, text))
    };
    if state.texts("values").is_some_and(|stated| alike(&stated, &record.values)) {
        found.insert("values".into(), state.value("values").clone());
    }
    found
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_record"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A DNS record that was set by hand or by Terraform.",
            vec![
                Attribute::required("name", Kind::Text, "The full name.").check(claims::name),
                Attribute::required("type", Kind::Text, "The type.").check(kind),
                Attribute::computed(
                    "values",
                    Kind::set_of(Kind::Text),
                    "The values, each as in a zone file.",
                ),
                Attribute::computed("ttl", Kind::Number, "The time to live in seconds, if one was set."),
                Attribute::computed("id", Kind::Text, "`NAME/TYPE`."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_record\" \"mail\" {\n  name = \"home.example.net\"\n  type = \"MX\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (name, kind) = place(config);
        match session.client()?.record(name, kind).await {
            Ok(Some(record)) => Ok(object(&Object::new(), &record)),
            Ok(None) => Err(Diagnostic::error(
                format!("`{name}` has no record of type {kind} that was set by hand"),
                "Names that come from claims and sources are in `netstead_records`.",
            )
            .at("name")
            .into()),
            Err(error) => Err(told(format!("the record `{name}` {kind} cannot be read"), &error).into()),
        }
    }
}

pub(super) struct List;

#[async_trait]
impl DataSource<Session> for List {
    fn name(&self) -> &'static str {
        "netstead_records"
    }

    fn schema(&self) -> Schema {
        let text = |name| (name, Kind::Text);
        let row = vec![
            text("provider"),
            text("zone"),
            text("name"),
            text("type"),
            text("value"),
            ("ttl", Kind::Number),
            text("state"),
        ];
        Schema::new(
            "Records on the DNS servers that Netstead keeps in line, from every source, filtered.",
            vec![
                Attribute::optional("zone", Kind::Text, "Only those of this zone.").check(claims::name),
                Attribute::optional("name", Kind::Text, "Only those at this name.").check(claims::name),
                Attribute::optional("dns_provider", Kind::Text, "Only those of this DNS server.")
                    .check(claims::ident),
                Attribute::computed("records", Kind::list_of(Kind::Object(row)), "One entry for each value."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_records\" \"home\" {\n  zone = \"home.example.net\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let query = RecordQuery {
            zone: config.owned("zone"),
            name: config.owned("name"),
            provider: config.owned("dns_provider"),
            ..RecordQuery::default()
        };
        let all = session
            .client()?
            .all(query)
            .await
            .map_err(|error| told("the records cannot be listed", &error))?;
        let rows = all.into_iter().map(|record| {
            let row = [
                ("provider", Value::from(record.provider)),
                ("zone", record.zone.into()),
                ("name", record.name.into()),
                ("type", record.kind.to_string().into()),
                ("value", record.value.into()),
                ("ttl", record.ttl.into()),
                ("state", record.state.to_string().into()),
            ];
            Value::Map(row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        });
        Ok([("records".to_owned(), Value::List(rows.collect()))].into())
    }
}
