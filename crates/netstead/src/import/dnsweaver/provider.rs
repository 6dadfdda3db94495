//! One instance of dnsweaver as a provider.

mod files;

use crate::import::{
    Variables,
    draft::{Draft, Table},
};

/// dnsweaver's default TTL.
const TTL: &str = "300";

/// One instance and its variables.
pub(super) struct Instance<'a> {
    variables: &'a Variables,
    prefix: String,
}

impl<'a> Instance<'a> {
    fn name(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.prefix)
    }

    fn get(&self, suffix: &str) -> Option<&'a str> {
        self.variables.get(&self.name(suffix))
    }

    fn list(&self, suffix: &str) -> Vec<&'a str> {
        self.variables.list(&self.name(suffix))
    }

    fn flag(&self, suffix: &str) -> Option<bool> {
        self.variables.flag(&self.name(suffix))
    }

    fn secret(&self, suffix: &str) -> Option<String> {
        self.variables.secret(&self.name(suffix))
    }
}

type CarryOver = fn(&mut Table, &Instance<'_>);

/// The types of instance that are carried over.
pub(super) const KINDS: [(&str, CarryOver); 8] = [
    ("adguard", adguard),
    ("cloudflare", cloudflare),
    ("dnsmasq", files::dnsmasq),
    ("pihole", pihole),
    ("powerdns", powerdns),
    ("rfc2136", rfc2136),
    ("technitium", technitium),
    ("webhook", webhook),
];

pub(super) fn add(draft: &mut Draft, variables: &Variables, name: &str) {
    let prefix = super::prefix_of(name);
    let instance = Instance { variables, prefix };
    let kind = instance.get("TYPE").unwrap_or_default().to_ascii_lowercase();
    let mut table = Table::new("dns", &name.to_ascii_lowercase(), &subject(&instance));
    match KINDS.iter().find(|(known, _)| *known == kind) {
        Some(("pihole", _)) if pihole_access(&instance) == Some("file") => {
            files::pihole(&mut table, &instance);
        }
        Some((_, carry_over)) => carry_over(&mut table, &instance),
        None if kind.is_empty() => {
            let hint = format!("set DNSWEAVER_{}TYPE", instance.prefix);
            return absent(draft, &instance, name, "it has no type", Some(&hint));
        }
        None => {
            let why = format!("Netstead has no provider of type `{kind}`");
            return absent(draft, &instance, name, &why, Some(ELSEWHERE));
        }
    }
    domains(&mut table, &instance);
    shared(&mut table, &instance);
    refuse_unknown_filters(&mut table, &instance);
    draft.table(table);
}

/// The ways to a server that has no provider here.
const ELSEWHERE: &str = "reach it through a program of your own (`type = \"webhook\"`), or through one of the many \
                         webhook providers of external-dns (`type = \"external-dns\"`)";

/// The beginnings of settings that say what is not published.
const FILTERS: [&str; 4] = ["EXCLUDE", "ENTRYPOINT", "INCLUDE", "MATCH_LABELED_ONLY"];

fn subject(instance: &Instance<'_>) -> String {
    format!("DNSWEAVER_{}*", instance.prefix)
}

/// Leaves an instance out whose names would be published more widely than a setting of it says.
fn refuse_unknown_filters(table: &mut Table, instance: &Instance<'_>) {
    for filter in FILTERS {
        let unknown = instance.variables.left_below(&instance.name(filter));
        for variable in unknown {
            table.refuse(format!(
                "{variable} narrows what is published, and Netstead does not know this setting"
            ));
        }
    }
}

fn absent(draft: &mut Draft, instance: &Instance<'_>, name: &str, why: &str, hint: Option<&str>) {
    draft.space();
    draft.warn(&subject(instance), &format!("The instance `{name}` is left out: {why}"), hint);
    for line in instance.variables.below(&instance.prefix) {
        draft.remark(&format!("  {line}"));
    }
}

fn powerdns(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "powerdns");
    if let Some(url) = instance.get("URL") {
        table.text("url", url);
    }
    if let Some(key) = instance.secret("API_KEY") {
        table.raw("api_key", key);
    }
    if let Some(id) = instance.get("SERVER_ID") {
        table.text("server_id", id);
    }
    // The zones of the domains are found by themselves.
    let _ = instance.get("ZONE");
    tls(table, instance);
}

fn adguard(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "adguard");
    if let Some(url) = instance.get("URL") {
        table.text("url", url);
    }
    if let Some(user) = instance.get("USERNAME") {
        table.text("user", user);
    }
    if let Some(password) = instance.secret("PASSWORD") {
        table.raw("password", password);
    }
    // It knows no zones.
    let _ = instance.get("ZONE");
    tls(table, instance);
}

