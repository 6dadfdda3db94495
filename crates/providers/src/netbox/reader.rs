//! [`NetBoxReader`]: prefixes, ranges and addresses as they are, for an import.

use netstead_model::{Cidr, ProviderError, Range};
use netstead_settings::{BuildContext, SettingsError};
use serde_json::Value;

use super::{
    Api, ApiError, Connection, Prefix, Row, address_and_length, choice, id_of, list_of, marks_of, name_of,
    rows::text_of,
};
use crate::ipam_contents::{AddressUse, IpamContents, IpamNetwork, IpamRange, IpamRow, IpamVrf, NetworkUse};

const PREFIXES: (&str, &str) =
    ("/api/ipam/prefixes/", "id,prefix,status,is_pool,vrf,vlan,description,custom_fields");
const RANGES: (&str, &str) = (
    "/api/ipam/ip-ranges/",
    "id,start_address,end_address,status,vrf,description,mark_populated,custom_fields",
);
const ADDRESSES: (&str, &str) =
    ("/api/ipam/ip-addresses/", "id,address,status,dns_name,description,vrf,tags,custom_fields");

/// Reads a NetBox. It changes nothing there.
#[derive(Debug)]
pub struct NetBoxReader {
    api: Api,
}

impl NetBoxReader {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(connection: &Connection, context: &BuildContext) -> Result<Self, SettingsError> {
        Ok(Self { api: connection.open(context)? })
    }

    /// Reads all prefixes, ranges and addresses; those in `within` alone if it names networks.
    pub async fn read(&self, within: &[Cidr]) -> Result<IpamContents, ProviderError> {
        self.contents(within).await.map_err(|error| error.unexpected(self.api.server()))
    }

    async fn contents(&self, within: &[Cidr]) -> Result<IpamContents, ApiError> {
        self.api.version().await?;
        let (prefixes, ranges, addresses) = tokio::try_join!(
            self.rows(PREFIXES, "within_include", within),
            self.rows(RANGES, "parent", within),
            self.rows(ADDRESSES, "parent", within),
        )?;
        let field = self.api.key_field().name();
        let unreadable = |what: &str, row: &Row| {
            let shown = text_of(row, "id");
            ApiError::from(self.api.malformed(&format!("{what} {shown} has no value that can be read")))
        };
        let near = |first, last| {
            let inside = |network: &Cidr| network.contains(first) && network.contains(last);
            within.is_empty() || within.iter().any(inside)
        };
        let mut contents = IpamContents::default();
        for row in &prefixes {
            let network = network(row, field).ok_or_else(|| unreadable("prefix", row))?;
            contents
                .networks
                .extend(Some(network).filter(|one| near(one.network.first(), one.network.last())));
        }
        for row in &ranges {
            let range = range(row, field).ok_or_else(|| unreadable("range", row))?;
            contents.ranges.extend(Some(range).filter(|one| near(one.range.first(), one.range.last())));
        }
        for row in &addresses {
            let address = address(row, field).ok_or_else(|| unreadable("address", row))?;
            contents.addresses.extend(Some(address).filter(|one| near(one.address, one.address)));
        }
        Ok(contents)
    }

    async fn rows(
        &self,
        (path, columns): (&str, &str),
        filter: &str,
        within: &[Cidr],
    ) -> Result<Vec<Row>, ApiError> {
        let fields = [("fields", columns)];
        if within.is_empty() {
            return self.api.list(path, &fields).await;
        }
        let values: Vec<String> = within.iter().map(Cidr::to_string).collect();
        self.api.list_by(path, &fields, filter, &values).await
    }
}

fn vrf_of(row: &Row) -> Option<IpamVrf> {
    Some(IpamVrf { id: id_of(row, "vrf")?, name: name_of(row, "vrf") })
}

fn is_ours(row: &Row, field: &str) -> bool {
    let marks = marks_of(row, field);
    marks.object.is_some() || marks.claim.is_some()
}

