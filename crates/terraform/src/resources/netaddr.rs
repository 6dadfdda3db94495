//! The resources and data sources of terraform-provider-netaddr, on the same keyspace of an etcd.
//!
//! `netaddr/range.rs`, `netaddr/address.rs` and `netaddr/address_v2.rs` have the resources with the data source of the same name;
//! `netaddr/lists.rs` has the data sources that list a range.

mod address;
mod address_v2;
mod lists;
mod range;

use netstead_providers::netaddr::{Netaddr, NetaddrError, Obstacle, RangeType, RawAddress};

pub(super) use self::{
    address::{Address, Lookup as AddressLookup},
    address_v2::{AddressV2, Lookup as AddressV2Lookup},
    lists::{AddressList, Keyspace, Usage},
    range::{Lookup as RangeLookup, Range},
};
use crate::{
    protocol::{Attribute, Diagnostic, Failed, Fields as _, Kind, Object, Value, sentence},
    session::Session,
};

/// The name of a type, by the type of its ranges.
fn by_type(kind: RangeType, ipv4: &'static str, mac: &'static str) -> &'static str {
    match kind {
        RangeType::Ipv4 => ipv4,
        RangeType::Mac => mac,
    }
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("it is empty".into()) } else { Ok(()) }
}

fn ipv4(text: &str) -> Result<(), String> {
    RawAddress::parse(RangeType::Ipv4, text).map(drop)
}

fn mac(text: &str) -> Result<(), String> {
    RawAddress::parse(RangeType::Mac, text).map(drop)
}

/// The attributes of every address but its ranges.
fn address_attributes(kind: RangeType) -> Vec<Attribute> {
    vec![
        Attribute::computed("id", Kind::Text, "The name."),
        Attribute::required("name", Kind::Text, "The name that holds the address; unique in its ranges.")
            .replaces()
            .check(not_empty),
        Attribute::optional(
            "hardcoded_address",
            Kind::Text,
            "This address or none. Without it, the lowest that was given back, else the next one.",
        )
        .replaces()
        .check(match kind {
            RangeType::Ipv4 => ipv4,
            RangeType::Mac => mac,
        }),
        Attribute::computed("address", Kind::Text, "The address."),
        Attribute::either(
            "retain_on_delete",
            Kind::Bool,
            "A destroy leaves the address with its name. `false` by default.",
        )
        .default(false),
        Attribute::either(
            "manage_existing",
            Kind::Bool,
            "A creation takes over an address that the name holds already. `false` by default.",
        )
        .default(false),
    ]
}

/// `what` names the resource.
fn told(what: impl Into<String>, error: &NetaddrError) -> Diagnostic {
    let next = match error {
        NetaddrError::Unavailable { .. } => {
            "\n\nIs etcd running, and are `endpoints` (ETCDCTL_ENDPOINTS) right? An endpoint without `http://` means TLS. Nothing was \
             changed: apply again when it answers."
        }
        NetaddrError::Unknown { .. } => {
            "\n\nApply again: what was made by this apply is taken up, and nothing is made twice."
        }
        NetaddrError::Denied { .. } => {
            "\n\nSee `username` (ETCDCTL_USERNAME), `password` (ETCDCTL_PASSWORD), `cert` and `key` of the provider."
        }
        NetaddrError::Full { .. } => {
            "\n\nMake the range larger: a new `last_address` changes it in place. Or release what is not needed."
        }
        NetaddrError::Overlaps { .. } => {
            "\n\nTwo ranges under the same path would give the same address twice. Change the bounds, or set `strict = false` in the provider \
             block if that is on purpose."
        }
        NetaddrError::InUse { .. } => "\n\nA range in use is not deleted. Release its addresses first.",
        NetaddrError::NameTaken { .. } => {
            "\n\nSet `manage_existing = true` to take it over, or import it: `terraform import ADDRESS 'RANGE|NAME'`."
        }
        _ => "",
    };
    let said = Diagnostic::error(what, format!("{}{next}", sentence(&error.to_string())));
    match error {
        NetaddrError::NameTaken { .. } => said.at("name"),
        NetaddrError::AddressTaken { .. } | NetaddrError::Outside { .. } => said.at("hardcoded_address"),
        _ => said,
    }
}

/// The subject of a creation.
struct Wanted<'a> {
    ranges: Vec<String>,
    kind: RangeType,
    name: &'a str,
    fixed: Option<RawAddress>,
}