fn pihole(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "pihole");
    if let Some(url) = instance.get("URL") {
        table.text("url", url);
    }
    if let Some(password) = instance.secret("PASSWORD") {
        table.raw("password", password);
    }
    // The version is found out by asking, and it knows no zones.
    for known in ["API_VERSION", "ZONE", "ACCESS_MODE"] {
        let _ = instance.get(known);
    }
    for suffix in ["CONFIG_DIR", "CONFIG_FILE", "RELOAD_COMMAND"] {
        if let Some(value) = instance.get(suffix) {
            table.warn(&format!("{suffix}={value}: not needed with its API"));
        }
    }
    tls(table, instance);
}

fn cloudflare(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "cloudflare");
    if let Some(token) = instance.secret("TOKEN") {
        table.raw("token", token);
    }
    if let Some(zone) = instance.get("ZONE") {
        table.text("zone", zone.trim_end_matches('.'));
    }
    if let Some(id) = instance.get("ZONE_ID") {
        table.text("zone_id", id);
    }
    // Written in any case: dnsweaver's default is another one.
    let proxied = instance.flag("PROXIED") != Some(false);
    table.raw("proxied", proxied.to_string());
}

fn technitium(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "technitium");
    if let Some(url) = instance.get("URL") {
        table.text("url", url);
    }
    if let Some(token) = instance.secret("TOKEN") {
        table.raw("token", token);
    }
    // The zones of the domains are found by themselves.
    let _ = instance.get("ZONE");
    if instance.flag("AUTO_HTTPS_RECORDS") == Some(false) {
        table.raw("https_records", "false");
    }
    if let Some(alpn) = instance.get("AUTO_HTTPS_ALPN") {
        table.text("https_alpn", alpn);
    }
    tls(table, instance);
}

/// How dnsweaver changes a Pi-hole: `api` or `file`. It was called `MODE` once.
fn pihole_access<'a>(instance: &Instance<'a>) -> Option<&'a str> {
    instance.get("ACCESS_MODE").or_else(|| instance.get("MODE").filter(|mode| is_access(mode)))
}

fn is_access(mode: &str) -> bool {
    matches!(mode, "api" | "file")
}

/// The settings of TLS, which all servers behind HTTP share.
fn tls(table: &mut Table, instance: &Instance<'_>) {
    for (suffix, key) in [
        ("TLS_CA_FILE", "ca_file"),
        ("TLS_CERT_FILE", "client_cert"),
        ("TLS_KEY_FILE", "client_key"),
        ("TLS_SERVER_NAME", "server_name"),
    ] {
        if let Some(value) = instance.get(suffix) {
            table.text(key, value);
        }
    }
    let skip = [instance.flag("TLS_SKIP_VERIFY"), instance.flag("INSECURE_SKIP_VERIFY")];
    if skip.contains(&Some(true)) {
        table.raw("insecure", "true");
    }
    if let Some(version) = instance.get("TLS_MIN_VERSION") {
        table.warn(&format!("TLS_MIN_VERSION={version}: it is 1.2 here"));
    }
}

fn rfc2136(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "rfc2136");
    table.list("servers", &instance.list("SERVER"));
    if let Some(name) = instance.get("TSIG_KEY_NAME") {
        table.text("tsig_name", name);
    }
    if let Some(algorithm) = instance.get("TSIG_ALGORITHM") {
        table.text("tsig_algorithm", algorithm.trim_end_matches('.'));
    }
    if let Some(secret) = instance.secret("TSIG_SECRET") {
        table.raw("tsig_secret", secret);
    }
    if let Some(zone) = instance.get("ZONE") {
        table.list("zones", &[zone.trim_end_matches('.')]);
    }
    for suffix in ["TIMEOUT", "USE_TCP"] {
        if let Some(value) = instance.get(suffix) {
            table.warn(&format!("{suffix}={value}: not needed here"));
        }
    }
}

fn webhook(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "webhook");
    table.text("protocol", "dnsweaver");
    if let Some(url) = instance.get("URL") {
        table.text("url", url);
    }
    // Without the name of a header dnsweaver sends no token.
    let token = instance.secret("AUTH_TOKEN");
    match (instance.get("AUTH_HEADER"), token) {
        (Some(header), Some(token)) => {
            table.text("auth_header", header);
            table.raw("auth_token", token);
        }
        (None, Some(_)) => table.warn("AUTH_TOKEN without AUTH_HEADER is not sent, by dnsweaver neither"),
        _ => {}
    }
    if let Some(timeout) = instance.get("TIMEOUT") {
        table.text("timeout", timeout);
    }
    for suffix in ["RETRIES", "RETRY_DELAY"] {
        if let Some(value) = instance.get(suffix) {
            table.warn(&format!("{suffix}={value}: how often something is repeated is not set here"));
        }
    }
    tls(table, instance);
}

