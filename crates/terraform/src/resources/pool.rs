//! `netstead_pool`: a pool of addresses, MACs or prefixes.

mod backend;

use async_trait::async_trait;
use netstead_client::{
    PoolQuery,
    types::{Family, PoolInput, PoolOrder, PoolOutput},
};
use netstead_model::{Cidr, Range};

use super::claims;
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema, Value,
    },
    session::{Session, told},
};

pub(super) struct Pool;

fn cidr(text: &str) -> Result<(), String> {
    text.parse::<Cidr>().map(drop).map_err(|error| error.to_string())
}

fn range(text: &str) -> Result<(), String> {
    text.parse::<Range>().map(drop).map_err(|error| error.to_string())
}

fn family(text: &str) -> Result<(), String> {
    one_of(text, Family::KNOWN)
}

fn order(text: &str) -> Result<(), String> {
    one_of(text, PoolOrder::KNOWN)
}

pub(super) fn one_of<T: ToString>(text: &str, known: &[T]) -> Result<(), String> {
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    if known.iter().any(|one| one == text) {
        Ok(())
    } else {
        Err(format!("it is one of {}", known.join(", ")))
    }
}

#[async_trait]
impl Resource<Session> for Pool {
    fn name(&self) -> &'static str {
        "netstead_pool"
    }

    fn schema(&self) -> Schema {
        Schema::new("A pool: the addresses that claims get, and how they get them.", attributes())
    }

    fn identity(&self) -> &'static [&'static str] {
        &["name"]
    }

    fn import_form(&self) -> &'static str {
        "NAME"
    }

    fn import(&self, id: &str) -> Option<Object> {
        id.parse::<netstead_model::Ident>().ok()?;
        Some([("name".to_owned(), id.into())].into())
    }

    fn example(&self) -> &'static str {
        include_str!("../../examples/netstead_pool.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        if !config.value("backend").is_null() || !config.value("backend_pool").is_null() {
            return backend::validate(config);
        }
        let mut found = Vec::new();
        if config.value("network").is_null() && config.value("ranges").is_null() {
            let detail =
                "Set `network`, or `ranges`, or both; or `backend`, for addresses out of another system.";
            found.push(Diagnostic::error("the pool has no addresses", detail).at("network"));
        }
        let network = config.text("network").and_then(|text| text.parse::<Cidr>().ok());
        let gateway = config.text("gateway").and_then(|text| text.parse().ok());
        if let (Some(network), Some(gateway)) = (network, gateway)
            && !network.contains(gateway)
        {
            let said = Diagnostic::error(
                "the gateway is outside of the network",
                format!("{gateway} is not in {network}."),
            );
            found.push(said.at("gateway"));
        }
        found
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        backend::plan(change.prior, change.config, change.planned);
        // Without `ranges`, they follow from the network.
        let network = |object: &Object| object.value("network").clone();
        let moved = change.prior.map_or(change.planned.value("backend").is_null(), |prior| {
            network(prior) != network(change.planned)
        });
        if moved && change.config.value("ranges").is_null() {
            change.planned.insert("ranges".into(), Value::SOMETHING);
        }
        let Some(Ok(client)) = session.map(Session::client) else { return Vec::new() };
        let Ok(others) = client.all(PoolQuery::default()).await else { return Vec::new() };
        let vrf = change.planned.text("vrf").unwrap_or("default");
        let mine = change.planned.text("name");
        if change.prior.is_none() && others.iter().any(|other| Some(other.name.as_str()) == mine) {
            let name = mine.unwrap_or_default();
            let said = format!("there is a pool `{name}` already");
            let detail = format!(
                "If it has exactly these settings, the apply takes it over; else it fails. To take it over on purpose: \
                 `terraform import ADDRESS {name}`."
            );
            return vec![Diagnostic::warning(said, detail).at("name")];
        }
        let planned = spans(change.planned);
        let clash = others.iter().filter(|other| Some(other.name.as_str()) != mine && other.vrf == vrf).find(
            |other| {
                let theirs = other.ranges.iter().filter_map(|text| text.parse::<Range>().ok());
                theirs.into_iter().any(|their| planned.iter().any(|range| range.overlaps(their)))
            },
        );
        let Some(other) = clash else { return Vec::new() };
        let said = Diagnostic::warning(
            format!("the addresses overlap with those of pool `{}`", other.name),
            format!(
                "Both are in the VRF `{vrf}`. Unless the same apply removes or changes that pool, this will fail."
            ),
        );
        vec![said.at(if planned.is_empty() { "network" } else { "ranges" })]
    }

    async fn create(&self, session: &Session, planned: &Object, config: &Object) -> Result<Object, Failed> {
        let name = planned.text("name").unwrap_or_default();
        let made = session.client()?.create_pool(name, &input(planned, config)).await;
        let (pool, _) = made.map_err(|error| told(format!("the pool `{name}` cannot be made"), &error))?;
        Ok(object(planned, &pool))
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let name = state.text("name").unwrap_or_default();
        match session.client()?.pool(name).await {
            Ok(pool) => Ok(Some(object(state, &pool.value))),
            Err(error) if error.is("no-such-pool") => Ok(None),
            Err(error) => Err(told(format!("the pool `{name}` cannot be read"), &error).into()),
        }
    }

    async fn update(
        &self,
        session: &Session,
        _prior: &Object,
        planned: &Object,
        config: &Object,
    ) -> Result<Object, Failed> {
        let name = planned.text("name").unwrap_or_default();
        let failed = |error| Failed::from(told(format!("the pool `{name}` cannot be changed"), &error));
        let client = session.client()?;
        let there = client.pool(name).await.map_err(failed)?;
        let etag = there.etag.unwrap_or_default();
        let pool = client.replace_pool(name, &input(planned, config), &etag).await.map_err(failed)?;
        Ok(object(planned, &pool))
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        let name = state.text("name").unwrap_or_default();
        let what = || format!("the pool `{name}` cannot be deleted");
        let client = session.client()?;
        let there = match client.pool(name).await {
            Ok(there) => there,
            Err(error) if error.is("no-such-pool") => return Ok(()),
            Err(error) => return Err(told(what(), &error).into()),
        };
        let force =
            state.flag("force_destroy").unwrap_or_default().then_some("terraform destroy with force_destroy");
        match client.delete_pool(name, force, None, &there.etag.unwrap_or_default()).await {
            Ok(deleted) if deleted.owed > 0 => backend::wait_until_closed(client, name).await,
            Ok(_) => Ok(()),
            Err(error) if error.is("no-such-pool") => Ok(()),
            Err(error) if error.is("pool-in-use") => {
                let said = told(what(), &error);
                let detail = format!(
                    "{}\n\nRelease what it holds first, or set `force_destroy` and apply before you destroy.",
                    said.detail
                );
                Err(Diagnostic { detail, ..said }.into())
            }
            Err(error) => Err(told(what(), &error).into()),
        }
    }

    /// From terraform-provider-netaddr, when `netstead import netaddr` made a pool of the range. The next read has the rest.
    fn move_from(&self, source_type: &str, state: &serde_json::Value) -> Option<Object> {
        if !matches!(source_type, "netaddr_range_ipv4" | "netaddr_range_mac") {
            return None;
        }
        let prefix = state.get("key_prefix").and_then(serde_json::Value::as_str)?;
        let name = netstead_providers::netaddr::pool_name(prefix)?;
        Some([("name".to_owned(), name.as_str().into()), ("id".to_owned(), name.as_str().into())].into())
    }
}

fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::required("name", Kind::Text, "The name of the pool.").replaces().check(claims::ident),
        Attribute::either(
            "family",
            Kind::Text,
            "`ipv4`, `ipv6`, `mac` or `prefix`. It follows from the addresses, unless it is `prefix`: such a pool hands out prefixes.",
        )
        .replaces()
        .check(family),
        Attribute::either("vrf", Kind::Text, "The VRF, `default` by default. Pools of different VRFs may overlap.")
            .replaces()
            .default("default")
            .check(claims::ident),
        Attribute::either("network", Kind::Text, "The network: `10.0.3.0/24`.").default(Value::Null).check(cidr),
        Attribute::either(
            "ranges",
            Kind::list_of(Kind::Text),
            "The addresses that are handed out: `10.0.3.50-10.0.3.200`, a CIDR or one address each. Without it, the whole network.",
        )
        .check(range),
        Attribute::either("exclude", Kind::list_of(Kind::Text), "Addresses that are never handed out.")
            .default(Value::Null)
            .check(range),
        Attribute::either("gateway", Kind::Text, "The gateway. It is never handed out.")
            .default(Value::Null)
            .check(claims::address),
        Attribute::either("use_reserved", Kind::Bool, "Hand out network and broadcast addresses too.").default(false),
        Attribute::either("length", Kind::Number, "The length of a prefix when the claim says none (pools of prefixes).")
            .default(Value::Null),
        Attribute::optional(
            "backend",
            Kind::Text,
            "The backend that the addresses come from: a `[backend.NAME]` of the server's file. It decides `family`, `network`, `ranges`, \
             `exclude`, `gateway`, `use_reserved` and `order`, which cannot be set then.",
        )
        .replaces()
        .check(claims::ident),
        Attribute::optional("backend_pool", Kind::Text, "The pool as the backend calls it.").replaces(),
        Attribute::optional("domain", Kind::Text, "The domain of the names in this pool.").check(claims::name),
        Attribute::either("order", Kind::Text, "`lowest` (default), `next`, `random` or `freed-first`.").default("lowest").check(order),
        Attribute::either("cooldown", Kind::Text, "How long a released address rests, `10m` by default.")
            .default("10m")
            .check(claims::span),
        Attribute::either("cooldown_min", Kind::Text, "How long it rests at least when nothing else is free, `1m` by default.")
            .default("1m")
            .check(claims::span),
        Attribute::either("sticky", Kind::Bool, "Whether a key gets its address back while it rests, `true` by default.").default(true),
        Attribute::optional("max_per_owner", Kind::Number, "The most addresses that one owner may hold."),
        Attribute::optional("labels", Kind::map_of(Kind::Text), "Labels, which selectors can ask for."),
        Attribute::optional("description", Kind::Text, "A note for people."),
        Attribute::either("force_destroy", Kind::Bool, "Delete the pool also while addresses of it are held, and release them.")
            .default(false),
        Attribute::computed("id", Kind::Text, "The name."),
    ]
}