impl Wanted<'_> {
    fn words(&self) -> String {
        format!("`{}` gets no address", self.name)
    }

    /// Looks at a creation that is planned. What the same apply may change is a warning.
    async fn foresee(&self, netaddr: &Netaddr, takes_over: bool) -> Vec<Diagnostic> {
        let seen = netaddr.foresee(&self.ranges, self.kind, self.name, self.fixed.as_ref()).await;
        let same_apply = "Unless the same apply makes room, this will fail.";
        match seen {
            // A range that the same apply makes is not there yet.
            Ok(None) | Err(NetaddrError::NoRange { .. }) => Vec::new(),
            Ok(Some(Obstacle::Name { range, address })) => {
                if takes_over || netaddr.was_cut_off(&range, self.name).await.unwrap_or_default() {
                    return Vec::new();
                }
                let detail = format!(
                    "In the range `{range}`. Unless the same apply releases it, this will fail: set `manage_existing = true` to take it over, or \
                     import it as `{range}|{}`.",
                    self.name
                );
                let address = address.text(self.kind);
                vec![Diagnostic::warning(format!("`{}` has {address} already", self.name), detail).at("name")]
            }
            Ok(Some(Obstacle::Address { range, name })) => {
                let address = self.fixed.as_ref().map(|fixed| fixed.text(self.kind)).unwrap_or_default();
                let said = format!("{address} belongs to `{name}`");
                let detail = format!("In the range `{range}`. {same_apply}");
                vec![Diagnostic::warning(said, detail).at("hardcoded_address")]
            }
            Ok(Some(Obstacle::Full)) => {
                let said = format!("no address is free for `{}`", self.name);
                let detail = format!("In {}. {same_apply}", self.ranges.join(", "));
                vec![Diagnostic::warning(said, detail)]
            }
            Err(error) => vec![told(self.words(), &error)],
        }
    }

    /// Makes it, or takes over what the name holds if `takes_over`, or if its creation was cut off.
    async fn create(&self, netaddr: &Netaddr, takes_over: bool) -> Result<(String, RawAddress), Failed> {
        let failed = |error: NetaddrError| Failed::from(told(self.words(), &error));
        let (name, kind) = (self.name, self.kind);
        let claimed = match &self.fixed {
            Some(fixed) => netaddr.claim_fixed(&self.ranges, kind, name, fixed).await,
            None => netaddr.claim(&self.ranges, Some(kind), name).await,
        };
        let claimed = claimed.map_err(failed)?;
        if claimed.made {
            return Ok((claimed.range, claimed.address));
        }
        let (range, address) = (claimed.range, claimed.address);
        let fits = match &self.fixed {
            Some(fixed) => address == *fixed,
            None => !netaddr.is_fixed(&range, name, &address).await.map_err(failed)?,
        };
        let may = fits && (takes_over || netaddr.was_cut_off(&range, name).await.map_err(failed)?);
        if may {
            return Ok((range, address));
        }
        let address = address.text(kind);
        Err(failed(NetaddrError::NameTaken { name: name.to_owned(), range, address }))
    }
}

/// Whether a creation may take over what is there.
fn takes_over(session: &Session, planned: &Object) -> bool {
    planned.flag("manage_existing").unwrap_or_default() || !session.is_strict()
}

fn fixed(kind: RangeType, planned: &Object) -> Option<RawAddress> {
    planned.text("hardcoded_address").and_then(|text| RawAddress::parse(kind, text).ok())
}

/// Plans what is known of an address before it is made.
fn plan_known(kind: RangeType, planned: &mut Object) {
    if planned.value("name").is_known() {
        planned.insert("id".into(), planned.value("name").clone());
    }
    if let Some(fixed) = fixed(kind, planned) {
        planned.insert("address".into(), fixed.text(kind).into());
    }
}

/// An address as it was found. After an import its kind is not known yet.
async fn found(
    netaddr: &Netaddr,
    kind: RangeType,
    state: &Object,
    range: &str,
) -> Result<Option<Object>, Failed> {
    let name = state.text("name").unwrap_or_default();
    let what = || format!("`{name}` of the range `{range}` cannot be read");
    let held = match netaddr.look_up(range, Some(kind), name).await {
        Ok((_, held)) => held,
        Err(NetaddrError::NoRange { .. }) => return Ok(None),
        Err(error) => return Err(told(what(), &error).into()),
    };
    let Some(held) = held else { return Ok(None) };
    let mut object = state.clone();
    let imported = state.value("address").is_null();
    if imported && netaddr.is_fixed(range, name, &held.address).await.map_err(|error| told(what(), &error))? {
        object.insert("hardcoded_address".into(), held.address.text(kind).into());
    }
    object.insert("id".into(), name.into());
    object.insert("address".into(), held.address.text(kind).into());
    for flag in ["retain_on_delete", "manage_existing"] {
        if state.value(flag).is_null() {
            object.insert(flag.into(), Value::Bool(false));
        }
    }
    Ok(Some(object))
}

/// Gives the address in `state` back, unless it is to be retained.
async fn release(netaddr: &Netaddr, kind: RangeType, state: &Object, range: &str) -> Result<(), Failed> {
    if state.flag("retain_on_delete").unwrap_or_default() {
        return Ok(());
    }
    let name = state.text("name").unwrap_or_default();
    let Some(address) = state.text("address").and_then(|text| RawAddress::parse(kind, text).ok()) else {
        return Ok(());
    };
    match netaddr.release(range, name, &address, None).await {
        Ok(_) | Err(NetaddrError::NoRange { .. }) => Ok(()),
        Err(error) => {
            Err(told(format!("{} of `{name}` cannot be released", address.text(kind)), &error).into())
        }
    }
}

/// `RANGE|NAME`.
fn import(id: &str) -> Option<(&str, &str)> {
    id.split_once('|').filter(|(range, name)| !range.is_empty() && !name.is_empty())
}
