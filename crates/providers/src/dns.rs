//! DNS servers.

pub mod adguard;
pub mod cloudflare;
mod config_files;
pub mod dnsmasq;
pub mod external_dns;
pub mod per_record;
pub mod pihole;
pub mod powerdns;
mod preconditions;
pub(crate) mod refused_login;
pub mod rfc2136;
mod serial_steps;
pub mod technitium;
pub mod webhook;

use netstead_model::{Capabilities, DnsProvider, Ident, RecordData, RecordSet};
use netstead_settings::{BuildContext, Kind};

pub use self::{
    adguard::AdGuard, cloudflare::Cloudflare, dnsmasq::Dnsmasq, external_dns::ExternalDns, pihole::PiHole,
    powerdns::PowerDns, rfc2136::Rfc2136, technitium::Technitium, webhook::Webhook,
};

/// A kind of DNS server.
pub type DnsKind = Kind<dyn DnsProvider, Capabilities>;

/// All kinds of DNS server that this crate speaks to: `build.rs` makes the list of the modules above.
pub const KINDS: &[&DnsKind] = include!(concat!(env!("OUT_DIR"), "/dns_kinds.rs"));

/// The longest time to live there is (RFC 2181, section 8).
const LONGEST_TTL: u32 = 0x7fff_ffff;

/// A context for a provider that no file configures.
fn plain_context(kind: &'static str) -> BuildContext {
    BuildContext::new(Ident::from_static(kind))
}

/// The form in which every server stores a set.
fn tidy(mut set: RecordSet) -> RecordSet {
    set.ttl = set.ttl.min(LONGEST_TTL);
    let empty = RecordData::Txt(Vec::new());
    if set.values.remove(&empty) {
        set.values.insert(RecordData::Txt(vec![Vec::new()]));
    }
    set
}
