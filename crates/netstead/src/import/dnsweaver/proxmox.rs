//! `DNSWEAVER_PROXMOX_…`

use crate::import::{
    Variables,
    draft::{Draft, Table},
};

/// Keys of TLS, as dnsweaver and Netstead call them.
const TLS: [(&str, &str); 4] = [
    ("PROXMOX_TLS_CA_FILE", "ca_file"),
    ("PROXMOX_TLS_CERT_FILE", "client_cert"),
    ("PROXMOX_TLS_KEY_FILE", "client_key"),
    ("PROXMOX_TLS_SERVER_NAME", "server_name"),
];

pub(super) fn add(draft: &mut Draft, variables: &Variables) {
    let mut table = Table::new("source", "proxmox", "DNSWEAVER_PROXMOX_*");
    table.text("type", "proxmox");
    if let Some(url) = variables.get("PROXMOX_URL") {
        table.text("url", url.trim_end_matches('/').trim_end_matches("/api2/json"));
    }
    if let Some(id) = variables.get("PROXMOX_TOKEN_ID") {
        table.text("token_id", id);
    }
    if let Some(secret) = variables.secret("PROXMOX_TOKEN_SECRET") {
        table.raw("token_secret", secret);
    }
    for (name, key) in [("PROXMOX_NODE_FILTER", "nodes"), ("PROXMOX_STATE_FILTER", "states")] {
        let values: Vec<&str> = variables.list(name).into_iter().filter(|value| *value != "all").collect();
        if !values.is_empty() {
            table.list(key, &values);
        }
    }
    // dnsweaver's filter is the beginning of a tag.
    let tags = variables.list("PROXMOX_TAG_FILTER");
    let tags: Vec<String> = tags.into_iter().map(|tag| format!("{tag}*")).collect();
    if !tags.is_empty() {
        table.list("tags", &tags);
    }
    for (name, key) in
        [("PROXMOX_DOMAIN_SUFFIX", "domain_suffix"), ("PROXMOX_HOSTNAME_TAG_PREFIX", "hostname_tag_prefix")]
    {
        if let Some(value) = variables.get(name) {
            table.text(key, value.trim_matches('.'));
        }
    }
    match variables.get("PROXMOX_TARGET_MODE") {
        None | Some("guest-ip") => {}
        Some("instance") => table.text("target", "provider"),
        Some(other) => {
            table.warn(&format!("DNSWEAVER_PROXMOX_TARGET_MODE={other}: names point at the guest"));
        }
    }
    // dnsweaver calls a guest by its name in Proxmox VE.
    table.list("hostname", &["config", "name"]);
    for (name, key) in TLS {
        if let Some(value) = variables.get(name) {
            table.text(key, value);
        }
    }
    let skip = variables.flag("PROXMOX_TLS_SKIP_VERIFY") == Some(true);
    if skip || variables.flag("PROXMOX_VERIFY_TLS") == Some(false) {
        table.raw("insecure", "true");
    }
    match variables.get("PROXMOX_TLS_MIN_VERSION") {
        None | Some("1.2") => {}
        Some("1.3") => table.text("min_tls_version", "1.3"),
        Some(other) => {
            table.warn(&format!("DNSWEAVER_PROXMOX_TLS_MIN_VERSION={other}: it is 1.2 here"));
        }
    }
    draft.table(table);
}
