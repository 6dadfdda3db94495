//! Claims of the addresses of a pool.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{Address, Key, Name, PoolSpec};
use netstead_providers::ipam_contents::{AddressUse, IpamRow};

use super::{ImportedClaim, LeftOut, Selection, System, shown};

/// The characters of a description.
const DESCRIPTION: usize = 1000;

/// The claims of a pool. The key is the name in DNS; the id, where there is no name, or another address has it.
pub(super) fn of_rows(
    spec: &PoolSpec,
    rows: &[&IpamRow],
    system: System,
    wanted: &Selection,
    left_out: &mut Vec<LeftOut>,
) -> Vec<ImportedClaim> {
    let mut rows: Vec<&IpamRow> = rows.iter().copied().filter(|row| row.usage == AddressUse::Held).collect();
    // The oldest has the name, in every run.
    rows.sort_by_key(|row| row.id);
    let ids: BTreeSet<String> = rows.iter().map(|row| by_id(system, row)).collect();
    let (mut keys, mut addresses) = (BTreeMap::<Key, Address>::new(), BTreeMap::<Address, u64>::new());
    let mut claims = Vec::new();
    for row in rows {
        if let Some(why) = spec.withheld(row.address) {
            let excluded = spec.exclude.iter().any(|range| range.contains(row.address));
            left_out.push(LeftOut { what: shown(row), why: why.to_owned(), refused: !excluded });
            continue;
        }
        if let Some(other) = addresses.get(&row.address) {
            let why = format!("it is there twice, and the one with the id {other} counts");
            left_out.push(LeftOut::refused(shown(row), why));
            continue;
        }
        let named = row.name.as_deref().map(|name| (name, name.parse::<Key>()));
        let (key, note) = match named {
            None => (None, None),
            Some((name, Ok(key))) if key.is_path_step() || ids.contains(name) => {
                (None, Some(format!("`{name}` cannot be its key")))
            }
            Some((name, Ok(key))) => match keys.get(&key) {
                None => (Some(key), None),
                Some(other) => (None, Some(format!("`{name}` is the key of {other}"))),
            },
            Some((_, Err(error))) => (None, Some(error.to_string())),
        };
        let Some(key) = key.or_else(|| by_id(system, row).parse().ok()) else { continue };
        keys.insert(key.clone(), row.address);
        addresses.insert(row.address, row.id);
        let hostname = row.name.as_deref().filter(|name| wanted.hostnames && name.parse::<Name>().is_ok());
        let said: String = row.description.trim().chars().take(DESCRIPTION).collect();
        claims.push(ImportedClaim {
            key,
            address: row.address,
            note,
            hostname: hostname.map(ToOwned::to_owned),
            description: Some(said).filter(|said| !said.is_empty()),
        });
    }
    claims.sort_by_key(|claim| claim.address);
    claims
}

/// The key of an address without a name: `netbox-17`.
fn by_id(system: System, row: &IpamRow) -> String {
    format!("{}-{}", system.key, row.id)
}
