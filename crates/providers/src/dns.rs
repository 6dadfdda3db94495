//! DNS servers.

pub mod powerdns;
mod preconditions;
pub mod rfc2136;
mod serial_steps;

use netstead_model::{RecordData, RecordSet};

pub use self::{powerdns::PowerDns, rfc2136::Rfc2136};

/// The longest time to live there is (RFC 2181, section 8).
const LONGEST_TTL: u32 = 0x7fff_ffff;

/// What any server makes of a set.
fn tidy(mut set: RecordSet) -> RecordSet {
    set.ttl = set.ttl.min(LONGEST_TTL);
    let empty = RecordData::Txt(Vec::new());
    if set.values.remove(&empty) {
        set.values.insert(RecordData::Txt(vec![Vec::new()]));
    }
    set
}
