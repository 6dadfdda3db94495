//! The built binary, as a person uses it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod adopt_and_rollback;
mod authority;
mod bad_input;
mod claim_race;
mod cluster;
mod comment_marks;
mod completions;
mod config_file;
mod confirmation_prompts;
mod crash_recovery;
mod damaged_store;
mod dashboards;
mod dns_records;
mod dns_servers;
#[cfg(feature = "docker")]
mod docker;
mod doctor;
mod documents;
mod dynamic_targets;
mod earlier_releases;
mod external_dns;
mod faults;
mod file_limits;
mod file_modes;
mod find_server;
mod flags;
mod formats;
mod forwarding;
mod full_disk;
mod guide_reader;
mod held_back;
#[cfg(feature = "docker")]
mod image;
mod import;
#[cfg(feature = "kubernetes")]
mod import_external_dns;
mod import_ipam;
mod ipam;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(feature = "kubernetes")]
mod kubernetes_manifests;
mod local_mode;
mod lost_answers;
mod metrics;
mod name_problems;
mod naming;
mod netaddr;
mod netbox;
mod notifications;
mod once;
#[cfg(feature = "kubernetes")]
mod operator;
#[cfg(feature = "docker")]
mod phpipam;
mod plain_http;
mod pool_backend;
mod provider_guides;
mod proxmox;
mod reload;
mod resolve;
mod restore;
mod sandbox;
mod scenarios;
mod shared_store;
mod single_things;
mod start_and_stop;
mod systemd_unit;
mod take_over_guide;
mod tls;
mod tokens;
mod traefik;
mod walk_through;
mod watch;
#[cfg(feature = "web")]
mod web;
mod what_if;
