//! The providers against real servers, and against some that lie.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests")]

mod adding_a_provider;
mod adguard;
mod by_query;
mod cloudflare;
mod cloudflare_marks;
mod dnsmasq;
mod every_kind;
mod external_dns;
mod failover;
mod http;
mod ipam_webhook;
mod late_writes;
mod misbehaving_servers;
mod netaddr;
mod netaddr_ranges;
mod netbox;
mod netbox_of_old;
mod per_record;
mod per_record_server;
mod phpipam;
mod pihole;
mod pihole_files;
mod powerdns;
mod rfc2136;
mod support;
mod technitium;
mod webhook;
