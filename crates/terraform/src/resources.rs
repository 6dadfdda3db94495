//! Resources, data sources, ephemeral resources and functions of Netstead, and those of terraform-provider-netaddr. The lists below are all that Terraform sees.

mod address;
mod addresses;
mod claims;
mod ephemeral_address;
mod functions;
mod host;
mod netaddr;
mod pool;
mod prefix;
mod record;
mod reservation;
mod usage;

use netstead_providers::netaddr::RangeType;

use crate::{
    protocol::{DataSource, Ephemeral, Resource},
    session::Session,
};

pub use self::functions::functions;

pub fn all() -> Vec<Box<dyn Resource<Session>>> {
    vec![
        Box::new(address::Address),
        Box::new(addresses::Addresses),
        Box::new(host::Host),
        Box::new(pool::Pool),
        Box::new(prefix::Prefix),
        Box::new(record::Record),
        Box::new(reservation::Reservation),
        Box::new(netaddr::Range(RangeType::Ipv4)),
        Box::new(netaddr::Range(RangeType::Mac)),
        Box::new(netaddr::Address(RangeType::Ipv4)),
        Box::new(netaddr::Address(RangeType::Mac)),
        Box::new(netaddr::AddressV2),
    ]
}

pub fn data_sources() -> Vec<Box<dyn DataSource<Session>>> {
    vec![
        Box::new(address::Lookup),
        Box::new(addresses::List),
        Box::new(host::Lookup),
        Box::new(pool::Lookup),
        Box::new(pool::List),
        Box::new(prefix::Lookup),
        Box::new(record::Lookup),
        Box::new(record::List),
        Box::new(reservation::Lookup),
        Box::new(reservation::List),
        Box::new(usage::Usage),
        Box::new(netaddr::RangeLookup(RangeType::Ipv4)),
        Box::new(netaddr::RangeLookup(RangeType::Mac)),
        Box::new(netaddr::AddressLookup(RangeType::Ipv4)),
        Box::new(netaddr::AddressLookup(RangeType::Mac)),
        Box::new(netaddr::AddressV2Lookup),
        Box::new(netaddr::AddressList(RangeType::Ipv4)),
        Box::new(netaddr::AddressList(RangeType::Mac)),
        Box::new(netaddr::Usage),
        Box::new(netaddr::Keyspace(RangeType::Ipv4)),
        Box::new(netaddr::Keyspace(RangeType::Mac)),
    ]
}

pub fn ephemerals() -> Vec<Box<dyn Ephemeral<Session>>> {
    vec![Box::new(ephemeral_address::EphemeralAddress)]
}
