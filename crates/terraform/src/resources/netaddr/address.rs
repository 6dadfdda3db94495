//! `netaddr_address_ipv4` and `netaddr_address_mac`: an address of one range.

use async_trait::async_trait;
use netstead_providers::netaddr::{NetaddrError, RangeType};

use super::{
    Wanted, address_attributes, by_type, fixed, found, import, not_empty, plan_known, release, takes_over,
    told,
};
use crate::{
    protocol::{
        Attribute, Change, DataSource, Diagnostic, Failed, Fields as _, Kind, Object, Resource, Schema,
    },
    session::Session,
};

/// An address of this type.
pub(in crate::resources) struct Address(pub(in crate::resources) RangeType);

impl Address {
    fn wanted<'a>(&self, planned: &'a Object) -> Option<Wanted<'a>> {
        Some(Wanted {
            ranges: vec![planned.owned("range_id")?],
            kind: self.0,
            name: planned.text("name")?,
            fixed: fixed(self.0, planned),
        })
    }
}

#[async_trait]
impl Resource<Session> for Address {
    fn name(&self) -> &'static str {
        by_type(self.0, "netaddr_address_ipv4", "netaddr_address_mac")
    }

    fn schema(&self) -> Schema {
        let mut attributes = address_attributes(self.0);
        attributes.push(
            Attribute::required("range_id", Kind::Text, "The range: its key prefix.")
                .replaces()
                .check(not_empty),
        );
        Schema::new("An address of a range in an etcd, as terraform-provider-netaddr has it.", attributes)
    }

    fn identity(&self) -> &'static [&'static str] {
        &["range_id", "name"]
    }

    fn import_form(&self) -> &'static str {
        "RANGE_ID|NAME"
    }

    fn import(&self, id: &str) -> Option<Object> {
        let (range, name) = import(id)?;
        Some([("range_id".to_owned(), range.into()), ("name".to_owned(), name.into())].into())
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => include_str!("../../../examples/netaddr_address_ipv4.tf"),
            RangeType::Mac => include_str!("../../../examples/netaddr_address_mac.tf"),
        }
    }

    async fn plan(&self, session: Option<&Session>, change: Change<'_>) -> Vec<Diagnostic> {
        let Change { prior: None, planned, config } = change else { return Vec::new() };
        plan_known(self.0, planned);
        let complete =
            ["name", "range_id", "hardcoded_address"].iter().all(|name| config.value(name).is_known());
        let (Some(session), Some(wanted), true) = (session, self.wanted(planned), complete) else {
            return Vec::new();
        };
        match session.netaddr() {
            Ok(netaddr) => wanted.foresee(netaddr, takes_over(session, planned)).await,
            Err(missing) => vec![missing],
        }
    }

    async fn create(&self, session: &Session, planned: &Object, _: &Object) -> Result<Object, Failed> {
        let netaddr = session.netaddr()?;
        let Some(wanted) = self.wanted(planned) else { return Ok(planned.clone()) };
        let (_, address) = wanted.create(netaddr, takes_over(session, planned)).await?;
        let mut made = planned.clone();
        made.insert("id".into(), wanted.name.into());
        made.insert("address".into(), address.text(self.0).into());
        Ok(made)
    }

    async fn read(&self, session: &Session, state: &Object) -> Result<Option<Object>, Failed> {
        found(session.netaddr()?, self.0, state, state.text("range_id").unwrap_or_default()).await
    }

    async fn update(
        &self,
        _: &Session,
        prior: &Object,
        planned: &Object,
        _: &Object,
    ) -> Result<Object, Failed> {
        // Only the two flags change in place, and they are Terraform's alone.
        let mut changed = prior.clone();
        changed.extend(planned.clone());
        Ok(changed)
    }

    async fn delete(&self, session: &Session, state: &Object) -> Result<(), Failed> {
        release(session.netaddr()?, self.0, state, state.text("range_id").unwrap_or_default()).await
    }
}

/// The address of a name.
pub(in crate::resources) struct Lookup(pub(in crate::resources) RangeType);

#[async_trait]
impl DataSource<Session> for Lookup {
    fn name(&self) -> &'static str {
        Address(self.0).name()
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The address that a name has in a range of an etcd.",
            vec![
                Attribute::required("range_id", Kind::Text, "The range: its key prefix.").check(not_empty),
                Attribute::required("name", Kind::Text, "The name.").check(not_empty),
                Attribute::computed("id", Kind::Text, "The name."),
                Attribute::computed("address", Kind::Text, "The address."),
            ],
        )
    }

    fn example(&self) -> &'static str {
        match self.0 {
            RangeType::Ipv4 => {
                "data \"netaddr_address_ipv4\" \"dns\" {\n  range_id = \"/ranges/lan/\"\n  name     = \"dns-1\"\n}\n"
            }
            RangeType::Mac => {
                "data \"netaddr_address_mac\" \"dns\" {\n  range_id = \"/ranges/macs/\"\n  name     = \"dns-1\"\n}\n"
            }
        }
    }

    async fn read(&self, session: &Session, config: &Object) -> Result<Object, Failed> {
        let (range, name) =
            (config.text("range_id").unwrap_or_default(), config.text("name").unwrap_or_default());
        let looked = session.netaddr()?.look_up(range, Some(self.0), name).await;
        let (_, held) = looked.map_err(|error| {
            let at = if matches!(error, NetaddrError::NoRange { .. }) { "range_id" } else { "name" };
            told(format!("`{name}` cannot be read"), &error).at(at)
        })?;
        let Some(held) = held else {
            let said = format!("`{name}` has no address in the range `{range}`");
            return Err(Diagnostic::error(said, "Look at the name, or at the order of applies.")
                .at("name")
                .into());
        };
        Ok([("id".to_owned(), name.into()), ("address".to_owned(), held.address.text(self.0).into())].into())
    }
}
