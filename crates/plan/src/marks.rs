//! Ownership as it is mirrored in the DNS itself: our own marks, and those of tools whose records can be adopted.

mod adopted;
pub mod dnsweaver;
pub mod external_dns;
mod own;
mod recover;

pub(crate) use self::own::{front, is_below, is_mark_of};
pub use self::{
    adopted::{Adoptable, Tool, adoptable, catalogues},
    own::{Mark, digest_of, is_mark, place, render},
    recover::{Recovered, recover, superseded},
};
