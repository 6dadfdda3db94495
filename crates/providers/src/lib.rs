//! Providers: each speaks to one kind of DNS server or IPAM system and implements the trait `DnsProvider` or `IpamProvider`
//! of `netstead_model`.
//!
//! ```text
//!  engine ──► DnsProvider ──┬─► dns::dnsmasq    files in its directories, here or through ssh
//!                           ├─► dns::powerdns   HTTP API: one PATCH per zone, halved to find a refused unit
//!                           ├─► dns::rfc2136    DNS UPDATE over TCP with TSIG: BIND, Knot, ...
//!                           ├─► dns::webhook    a program of the user's: signed batches, or dnsweaver's protocol
//!                           ├─► dns::adguard    AdGuard Home: one rewrite per call
//!                           ├─► dns::pihole     Pi-hole 6 and 5: one entry per call, in one session
//!                           ├─► dns::cloudflare HTTP API: batches, within a rate limit
//!                           ├─► dns::technitium HTTP API: one record per call, through dns::per_record
//!                           └─► builtin         in the crate `nameserver`
//!         IpamProvider ──┬──► ipam::netbox      NetBox: bulk requests, all or none
//!                        ├──► ipam::phpipam     phpIPAM: one address per call
//!                        └──► ipam::webhook     a program of the user's: signed batches of objects
//!         PoolBackend ───┬──► pool::netbox      NetBox: its first free address or prefix, in one step
//!                        ├──► pool::netstead    another Netstead
//!                        ├──► pool::phpipam     phpIPAM: its next free address, in one step
//!                        └──► pool::netaddr     terraform-provider-netaddr's ranges in an etcd
//! ```
//!
//! - A provider lists zones, reads one with its serial, and writes *units*. A unit is all changes of one name; it is applied
//!   as a whole or not at all. Each unit says what it expects to find, so a foreign change is never overwritten unseen.
//! - `dns/preconditions.rs`: compares units with what the server has. `dns/serial_steps.rs`: tells by the serial whether only
//!   our own write changed a zone.
//! - `dns/per_record.rs`: makes a provider of a server that takes one record per call. `dns/refused_login.rs`: sends refused
//!   credentials at most once a minute.
//! - [`ipam_contents`]: what an import of an IPAM system looks at; [`NetBoxReader`] and [`PhpIpamReader`] read it.
//! - [`netaddr`]: the keyspace of terraform-provider-netaddr; our Terraform provider uses this part alone (feature `netaddr`).
//! - HTTP with TLS, retries and limits is `netstead_wire::http`. [`CallObserver`]: gets every call, for metrics.
//! - [`contract`]: checks that every provider must pass, run against real servers.
//!
//! To add a provider, follow `docs/guide/adding-a-provider.md`, then pass the [`contract`].

#[cfg(feature = "servers")]
pub mod contract;
#[cfg(feature = "servers")]
pub mod dns;
#[cfg(feature = "servers")]
pub mod ipam;
#[cfg(feature = "servers")]
pub mod ipam_contents;
#[cfg(feature = "netaddr")]
pub mod netaddr;
#[cfg(feature = "servers")]
mod netbox;
#[cfg(feature = "servers")]
mod phpipam;
#[cfg(feature = "servers")]
pub mod pool;

#[cfg(feature = "servers")]
pub use self::netbox::{Connection as NetBoxConnection, NetBoxReader};
#[cfg(feature = "servers")]
pub use self::phpipam::{Connection as PhpIpamConnection, PhpIpamReader, Security as PhpIpamSecurity};
#[cfg(feature = "servers")]
pub use netstead_model::{Call, CallObserver, NoopObserver, Outcome};
#[cfg(feature = "servers")]
pub use netstead_settings::{BuildContext, Secret, SettingsError};
#[cfg(feature = "servers")]
pub use netstead_wire::Tls;