/// A status that hands nothing out keeps its word.
fn usage_of(row: &Row) -> NetworkUse {
    let populated = row.get("mark_populated").and_then(Value::as_bool).unwrap_or_default();
    match choice(row, "status").as_str() {
        "container" => NetworkUse::Container,
        "reserved" => NetworkUse::Closed("reserved"),
        "deprecated" => NetworkUse::Closed("deprecated"),
        _ if populated => NetworkUse::Closed("marked as populated"),
        _ => NetworkUse::Active,
    }
}

fn network(row: &Row, field: &str) -> Option<IpamNetwork> {
    let prefix = Prefix::read(row)?;
    Some(IpamNetwork {
        id: prefix.id,
        vrf: vrf_of(row),
        network: prefix.cidr,
        usage: usage_of(row),
        is_pool: prefix.is_pool,
        description: prefix.description,
        ours: is_ours(row, field),
    })
}

fn range(row: &Row, field: &str) -> Option<IpamRange> {
    let (first, length) = address_and_length(&text_of(row, "start_address"))?;
    let (last, _) = address_and_length(&text_of(row, "end_address"))?;
    Some(IpamRange {
        id: id_of(row, "id")?,
        vrf: vrf_of(row),
        range: Range::new(first, last).ok()?,
        network: Cidr::containing(first, length).ok().filter(|network| network.contains(last)),
        usage: usage_of(row),
        description: text_of(row, "description"),
        ours: is_ours(row, field),
    })
}

fn address(row: &Row, field: &str) -> Option<IpamRow> {
    let description = text_of(row, "description");
    // NetBox has no field for it. Proxmox VE writes that description, others use a tag.
    let tagged = list_of(row, "tags").any(|tag| text_of(tag, "slug") == "gateway");
    let usage = match choice(row, "status").as_str() {
        _ if tagged || description.trim().eq_ignore_ascii_case("gateway") => AddressUse::Gateway,
        "reserved" => AddressUse::Reserved,
        _ => AddressUse::Held,
    };
    Some(IpamRow {
        id: id_of(row, "id")?,
        vrf: vrf_of(row),
        address: address_and_length(&text_of(row, "address"))?.0,
        network: None,
        name: Some(text_of(row, "dns_name")).filter(|name| !name.is_empty()),
        usage,
        description,
        ours: is_ours(row, field),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: &Value) -> Row {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_gateway_is_known_by_its_tag_or_its_description() {
        let usage = |more: Value| {
            let mut all = row(&json!({ "id": 7, "address": "10.0.3.1/24", "status": { "value": "active" } }));
            all.extend(row(&more));
            address(&all, "netstead_key").unwrap().usage
        };
        assert_eq!(usage(json!({ "description": "Gateway" })), AddressUse::Gateway);
        assert_eq!(usage(json!({ "tags": [{ "id": 1, "slug": "gateway" }] })), AddressUse::Gateway);
        assert_eq!(
            usage(json!({ "status": "reserved", "description": "the gateway's" })),
            AddressUse::Reserved
        );
        assert_eq!(usage(json!({ "status": { "value": "dhcp" } })), AddressUse::Held);
    }

    #[test]
    fn closed_networks_keep_the_word_for_it_and_a_range_has_the_network_of_its_mask() {
        let of = |more: Value| {
            let mut all =
                row(&json!({ "id": 1, "start_address": "10.0.3.10/24", "end_address": "10.0.3.99/24",
                "status": { "value": "active" }, "vrf": { "id": 4, "name": "red" } }));
            all.extend(row(&more));
            range(&all, "netstead_key").unwrap()
        };
        let plain = of(json!({}));
        assert_eq!(plain.usage, NetworkUse::Active);
        assert_eq!(plain.network, Some("10.0.3.0/24".parse().unwrap()));
        assert_eq!(plain.vrf, Some(IpamVrf { id: 4, name: "red".into() }));
        assert_eq!(of(json!({ "mark_populated": true })).usage, NetworkUse::Closed("marked as populated"));
        assert_eq!(of(json!({ "status": "deprecated" })).usage, NetworkUse::Closed("deprecated"));
        let wide = of(json!({ "start_address": "10.0.3.10/28" }));
        assert_eq!(wide.network, None, "its mask does not hold it");
        assert!(of(json!({ "custom_fields": { "netstead_key": "[netstead-claim a/b/c]" } })).ours);
    }
}
