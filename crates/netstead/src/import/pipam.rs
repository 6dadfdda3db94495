//! pipam's file as a configuration.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::draft::{Draft, Table, quoted};

/// The kinds that pipam's sections become.
const SOURCE: &str = "proxmox";
const DNS: &str = "powerdns";
const IPAM: &str = "netbox";
/// Each of them with its section.
#[cfg(test)]
pub(crate) const KINDS: [(&str, &str); 3] = [("source", SOURCE), ("dns", DNS), ("ipam", IPAM)];

/// Every place in which pipam looks for its file.
pub(crate) fn usual_places() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let own = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or(home);
    let dirs = own.into_iter().chain([PathBuf::from("/etc")]);
    let names = ["config.toml", "config.yaml", "config.yml", "config.json"];
    dirs.flat_map(|dir| names.map(|name| dir.join("pipam").join(name))).collect()
}

/// The text of a file, read as its name says.
pub(crate) fn parse(path: &Path, text: &str) -> anyhow::Result<Value> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let value = match extension {
        "json" => serde_json::from_str(text)?,
        "yaml" | "yml" => serde_saphyr::from_str(text)?,
        _ => toml::from_str(text).context("it is no TOML; name another form `.yaml` or `.json`")?,
    };
    if !matches!(value, Value::Object(_)) {
        bail!("it has no keys");
    }
    Ok(value)
}

/// A configuration that means the same, as far as there is one, with a comment for everything else. It is always valid.
pub(crate) fn convert(mut file: Value) -> String {
    let mut draft = Draft::default();
    draft.remark("Made by `netstead import pipam`. What could not be carried over is here as a comment.");
    source(&mut draft, &mut file);
    powerdns(&mut draft, &mut file);
    netbox(&mut draft, &mut file);
    domains(&mut draft, &mut file);
    if take(&mut file, "full_reconcile_interval").is_some() {
        draft.space();
        draft.remark("full_reconcile_interval: every pass compares all records, so there is no other one.");
    }
    if let Some(raft) =
        take(&mut file, "raft").filter(|raft| number(raft.get("node_id")).is_some_and(|id| id > 0))
    {
        draft.space();
        draft.remark("raft: nodes of Netstead join each other, see docs/guide/raft.md. pipam's peers were:");
        for (id, url) in raft.get("peers").and_then(Value::as_object).into_iter().flatten() {
            draft.remark(&format!("  {id} {}", url.as_str().unwrap_or_default()));
        }
    }
    let rest: Vec<String> = file.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    if !rest.is_empty() {
        draft.space();
        draft.remark(&format!("Not carried over: {}", rest.join(", ")));
    }
    draft.finish().text
}

fn source(draft: &mut Draft, file: &mut Value) {
    let mut table = Table::new("source", SOURCE, SOURCE);
    table.text("type", SOURCE);
    let mut own = take(file, "proxmox").unwrap_or_default();
    let of = |own: &mut Value, key: &str| take(own, key).and_then(|value| value.as_str().map(str::to_owned));
    if let Some(url) = of(&mut own, "url") {
        table.text("url", url.trim_end_matches('/').trim_end_matches("/api2/json"));
    }
    let (user, realm) = (of(&mut own, "user"), of(&mut own, "realm"));
    if let (Some(user), Some(id)) = (user, of(&mut own, "token_id")) {
        let realm = realm.unwrap_or_else(|| "pam".to_owned());
        let user = if user.contains('@') { user } else { format!("{user}@{realm}") };
        // The id may be written in full.
        table.text("token_id", &if id.contains('!') { id } else { format!("{user}!{id}") });
    }
    secret(&mut table, "token_secret", of(&mut own, "token_uuid_file"), of(&mut own, "token_uuid"));
    if take(&mut own, "insecure") == Some(Value::Bool(true)) {
        table.raw("insecure", "true");
    }
    if let Some(seconds) = number(take(file, "collect_interval").as_ref()) {
        table.text("interval", &format!("{seconds}s"));
    }
    let skip = texts(take(file, "skip_cidrs").as_ref());
    if !skip.is_empty() {
        table.list("skip_cidrs", &skip);
    }
    for key in own.as_object().into_iter().flatten().map(|(key, _)| key) {
        table.remark(&format!("proxmox.{key}: it has no meaning here"));
    }
    draft.table(table);
}

