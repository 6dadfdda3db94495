//! `netstead config check`

use std::fmt::Write as _;

use netstead_model::{PoolSpec, Range, Span};

use super::say;
use crate::{
    cli::{Format, Global, admin::ConfigCheck},
    config::{Config, DnsConfig, FoundConfig, StoreConfig, layout},
    config_files,
    failure::{AlreadyReported, print_error, print_warning},
    loaded_config::LoadedConfig,
    output,
    store_location::StoreLocation,
};

pub(crate) fn check(global: &Global, args: &ConfigCheck) -> anyhow::Result<()> {
    let settings = LoadedConfig::read(args.file.as_deref().or(global.config.as_deref()))?;
    let problems = if args.no_secrets { Vec::new() } else { config_files::problems(&settings.config) };
    let (elsewhere, problems): (Vec<_>, Vec<_>) = problems.into_iter().partition(config_files::is_elsewhere);
    for problem in &problems {
        print_error(&problem.to_string(), problem.hint.as_deref());
    }
    for problem in &elsewhere {
        let hint = "that is fine if the service has it; it is not checked here";
        print_warning(&problem.to_string(), Some(hint));
    }
    if !problems.is_empty() {
        say!("`--no-secrets` checks the file alone, for a machine that has none of its secrets");
        return Err(AlreadyReported.into());
    }
    match &settings.found {
        FoundConfig::File { path, .. } => say!("{} is fine", path.display()),
        FoundConfig::Nothing { looked } => {
            let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
            say!("no file is found ({}): these are the defaults", looked.join(", "));
        }
    }
    for warning in &settings.config.warnings {
        print_warning(&warning.to_string(), warning.hint.as_deref());
    }
    match global.output {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&settings.config, format),
        _ => output::emit(&understood(global, &settings)),
    }
}

/// Prints the JSON Schema of the file.
pub(crate) fn schema() -> anyhow::Result<()> {
    output::emit(&format!("{:#}\n", layout::schema()))
}

/// Whole days as days.
fn days(span: Span) -> String {
    const DAY: u64 = 24 * 3600 * 1000;
    match span.as_millis() {
        millis if millis > 0 && millis % DAY == 0 => format!("{}d", millis / DAY),
        _ => span.to_string(),
    }
}

fn understood(global: &Global, settings: &LoadedConfig) -> String {
    let Config {
        store, api, log, ledger, nameserver, notify, pools, sources, providers, ipam, domains, ..
    } = &settings.config;
    let store = match store {
        StoreConfig::Memory => "memory: nothing is kept".to_owned(),
        StoreConfig::Local { .. } | StoreConfig::Etcd(_) | StoreConfig::Raft(_) => {
            match settings.store(global) {
                StoreLocation::Local(dir) => format!("local, in {}", dir.display()),
                place => place.to_string(),
            }
        }
    };
    let scheme = if api.tls.is_some() { "https" } else { "http" };
    let hosts =
        if api.hosts.is_empty() { String::new() } else { format!(", also called {}", api.hosts.join(", ")) };
    let level = log.level.as_ref().map_or_else(|| "info".to_owned(), ToString::to_string);
    let format = if log.format == Some(crate::logging::LogFormat::Json) { "json" } else { "text" };
    let mut text = String::new();
    let _ = writeln!(text, "store   {store}");
    let _ = writeln!(text, "api     {scheme}://{}{hosts}", api.listen);
    let _ = writeln!(text, "log     {level}, as {format}");
    let _ = writeln!(text, "ledger  events kept {}, at most {}", days(ledger.retention), ledger.max_events);
    for pool in pools {
        let _ = writeln!(text, "pool    {}", describe_pool(pool));
    }
    let listen: Vec<_> = nameserver.listen.iter().map(ToString::to_string).collect();
    let listen =
        if listen.is_empty() { "127.0.0.1:5300, if it is free".to_owned() } else { listen.join(", ") };
    let _ = writeln!(text, "dns     own nameserver on {listen}");
    if notify.is_some() {
        let _ = writeln!(text, "notify  a person is notified");
    }
    for source in sources {
        let _ = writeln!(text, "source  {}: {}", source.name, source.table.describe());
    }
    for provider in providers {
        let _ = writeln!(text, "dns     {}", describe_provider(provider));
    }
    for system in ipam {
        let _ = writeln!(text, "ipam    {}: {}", system.name, system.server.describe());
    }
    for rule in &domains.0 {
        let networks: Vec<_> = rule.networks.iter().map(|network| network.cidr.to_string()).collect();
        let _ = writeln!(text, "domain  {}: {}", rule.domain, networks.join(" "));
    }
    text
}

fn describe_provider(provider: &DnsConfig) -> String {
    let domains: Vec<_> = provider.common.domains.iter().map(ToString::to_string).collect();
    format!("{}: {}, for {}", provider.name, provider.server.describe(), domains.join(" "))
}

fn describe_pool(pool: &PoolSpec) -> String {
    let extent: Vec<_> = pool.extent().iter().map(ToString::to_string).collect();
    let size: u128 = pool.usable().iter().map(Range::len).fold(0, u128::saturating_add);
    format!("{}: {}, {} of {}, VRF {}", pool.name, pool.family, size, extent.join(" "), pool.vrf)
}
