//! The form of the answers of Proxmox VE: every answer of the fake is held against it, so that no test passes on an answer that the
//! real one would not give.

use serde_json::{Map, Value};

/// Each call with the fields of its answer: `name:type`, with `?` behind a name that may be missing and `|` between words that
/// are allowed. `*` in a path is any segment, `[]` an answer that is a list, and `#` in a name a number.
const SHAPES: &[(&str, &str)] = &[
    ("/version", "version:text release:text repoid:text console?:text"),
    (
        "/nodes[]",
        "node:text status:online|offline|unknown level?:text id?:text type?:node maxcpu?:number maxmem?:number \
      mem?:number cpu?:number uptime?:number disk?:number maxdisk?:number ssl_fingerprint?:text",
    ),
    (
        "/cluster/resources[]",
        "id:text type:node|storage|pool|qemu|lxc|openvz|sdn|network status?:text node?:text vmid?:number \
      name?:text tags?:text pool?:text lock?:text template?:flag uptime?:number hastate?:text level?:text maxcpu?:number \
      maxmem?:number maxdisk?:number cpu?:number mem?:number disk?:number storage?:text content?:text plugintype?:text \
      shared?:flag sdn?:text network?:text network-type?:zone|fabric zone-type?:text protocol?:text",
    ),
    (
        "/cluster/status[]",
        "type:cluster|node id:text name:text nodes?:number quorate?:flag version?:number ip?:text \
      level?:text local?:flag nodeid?:number online?:flag",
    ),
    (
        "/cluster/tasks[]",
        "upid:text node?:text type?:text id?:text user?:text starttime?:number endtime?:number status?:text",
    ),
    (
        "/cluster/sdn/zones[]",
        "zone:text type:evpn|faucet|qinq|simple|vlan|vxlan digest?:text ipam?:text dhcp?:dnsmasq \
      dns?:text dnszone?:text reversedns?:text bridge?:text tag?:number nodes?:text controller?:text",
    ),
    (
        "/cluster/sdn/vnets[]",
        "vnet:text type:vnet zone?:text tag?:number alias?:text digest?:text vlanaware?:flag",
    ),
    (
        "/nodes/*/network[]",
        "iface:text type:bridge|bond|eth|alias|vlan|fabric|OVSBridge|OVSBond|OVSPort|OVSIntPort|vnet|unknown \
      active?:flag exists?:flag autostart?:flag method?:loopback|dhcp|manual|static|auto method6?:loopback|dhcp|manual|static|auto \
      address?:text netmask?:text cidr?:text gateway?:text address6?:text cidr6?:text bridge_ports?:text bridge_stp?:text \
      bridge_fd?:text bridge_vlan_aware?:flag bridge_vids?:text families?:any priority?:number slaves?:text \
      vlan-id?:number vlan-raw-device?:text ovs_bridge?:text ovs_ports?:text ovs_tag?:number ovs_bonds?:text ovs_options?:text",
    ),
    ("/nodes/*/sdn/zones/*/bridges[]", "name:text vlan_filtering?:flag ports:any"),
    ("/nodes/*/sdn/vnets/*/mac-vrf[]", "ip:text mac:text nexthop:text"),
    (
        "/nodes/*/qemu/*/config",
        "digest:text name?:text description?:text tags?:text agent?:text cores?:number sockets?:number \
      vcpus?:number memory?:text balloon?:number ostype?:text onboot?:flag scsihw?:text boot?:text template?:flag \
      lock?:backup|clone|create|migrate|rollback|snapshot|snapshot-delete|suspending|suspended net#?:text ipconfig#?:text \
      scsi#?:text virtio#?:text sata#?:text ide#?:text unused#?:text efidisk0?:text tpmstate0?:text searchdomain?:text \
      nameserver?:text smbios1?:text vmgenid?:text meta?:text ciuser?:text bios?:seabios|ovmf",
    ),
    (
        "/nodes/*/lxc/*/config",
        "digest:text hostname?:text arch?:text cores?:number memory?:number swap?:number ostype?:text \
      unprivileged?:flag tags?:text description?:text rootfs?:text mp#?:text net#?:text unused#?:text searchdomain?:text \
      nameserver?:text onboot?:flag template?:flag \
      lock?:backup|create|destroyed|disk|fstrim|migrate|mounted|rollback|snapshot|snapshot-delete",
    ),
    (
        "/nodes/*/lxc/*/interfaces[]",
        "name:text hwaddr:text hardware-address:text inet?:text inet6?:text ip-addresses:any",
    ),
    ("/nodes/*/qemu/*/agent/*", "result:any"),
];

