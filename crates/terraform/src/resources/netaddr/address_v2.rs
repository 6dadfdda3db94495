//! `netaddr_address_ipv4_v2`: an address of the first of several ranges with room.

use async_trait::async_trait;
use netstead_providers::netaddr::{MOST_RANGES, NetaddrError, RangeType};

use super::{
    Wanted, address_attributes, fixed, found, import, not_empty, plan_known, release, takes_over, told,
};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema,
    },
    session::Session,
};

const KIND: RangeType = RangeType::Ipv4;
const NAME: &str = "netaddr_address_ipv4_v2";

pub(in crate::resources) struct AddressV2;

/// The ranges in order: a set has none, so they are filled in the order of their names.
fn ranges(object: &Object) -> Option<Vec<String>> {
    let mut ranges = object.texts("range_ids")?;
    ranges.sort();
    ranges.dedup();
    Some(ranges)
}

fn wanted(planned: &Object) -> Option<Wanted<'_>> {
    let (ranges, name) = (ranges(planned)?, planned.text("name")?);
    Some(Wanted { ranges, kind: KIND, name, fixed: fixed(KIND, planned) })
}

fn range_ids() -> Attribute {
    Attribute::required(
        "range_ids",
        Kind::set_of(Kind::Text),
        "Ranges by their key prefixes. They are filled one after the other, in the order of their names. The name is unique in all of \
         them.",
    )
    .check(not_empty)
}

fn check_ranges(config: &Object) -> Vec<Diagnostic> {
    let wrong = |detail: String| vec![Diagnostic::error("`range_ids` is not usable", detail).at("range_ids")];
    match config.texts("range_ids").map(|ranges| ranges.len()) {
        Some(0) => wrong("Name at least one range.".into()),
        Some(count) if count > MOST_RANGES => {
            wrong(format!("There are {count} ranges; a name can choose from {MOST_RANGES}."))
        }
        _ => Vec::new(),
    }
}

#[async_trait]
impl Resource<Session> for AddressV2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schema(&self) -> Schema {
        let mut attributes = address_attributes(KIND);
        attributes.extend([
            range_ids().replaces(),
            Attribute::computed("found_in_range", Kind::Text, "The range that the address is from."),
        ]);
        Schema::new(
            "An address of the first of several ranges with room, as terraform-provider-netaddr has it. A change of the ranges that still has \
             the one of the address changes nothing else.",
            attributes,
        )
    }

    fn identity(&self) -> &'static [&'static str] {
        &["found_in_range", "name"]
    }

    fn import_form(&self) -> &'static str {
        "RANGE_ID|NAME"
    }

    fn import(&self, id: &str) -> Option<Object> {
        let (range, name) = import(id)?;
        Some(
            [
                ("range_ids".to_owned(), vec![range].into()),
                ("found_in_range".to_owned(), range.into()),
                ("name".to_owned(), name.into()),
            ]
            .into(),
        )
    }

    fn example(&self) -> &'static str {
        include_str!("../../../examples/netaddr_address_ipv4_v2.tf")
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        check_ranges(config)
    }

    async fn replaces(&self, _: Option<&Session>, attribute: &str, prior: &Object, planned: &Object) -> bool {
        if attribute != "range_ids" {
            return true;
        }
        let there = prior.text("found_in_range");
        !ranges(planned).is_some_and(|ranges| ranges.iter().any(|range| Some(range.as_str()) == there))
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Change { prior: None, planned, config } = change else { return Vec::new() };
        plan_known(KIND, planned);
        let complete =
            ["name", "range_ids", "hardcoded_address"].iter().all(|name| config.value(name).is_known());
        let (Some(session), Some(wanted), true) = (session, wanted(planned), complete) else {
            return Vec::new();
        };
        match session.netaddr() {
            Ok(netaddr) => wanted.foresee(netaddr, takes_over(session, planned)).await,
            Err(missing) => vec![missing],
        }
    }

    async fn create(&self, session: &Session, planned: &Object, _: &Object) -> Result<Object, Failed> {
        let netaddr = session.netaddr()?;
        let Some(wanted) = wanted(planned) else { return Ok(planned.clone()) };
        let (range, address) = wanted.create(netaddr, takes_over(session, planned)).await?;
        let mut made = planned.clone();
        made.insert("id".into(), wanted.name.into());
        made.insert("address".into(), address.text(KIND).into());
        made.insert("found_in_range".into(), range.into());
        Ok(made)
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        let range = state.text("found_in_range").unwrap_or_default();
        let found = found(session.netaddr()?, KIND, state, range).await?;
        Ok(found.map(|mut object| {
            if object.value("range_ids").is_null() {
                object.insert("range_ids".into(), vec![range].into());
            }
            object
        }))
    }

    async fn update(
        &self,
        _: &Session,
        prior: &Object,
        planned: &Object,
        _: &Object,
    ) -> Result<Object, Failed> {
        let mut changed = prior.clone();
        changed.extend(planned.clone());
        Ok(changed)
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        release(session.netaddr()?, KIND, state, state.text("found_in_range").unwrap_or_default()).await
    }
}

/// The address of a name, in any of several ranges.
pub(in crate::resources) struct Lookup;

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The address that a name has in one of several ranges of an etcd.",
            vec![
                range_ids(),
                Attribute::required("name", Kind::Text, "The name.").check(not_empty),
                Attribute::computed("id", Kind::Text, "The name."),
                Attribute::computed("address", Kind::Text, "The address."),
                Attribute::computed("found_in_range", Kind::Text, "The range that the address is from."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        "data \"netaddr_address_ipv4_v2\" \"dns\" {\n  range_ids = [\"/ranges/lan/\", \"/ranges/lab/\"]\n  name      = \"dns-1\"\n}\n"
    }

    fn validate(&self, config: &Object) -> Vec<Diagnostic> {
        check_ranges(config)
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (netaddr, name) = (session.netaddr()?, config.text("name").unwrap_or_default());
        let ranges = ranges(config).unwrap_or_default();
        for range in &ranges {
            let looked = netaddr.look_up(range, Some(KIND), name).await;
            let (_, held) = looked.map_err(|error| {
                let at = if matches!(error, NetaddrError::NoRange { .. }) { "range_ids" } else { "name" };
                told(format!("`{name}` cannot be read"), &error).at(at)
            })?;
            if let Some(held) = held {
                return Ok([
                    ("id".to_owned(), name.into()),
                    ("address".to_owned(), held.address.text(KIND).into()),
                    ("found_in_range".to_owned(), range.as_str().into()),
                ]
                .into());
            }
        }
        let said = format!("`{name}` has no address in {}", ranges.join(", "));
        Err(Diagnostic::error(said, "Look at the name, or at the order of applies.").at("name").into())
    }
}
