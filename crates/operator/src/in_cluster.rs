//! The pools of the in-cluster provider: their fields, the addresses that they mean, and the verdicts on them.

mod address_space;
mod entry;
mod spec;
#[cfg(test)]
mod tests;

pub(crate) use self::entry::address;
pub use self::{
    address_space::AddressSpace,
    spec::{FieldError, InClusterSpec, PrefixSpec},
};