/// A name without a wildcard means itself alone to dnsweaver, and itself with all below it here.
fn domains(table: &mut Table, instance: &Instance<'_>) {
    let mut exclude: Vec<String> = Vec::new();
    let mut domains: Vec<String> = Vec::new();
    let written = instance.list("DOMAINS");
    for domain in &written {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        let below = format!("*.{domain}");
        if domain.contains(['?', '[']) {
            domains.push(format!("/{}/", glob_to_regex(&domain)));
        } else if domain.contains('*') {
            domains.push(domain);
        } else {
            if !written.iter().any(|other| other.trim_end_matches('.').eq_ignore_ascii_case(&below)) {
                exclude.push(below);
            }
            domains.push(domain);
        }
    }
    // A domain with all below needs no glob beside it.
    let whole = domains.clone();
    domains.retain(|domain| {
        domain.strip_prefix("*.").is_none_or(|plain| !whole.iter().any(|other| other == plain))
    });
    let regex = instance.get("DOMAINS_REGEX");
    if let (Some(_), false) = (regex, written.is_empty()) {
        table.refuse(
            "DOMAINS and DOMAINS_REGEX are both set, and dnsweaver takes only one of them".to_owned(),
        );
    }
    domains.extend(regex.map(|regex| format!("/{regex}/")));
    table.list("domains", &domains);
    for domain in instance.list("EXCLUDE_DOMAINS") {
        let domain = domain.trim_end_matches('.').to_ascii_lowercase();
        if domain.contains('*') && !domain.contains(['?', '[']) {
            exclude.push(domain);
        } else {
            exclude.push(format!("/{}/", glob_to_regex(&domain)));
        }
    }
    exclude.extend(instance.get("EXCLUDE_DOMAINS_REGEX").map(|regex| format!("/{regex}/")));
    if !exclude.is_empty() {
        table.list("exclude_domains", &exclude);
    }
}

/// The whole name; `*` spans dots, `?` is one character but a dot, `[…]` is a class as it stands.
fn glob_to_regex(glob: &str) -> String {
    let mut out = String::from("^");
    for c in glob.chars() {
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push_str("[^.]"),
            '.' => out.push_str("\\."),
            c => out.push(c),
        }
    }
    out.push('$');
    out
}

fn shared(table: &mut Table, instance: &Instance<'_>) {
    let variables = instance.variables;
    let kind = instance.get("RECORD_TYPE").unwrap_or("A").to_ascii_uppercase();
    table.text("record_type", &kind);
    match (instance.get("TARGET"), instance.get("TARGET_MODE")) {
        (_, Some(mode)) => table.text("target", mode),
        (Some(target), None) => table.text("target", target),
        (None, None) => {
            table.warn("dnsweaver needs TARGET here; without it names point at what they belong to");
        }
    }
    target_lookup(table, instance);
    table.raw("ttl", instance.get("TTL").or(variables.get("DEFAULT_TTL")).unwrap_or(TTL));
    let mode = if variables.flag("DRY_RUN") == Some(true) {
        "observe"
    } else if variables.flag("CLEANUP_ORPHANS") == Some(false) {
        "additive"
    } else {
        instance.get("MODE").filter(|mode| !is_access(mode)).unwrap_or("managed")
    };
    let _ = instance.get("MODE");
    table.text("mode", mode);
    let adopt = instance.flag("ADOPT_EXISTING").or(variables.flag("ADOPT_EXISTING"));
    if adopt == Some(true) {
        table.raw("adopt", "true");
    }
    if instance.flag("ADOPT_EXISTING_ALLOW_OVERRIDES") == Some(false) {
        table.warn("ADOPT_EXISTING_ALLOW_OVERRIDES=false: labels may always ask for adoption here");
    }
    // dnsweaver makes no PTR.
    table.raw("reverse", "false");
    if let Some(interval) = variables.get("RECONCILE_INTERVAL") {
        table.text("interval", interval);
    }
    let entrypoints = instance.list("ENTRYPOINTS");
    if !entrypoints.is_empty() {
        table.list("entrypoints", &entrypoints);
    }
}

/// How a target that moves is found.
fn target_lookup(table: &mut Table, instance: &Instance<'_>) {
    let mode = instance.get("TARGET_MODE").unwrap_or_default();
    if let Some(interval) = instance.get("TARGET_REFRESH_INTERVAL") {
        if mode.is_empty() {
            table.warn(&format!("TARGET_REFRESH_INTERVAL={interval} means nothing without TARGET_MODE"));
        } else {
            table.text("target_interval", interval);
        }
    }
    let endpoints = instance.list("TARGET_PUBLIC_ENDPOINTS");
    if endpoints.is_empty() {
        return;
    }
    if mode != "public" {
        return table.warn("TARGET_PUBLIC_ENDPOINTS means nothing without TARGET_MODE=public");
    }
    let url = |endpoint: &&str| {
        if endpoint.contains("://") { (*endpoint).to_owned() } else { format!("https://{endpoint}") }
    };
    table.list("target_endpoints", &endpoints.iter().map(url).collect::<Vec<_>>());
}
