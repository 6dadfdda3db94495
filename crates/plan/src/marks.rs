//! Ownership as it is mirrored in the DNS itself: our own marks, and those of tools whose records can be adopted.

mod adoptable;
pub mod dnsweaver;
pub mod external_dns;
mod own;
mod recover;

pub(crate) use self::own::{is_below, is_mark_of, mark_prefix_len};
pub use self::{
    adoptable::{Adoptable, Tool, adoptable, catalogues},
    own::{Mark, digest_of, is_mark, mark_name, render},
    recover::{Recovered, recover, superseded},
};
