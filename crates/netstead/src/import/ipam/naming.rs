//! Names of pools and VRFs: both are identifiers here, and free text or no name at all there.

use std::collections::BTreeMap;

use netstead_model::{Cidr, Ident, Range, default_vrf};
use netstead_providers::ipam_contents::{IpamContents, IpamVrf};

/// The characters of a VRF's name that stay, so that the name of a pool has room behind it.
const VRF: usize = 24;

/// The VRFs of a system by id, none for the global table, with their names here.
#[derive(Debug)]
pub(super) struct VrfNames(BTreeMap<Option<u64>, (String, Ident)>);

impl VrfNames {
    /// Of two VRFs whose names would be one, the later gets its id behind it.
    pub(super) fn new(contents: &IpamContents) -> Self {
        let networks = contents.networks.iter().map(|one| &one.vrf);
        let ranges = contents.ranges.iter().map(|one| &one.vrf);
        let addresses = contents.addresses.iter().map(|one| &one.vrf);
        let mut all: Vec<&IpamVrf> = networks.chain(ranges).chain(addresses).flatten().collect();
        all.sort();
        all.dedup_by_key(|vrf| vrf.id);
        let mut names = BTreeMap::from([(None, (default_vrf().to_string(), default_vrf()))]);
        for vrf in all {
            let plain = identifier(&vrf.name, VRF);
            let taken = |name: &Ident| names.values().any(|(_, other)| other == name);
            let name = plain.clone().filter(|name| !taken(name));
            let with_id =
                || format!("{}-{}", plain.as_ref().map_or("vrf", Ident::as_str), vrf.id).parse().ok();
            if let Some(name) = name.or_else(with_id) {
                names.insert(Some(vrf.id), (vrf.name.clone(), name));
            }
        }
        Self(names)
    }

    /// Whether a VRF has this name, there or here.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.values().any(|(theirs, ours)| theirs == name || ours.as_str() == name)
    }

    /// The VRFs that have one of these names; all of them, if there are none.
    pub(super) fn chosen(&self, wanted: &[String]) -> Vec<(Option<u64>, Ident)> {
        let is_chosen = |(theirs, ours): &(String, Ident)| {
            wanted.is_empty() || wanted.iter().any(|name| name == theirs || name == ours.as_str())
        };
        let chosen = self.0.iter().filter(|(_, names)| is_chosen(names));
        chosen.map(|(id, (_, name))| (*id, name.clone())).collect()
    }
}

/// The name of a pool: `10.0.3.0_24`, `10.0.3.10-10.0.3.99`, `fd00-1--_64`, with the VRF before it. `otherwise` where that is none.
pub(super) fn pool(vrf: &Ident, network: Option<Cidr>, range: Range, otherwise: &str) -> Option<Ident> {
    let written = match network {
        Some(network) => network.to_string(),
        None => format!("{}-{}", range.first(), range.last()),
    };
    let before = if *vrf == default_vrf() { String::new() } else { format!("{vrf}.") };
    let named = |name: &str| format!("{before}{name}").parse::<Ident>().ok();
    named(&written.replace('/', "_").replace(':', "-")).or_else(|| named(otherwise))
}

/// A text as an identifier, with a dash for each run of other characters; none if nothing is left of it.
fn identifier(text: &str, most: usize) -> Option<Ident> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let dashed: String = text.chars().map(plain).collect();
    let parts: Vec<&str> = dashed.split('-').filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(most).collect();
    name.trim_end_matches('-').parse().ok()
}
