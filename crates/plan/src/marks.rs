//! Ownership as it is mirrored in the DNS itself: our own marks, and those of tools whose records can be adopted.

mod adoptable;
pub mod dnsweaver;
pub mod external_dns;
mod recover;

pub use netstead_model::mark::{Mark, digest_of, is_mark, mark_name, render};
pub(crate) use netstead_model::mark::{is_below, is_mark_of, mark_prefix_len};

pub use self::{
    adoptable::{Adoptable, Tool, adoptable, catalogues},
    recover::{Recovered, recover, superseded},
};
