//! Servers that are kept in line by files.

use std::path::Path;

use super::Instance;
use crate::import::draft::Table;

/// Where dnsweaver writes unless it is told otherwise.
const CONFIG_DIR: &str = "/etc/dnsmasq.d";
const CONFIG_FILE: &str = "dnsweaver.conf";
const PIHOLE_DIR: &str = "/etc/pihole";
const CUSTOM_LIST: &str = "custom.list";
/// The file with the CNAME records of Pi-hole 5.
const CNAME_FILE: &str = "/etc/dnsmasq.d/05-pihole-custom-cname.conf";
const PIHOLE_RELOAD: &str = "pihole restartdns reload-lists";
const RELOAD: &str = "systemctl reload dnsmasq";

pub(super) fn dnsmasq(table: &mut Table, instance: &Instance<'_>) {
    table.text("type", "dnsmasq");
    table.text("conf_dir", instance.get("CONFIG_DIR").unwrap_or(CONFIG_DIR));
    if let Some(file) = instance.get("CONFIG_FILE").filter(|file| *file != CONFIG_FILE) {
        table.text("dnsweaver_file", file);
    }
    let written = instance.get("RELOAD_COMMAND").unwrap_or(RELOAD);
    let words: Vec<&str> = written.split_whitespace().collect();
    // dnsmasq does not read its configuration again on SIGHUP, which is what a reload sends.
    let restart: Vec<&str> =
        words.iter().map(|word| if *word == "reload" { "restart" } else { word }).collect();
    if restart != words {
        table.warn(&format!("`{written}` does not make dnsmasq read this directory; a restart does"));
    }
    table.list("reload", &restart);
    ssh(table, instance);
    // Domains say what it answers for.
    let _ = instance.get("ZONE");
}

/// A Pi-hole in dnsweaver's mode `file`.
///
/// dnsweaver writes dnsmasq's syntax into whatever file it is given. In a directory of dnsmasq that works; in `custom.list`, which
/// is a hosts file, Pi-hole does not see it.
pub(super) fn pihole(table: &mut Table, instance: &Instance<'_>) {
    let dir = instance.get("CONFIG_DIR").unwrap_or(PIHOLE_DIR).trim_end_matches('/');
    let file = instance.get("CONFIG_FILE").unwrap_or(CUSTOM_LIST);
    let written = instance.get("RELOAD_COMMAND").unwrap_or(PIHOLE_RELOAD);
    let words: Vec<&str> = written.split_whitespace().collect();
    // Lists of hosts are read again, and CNAME records are not.
    let restart: Vec<&str> =
        words.iter().copied().filter(|word| !matches!(*word, "reload" | "reload-lists")).collect();
    if restart != words {
        table.warn(&format!("`{written}` does not make Pi-hole read CNAME records; a restart does"));
    }
    if Path::new(file).extension().is_some_and(|end| end == "conf") {
        table.text("type", "dnsmasq");
        table.text("conf_dir", dir);
        table.text("dnsweaver_file", file);
    } else {
        table.text("type", "pihole");
        table.text("hosts_file", &format!("{dir}/{file}"));
        table.text("cname_file", CNAME_FILE);
    }
    table.list("reload", &restart);
    // What its API needs.
    for unused in ["ACCESS_MODE", "URL", "API_VERSION", "ZONE"] {
        let _ = instance.get(unused);
    }
    let _ = instance.secret("PASSWORD");
    ssh(table, instance);
}

fn ssh(table: &mut Table, instance: &Instance<'_>) {
    let (host, user, port) = (instance.get("SSH_HOST"), instance.get("SSH_USER"), instance.get("SSH_PORT"));
    let (key, known) = (instance.get("SSH_KEY_FILE"), instance.get("SSH_KNOWN_HOSTS_FILE"));
    let strict = instance.flag("SSH_STRICT_HOST_KEY_CHECKING");
    let password = instance.secret("SSH_PASSWORD").is_some();
    let Some(host) = host else { return };
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let port = port.filter(|port| *port != "22").map(|port| format!(":{port}")).unwrap_or_default();
    table.text("ssh", &format!("ssh://{user}{host}{port}"));
    if let Some(key) = key {
        table.text("ssh_key", key);
    }
    if let Some(known) = known {
        table.text("ssh_known_hosts", known);
    }
    if strict == Some(false) {
        table.warn("SSH_STRICT_HOST_KEY_CHECKING=false: the host's key must be known here");
    }
    if password {
        table.warn("SSH_PASSWORD is not carried over: ssh logs in with a key");
    }
}
