//! The pages, one file each.

pub(crate) mod access;
pub(crate) mod address;
pub(crate) mod addresses;
pub(crate) mod cluster;
pub(crate) mod csv;
pub(crate) mod doctor;
pub(crate) mod drift;
mod grid;
pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod name;
pub(crate) mod names;
pub(crate) mod overview;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod pool_form;
pub(crate) mod rollback;
pub(crate) mod search;
pub(crate) mod servers;
mod usage;
pub(crate) mod workloads;
