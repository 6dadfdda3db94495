//! The provider of external-dns.

use super::{Flags, add_if_valid, list};
use crate::import::draft::{Draft, Table};

/// The time to live that external-dns gives a record without one in PowerDNS.
const POWERDNS_TTL: &str = "300";

type CarryOver = fn(&mut Table, &Flags);

/// The providers that are carried over, and the type of each here.
pub(super) const KINDS: [(&str, &str, CarryOver); 5] = [
    ("cloudflare", "cloudflare", cloudflare),
    ("pdns", "powerdns", powerdns),
    ("pihole", "pihole", pihole),
    ("rfc2136", "rfc2136", rfc2136),
    ("webhook", "external-dns", webhook),
];

pub(super) fn add(draft: &mut Draft, flags: &Flags) {
    let provider = flags.text("provider").unwrap_or_default();
    let Some((_, kind, carry_over)) = KINDS.iter().find(|(theirs, ..)| *theirs == provider) else {
        draft.space();
        let why = if provider.is_empty() {
            "--provider is missing, so there is no DNS server".to_owned()
        } else {
            format!("Netstead has no provider `{provider}`, so there is no DNS server")
        };
        let hint = "reach it through one of the webhook providers of external-dns (`type = \"external-dns\"`), or through a \
                    program of your own (`type = \"webhook\"`)";
        return draft.warn("--provider", &why, Some(hint));
    };
    let mut table = Table::new("dns", provider, "external-dns");
    table.text("type", kind);
    carry_over(&mut table, flags);
    domains(&mut table, flags);
    let mode = match flags.text("policy").unwrap_or("sync") {
        _ if flags.is_on("dry-run") => "observe",
        "upsert-only" => "additive",
        "create-only" => "create-only",
        _ => "managed",
    };
    table.text("mode", mode);
    if let Some(interval) = flags.text("interval") {
        add_if_valid(&mut table, "interval", "interval", &super::quoted(interval));
    }
    if flags.text("registry").is_some_and(|registry| registry != "txt") {
        table.raw("adopt", "true");
    }
    let reverse = flags.is_on("create-ptr") || (provider == "rfc2136" && flags.is_on("rfc2136-create-ptr"));
    table.raw("reverse", reverse.to_string());
    draft.table(table);
}

/// `example.com` is the name and all below it, `.example.com` only what is below.
fn domains(table: &mut Table, flags: &Flags) {
    let glob = |domain: &&str| {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        if domain.starts_with('.') { format!("*{domain}") } else { domain }
    };
    let listed: Vec<String> = flags.list("domain-filter").iter().map(glob).collect();
    let mut excluded: Vec<String> = flags.list("exclude-domains").iter().map(glob).collect();
    let mut domains = listed;
    // The regular expression takes the place of the list.
    if let Some(regex) = flags.text("regex-domain-filter") {
        domains = vec![format!("/{regex}/")];
    }
    excluded.extend(flags.text("regex-domain-exclusion").map(|regex| format!("/{regex}/")));
    if domains.is_empty() {
        domains.extend(flags.list("rfc2136-zone").iter().map(glob));
    }
    if domains.is_empty() {
        table.refuse(
            "external-dns takes every zone of the server without --domain-filter, and Netstead needs names: add `domains`"
                .to_owned(),
        );
    }
    table.list("domains", &domains);
    if !excluded.is_empty() {
        table.list("exclude_domains", &excluded);
    }
}

fn secret(table: &mut Table, flags: &Flags, flag: &str, key: &str) {
    if let Some(value) = flags.secret(flag) {
        table.raw(key, value);
    }
}

/// Files of TLS, which two providers share.
fn tls(table: &mut Table, flags: &Flags) {
    for (flag, key) in
        [("tls-ca", "ca_file"), ("tls-client-cert", "client_cert"), ("tls-client-cert-key", "client_key")]
    {
        if let Some(path) = flags.text(flag) {
            table.text(key, path);
        }
    }
}

fn powerdns(table: &mut Table, flags: &Flags) {
    table.text("url", flags.text("pdns-server").unwrap_or("http://localhost:8081"));
    secret(table, flags, "pdns-api-key", "api_key");
    if let Some(id) = flags.text("pdns-server-id") {
        table.text("server_id", id);
    }
    tls(table, flags);
    if flags.is_on("pdns-skip-tls-verify") {
        table.raw("insecure", "true");
    }
    table.raw("ttl", POWERDNS_TTL);
}