/// Why `data` is no answer to this call; none if it is one, or if nothing is known of the call.
pub(super) fn wrong(path: &str, data: &Value) -> Option<String> {
    let (pattern, fields) = SHAPES.iter().find(|(pattern, _)| is_like(pattern, path))?;
    let told = match (data, pattern.ends_with("[]")) {
        // A container that does not run.
        (Value::Null, true) if pattern.contains("/lxc/") => None,
        (Value::Array(all), true) => all.iter().find_map(|one| match one {
            Value::Object(one) => wrong_field(fields, one),
            other => Some(format!("{other} is no object")),
        }),
        (Value::Object(one), false) => wrong_field(fields, one),
        _ => Some("it is a list in place of an object, or the other way round".to_owned()),
    };
    told.map(|told| format!("the fake's answer to {path} is none of Proxmox VE: {told}"))
}

fn is_like(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_end_matches("[]").split('/');
    let mut path = path.trim_end_matches('/').split('/');
    pattern.into_iter().all(|own| path.next().is_some_and(|other| own == "*" || own == other))
        && path.next().is_none()
}

/// A field that is missing, unknown or of another type.
fn wrong_field(fields: &str, object: &Map<String, Value>) -> Option<String> {
    let known: Vec<(&str, bool, &str)> = fields
        .split_whitespace()
        .filter_map(|field| {
            let (name, kind) = field.split_once(':')?;
            Some((name.trim_end_matches('?'), name.ends_with('?'), kind))
        })
        .collect();
    let missing = known.iter().find(|(name, optional, _)| !optional && !object.contains_key(*name));
    if let Some((name, ..)) = missing {
        return Some(format!("it has no `{name}`"));
    }
    object.iter().find_map(|(key, value)| {
        let bare = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let is = |name: &str| {
            name == key || name.strip_suffix('#').is_some_and(|name| name == bare && bare != key)
        };
        match known.iter().find(|(name, ..)| is(name)) {
            None => Some(format!("`{key}` is no field of it")),
            Some((_, _, kind)) => {
                (!fits(kind, value)).then(|| format!("`{key}` is {value}, which is no {kind}"))
            }
        }
    })
}

/// Numbers may be text and flags may be numbers, text or empty: its language does not tell them apart.
fn fits(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("any", _) | ("number", Value::Number(_)) => true,
        ("text", value) => value.is_string(),
        ("number", Value::String(text)) => text.parse::<f64>().is_ok(),
        ("flag", Value::Number(number)) => number.as_u64().is_some_and(|number| number < 2),
        ("flag", Value::String(text)) => matches!(text.as_str(), "" | "0" | "1"),
        ("number" | "flag", _) => false,
        (words, Value::String(text)) => words.split('|').any(|word| word == text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_of_another_form_are_told() {
        let guest =
            json!({ "id": "qemu/101", "type": "qemu", "vmid": "101", "status": "running", "template": "" });
        let told = |path: &str, data: Value| wrong(path, &data).unwrap_or_default();
        assert_eq!(told("/cluster/resources", json!([guest])), "");
        assert_eq!(told("/nodes/pve1/lxc/201/interfaces", Value::Null), "");
        assert_eq!(told("/nodes/pve1/qemu/101/config", json!({ "digest": "1", "net31": "virtio=..." })), "");
        assert_eq!(told("/somewhere/else", json!(1)), "");
        for (path, data, why) in [
            ("/cluster/resources", json!([{ "id": "qemu/101" }]), "it has no `type`"),
            (
                "/cluster/resources",
                json!([{ "id": "x", "type": "vm" }]),
                "`type` is \"vm\", which is no node|storage",
            ),
            ("/cluster/resources", Value::Null, "a list in place of an object"),
            ("/nodes/pve1/qemu/101/config", json!({ "digest": "1", "netx": "" }), "`netx` is no field of it"),
            (
                "/nodes/pve1/qemu/101/config",
                json!({ "digest": "1", "memory": 4096 }),
                "`memory` is 4096, which is no text",
            ),
            (
                "/cluster/status",
                json!([{ "type": "node", "id": "n", "name": "n", "online": true }]),
                "`online` is true",
            ),
        ] {
            assert!(told(path, data).contains(why), "{why}");
        }
    }
}
