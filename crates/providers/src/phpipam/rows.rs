//! Subnets and addresses as phpIPAM's lists have them: numbers are numbers or texts, and custom fields may have an object of
//! their own.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Ipv6Addr},
};

use netstead_model::{Address, Cidr, Kind, Range};
use serde_json::{Map, Value};

use super::{KeyField, Marks, text::clean};

/// The tag `Used`, which an address has unless it says otherwise.
const TAG_USED: i64 = 2;

/// A subnet that holds addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) section: String,
    pub(crate) cidr: Cidr,
    pub(crate) description: String,
    pub(crate) vrf: String,
    /// Network and broadcast address are handed out, too.
    pub(crate) is_pool: bool,
    pub(crate) gateway: Option<Address>,
}

impl Subnet {
    /// The subnet of a row; none if it is a folder. An error is a sentence for people.
    pub(crate) fn read(row: &Map<String, Value>) -> Result<Option<Self>, String> {
        if is_set(row.get("isFolder")) {
            return Ok(None);
        }
        let id = number(row, "id").ok_or("a subnet without an id")?;
        let (base, mask) = (text(row.get("subnet")), text(row.get("mask")));
        let cidr =
            format!("{base}/{mask}").parse::<Cidr>().map_err(|error| format!("subnet {id}: {error}"))?;
        let gateway = row.get("gateway").and_then(|gateway| gateway.get("ip_addr"));
        Ok(Some(Self {
            id,
            section: text(row.get("sectionId")),
            cidr,
            description: clean(&text(row.get("description"))),
            vrf: text(row.get("vrfId")),
            is_pool: is_set(row.get("isPool")),
            gateway: gateway.and_then(|gateway| address(&text(Some(gateway)))),
        }))
    }

    /// The addresses that it hands out.
    pub(crate) fn hosts(&self) -> Range {
        let (first, last) = (self.cidr.first(), self.cidr.last());
        let whole = || Range::new(first, last).unwrap_or_else(|_| Range::single(first));
        let inner = self.cidr.kind() == Kind::V4 && self.cidr.len() < 31 && !self.is_pool;
        let inside = first.succ().zip(last.pred()).filter(|_| inner);
        inside.and_then(|(first, last)| Range::new(first, last).ok()).unwrap_or_else(whole)
    }
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressRow {
    pub(crate) id: String,
    pub(crate) subnet: String,
    pub(crate) address: Address,
    pub(crate) tag: i64,
    pub(crate) marks: Marks,
    /// Clean texts; one that is empty is not there. The text beside our marks is that of the field that has them.
    pub(crate) fields: BTreeMap<String, String>,
    /// Whether it has the field for our marks.
    pub(crate) has_key_field: bool,
}

impl AddressRow {
    /// An error is a sentence for people.
    pub(crate) fn read(row: &Map<String, Value>, key_field: &KeyField) -> Result<Self, String> {
        let id = number(row, "id").ok_or("an address without an id")?;
        let written = text(row.get("ip").or_else(|| row.get("ip_addr")));
        let address = address(&written).ok_or_else(|| format!("address {id} is `{written}`"))?;
        let custom = row.get("custom_fields").and_then(Value::as_object);
        let mut all: BTreeMap<&str, String> = BTreeMap::new();
        for (name, value) in row.iter().chain(custom.into_iter().flatten()) {
            if !value.is_object() && !value.is_array() {
                all.insert(name, text(Some(value)));
            }
        }
        let marks = Marks::read(all.get(key_field.name()).map_or("", String::as_str));
        let has_key_field = all.contains_key(key_field.name());
        let mut fields: BTreeMap<String, String> =
            all.iter().map(|(name, value)| ((*name).to_owned(), clean(value))).collect();
        fields.insert(key_field.name().to_owned(), marks.rest.clone());
        if let Some(mac) = fields.get("mac").and_then(|mac| Address::parse(Kind::Mac, mac).ok()) {
            fields.insert("mac".to_owned(), mac.to_string());
        }
        fields.retain(|_, value| !value.is_empty());
        let tag = text(row.get("tag").or_else(|| row.get("state"))).parse().unwrap_or(TAG_USED);
        Ok(Self { id, subnet: text(row.get("subnetId")), address, tag, marks, fields, has_key_field })
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// A value as text, whether it is a number or a text; nothing is an empty text.
fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(is)) => u8::from(*is).to_string(),
        _ => String::new(),
    }
}

fn is_set(value: Option<&Value>) -> bool {
    !matches!(text(value).as_str(), "" | "0")
}

/// A number, as text.
fn number(row: &Map<String, Value>, name: &str) -> Option<String> {
    let text = text(row.get(name));
    text.parse::<u64>().ok().map(|number| number.to_string())
}

/// An address in its usual form, or as the number that the database has.
fn address(text: &str) -> Option<Address> {
    if let Ok(number) = text.parse::<u128>() {
        return Some(match u32::try_from(number) {
            Ok(number) => Ipv4Addr::from_bits(number).into(),
            Err(_) => Ipv6Addr::from_bits(number).into(),
        });
    }
    text.parse::<std::net::IpAddr>().ok().map(Address::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: &Value) -> AddressRow {
        AddressRow::read(value.as_object().unwrap(), &KeyField::new("custom_key").unwrap()).unwrap()
    }

    #[test]
    fn numbers_texts_nested_fields_and_raw_rows_are_one() {
        let plain = row(
            &json!({ "id": 7, "subnetId": 3, "ip": "10.0.0.9", "tag": 3, "hostname": "a.test", "owner": null,
            "mac": "AA-BB-CC-00-11-22", "custom_key": "[netstead-claim k] rest" }),
        );
        let texts = row(
            &json!({ "id": "7", "subnetId": "3", "ip_addr": "167772169", "state": "3", "hostname": "a.test",
            "owner": "", "mac": "aa:bb:cc:00:11:22", "custom_fields": { "custom_key": "[netstead-claim k] rest" } }),
        );
        assert_eq!(
            (&plain.id, &plain.subnet, plain.address, plain.tag),
            (&texts.id, &texts.subnet, texts.address, 3)
        );
        assert_eq!((&plain.marks, plain.field("mac")), (&texts.marks, Some("aa:bb:cc:00:11:22")));
        assert_eq!((plain.field("custom_key"), plain.field("owner")), (Some("rest"), None));
        assert_eq!(texts.field("mac"), plain.field("mac"));
    }

    #[test]
    fn a_subnet_hands_out_what_phpipam_would() {
        let subnet = |value: Value| Subnet::read(value.as_object().unwrap()).unwrap();
        let hosts = |cidr: &str, pool: u8| {
            let (base, mask) = cidr.split_once('/').unwrap();
            let read =
                subnet(json!({ "id": "1", "subnet": base, "mask": mask, "isPool": pool, "isFolder": "0" }));
            let hosts = read.unwrap().hosts();
            format!("{}-{}", hosts.first(), hosts.last())
        };
        assert_eq!(hosts("10.0.0.0/29", 0), "10.0.0.1-10.0.0.6");
        assert_eq!(hosts("10.0.0.0/29", 1), "10.0.0.0-10.0.0.7");
        assert_eq!(hosts("10.0.0.0/31", 0), "10.0.0.0-10.0.0.1");
        assert_eq!(hosts("fd00::/127", 0), "fd00::-fd00::1");
        assert_eq!(subnet(json!({ "id": 1, "isFolder": 1 })), None);
        assert!(Subnet::read(json!({ "id": 1, "subnet": "x", "mask": 3 }).as_object().unwrap()).is_err());
    }
}