fn input(planned: &Object, config: &Object) -> PoolInput {
    let number = |name: &str| planned.int(name);
    let input = PoolInput {
        family: config.text("family").and_then(|text| serde_json::from_value(text.into()).ok()),
        vrf: planned.owned("vrf"),
        network: planned.owned("network"),
        ranges: config.texts("ranges").unwrap_or_default(),
        exclude: planned.texts("exclude").unwrap_or_default(),
        gateway: planned.owned("gateway"),
        use_reserved: planned.flag("use_reserved"),
        length: number("length").and_then(|length| u8::try_from(length).ok()),
        domain: planned.owned("domain"),
        order: planned.text("order").and_then(|text| serde_json::from_value(text.into()).ok()),
        cooldown: planned.owned("cooldown"),
        cooldown_min: planned.owned("cooldown_min"),
        sticky: planned.flag("sticky"),
        max_per_owner: number("max_per_owner").and_then(|most| u32::try_from(most).ok()),
        labels: planned.text_map("labels").unwrap_or_default(),
        description: planned.owned("description"),
        backend: planned.owned("backend"),
        backend_pool: planned.owned("backend_pool"),
    };
    if input.backend.is_none() {
        return input;
    }
    PoolInput {
        family: None,
        network: None,
        ranges: Vec::new(),
        exclude: Vec::new(),
        gateway: None,
        use_reserved: None,
        length: config.int("length").and_then(|length| u8::try_from(length).ok()),
        order: None,
        ..input
    }
}

/// The addresses of a planned pool, as far as they are known.
fn spans(planned: &Object) -> Vec<Range> {
    let ranges = planned.texts("ranges").unwrap_or_default();
    let stated: Vec<Range> = ranges.iter().filter_map(|text| text.parse().ok()).collect();
    if stated.is_empty() {
        planned.text("network").and_then(|text| text.parse().ok()).into_iter().collect()
    } else {
        stated
    }
}