fn powerdns(draft: &mut Draft, file: &mut Value) {
    let Some(dns) = take(file, "dns") else { return };
    let kind = dns.get("provider").and_then(Value::as_str).unwrap_or(DNS);
    let mut table = Table::new("dns", kind, "dns");
    table.text("type", kind);
    let own = |key: &str| dns.get(kind)?.get(key)?.as_str().map(str::to_owned);
    if let Some(url) = own("url") {
        table.text("url", url.trim_end_matches('/'));
    }
    secret(&mut table, "api_key", own("api_key_file"), own("api_key"));
    let zones: Vec<String> =
        texts(dns.get("zones")).iter().map(|zone| zone.trim_end_matches('.').to_owned()).collect();
    table.list("domains", &zones);
    // pipam writes A and AAAA alone.
    table.raw("reverse", "false");
    draft.table(table);
}

fn netbox(draft: &mut Draft, file: &mut Value) {
    let Some(ipam) = take(file, "ipam") else { return };
    let kind = ipam.get("provider").and_then(Value::as_str).unwrap_or(IPAM);
    let own = |key: &str| ipam.get(kind)?.get(key)?.as_str().map(str::to_owned);
    if kind != IPAM {
        draft.space();
        let url = own("url").unwrap_or_else(|| "?".to_owned());
        draft.remark(&format!("ipam: pipam writes to NetBox alone, and this is {kind} (it was {url})."));
        return;
    }
    let mut table = Table::new("ipam", kind, "ipam");
    table.text("type", kind);
    if let Some(url) = own("url") {
        table.text("url", url.trim_end_matches('/'));
    }
    secret(&mut table, "token", own("token_file"), own("token"));
    if let Some(cluster) = own("cluster") {
        table.text("cluster", &cluster);
    }
    // The tags that pipam makes.
    table.raw("kind_tags", "{ container = \"lxc\", vm = \"qemu\" }");
    draft.table(table);
}

fn domains(draft: &mut Draft, file: &mut Value) {
    const INHERIT: &str = "ipv6_inherit_ipv4_fqdn";
    let on = |value: Option<&Value>| value == Some(&Value::Bool(true));
    let everywhere = on(take(file, INHERIT).as_ref());
    let mut mapping = take(file, "mapping").unwrap_or_default();
    let everywhere = on(take(&mut mapping, INHERIT).as_ref()) || everywhere;
    for (domain, rule) in mapping.as_object().into_iter().flatten() {
        let mut table = Table::new("domain", domain.trim_end_matches('.'), "mapping");
        let listed = rule.get("networks").unwrap_or(rule);
        let networks = listed.as_array().into_iter().flatten().filter_map(|network| {
            let cidr = network.as_str().or_else(|| network.get("cidr")?.as_str())?;
            let shared =
                network.get("service_record").and_then(Value::as_str).filter(|name| !name.is_empty());
            Some(match shared {
                // A full name there; with a dot at its end it is one here.
                Some(name) => {
                    let name = format!("{}.", name.trim_end_matches('.'));
                    format!("{{ cidr = {}, shared_name = {} }}", quoted(cidr), quoted(&name))
                }
                None => quoted(cidr),
            })
        });
        table.raw("networks", format!("[{}]", networks.collect::<Vec<_>>().join(", ")));
        if everywhere || on(rule.get(INHERIT)) {
            table.raw("ipv6_inherit", "true");
        }
        draft.table(table);
    }
}

/// A secret: a file goes before a value.
fn secret(table: &mut Table, key: &str, file: Option<String>, value: Option<String>) {
    match (file, value) {
        (Some(file), _) if !file.is_empty() => table.raw(key, format!("{{ file = {} }}", quoted(&file))),
        (_, Some(value)) if !value.is_empty() => table.text(key, &value),
        _ => {
            table.raw(key, format!("{{ env = {} }}", quoted(&format!("PIPAM_{}", key.to_uppercase()))));
            table.remark(&format!(
                "{key}: pipam read it from its environment; name the variable or file it is in"
            ));
        }
    }
}

fn take(value: &mut Value, key: &str) -> Option<Value> {
    value.as_object_mut()?.remove(key)
}

fn number(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
