//! DNS servers on loopback: real ones, each in a directory of its own, and fakes that fail on demand.

mod adguard;
mod bind;
mod cloudflare;
mod dnsmasq;
mod external_dns;
mod fake_adguard;
mod fake_pihole;
mod knot;
mod powerdns;
mod primary;
mod technitium;
mod webhook;

use std::{fs, io, path::Path, process::Command, time::Duration};

pub use self::{
    adguard::AdGuardHome,
    bind::{Bind, Named, SecretiveBind, SecretiveNamed},
    cloudflare::FakeCloudflare,
    dnsmasq::Dnsmasq,
    external_dns::{FakeWebhookProvider, WebhookHabits},
    fake_adguard::{AdGuardVersion, FakeAdGuard},
    fake_pihole::{FakePiHole, PiHoleState},
    knot::{Knot, Knotd},
    powerdns::PowerDns,
    primary::{Primary, PrimaryKind},
    technitium::{FakeTechnitium, TechnitiumRights},
    webhook::{DnsweaverReceiver, WebhookFault, WebhookReceiver},
};

pub(crate) use self::webhook::{plan as webhook_faults, signature::problem as webhook_signature_problem};

const SOON: Duration = Duration::from_secs(30);

/// The TSIG key that these servers take updates and transfers with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TsigKey {
    pub name: String,
    pub algorithm: String,
    /// In base64.
    pub secret: String,
}

impl Default for TsigKey {
    fn default() -> Self {
        Self {
            name: "netstead-test".into(),
            algorithm: "hmac-sha256".into(),
            secret: "bmV0c3RlYWQgdGVzdCBrZXksIDMyIGJ5dGVzIGxvbmc=".into(),
        }
    }
}

impl TsigKey {
    #[must_use]
    pub fn with_algorithm(algorithm: &str) -> Self {
        Self { algorithm: algorithm.into(), ..Self::default() }
    }
}

/// The value, or the end of the test.
#[expect(clippy::panic, reason = "this is how a test fails")]
fn started<T>(name: &str, outcome: io::Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("{name} does not start: {error}"))
}

fn zone_file(path: &Path, zone: &str, more: &str) -> io::Result<()> {
    let text = format!(
        "$TTL 3600\n@ IN SOA ns1.{zone}. hostmaster.{zone}. 1 10800 3600 604800 300\n@ IN NS ns1.{zone}.\n\
         ns1 IN A 127.0.0.1\n{more}"
    );
    fs::write(path, text)
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(io::Error::other(format!("{command:?}: {said}")))
}