fn values(pool: &PoolOutput) -> Object {
    let list = |items: &[String]| if items.is_empty() { Value::Null } else { items.to_vec().into() };
    let labels = if pool.labels.is_empty() { Value::Null } else { pool.labels.clone().into() };
    [
        ("id", Value::from(pool.name.as_str())),
        ("name", pool.name.as_str().into()),
        ("family", pool.family.to_string().into()),
        ("vrf", pool.vrf.as_str().into()),
        ("network", pool.network.clone().into()),
        ("ranges", pool.ranges.clone().into()),
        ("exclude", list(&pool.exclude)),
        ("gateway", pool.gateway.clone().into()),
        ("use_reserved", pool.use_reserved.into()),
        ("length", pool.length.into()),
        ("domain", pool.domain.clone().into()),
        ("order", pool.order.to_string().into()),
        ("cooldown", pool.cooldown.as_str().into()),
        ("cooldown_min", pool.cooldown_min.as_str().into()),
        ("sticky", pool.sticky.into()),
        ("max_per_owner", pool.max_per_owner.into()),
        ("labels", labels),
        ("description", pool.description.clone().into()),
        ("backend", pool.backend.clone().into()),
        ("backend_pool", pool.backend_pool.clone().into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn object(state: &Object, pool: &PoolOutput) -> Object {
    let mut found = claims::with_stated(state, values(pool), &["force_destroy"]);
    if found.value("force_destroy").is_null() {
        // After an import.
        found.insert("force_destroy".into(), false.into());
    }
    for name in ["ranges", "exclude"] {
        if joined(state.value(name)).is_some_and(|one| Some(one) == joined(found.value(name))) {
            found.insert(name.to_owned(), state.value(name).clone());
        }
    }
    found
}

/// The same addresses in another order, or cut into other ranges, are the same.
fn joined(value: &Value) -> Option<Vec<Range>> {
    let ranges = value.as_texts()?.iter().map(|text| text.parse().ok()).collect::<Option<Vec<Range>>>()?;
    Some(Range::joined(ranges))
}

/// Attributes of a data source: everything but what only a resource has.
fn shown() -> Vec<Attribute> {
    let all = attributes().into_iter().filter(|one| !matches!(one.name, "name" | "force_destroy"));
    let computed = all.map(|one| Attribute::computed(one.name, one.kind, one.description));
    let more = [
        Attribute::computed(
            "size",
            Kind::Text,
            "How many addresses it has. Text, because IPv6 pools are larger than numbers.",
        ),
        Attribute::computed("free", Kind::Text, "How many are free."),
    ];
    computed.chain(more).collect()
}

fn row(pool: &PoolOutput) -> Object {
    let mut row = values(pool);
    row.insert("size".into(), pool.usage.size.as_str().into());
    row.insert("free".into(), pool.usage.free.as_str().into());
    row
}

pub(super) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        "netstead_pool"
    }

    fn schema(&self) -> Schema {
        let name = Attribute::required("name", Kind::Text, "The name of the pool.").check(claims::ident);
        Schema::new("A pool, wherever it was defined.", [name].into_iter().chain(shown()).collect())
    }

    fn example(&self) -> &'static str {
        "data \"netstead_pool\" \"lan\" {\n  name = \"lan\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let name = config.text("name").unwrap_or_default();
        let pool = session.client()?.pool(name).await;
        let pool =
            pool.map_err(|error| told(format!("the pool `{name}` cannot be read"), &error).at("name"))?;
        Ok(row(&pool.value))
    }
}

pub(super) struct List;

#[async_trait]
impl DataSource<Session> for List {
    fn name(&self) -> &'static str {
        "netstead_pools"
    }

    fn schema(&self) -> Schema {
        let fields =
            [("name", Kind::Text)].into_iter().chain(shown().into_iter().map(|one| (one.name, one.kind)));
        Schema::new(
            "Pools, filtered.",
            vec![
                Attribute::optional("selector", Kind::Text, "Only those whose labels match: `site=ams`.")
                    .check(claims::selector),
                Attribute::optional("vrf", Kind::Text, "Only those of this VRF.").check(claims::ident),
                Attribute::computed(
                    "pools",
                    Kind::list_of(Kind::Object(fields.collect())),
                    "The pools, by name.",
                ),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netstead_pools\" \"ams\" {\n  selector = \"site=ams\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let query = PoolQuery {
            selector: config.owned("selector"),
            vrf: config.owned("vrf"),
            ..PoolQuery::default()
        };
        let all =
            session.client()?.all(query).await.map_err(|error| told("the pools cannot be listed", &error))?;
        let rows = all.iter().map(|pool| Value::Map(row(pool))).collect();
        Ok([("pools".to_owned(), Value::List(rows))].into())
    }
}
