//! `netaddr_range_ipv4` and `netaddr_range_mac`.

use async_trait::async_trait;
use netstead_providers::netaddr::{Netaddr, NetaddrError, NewRange, RangeInfo, RangeType};

use super::{by_type, ipv4, mac, not_empty, told};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema,
        sentence,
    },
    session::Session,
};

/// A range of addresses of this type.
pub(in crate::resources) struct Range(pub(in crate::resources) RangeType);

#[async_trait]
impl Resource<Session> for Range {
    fn name(&self) -> &'static str {
        by_type(self.0, "netaddr_range_ipv4", "netaddr_range_mac")
    }

    fn schema(&self) -> Schema {
        let check = match self.0 {
            RangeType::Ipv4 => ipv4,
            RangeType::Mac => mac,
        };
        Schema::new(
            "A range of addresses in an etcd, as terraform-provider-netaddr has it. New bounds change it in place, as long as every \
             address in use stays inside. A range in use is not deleted.",
            vec![
                Attribute::computed("id", Kind::Text, "The key prefix."),
                Attribute::required(
                    "key_prefix",
                    Kind::Text,
                    "What the keys of the range begin with, with a slash at its end: `/ranges/lan/`.",
                )
                .replaces()
                .check(not_empty),
                Attribute::required("first_address", Kind::Text, "The first address.").check(check),
                Attribute::required("last_address", Kind::Text, "The last address.").check(check),
            ],
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["key_prefix"]
    }

    fn import_form(&self) -> &'static str {
        "KEY_PREFIX"
    }

    fn import(&self, id: &str) -> Option<Object> {
        (!id.is_empty()).then(|| [("key_prefix".to_owned(), id.into()), ("id".to_owned(), id.into())].into())
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => include_str!("../../../examples/netaddr_range_ipv4.tf"),
            RangeType::Mac => include_str!("../../../examples/netaddr_range_mac.tf"),
        }
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        let (Some(first), Some(last)) = (config.text("first_address"), config.text("last_address")) else {
            return Vec::new();
        };
        let each = [first, last]
            .iter()
            .all(|text| netstead_providers::netaddr::RawAddress::parse(self.0, text).is_ok());
        match NewRange::parse("", self.0, first, last) {
            Err(reason) if each => {
                vec![Diagnostic::error("the range is not usable", sentence(&reason)).at("last_address")]
            }
            _ => Vec::new(),
        }
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Change { prior, planned, .. } = change;
        if prior.is_none() && planned.value("key_prefix").is_known() {
            planned.insert("id".into(), planned.value("key_prefix").clone());
        }
        let Some(session) = session else { return Vec::new() };
        let netaddr = match session.netaddr() {
            Ok(netaddr) => netaddr,
            Err(missing) => return vec![missing],
        };
        let Some(wanted) = wanted(self.0, planned) else { return Vec::new() };
        let changed = prior.is_none_or(|prior| {
            ["first_address", "last_address"].iter().any(|name| prior.value(name) != planned.value(name))
        });
        if !changed {
            return Vec::new();
        }
        let mut found = overlaps(netaddr, &wanted, session.is_strict()).await;
        if prior.is_none() && matches!(netaddr.range(&wanted.prefix).await, Ok(Some(_))) {
            let said = format!("the range `{}` exists already", wanted.prefix);
            let detail = "One that is exactly as configured and unused is taken over; else this will fail. To take it over on purpose, import \
                          it by its key prefix.";
            found.push(Diagnostic::warning(said, detail).at("key_prefix"));
        }
        found
    }

    async fn create(&self, session: &Session, planned: &Object, _: &Object) -> Result<Object, Failed> {
        let netaddr = session.netaddr()?;
        let Some(wanted) = wanted(self.0, planned) else { return Err(unusable()) };
        let made = if session.is_strict() {
            netaddr.create_range_alone(&wanted).await
        } else {
            netaddr.create_range(&wanted).await
        };
        match made {
            Ok(()) => {}
            Err(NetaddrError::RangeExists { .. }) if may_take(netaddr, &wanted, session).await => {}
            Err(error) => {
                let said = format!("the range `{}` cannot be made", wanted.prefix);
                return Err(told(said, &error).at("key_prefix").into());
            }
        }
        let mut made = planned.clone();
        made.insert("id".into(), wanted.prefix.into());
        Ok(made)
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let prefix = state.text("key_prefix").or(state.text("id")).unwrap_or_default();
        let found = look_up(session.netaddr()?, self.0, prefix).await?;
        Ok(found.map(|info| {
            let mut object = values(self.0, prefix, &info);
            // The user's own spelling of an address is no drift.
            for name in ["first_address", "last_address"] {
                let stated = state
                    .text(name)
                    .and_then(|text| netstead_providers::netaddr::RawAddress::parse(self.0, text).ok());
                let there = if name == "first_address" { &info.first } else { &info.last };
                if stated.as_ref() == Some(there) {
                    object.insert(name.to_owned(), state.value(name).clone());
                }
            }
            object
        }))
    }

    async fn update(
        &self,
        session: &Session,
        _: &Object,
        planned: &Object,
        _: &Object,
    ) -> Result<Object, Failed> {
        let Some(wanted) = wanted(self.0, planned) else { return Err(unusable()) };
        let netaddr = session.netaddr()?;
        // The plan looked too. Another range of the same apply may be there now.
        let overlaps = overlaps(netaddr, &wanted, session.is_strict()).await;
        if let Some(said) = overlaps.into_iter().find(|said| !said.warning) {
            return Err(said.into());
        }
        netaddr.resize_range(&wanted).await.map_err(|error| {
            told(format!("the range `{}` cannot be changed", wanted.prefix), &error).at("last_address")
        })?;
        Ok(planned.clone())
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        let prefix = state.text("key_prefix").unwrap_or_default();
        let deleted = session.netaddr()?.delete_range(prefix).await;
        deleted.map(drop).map_err(|error| {
            told(format!("the range `{prefix}` cannot be deleted"), &error).at("key_prefix").into()
        })
    }
}

