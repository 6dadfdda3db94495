//! Data sources that list a range: `netaddr_address_list_*`, `netaddr_range_usage_ipv4` and `netaddr_range_keyspace_*`.

use async_trait::async_trait;
use netstead_providers::netaddr::{Listed, Netaddr, NetaddrError, RangeType, RangeUsage, RawAddress};

use super::{by_type, not_empty, told};
use crate::{
    protocol::{Attribute, DataSource, Failed, Fields as _, Kind, Object, Schema, Value},
    session::Session,
};

fn range_id() -> Attribute {
    Attribute::required("range_id", Kind::Text, "The range: its key prefix.").check(not_empty)
}

fn id() -> Attribute {
    Attribute::computed("id", Kind::Text, "The range.")
}

fn list(name: &'static str, description: &'static str) -> Attribute {
    let entry = Kind::Object(vec![("name", Kind::Text), ("address", Kind::Text)]);
    Attribute::computed(name, Kind::list_of(entry), description)
}

/// Entries as `{ name, address }`, by name.
fn entries(kind: RangeType, named: impl IntoIterator<Item = (String, RawAddress)>) -> Value {
    let entry = |(name, address): (String, RawAddress)| {
        let fields: Object =
            [("name".to_owned(), name.into()), ("address".to_owned(), address.text(kind).into())].into();
        Value::Map(fields)
    };
    Value::List(named.into_iter().map(entry).collect())
}

async fn usage(netaddr: &Netaddr, kind: RangeType, range: &str) -> Result<RangeUsage, Failed> {
    let told = |error: NetaddrError| {
        Failed::from(told(format!("the range `{range}` cannot be read"), &error).at("range_id"))
    };
    let usage = netaddr.usage(range).await.map_err(told)?;
    if usage.info.kind == kind {
        return Ok(usage);
    }
    let (range, found) = (range.to_owned(), usage.info.kind.to_string());
    Err(told(NetaddrError::OtherType { range, found, wanted: kind.as_str() }))
}

async fn names(netaddr: &Netaddr, kind: RangeType, range: &str) -> Result<Value, Failed> {
    let all = netaddr.all_names(range).await;
    let all = all.map_err(|error| told(format!("the range `{range}` cannot be listed"), &error))?;
    Ok(entries(kind, all.into_iter().map(|held| (held.name, held.address))))
}

/// All names of a range.
pub(in crate::resources) struct AddressList(pub(in crate::resources) RangeType);

#[async_trait]
impl DataSource<Session> for AddressList {
    fn name(&self) -> &'static str {
        by_type(self.0, "netaddr_address_list_ipv4", "netaddr_address_list_mac")
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "All names of a range in an etcd, with their addresses.",
            vec![range_id(), id(), list("addresses", "Names and addresses, by name.")],
        )
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => {
                "data \"netaddr_address_list_ipv4\" \"lan\" {\n  range_id = \"/ranges/lan/\"\n}\n"
            }
            RangeType::Mac => {
                "data \"netaddr_address_list_mac\" \"macs\" {\n  range_id = \"/ranges/macs/\"\n}\n"
            }
        }
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (netaddr, range) = (session.netaddr()?, config.text("range_id").unwrap_or_default());
        usage(netaddr, self.0, range).await?;
        let addresses = names(netaddr, self.0, range).await?;
        Ok([("id".to_owned(), range.into()), ("addresses".to_owned(), addresses)].into())
    }
}

/// How full a range is.
pub(in crate::resources) struct Usage;

#[async_trait]
impl DataSource<Session> for Usage {
    fn name(&self) -> &'static str {
        "netaddr_range_usage_ipv4"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "How full a range of IPv4 addresses in an etcd is.",
            vec![
                range_id(),
                id(),
                Attribute::computed("capacity", Kind::Number, "All addresses."),
                Attribute::computed("used_capacity", Kind::Number, "Addresses that names have."),
                Attribute::computed("free_capacity", Kind::Number, "The others."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netaddr_range_usage_ipv4\" \"lan\" {\n  range_id = \"/ranges/lan/\"\n}\n"
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let range = config.text("range_id").unwrap_or_default();
        let RangeUsage { capacity, used, .. } = usage(session.netaddr()?, RangeType::Ipv4, range).await?;
        let count = |number: u128| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        Ok([
            ("id".to_owned(), range.into()),
            ("capacity".to_owned(), count(capacity)),
            ("used_capacity".to_owned(), count(used)),
            ("free_capacity".to_owned(), count(capacity.saturating_sub(used))),
        ]
        .into())
    }
}

/// Everything a range has.
pub(in crate::resources) struct Keyspace(pub(in crate::resources) RangeType);

#[async_trait]
impl DataSource<Session> for Keyspace {
    fn name(&self) -> &'static str {
        by_type(self.0, "netaddr_range_keyspace_ipv4", "netaddr_range_keyspace_mac")
    }

    fn schema(&self) -> Schema {
        let text = |name, description| Attribute::computed(name, Kind::Text, description);
        Schema::new(
            "Everything that a range in an etcd has: bounds, pointer, names, and addresses by how they were given.",
            vec![
                range_id(),
                id(),
                text("first_address", "The first address."),
                text("last_address", "The last address."),
                text("next_address", "The next address that was never given."),
                list("addresses", "Names and addresses, by name."),
                list("generated_addresses", "Addresses that were given in turn."),
                list("hardcoded_addresses", "Addresses that were asked for."),
                list("deleted_addresses", "Addresses that were given back, with their last names."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => {
                "data \"netaddr_range_keyspace_ipv4\" \"lan\" {\n  range_id = \"/ranges/lan/\"\n}\n"
            }
            RangeType::Mac => {
                "data \"netaddr_range_keyspace_mac\" \"macs\" {\n  range_id = \"/ranges/macs/\"\n}\n"
            }
        }
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (netaddr, range) = (session.netaddr()?, config.text("range_id").unwrap_or_default());
        let RangeUsage { info, next, .. } = usage(netaddr, self.0, range).await?;
        let text = |address: &RawAddress| Value::from(address.text(self.0));
        let mut object: Object = [
            ("id".to_owned(), range.into()),
            ("first_address".to_owned(), text(&info.first)),
            ("last_address".to_owned(), text(&info.last)),
            ("next_address".to_owned(), text(&next)),
            ("addresses".to_owned(), names(netaddr, self.0, range).await?),
        ]
        .into();
        for (name, list) in [
            ("generated_addresses", Listed::Generated),
            ("hardcoded_addresses", Listed::Hardcoded),
            ("deleted_addresses", Listed::Deleted),
        ] {
            let listed = netaddr.list(range, list).await;
            let listed =
                listed.map_err(|error| told(format!("the range `{range}` cannot be listed"), &error))?;
            object.insert(
                name.to_owned(),
                entries(self.0, listed.into_iter().map(|one| (one.name, one.address))),
            );
        }
        Ok(object)
    }
}
