//! `netstead_reservation`: a part of a pool that is set aside.

use async_trait::async_trait;
use netstead_client::{
    Client, ReservationQuery,
    types::{ReservationInput, ReservationOutput},
};
use netstead_model::Range;

use super::claims;
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema, Value,
    },
    session::{Session, told},
};

pub(super) struct Reservation;

fn range(text: &str) -> Result<(), String> {
    text.parse::<Range>().map(drop).map_err(|error| error.to_string())
}

#[async_trait]
impl Resource<Session> for Reservation {
    fn name(&self) -> &'static str {
        "netstead_reservation"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A part of a pool that is set aside: nothing in it is handed out.",
            vec![
                Attribute::required("pool", Kind::Text, "The pool.").replaces().check(claims::ident),
                Attribute::required("key", Kind::Text, "The name of the reservation.")
                    .replaces()
                    .check(claims::key),
                Attribute::required(
                    "range",
                    Kind::Text,
                    "The addresses: `10.0.3.100-10.0.3.120`, a CIDR or one address.",
                )
                .replaces()
                .check(range),
                Attribute::optional("description", Kind::Text, "A note for people."),
                Attribute::computed("owner", Kind::Text, "The owner: the name of the token."),
                Attribute::computed("id", Kind::Text, "`POOL/KEY`, the id of an import."),
            ],
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["pool", "key"]
    }

    fn import_form(&self) -> &'static str {
        "POOL/KEY"
    }

    fn import(&self, id: &str) -> Option<Object> {
        claims::import(id)
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_reservation.tf")
    }

    async fn replaces(&self, _: Option<&Session>, attribute: &str, prior: &Object, planned: &Object) -> bool {
        let same = |one: &str, other: &str| claims::same(one, other);
        let ranges = prior.text("range").zip(planned.text("range"));
        attribute != "range" || !ranges.is_some_and(|(one, other)| same(one, other))
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let planned = &*change.planned;
        let (None, Some(pool), Some(key)) = (change.prior, planned.text("pool"), planned.text("key")) else {
            return Vec::new();
        };
        let Some(Ok(range)) = planned.text("range").map(str::parse::<Range>) else { return Vec::new() };
        // A pool that the same apply makes is not there yet.
        let Ok(known) = client.pool(pool).await else { return Vec::new() };
        let extent = claims::extent(&known.value);
        if !extent.is_empty() && !extent.iter().any(|part| part.contains_range(range)) {
            let detail = format!("The pool has {}.", known.value.ranges.join(", "));
            return vec![Diagnostic::error(format!("{range} is not in pool `{pool}`"), detail).at("range")];
        }
        let there = list(client, Some(pool.to_owned())).await.unwrap_or_default();
        there.iter().find_map(|one| obstacle(one, key, range)).into_iter().collect()
    }

    async fn create(&self, session: &Session, planned: &Object, _config: &Object) -> Result<Object, Failed> {
        set(session, planned).await
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let found = find(session.client()?, state).await?;
        Ok(found.map(|reservation| object(state, &reservation)))
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
        let (pool, key) = place(state);
        match session.client()?.unreserve(pool, key).await {
            Ok(_) => Ok(()),
            Err(error) if error.is("no-such-pool") => Ok(()),
            Err(error) => {
                Err(told(format!("the reservation `{key}` of pool `{pool}` cannot be deleted"), &error)
                    .into())
            }
        }
    }
}

/// A reservation that is in the way of a new one.
fn obstacle(there: &ReservationOutput, key: &str, range: Range) -> Option<Diagnostic> {
    let ReservationOutput { pool, key: other, owner, range: reserved, .. } = there;
    let said =
        |what: String, detail: &str| Diagnostic::warning(what, format!("It is of `{owner}`. {detail}"));
    if other == key {
        let detail = "If that is the owner of this token and the range is the same, the apply takes it over; else it fails.";
        return Some(
            said(format!("`{key}` has {reserved} of pool `{pool}` reserved already"), detail).at("key"),
        );
    }
    let meets = reserved.parse::<Range>().is_ok_and(|reserved| reserved.overlaps(range));
    let detail = "Unless the same apply removes it, this will fail.";
    meets.then(|| said(format!("{reserved} of pool `{pool}` is reserved by `{other}`"), detail).at("range"))
}

