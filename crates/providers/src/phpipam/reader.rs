//! [`PhpIpamReader`]: subnets and addresses as they are, for an import.

use std::collections::BTreeMap;

use netstead_model::{Cidr, ProviderError};
use netstead_settings::{BuildContext, SettingsError};
use serde_json::Value;

use super::{AddressRow, Api, ApiError, Connection, KeyField, Subnet, clean};
use crate::ipam_contents::{AddressUse, IpamContents, IpamNetwork, IpamRow, IpamVrf, NetworkUse};

/// The tag `Reserved` of every installation.
const TAG_RESERVED: i64 = 3;

/// Reads a phpIPAM. It changes nothing there.
#[derive(Debug)]
pub struct PhpIpamReader {
    api: Api,
    key_field: KeyField,
}

impl PhpIpamReader {
    /// Opens files and secrets; the server itself is asked later.
    pub fn open(
        connection: &Connection,
        key_field: &str,
        context: &BuildContext,
    ) -> Result<Self, SettingsError> {
        Ok(Self { key_field: KeyField::new(key_field)?, api: connection.open(context)? })
    }

    /// Reads the subnets of these sections, by name or id, or of all; those in `within` alone if it names networks.
    pub async fn read(&self, sections: &[String], within: &[Cidr]) -> Result<IpamContents, ProviderError> {
        self.contents(sections, within).await.map_err(|error| error.unexpected(self.api.server()))
    }

    async fn contents(&self, sections: &[String], within: &[Cidr]) -> Result<IpamContents, ApiError> {
        let all = self.api.sections().await?;
        let names = |(id, name): &(String, String), wanted: &String| wanted == id || wanted == name;
        for wanted in sections {
            if !all.iter().any(|one| names(one, wanted)) {
                let known: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
                let reason = format!("it shows no section `{wanted}` among {}", known.join(", "));
                return Err(self.api.malformed(&reason).into());
            }
        }
        let mut subnets = Vec::new();
        for section in all {
            if sections.is_empty() || sections.iter().any(|wanted| names(&section, wanted)) {
                subnets.extend(self.api.subnets(&section.0).await?);
            }
        }
        subnets.retain(|subnet| {
            within.is_empty() || within.iter().any(|network| network.contains_cidr(subnet.cidr))
        });
        let vrfs = if subnets.iter().any(|subnet| vrf_id(subnet).is_some()) {
            self.vrfs().await?
        } else {
            BTreeMap::new()
        };
        let mut contents = IpamContents::default();
        let mut vrf_by_subnet = BTreeMap::new();
        for subnet in &subnets {
            let vrf = vrf_id(subnet).map(|id| IpamVrf {
                id,
                name: vrfs.get(&id).cloned().unwrap_or_else(|| format!("vrf-{id}")),
            });
            let id = self.number(&subnet.id)?;
            vrf_by_subnet.insert(subnet.id.clone(), vrf.clone());
            contents.networks.push(IpamNetwork {
                id,
                vrf,
                network: subnet.cidr,
                usage: NetworkUse::Active,
                is_pool: subnet.is_pool,
                description: subnet.description.clone(),
                ours: false,
            });
        }
        for row in self.api.addresses_of_all(&subnets, &self.key_field).await? {
            let vrf = vrf_by_subnet.get(&row.subnet).cloned().flatten();
            contents.addresses.push(IpamRow {
                id: self.number(&row.id)?,
                vrf,
                address: row.address,
                network: Some(self.number(&row.subnet)?),
                name: row.field("hostname").map(ToOwned::to_owned),
                usage: usage_of(&row),
                description: row.field("description").unwrap_or_default().to_owned(),
                ours: row.marks.object.is_some() || row.marks.claim.is_some(),
            });
        }
        Ok(contents)
    }

    /// The names of VRFs by their id.
    async fn vrfs(&self) -> Result<BTreeMap<u64, String>, ApiError> {
        let rows = self.api.list(&["vrf"], &[]).await?;
        let named = |row: &serde_json::Map<String, Value>| {
            let id = match row.get("id").or_else(|| row.get("vrfId"))? {
                Value::Number(number) => number.as_u64()?,
                Value::String(text) => text.parse().ok()?,
                _ => return None,
            };
            Some((id, clean(row.get("name")?.as_str()?)))
        };
        Ok(rows.iter().filter_map(named).collect())
    }

    fn number(&self, id: &str) -> Result<u64, ApiError> {
        id.parse().map_err(|_| self.api.malformed(&format!("`{id}` is no id")).into())
    }
}

/// The VRF of a subnet; 0 and nothing mean none.
fn vrf_id(subnet: &Subnet) -> Option<u64> {
    subnet.vrf.parse().ok().filter(|id| *id != 0)
}

fn usage_of(row: &AddressRow) -> AddressUse {
    if row.field("is_gateway") == Some("1") {
        AddressUse::Gateway
    } else if row.tag == TAG_RESERVED {
        AddressUse::Reserved
    } else {
        AddressUse::Held
    }
}
