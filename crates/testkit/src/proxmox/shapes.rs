//! The form of the answers of Proxmox VE: every answer of the fake is held against it, so that no test passes on an answer that the
//! real one would not give.

use std::net::IpAddr;

use serde_json::{Map, Value};

/// Each call with the fields of its answer: `name:type`, with `?` behind a name that may be missing and `|` between words that
/// are allowed. `*` in a path is any segment, `[]` an answer that is a list, and `#` in a name a number. The type `{part}` is an
/// object of [`PARTS`], `[part]` a list of such, and `+` stands between types of which one must fit.
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
    ("/nodes/*/sdn/zones/*/bridges[]", "name:text vlan_filtering?:flag ports:[bridge-port]"),
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
        "name:text hwaddr:mac hardware-address:mac inet?:text inet6?:text ip-addresses:[container-address]",
    ),
    ("/nodes/*/qemu/*/agent/network-get-interfaces", "result:[agent-interface]+{agent-failure}"),
    ("/nodes/*/qemu/*/agent/get-host-name", "result:{agent-name}+{agent-failure}"),
];

/// Objects inside of answers. The agent's are those of its own protocol, in which numbers are numbers.
const PARTS: &[(&str, &str)] = &[
    ("bridge-port", "name:text vmid?:number index?:text primary_vlan?:number vlans?:any"),
    ("container-address", "ip-address?:ip ip-address-type?:inet|inet6 prefix?:number"),
    ("agent-name", "host-name:text"),
    (
        "agent-interface",
        "name:text hardware-address?:mac ip-addresses?:[agent-address] statistics?:{agent-statistics}",
    ),
    ("agent-address", "ip-address:ip ip-address-type:ipv4|ipv6 prefix:integer"),
    (
        "agent-statistics",
        "rx-bytes:integer rx-packets:integer rx-errs:integer rx-dropped:integer tx-bytes:integer tx-packets:integer \
      tx-errs:integer tx-dropped:integer",
    ),
    ("agent-failure", "error:{agent-error}"),
    ("agent-error", "class:text desc:text"),
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
            Some((_, _, kind)) => misfit(kind, value).map(|why| format!("`{key}` {why}")),
        }
    })
}

/// Why a value is not of a type. Numbers may be text and flags may be numbers, text or empty: its language does not tell them
/// apart.
fn misfit(kind: &str, value: &Value) -> Option<String> {
    if kind.contains('+') {
        let all: Option<Vec<String>> = kind.split('+').map(|kind| misfit(kind, value)).collect();
        return all.map(|whys| whys.join(", and "));
    }
    let part = |open: char, close: char| kind.strip_prefix(open)?.strip_suffix(close);
    let of_part = |part: &str, value: &Value| {
        let known = PARTS.iter().find(|(name, _)| *name == part);
        match (known, value) {
            (Some((_, fields)), Value::Object(object)) => wrong_field(fields, object),
            _ => Some(format!("{value} is no {part}")),
        }
    };
    let nested = match (part('{', '}'), part('[', ']'), value) {
        (Some(part), ..) => of_part(part, value),
        (None, Some(part), Value::Array(all)) => all.iter().find_map(|one| of_part(part, one)),
        (None, Some(_), _) => Some(format!("{value} is no list")),
        (None, None, _) => {
            return (!fits(kind, value)).then(|| format!("is {value}, which is no {kind}"));
        }
    };
    nested.map(|why| format!("is wrong: {why}"))
}

fn fits(kind: &str, value: &Value) -> bool {
    match (kind, value) {
        ("any", _) | ("number", Value::Number(_)) => true,
        ("integer", value) => value.is_u64(),
        ("text", value) => value.is_string(),
        ("ip", Value::String(text)) => text.parse::<IpAddr>().is_ok(),
        ("mac", Value::String(text)) => is_mac(text),
        ("number", Value::String(text)) => text.parse::<f64>().is_ok(),
        ("flag", Value::Number(number)) => number.as_u64().is_some_and(|number| number < 2),
        ("flag", Value::String(text)) => matches!(text.as_str(), "" | "0" | "1"),
        ("number" | "flag" | "ip" | "mac", _) => false,
        (words, Value::String(text)) => words.split('|').any(|word| word == text),
        _ => false,
    }
}

/// Whether it is a MAC address as guests write it: in lower case.
fn is_mac(text: &str) -> bool {
    let is_pair = |pair: &str| {
        pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    text.split(':').count() == 6 && text.split(':').all(is_pair)
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

    #[test]
    fn the_parts_inside_of_answers_are_looked_at() {
        let agent = "/nodes/pve1/qemu/101/agent/network-get-interfaces";
        let container = "/nodes/pve1/lxc/201/interfaces";
        let bridges = "/nodes/pve1/sdn/zones/localnetwork/bridges";
        let told = |path: &str, data: Value| wrong(path, &data).unwrap_or_default();
        let address = json!({ "ip-address": "10.0.3.9", "ip-address-type": "ipv4", "prefix": 24 });
        let card =
            json!({ "name": "eth0", "hardware-address": "bc:24:11:00:00:01", "ip-addresses": [address] });
        let failure = json!({ "error": { "class": "CommandNotFound", "desc": "disabled" } });
        let eth0 = |address: Value| {
            let mac = "bc:24:11:00:00:01";
            json!([{ "name": "eth0", "hwaddr": mac, "hardware-address": mac, "ip-addresses": [address] }])
        };
        let own = json!({ "ip-address": "10.0.3.9", "ip-address-type": "inet", "prefix": "24" });
        assert_eq!(told(agent, json!({ "result": [card, { "name": "tun0" }] })), "");
        assert_eq!(told(agent, json!({ "result": failure })), "");
        assert_eq!(told(container, eth0(own)), "");
        assert_eq!(
            told(bridges, json!([{ "name": "vmbr0", "ports": [{ "name": "tap101i0", "vmid": "101" }] }])),
            ""
        );
        let upper = json!({ "name": "eth0", "hardware-address": "BC:24:11:00:00:01" });
        let text = json!({ "ip-address": "10.0.3.9", "ip-address-type": "ipv4", "prefix": "24" });
        let text = json!({ "name": "eth0", "ip-addresses": [text] });
        let name = "/nodes/pve1/qemu/101/agent/get-host-name";
        for (path, data, why) in [
            (
                agent,
                json!({ "result": [upper] }),
                "`hardware-address` is \"BC:24:11:00:00:01\", which is no mac",
            ),
            (agent, json!({ "result": [text] }), "`prefix` is \"24\", which is no integer"),
            (agent, json!({ "result": { "error": "no" } }), "\"no\" is no agent-error"),
            (name, json!({ "result": { "hostname": "web" } }), "it has no `host-name`"),
            (container, eth0(address), "`ip-address-type` is \"ipv4\", which is no inet|inet6"),
            (container, eth0(json!({ "ip-address": "10.0.3.9/24" })), "which is no ip"),
            (bridges, json!([{ "name": "vmbr0", "ports": [{ "vmid": 101 }] }]), "it has no `name`"),
            (bridges, json!([{ "name": "vmbr0", "ports": {} }]), "{} is no list"),
        ] {
            assert!(told(path, data.clone()).contains(why), "{why}: {}", told(path, data));
        }
    }
}
