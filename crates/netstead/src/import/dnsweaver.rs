//! dnsweaver's variables as a configuration.

mod provider;
mod proxmox;
mod sources;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Converted, Variables, draft::Draft};

/// Where dnsweaver answers probes unless it is told otherwise.
const HEALTH_PORT: u16 = 8080;

/// Settings of dnsweaver that have no meaning here, and what does their work instead.
const INSTEAD: [(&str, &str); 10] = [
    ("LOG_FILE", "logs go to stderr; let the service manager or Docker keep and rotate them"),
    ("LOG_MAX_SIZE", "see LOG_FILE"),
    ("LOG_MAX_BACKUPS", "see LOG_FILE"),
    ("LOG_MAX_AGE", "see LOG_FILE"),
    ("LOG_COMPRESS", "see LOG_FILE"),
    ("OWNERSHIP_TRACKING", "what is ours is always known, in the store and as TXT marks"),
    ("SHUTDOWN_TIMEOUT", "a stop is bounded by itself"),
    ("INSTANCE_ID", "every installation draws an id of its own; `netstead adopt` reads dnsweaver's marks"),
    ("VALIDATE_ONLY", "`netstead config check` does that"),
    ("DOCKER_GID", "the image finds the socket's group by itself"),
];

/// The kinds of source that are carried over.
#[cfg(test)]
const SOURCES: [&str; 4] = ["docker", "kubernetes", "traefik", "proxmox"];

/// Every kind of ours that dnsweaver's settings can become, with its section.
#[cfg(test)]
pub(crate) fn kinds() -> Vec<(&'static str, &'static str)> {
    let providers = provider::KINDS.iter().map(|(kind, _)| ("dns", *kind));
    providers.chain(SOURCES.map(|kind| ("source", kind))).collect()
}

/// A configuration that means the same, as far as there is one, with a comment for everything else. It is always
/// valid: `netstead config check` accepts it.
pub(crate) fn convert(variables: &Variables) -> Converted {
    let mut draft = Draft::default();
    draft.remark("Made by `netstead import dnsweaver`. What could not be carried over is here as a comment.");
    log(&mut draft, variables);
    probes(&mut draft, variables);
    sources::add(&mut draft, variables);
    let mut instances = variables.list("INSTANCES");
    instances.extend(variables.list("PROVIDERS"));
    if instances.is_empty() {
        draft.space();
        draft.warn("DNSWEAVER_INSTANCES", "dnsweaver has no instances here, so there is no DNS server", None);
    }
    for instance in instances {
        provider::add(&mut draft, variables, instance);
    }
    // Read by all providers; there may be none.
    for shared in ["DEFAULT_TTL", "DRY_RUN", "CLEANUP_ORPHANS", "ADOPT_EXISTING", "RECONCILE_INTERVAL"] {
        let _ = variables.get(shared);
    }
    remain(&mut draft, variables);
    draft.finish()
}

/// All variables of dnsweaver, for people.
const ALL: &str = "DNSWEAVER_*";

/// The beginning of the variables of one instance.
fn prefix_of(instance: &str) -> String {
    format!("{}_", instance.to_uppercase().replace('-', "_"))
}

/// A list among the variables of one instance.
fn instance_list<'a>(variables: &'a Variables, instance: &str, suffix: &str) -> Vec<&'a str> {
    variables.list(&format!("{}{suffix}", prefix_of(instance)))
}

fn log(draft: &mut Draft, variables: &Variables) {
    let mut table = super::draft::Table::top("log", ALL);
    match variables.get("LOG_LEVEL").map(str::to_ascii_lowercase).as_deref() {
        Some(level @ ("debug" | "info" | "warn" | "error")) => table.text("level", level),
        Some(level) => table.warn(&format!("DNSWEAVER_LOG_LEVEL={level} is not known")),
        None => {}
    }
    let format = variables.get("LOG_FORMAT").unwrap_or("json");
    table.text("format", if format == "text" { "text" } else { "json" });
    draft.table(table);
}

/// dnsweaver answers probes always, and other machines only if it is told to.
fn probes(draft: &mut Draft, variables: &Variables) {
    let mut table = super::draft::Table::top("api", ALL);
    table.remark("/health and /ready as dnsweaver has them; our own are /healthz and /readyz of the API.");
    let port = match variables.get("HEALTH_PORT").map(str::parse::<u16>) {
        Some(Ok(port)) => port,
        Some(Err(_)) => {
            table.warn("DNSWEAVER_HEALTH_PORT is no port; this is dnsweaver's usual one.");
            HEALTH_PORT
        }
        None => HEALTH_PORT,
    };
    let open = variables.flag("HEALTH_ALLOW_NETWORK") == Some(true);
    let address = match variables.get("HEALTH_ADDRESS").map(|address| (address, address.parse::<IpAddr>())) {
        Some((_, Ok(address))) if open || address.is_loopback() => address,
        Some((address, Ok(_))) => {
            table.warn(&format!(
                "DNSWEAVER_HEALTH_ADDRESS={address} needs DNSWEAVER_HEALTH_ALLOW_NETWORK=true"
            ));
            Ipv4Addr::LOCALHOST.into()
        }
        Some((address, Err(_))) => {
            table.warn(&format!("DNSWEAVER_HEALTH_ADDRESS={address} is no address"));
            Ipv4Addr::LOCALHOST.into()
        }
        None if open => Ipv4Addr::UNSPECIFIED.into(),
        None => Ipv4Addr::LOCALHOST.into(),
    };
    table.text("probes", &SocketAddr::new(address, port).to_string());
    draft.table(table);
}

fn remain(draft: &mut Draft, variables: &Variables) {
    let mut told = Vec::new();
    for (name, instead) in INSTEAD {
        if variables.is_set(name) {
            told.extend(variables.below(name).into_iter().map(|line| (line, instead)));
        }
    }
    let unknown = "it has no meaning here, or dnsweaver did not know it either";
    told.extend(variables.left().into_iter().map(|line| (line, unknown)));
    if told.is_empty() {
        return;
    }
    draft.space();
    draft.remark("Not carried over:");
    for (line, why) in told {
        draft.remark(&format!("  {line}: {why}"));
        draft.warn_silently(line.split('=').next().unwrap_or(ALL), &format!("it is not carried over: {why}"));
    }
}
