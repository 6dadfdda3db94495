//! [`AddressSpace`]: all that a pool may give out, counted in units: addresses, or prefixes of one length.

use netstead_model::{Address, Cidr, Kind};

use super::{
    entry::{Entry, address},
    spec::{FieldError, InClusterSpec, PrefixSpec},
};
use crate::interval_set::IntervalSet;

/// The units of a pool, and what is written on each address out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressSpace {
    kind: Kind,
    /// A unit is an address without this many of its last bits.
    shift: u8,
    units: IntervalSet,
    prefix: u8,
    gateway: Option<Address>,
}

/// The families of a list of entries must agree with those read before.
struct Family(Option<Kind>);

impl Family {
    fn admit(&mut self, kind: Kind) -> Result<(), String> {
        match self.0.replace(kind) {
            Some(before) if before != kind => {
                Err("IPv4 and IPv6 are mixed; a pool has one of them".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl AddressSpace {
    /// The addresses that an IP pool means: those of `addresses`, without the excluded and reserved ones and the gateway.
    pub fn of_addresses(spec: &InClusterSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut family = Family(None);
        let entries = read_list("spec.addresses", &spec.addresses, &mut family, &mut errors);
        let excluded =
            read_list("spec.excludedAddresses", &spec.excluded_addresses, &mut family, &mut errors);
        let gateway = read_gateway(spec.gateway.as_deref(), &mut family, &mut errors);
        if spec.addresses.is_empty() {
            errors.push(invalid("spec.addresses", "", "at least one address, network or range is needed"));
        }
        let lowest = entries.iter().map(|entry| entry.first).min();
        let kind = entries.first().map_or(Kind::V4, |entry| entry.kind);
        let prefix = u8::try_from(spec.prefix).ok().filter(|prefix| *prefix <= kind.bits());
        let network = match (lowest.and_then(|lowest| Address::new(kind, lowest)), prefix) {
            (Some(lowest), Some(prefix)) => Cidr::containing(lowest, prefix).ok(),
            _ => None,
        };
        if prefix.is_none() {
            let problem = format!("the prefix is not from 0 to {}", kind.bits());
            errors.push(invalid("spec.prefix", &spec.prefix.to_string(), &problem));
        }
        let (Some(network), Some(prefix)) = (network, prefix) else { return Err(errors) };
        let ends = (network.first().number(), network.last().number());
        // One that cannot be read would move the others to the wrong text.
        for (entry, text) in
            entries.iter().zip(&spec.addresses).filter(|_| entries.len() == spec.addresses.len())
        {
            if entry.kind == kind && (entry.first < ends.0 || entry.last > ends.1) {
                let problem =
                    format!("it belongs to a different subnet than `{network}`, that of the lowest address");
                errors.push(invalid("spec.addresses", text, &problem));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut units = IntervalSet::default();
        for entry in &entries {
            units.insert(entry.first, entry.last);
        }
        for entry in &excluded {
            units.remove(entry.first, entry.last);
        }
        if !spec.allocate_reserved_ip_addresses {
            units.remove(ends.0, ends.0);
            if kind == Kind::V4 {
                units.remove(ends.1, ends.1);
            }
        }
        if let Some(gateway) = gateway {
            units.remove(gateway.number(), gateway.number());
        }
        Ok(Self { kind, shift: 0, units, prefix, gateway })
    }

    /// The prefixes that a prefix pool means: those inside `prefixes` that overlap nothing excluded.
    pub fn of_prefixes(spec: &PrefixSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut family = Family(Some(Kind::V6));
        let length = u8::try_from(spec.length()).ok().filter(|length| (1..=128).contains(length));
        if length.is_none() {
            let value = spec.length().to_string();
            errors.push(invalid("spec.allocationPrefixLength", &value, "it is not from 1 to 128"));
        }
        let entries = read_list("spec.prefixes", &spec.prefixes, &mut family, &mut errors);
        let excluded = read_list("spec.excludedPrefixes", &spec.excluded_prefixes, &mut family, &mut errors);
        let gateway = read_gateway(spec.gateway.as_deref(), &mut family, &mut errors);
        if spec.prefixes.is_empty() {
            errors.push(invalid("spec.prefixes", "", "at least one IPv6 network is needed"));
        }
        for (entry, text) in
            entries.iter().zip(&spec.prefixes).filter(|_| entries.len() == spec.prefixes.len())
        {
            let problem = match (entry.length, length) {
                (None, _) => "it is no network; write `2001:db8::/48`".to_owned(),
                _ if entry.host_bits => {
                    "it has bits behind its length; write the network's first address".to_owned()
                }
                (Some(own), Some(length)) if own > length => {
                    format!("it is smaller than the prefixes of the pool, which have the length {length}")
                }
                _ => continue,
            };
            errors.push(invalid("spec.prefixes", text, &problem));
        }
        let Some(length) = length.filter(|_| errors.is_empty()) else { return Err(errors) };
        let shift = 128 - length;
        let mut units = IntervalSet::default();
        for entry in &entries {
            units.insert(entry.first >> shift, entry.last >> shift);
        }
        for entry in &excluded {
            units.remove(entry.first >> shift, entry.last >> shift);
        }
        Ok(Self { kind: Kind::V6, shift, units, prefix: length, gateway })
    }

    pub fn units(&self) -> &IntervalSet {
        &self.units
    }

    /// The length that is written on every address.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    pub fn gateway(&self) -> Option<Address> {
        self.gateway
    }

    /// The unit that an address is in; none of another family.
    pub fn unit_of(&self, address: Address) -> Option<u128> {
        (address.kind() == self.kind).then(|| address.number() >> self.shift)
    }

    /// The address of a unit: of a prefix, its first.
    pub fn address_of(&self, unit: u128) -> Option<Address> {
        Address::new(self.kind, unit.checked_shl(self.shift.into())?)
    }

    /// Whether an address may be given out.
    pub fn contains(&self, address: Address) -> bool {
        self.unit_of(address).is_some_and(|unit| self.units.contains(unit))
    }
}

fn read_list(
    field: &'static str,
    texts: &[String],
    family: &mut Family,
    errors: &mut Vec<FieldError>,
) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(texts.len());
    for text in texts {
        let read = Entry::parse(text).and_then(|entry| family.admit(entry.kind).map(|()| entry));
        match read {
            Ok(entry) => entries.push(entry),
            Err(problem) => errors.push(invalid(field, text, &problem)),
        }
    }
    entries
}

fn read_gateway(text: Option<&str>, family: &mut Family, errors: &mut Vec<FieldError>) -> Option<Address> {
    let text = text.filter(|text| !text.is_empty())?;
    let read = address(text).and_then(|gateway| family.admit(gateway.kind()).map(|()| gateway));
    read.map_err(|problem| errors.push(invalid("spec.gateway", text, &problem))).ok()
}

fn invalid(field: &'static str, value: &str, problem: &str) -> FieldError {
    FieldError { field, value: value.to_owned(), problem: problem.to_owned() }
}