fn cloudflare(table: &mut Table, flags: &Flags) {
    table.raw("token", "{ env = \"CF_API_TOKEN\" }");
    if flags.variables.contains("CF_API_KEY") {
        table.warn(
            "CF_API_KEY: Netstead takes a token alone; make one with the permissions Zone Read and DNS Write",
        );
    }
    match flags.list("zone-id-filter")[..] {
        [] => {}
        [zone] => table.text("zone_id", zone),
        ref zones => table.warn(&format!(
            "--zone-id-filter={}: `zone_id` names one zone, so every zone of the token that `domains` lead to is used; make one \
             table with a `zone_id` for each, or a token for these zones alone",
            zones.join(",")
        )),
    }
    table.raw("proxied", flags.is_on("cloudflare-proxied").to_string());
}

fn pihole(table: &mut Table, flags: &Flags) {
    if let Some(url) = flags.text("pihole-server") {
        table.text("url", url);
    }
    secret(table, flags, "pihole-password", "password");
    // The version is found out by asking.
    let _ = flags.text("pihole-api-version");
    if flags.is_on("pihole-tls-skip-verify") {
        table.raw("insecure", "true");
    }
}

fn rfc2136(table: &mut Table, flags: &Flags) {
    let port = flags.text("rfc2136-port").filter(|port| *port != "0");
    let with_port = |host: &&str| match port {
        Some(port) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => (*host).to_owned(),
    };
    table.list("servers", &flags.list("rfc2136-host").iter().map(with_port).collect::<Vec<_>>());
    if flags.is_on("rfc2136-gss-tsig") {
        table.refuse("--rfc2136-gss-tsig: Netstead signs with a TSIG key only".to_owned());
    }
    if flags.is_on("rfc2136-use-tls") {
        table.refuse("--rfc2136-use-tls: Netstead speaks no DNS over TLS to a primary".to_owned());
    }
    let name = flags.text("rfc2136-tsig-keyname");
    let algorithm = flags.text("rfc2136-tsig-secret-alg");
    let key = flags.secret("rfc2136-tsig-secret");
    if !flags.is_on("rfc2136-insecure") {
        if let Some(name) = name {
            table.text("tsig_name", name.trim_end_matches('.'));
        }
        if let Some(algorithm) = algorithm {
            table.text("tsig_algorithm", algorithm.trim_end_matches('.'));
        }
        if let Some(key) = key {
            table.raw("tsig_secret", key);
        }
    }
    if flags.switch("rfc2136-tsig-axfr") == Some(false) {
        table.text("read", "query");
    }
    let zones: Vec<&str> =
        flags.list("rfc2136-zone").into_iter().map(|zone| zone.trim_end_matches('.')).collect();
    if !zones.is_empty() {
        table.list("zones", &zones);
    }
    let strategy = flags.text("rfc2136-load-balancing-strategy").unwrap_or("disabled");
    if strategy != "disabled" {
        table.warn(&format!(
            "--rfc2136-load-balancing-strategy={strategy}: the next server is asked when one fails"
        ));
    }
    match flags.text("rfc2136-min-ttl").map(seconds) {
        None => table.raw("ttl", "0"),
        Some(Some(seconds)) => add_if_valid(table, "rfc2136-min-ttl", "ttl", &seconds.to_string()),
        Some(None) => table.warn("--rfc2136-min-ttl is no length of time"),
    }
}

/// `1h30m`, `300s`: whole seconds of what Go writes.
fn seconds(text: &str) -> Option<u64> {
    let (mut all, mut number) = (0_u64, String::new());
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        all = all.checked_add(std::mem::take(&mut number).parse::<u64>().ok()?.checked_mul(unit)?)?;
    }
    (number.is_empty() || number == "0").then_some(all)
}

fn webhook(table: &mut Table, flags: &Flags) {
    table.text("url", flags.text("webhook-provider-url").unwrap_or("http://localhost:8888"));
    let types = flags.list("managed-record-types");
    if !types.is_empty() {
        let mut types: Vec<String> = types.iter().map(|kind| kind.to_ascii_uppercase()).collect();
        if !types.iter().any(|kind| kind == "TXT") {
            types.push("TXT".to_owned());
        }
        add_if_valid(table, "managed-record-types", "record_types", &list(&types));
    }
}