fn unusable() -> Failed {
    Diagnostic::error("the range is not usable", "Its addresses do not fit together.").into()
}

fn wanted(kind: RangeType, planned: &Object) -> Option<NewRange> {
    let text = |name| planned.text(name);
    NewRange::parse(text("key_prefix")?, kind, text("first_address")?, text("last_address")?).ok()
}

/// A range that is as wanted and from which nothing was given: made by an apply that was cut off. Without `strict`, any of this type.
async fn may_take(netaddr: &Netaddr, wanted: &NewRange, session: &Session) -> bool {
    let Ok(usage) = netaddr.usage(&wanted.prefix).await else { return false };
    let RangeInfo { kind, first, last } = usage.info;
    let same = kind == wanted.kind && first == wanted.first && last == wanted.last;
    (same && usage.used == 0 && usage.next == first) || (!session.is_strict() && kind == wanted.kind)
}

async fn overlaps(netaddr: &Netaddr, wanted: &NewRange, strict: bool) -> Vec<Diagnostic> {
    let others = netaddr.overlapping(wanted).await.unwrap_or_default();
    if others.is_empty() {
        return Vec::new();
    }
    let said = format!("the range `{}` overlaps with `{}`", wanted.prefix, others.join("`, `"));
    let detail = "Two ranges under the same path would give the same address twice. Change the bounds, or set `strict = false` in the \
                  provider block if that is on purpose.";
    let said = if strict { Diagnostic::error(said, detail) } else { Diagnostic::warning(said, detail) };
    vec![said.at("first_address")]
}

async fn look_up(netaddr: &Netaddr, kind: RangeType, prefix: &str) -> Result<Option<RangeInfo>, Failed> {
    let what = || format!("the range `{prefix}` cannot be read");
    let found = netaddr.range(prefix).await.map_err(|error| told(what(), &error).at("key_prefix"))?;
    match found {
        Some(info) if info.kind != kind => {
            let (range, found) = (prefix.to_owned(), info.kind.to_string());
            let error = NetaddrError::OtherType { range, found, wanted: kind.as_str() };
            Err(told(what(), &error).at("key_prefix").into())
        }
        found => Ok(found),
    }
}

fn values(kind: RangeType, prefix: &str, info: &RangeInfo) -> Object {
    [
        ("id".to_owned(), prefix.into()),
        ("key_prefix".to_owned(), prefix.into()),
        ("first_address".to_owned(), info.first.text(kind).into()),
        ("last_address".to_owned(), info.last.text(kind).into()),
    ]
    .into()
}

/// A range that is there.
pub(in crate::resources) struct Lookup(pub(in crate::resources) RangeType);

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        Range(self.0).name()
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A range of addresses in an etcd.",
            vec![
                Attribute::required("key_prefix", Kind::Text, "What its keys begin with.").check(not_empty),
                Attribute::computed("id", Kind::Text, "The key prefix."),
                Attribute::computed("first_address", Kind::Text, "The first address."),
                Attribute::computed("last_address", Kind::Text, "The last address."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => "data \"netaddr_range_ipv4\" \"lan\" {\n  key_prefix = \"/ranges/lan/\"\n}\n",
            RangeType::Mac => "data \"netaddr_range_mac\" \"macs\" {\n  key_prefix = \"/ranges/macs/\"\n}\n",
        }
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let prefix = config.text("key_prefix").unwrap_or_default();
        if let Some(info) = look_up(session.netaddr()?, self.0, prefix).await? {
            Ok(values(self.0, prefix, &info))
        } else {
            let error = NetaddrError::NoRange { range: prefix.to_owned() };
            Err(told("the range cannot be read", &error).at("key_prefix").into())
        }
    }
}
