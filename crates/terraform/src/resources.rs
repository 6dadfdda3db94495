//! Resources, data sources and functions of Netstead. The lists below are all that Terraform sees.

mod address;
mod addresses;
mod claims;
mod functions;
mod host;
mod pool;
mod prefix;
mod record;
mod reservation;
mod usage;

use crate::{
    protocol::{DataSource, Resource},
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
    ]
}
