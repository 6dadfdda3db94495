//! The servers, real where they can be had.

#![allow(clippy::unnecessary_wraps, reason = "a real server may not be installed")]

use std::{any::Any, path::PathBuf, sync::Arc};

use netstead_model::DnsProvider;
use netstead_providers::{
    BuildContext, Secret,
    dns::{adguard, cloudflare, dnsmasq, external_dns, pihole, powerdns, technitium, webhook},
};
use netstead_settings::Configured;
use netstead_testkit::{
    AdGuardHome, AdGuardVersion, DnsweaverReceiver, FakeAdGuard, FakeCloudflare, FakeHttp, FakePiHole,
    FakeTechnitium, FakeWebhookProvider, HttpRequest, PowerDns, WebhookHabits, WebhookReceiver,
};

use crate::{engine_setup::ZONE, recording};

const SECRET: &str = "a secret of a bench";

/// A kind of server and how to start one.
pub struct Kind {
    pub name: &'static str,
    pub start: fn(&BuildContext, Recorded) -> Option<Server>,
}

/// Whether the calls are to be kept, which a proxy does where the server is real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    Yes,
    No,
}

/// A fresh server.
pub struct Server {
    pub provider: Arc<dyn DnsProvider>,
    pub place: Place,
    _keep: Box<dyn Any>,
}

/// Where changes end up.
pub enum Place {
    /// Calls of HTTP.
    Http { url: String, log: Box<dyn Fn() -> Vec<HttpRequest>>, lists: fn(&HttpRequest) -> bool },
    /// A directory with files that are replaced, and the program that runs after that.
    File { dir: PathBuf, reload: Option<&'static str> },
}

pub const KINDS: &[Kind] = &[
    Kind { name: "powerdns", start: start_powerdns },
    Kind { name: "technitium", start: start_technitium },
    Kind { name: "cloudflare", start: |context, _| start_cloudflare(context, cloudflare::MarkForm::Txt) },
    Kind {
        name: "cloudflare-comments",
        start: |context, _| start_cloudflare(context, cloudflare::MarkForm::Comment),
    },
    Kind { name: "pihole-v6", start: |context, _| start_pihole(context, 6) },
    Kind { name: "pihole-v5", start: |context, _| start_pihole(context, 5) },
    Kind { name: "adguard", start: start_adguard },
    Kind { name: "adguard-fake", start: start_fake_adguard },
    Kind { name: "webhook", start: start_webhook },
    Kind { name: "webhook-dnsweaver", start: start_dnsweaver },
    Kind { name: "external-dns", start: start_external_dns },
    Kind { name: "dnsmasq", start: start_dnsmasq },
    Kind { name: "pihole-files", start: start_pihole_files },
];

fn build(config: &impl Configured<dyn DnsProvider>, context: &BuildContext) -> Arc<dyn DnsProvider> {
    config.build(context).expect("a provider")
}

/// The calls that a fake has seen.
fn http<T: 'static>(
    provider: Arc<dyn DnsProvider>,
    fake: T,
    http: fn(&T) -> &FakeHttp,
    lists: fn(&HttpRequest) -> bool,
) -> Server {
    let fake = Arc::new(fake);
    let (url, inside) = (http(&fake).url(), Arc::clone(&fake));
    let log = Box::new(move || http(&inside).requests());
    Server { provider, place: Place::Http { url, log, lists }, _keep: Box::new(fake) }
}

/// A real server, behind a proxy if its calls are kept.
fn real<T: 'static>(
    server: T,
    url: String,
    recorded: Recorded,
    lists: fn(&HttpRequest) -> bool,
    provider: impl Fn(&str) -> Arc<dyn DnsProvider>,
) -> Server {
    if recorded == Recorded::No {
        let (provider, log) = (provider(&url), Box::new(Vec::new));
        return Server { provider, place: Place::Http { url, log, lists }, _keep: Box::new(server) };
    }
    let proxy = recording::before(url);
    let provider = provider(&proxy.url());
    http(provider, (proxy, server), |(proxy, _)| proxy, lists)
}

fn is_get(call: &HttpRequest) -> bool {
    call.method == "GET"
}

fn start_powerdns(context: &BuildContext, recorded: Recorded) -> Option<Server> {
    let server = PowerDns::start(&[ZONE])?;
    let (url, key) = (server.api_url(), server.api_key().to_owned());
    let provider = move |url: &str| build(&powerdns::Config::new(url, Secret::new(key.clone())), context);
    let lists = |call: &HttpRequest| is_get(call) && call.path.contains("/zones/");
    Some(real(server, url, recorded, lists, provider))
}

