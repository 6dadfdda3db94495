//! Whole stories with real DNS servers, told through the built binary.

mod config_typos;
pub(crate) mod dns_fixture;
#[cfg(feature = "docker")]
mod dnsweaver_migration;
pub(crate) mod dnsweaver_moves;
mod faulty_sources;
mod late_writes;
mod ownership_marks;
#[cfg(feature = "docker")]
mod real_peers;
mod record_lifecycle;
mod recovery_alarm;
mod screens;
mod server_failures;
mod shared_servers;
