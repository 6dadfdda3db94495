//! The sources of dnsweaver.

use crate::import::{
    Variables,
    draft::{Draft, Table},
};

/// The names that `DNSWEAVER_SOURCES` may hold.
const KNOWN: [&str; 7] = ["traefik", "caddy", "nginx-proxy", "dnsweaver", "kubernetes", "proxmox", "incus"];

pub(super) fn add(draft: &mut Draft, variables: &Variables) {
    let mut sources = variables.list("SOURCES");
    sources.extend(variables.list("SOURCE"));
    if sources.is_empty() {
        sources.push("traefik");
    }
    let platform = variables.get("PLATFORM").unwrap_or("docker");
    if matches!(platform, "docker" | "both") {
        docker(draft, variables, &sources);
    }
    files(draft, variables);
    if !matches!(platform, "docker" | "kubernetes" | "both" | "none" | "standalone") {
        draft.space();
        let remark = format!("the platform `{platform}` is not known, so nothing is looked at there");
        draft.warn("DNSWEAVER_PLATFORM", &remark, None);
    }
    for source in sources.iter().filter(|source| !KNOWN.contains(source)) {
        draft.space();
        let remark = format!("Netstead has no source `{source}`, so none of its names is published");
        draft.warn("DNSWEAVER_SOURCES", &remark, None);
    }
    if matches!(platform, "kubernetes" | "both") || sources.contains(&"kubernetes") {
        kubernetes(draft, variables);
    }
    if sources.contains(&"proxmox") || variables.get("PROXMOX_URL").is_some() {
        super::proxmox::add(draft, variables);
    }
    if sources.contains(&"incus") {
        beyond(draft, variables, "Incus", "INCUS_");
    }
}

fn docker(draft: &mut Draft, variables: &Variables, sources: &[&str]) {
    let mut table = Table::new("source", "docker", super::ALL);
    table.text("type", "docker");
    if let Some(host) = variables.get("DOCKER_HOST") {
        table.text("host", host);
    }
    if let Some(mode) = variables.get("DOCKER_MODE").filter(|mode| *mode != "auto") {
        table.text("mode", mode);
    }
    // dnsweaver heeds its own `enabled` whatever the sources are.
    let mut dialects = vec!["netstead", "dnsweaver"];
    for dialect in ["traefik", "caddy", "nginx-proxy"] {
        if sources.contains(&dialect) {
            dialects.push(dialect);
        }
    }
    table.list("dialects", &dialects);
    let entrypoints = variables.list("SOURCE_TRAEFIK_DEFAULT_ENTRYPOINTS");
    if !entrypoints.is_empty() && dialects.contains(&"traefik") {
        table.list("default_entrypoints", &entrypoints);
    }
    if variables.flag("CLEANUP_ON_STOP") == Some(false) {
        table.raw("keep_stopped", "true");
    }
    consent(&mut table, variables);
    if variables.get("DOCKER_CONNECT_TIMEOUT").is_some() {
        table.warn("DNSWEAVER_DOCKER_CONNECT_TIMEOUT: a Docker that is not there yet is waited for");
    }
    draft.table(table);
}

fn files(draft: &mut Draft, variables: &Variables) {
    let paths = variables.list("SOURCE_TRAEFIK_FILE_PATHS");
    let pattern = variables.list("SOURCE_TRAEFIK_FILE_PATTERN");
    let poll = variables.get("SOURCE_TRAEFIK_POLL_INTERVAL");
    let entrypoints = variables.list("SOURCE_TRAEFIK_DEFAULT_ENTRYPOINTS");
    // inotify with polling beside it, always.
    let _ = variables.get("SOURCE_TRAEFIK_WATCH_METHOD");
    if paths.is_empty() {
        return;
    }
    let mut table = Table::new("source", "traefik", "DNSWEAVER_SOURCE_TRAEFIK_*");
    table.text("type", "traefik");
    table.list("paths", &paths);
    if !pattern.is_empty() {
        table.list("pattern", &pattern);
    }
    if let Some(poll) = poll {
        table.text("poll", poll);
    }
    if !entrypoints.is_empty() {
        table.list("default_entrypoints", &entrypoints);
    }
    consent(&mut table, variables);
    draft.table(table);
}

/// dnsweaver reads Services only when asked to, and points at the targets of its instances alone.
fn kubernetes(draft: &mut Draft, variables: &Variables) {
    let mut table = Table::new("source", "kubernetes", "DNSWEAVER_K8S_*");
    table.text("type", "kubernetes");
    if let Some(path) = variables.get("K8S_KUBECONFIG").filter(|path| !path.is_empty()) {
        table.text("kubeconfig", path);
    }
    let namespaces = variables.list("K8S_NAMESPACES");
    if !namespaces.is_empty() {
        table.list("namespaces", &namespaces);
    }
    for (variable, key) in
        [("K8S_LABEL_SELECTOR", "label_selector"), ("K8S_ANNOTATION_FILTER", "annotation_filter")]
    {
        if let Some(text) = variables.get(variable).filter(|text| !text.is_empty()) {
            table.text(key, text);
        }
    }
    let kinds: Vec<&str> = [
        ("K8S_WATCH_INGRESS", "ingress", true),
        ("K8S_WATCH_INGRESSROUTE", "ingressroute", true),
        ("K8S_WATCH_HTTPROUTE", "httproute", true),
        ("K8S_WATCH_SERVICES", "service", false),
    ]
    .into_iter()
    .filter(|(variable, _, default)| variables.flag(variable).unwrap_or(*default))
    .map(|(_, kind, _)| kind)
    .collect();
    if kinds.is_empty() {
        draft.space();
        draft.warn("DNSWEAVER_K8S_*", "no kind of object is watched, so the cluster is left out", None);
        return;
    }
    table.list("kinds", &kinds);
    consent(&mut table, variables);
    draft.table(table);
}

/// A domain that an instance names by itself may be asked for by labels, as dnsweaver allows it.
fn consent(table: &mut Table, variables: &Variables) {
    let mut instances = variables.list("INSTANCES");
    instances.extend(variables.list("PROVIDERS"));
    let itself = |domain: &str| !domain.contains(['*', '?', '[']);
    let names_itself =
        |instance: &str| super::instance_list(variables, instance, "DOMAINS").into_iter().any(itself);
    if instances.into_iter().any(names_itself) {
        table.raw("apex", "true");
    }
}

/// Sources that Netstead does not have yet.
fn beyond(draft: &mut Draft, variables: &Variables, name: &str, prefix: &str) {
    draft.space();
    let remark = format!("Netstead has no source for {name} yet, so none of its names is published");
    draft.warn(&format!("DNSWEAVER_{prefix}*"), &remark, None);
    for line in variables.below(prefix) {
        draft.remark(&format!("  {line}"));
    }
}