fn start_technitium(context: &BuildContext, _: Recorded) -> Option<Server> {
    let fake = FakeTechnitium::start(&[ZONE]);
    let config = technitium::Config::new(fake.http().url(), Secret::new(fake.token()));
    let lists = |call: &HttpRequest| call.path.ends_with("/records/get");
    Some(http(build(&config, context), fake, FakeTechnitium::http, lists))
}

fn start_cloudflare(context: &BuildContext, marks: cloudflare::MarkForm) -> Option<Server> {
    let fake = FakeCloudflare::start(&[ZONE]);
    let token = Secret::new(fake.token());
    let config = cloudflare::Config { url: fake.url(), marks, ..cloudflare::Config::new(token) };
    let lists = |call: &HttpRequest| is_get(call) && call.path.ends_with("/dns_records");
    Some(http(build(&config, context), fake, FakeCloudflare::http, lists))
}

fn start_pihole(context: &BuildContext, version: u8) -> Option<Server> {
    let fake = FakePiHole::start(version);
    let config = pihole::Config::new(fake.http().url(), Some(Secret::new(fake.password())));
    let lists = |call: &HttpRequest| {
        let v5 = call.parameter("action") == Some("get");
        v5 || is_get(call) && call.path.contains("/config")
    };
    Some(http(build(&config, context), fake, FakePiHole::http, lists))
}

fn is_rewrite_list(call: &HttpRequest) -> bool {
    is_get(call) && call.path.ends_with("/rewrite/list")
}

fn start_adguard(context: &BuildContext, recorded: Recorded) -> Option<Server> {
    let server = AdGuardHome::start()?;
    let (url, user, password) = (server.url(), server.user(), server.password());
    let provider = move |url: &str| build(&adguard::Config::new(url, user, Secret::new(password)), context);
    Some(real(server, url, recorded, is_rewrite_list, provider))
}

fn start_fake_adguard(context: &BuildContext, _: Recorded) -> Option<Server> {
    let fake = FakeAdGuard::start(AdGuardVersion::V0_107_79);
    let config = adguard::Config::new(fake.http().url(), "netstead", Secret::new("netstead-test"));
    Some(http(build(&config, context), fake, FakeAdGuard::http, is_rewrite_list))
}

fn start_webhook(context: &BuildContext, _: Recorded) -> Option<Server> {
    let fake = WebhookReceiver::start(SECRET, &[ZONE]);
    let config = webhook::Config::new(fake.url(), webhook::Protocol::Netstead, Some(Secret::new(SECRET)));
    let lists = |call: &HttpRequest| is_get(call) && call.path.contains("/zones/");
    Some(http(build(&config, context), fake, WebhookReceiver::http, lists))
}

fn start_dnsweaver(context: &BuildContext, _: Recorded) -> Option<Server> {
    let fake = DnsweaverReceiver::start("authorization", SECRET);
    let config = webhook::Config {
        auth_header: Some("authorization".into()),
        auth_token: Some(Secret::new(SECRET)),
        ..webhook::Config::new(fake.url(), webhook::Protocol::Dnsweaver, None)
    };
    Some(http(build(&config, context), fake, DnsweaverReceiver::http, is_get))
}

fn start_external_dns(context: &BuildContext, _: Recorded) -> Option<Server> {
    let fake = FakeWebhookProvider::start(WebhookHabits {
        filter: serde_json::json!({ "include": [ZONE] }),
        ..WebhookHabits::default()
    });
    let mut config = external_dns::Config::new(fake.http().url());
    (config.user, config.password) = (Some(fake.user().to_owned()), Some(Secret::new(fake.password())));
    let lists = |call: &HttpRequest| is_get(call) && call.path.ends_with("/records");
    Some(http(build(&config, context), fake, FakeWebhookProvider::http, lists))
}

fn start_dnsmasq(context: &BuildContext, _: Recorded) -> Option<Server> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_owned();
    let config = dnsmasq::Config { hostsdir: Some(path.clone()), ..dnsmasq::Config::new() };
    Some(Server {
        provider: build(&config, context),
        place: Place::File { dir: path, reload: None },
        _keep: Box::new(dir),
    })
}

/// Its reload is a program that ends at once, on both sides: what Pi-hole does then is not measured.
fn start_pihole_files(context: &BuildContext, _: Recorded) -> Option<Server> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().to_owned();
    let config = pihole::Config::of_files(path.join("custom.list"), None, vec!["true".into()]);
    let place = Place::File { dir: path, reload: Some("true") };
    Some(Server { provider: build(&config, context), place, _keep: Box::new(dir) })
}