fn place(object: &Object) -> (&str, &str) {
    (object.text("pool").unwrap_or_default(), object.text("key").unwrap_or_default())
}

async fn set(session: &Session, planned: &Object) -> Result<Object, Failed> {
    let (pool, key) = place(planned);
    let range = planned.owned("range").unwrap_or_default();
    // An empty one removes the description that was there.
    let description = Some(planned.owned("description").unwrap_or_default());
    let input = ReservationInput { range, description };
    let made = session.client()?.reserve(pool, key, &input).await;
    let made = made.map_err(|error| told(format!("`{key}` cannot be reserved in pool `{pool}`"), &error))?;
    Ok(object(planned, &made))
}

async fn list(client: &Client, pool: Option<String>) -> Result<Vec<ReservationOutput>, Failed> {
    match client.all(ReservationQuery { pool, ..ReservationQuery::default() }).await {
        Ok(all) => Ok(all),
        Err(error) if error.is("no-such-pool") => Ok(Vec::new()),
        Err(error) => Err(told("the reservations cannot be read", &error).into()),
    }
}

async fn find(client: &Client, state: &Object) -> Result<Option<ReservationOutput>, Failed> {
    let (pool, key) = place(state);
    let all = list(client, Some(pool.to_owned())).await?;
    Ok(all.into_iter().find(|one| one.pool == pool && one.key == key))
}

fn values(reservation: &ReservationOutput) -> Object {
    let ReservationOutput { pool, key, owner, range, description, .. } = reservation;
    [
        ("id", Value::from(format!("{pool}/{key}"))),
        ("pool", pool.as_str().into()),
        ("key", key.as_str().into()),
        ("range", range.as_str().into()),
        ("owner", owner.as_str().into()),
        ("description", description.clone().filter(|text| !text.is_empty()).into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn object(state: &Object, reservation: &ReservationOutput) -> Object {
    claims::with_stated(state, values(reservation), &[])
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_reservation"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A part of a pool that is set aside.",
            vec![
                Attribute::required("pool", Kind::Text, "The pool.").check(claims::ident),
                Attribute::required("key", Kind::Text, "The name of the reservation.").check(claims::key),
                Attribute::computed("range", Kind::Text, "The addresses."),
                Attribute::computed("description", Kind::Text, "A note for people."),
                Attribute::computed("owner", Kind::Text, "The owner."),
                Attribute::computed("id", Kind::Text, "`POOL/KEY`."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_reservation\" \"dhcp\" {\n  pool = \"lan\"\n  key  = \"dhcp\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (pool, key) = place(config);
        let found = find(session.client()?, config).await?;
        let missing = || {
            let said = format!("pool `{pool}` has no reservation `{key}`");
            Diagnostic::error(said, "See `netstead get reservations`.").at("key")
        };
        Ok(values(&found.ok_or_else(missing)?))
    }
}

pub(super) struct List;

#[async_trait]
impl DataSource<Session> for List {
    fn name(&self) -> &'static str {
        "netstead_reservations"
    }

    fn schema(&self) -> Schema {
        let fields = ["id", "pool", "key", "range", "owner", "description"];
        let row = Kind::Object(fields.into_iter().map(|name| (name, Kind::Text)).collect());
        Schema::new(
            "Reservations, filtered.",
            vec![
                Attribute::optional("pool", Kind::Text, "Only those of this pool.").check(claims::ident),
                Attribute::computed("reservations", Kind::list_of(row), "The reservations, by pool and key."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_reservations\" \"all\" {\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let all = list(session.client()?, config.owned("pool")).await?;
        let rows = all.iter().map(|one| Value::Map(values(one))).collect();
        Ok([("reservations".to_owned(), Value::List(rows))].into())
    }
}
