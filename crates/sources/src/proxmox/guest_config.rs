//! [`GuestConfig`]: the configuration of a guest, taken apart.

use std::collections::BTreeMap;

use netstead_model::{Address, Kind};
use serde_json::Value;

use super::{lenient, types::RawConfig};

/// A network card of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Nic {
    /// The number in `netN`.
    pub(super) number: u8,
    /// As the container calls it.
    pub(super) name: Option<String>,
    pub(super) mac: Option<Address>,
    pub(super) bridge: Option<String>,
    pub(super) tag: Option<u16>,
    /// Addresses that the configuration gives it, without asking the guest.
    pub(super) fixed: Vec<Address>,
}

/// The part of a configuration that is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GuestConfig {
    pub(super) name: Option<String>,
    /// An agent is to be asked.
    pub(super) agent: bool,
    pub(super) nics: Vec<Nic>,
    pub(super) description: Option<String>,
    pub(super) tags: Option<String>,
    pub(super) cpus: Option<u32>,
    /// In bytes.
    pub(super) memory: Option<u64>,
    /// In bytes.
    pub(super) disk: Option<u64>,
    /// Tells guests apart that had the same number one after another.
    pub(super) incarnation: Option<String>,
    /// Seconds since 1970.
    pub(super) created: Option<i64>,
}

impl GuestConfig {
    pub(super) fn read(raw: &RawConfig) -> Self {
        let text =
            |key: &str| raw.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let number = |key: &str| raw.get(key).and_then(lenient::number_of);
        let nics = nics(raw);
        let meta = text("meta").map(pairs).unwrap_or_default();
        let uuid = text("smbios1").and_then(|smbios| pairs(smbios).get("uuid").map(|uuid| short(uuid)));
        let ctime = meta.get("ctime").map(|ctime| (*ctime).to_owned());
        let mac = nics.iter().find_map(|nic| nic.mac).map(|mac| mac.to_string().replace(':', ""));
        let cores = number("vcpus").or_else(|| Some(number("cores")? * number("sockets").unwrap_or(1)));
        Self {
            name: text("hostname").or_else(|| text("name")).map(str::to_owned),
            agent: raw.get("agent").is_some_and(agent_is_on),
            description: text("description").map(str::to_owned),
            tags: text("tags").map(str::to_owned),
            cpus: cores.and_then(|cores| u32::try_from(cores).ok()),
            memory: number("memory").map(|mib| mib.saturating_mul(1 << 20)),
            disk: Some(raw.iter().filter_map(|(key, value)| disk(key, value.as_str()?)).sum()),
            incarnation: uuid.or(ctime.clone()).or(mac),
            created: ctime.and_then(|ctime| ctime.parse().ok()),
            nics,
        }
    }
}

fn agent_is_on(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return lenient::number_of(value) == Some(1) };
    let first = text.split(',').next().unwrap_or_default();
    match first.split_once('=') {
        None => first == "1",
        Some(_) => pairs(text).get("enabled") == Some(&"1"),
    }
}

/// The pairs of a property string; parts without `=` are left out.
fn pairs(text: &str) -> BTreeMap<&str, &str> {
    text.split(',').filter_map(|part| part.split_once('=')).collect()
}

/// The first group of a UUID.
fn short(uuid: &str) -> String {
    uuid.split('-').next().unwrap_or(uuid).to_ascii_lowercase()
}

fn nics(raw: &RawConfig) -> Vec<Nic> {
    let numbered = raw.iter().filter_map(|(key, value)| {
        let number: u8 = key.strip_prefix("net")?.parse().ok()?;
        Some((number, value.as_str()?))
    });
    let mut nics: Vec<Nic> = numbered.map(|(number, text)| nic(number, text)).collect();
    nics.sort_by_key(|nic| nic.number);
    for nic in &mut nics {
        let intent = raw.get(&format!("ipconfig{}", nic.number)).and_then(Value::as_str);
        nic.fixed.extend(intent.map(fixed_addresses).unwrap_or_default());
    }
    nics
}

fn nic(number: u8, text: &str) -> Nic {
    let all = pairs(text);
    let of = |name: &str| all.get(name).copied();
    // A machine's card begins with `MODEL=MAC`, a container's has `hwaddr`.
    let first = text.split(',').next().and_then(|part| part.split_once('=')).map(|(_, value)| value);
    let mac = of("hwaddr").or_else(|| of("macaddr")).and_then(mac_of).or_else(|| first.and_then(mac_of));
    Nic {
        number,
        name: of("name").map(str::to_owned),
        mac,
        bridge: of("bridge").map(str::to_owned),
        tag: of("tag").and_then(|tag| tag.parse().ok()).filter(|tag| (1..4095).contains(tag)),
        fixed: fixed_addresses(text),
    }
}

/// `ip=10.0.0.5/24,ip6=auto`: those that are addresses.
fn fixed_addresses(text: &str) -> Vec<Address> {
    let all = pairs(text);
    let given = ["ip", "ip6"].into_iter().filter_map(|key| all.get(key));
    given.filter_map(|value| address_of(value.split('/').next().unwrap_or_default())).collect()
}

pub(super) fn mac_of(text: &str) -> Option<Address> {
    Address::parse(Kind::Mac, &text.to_ascii_lowercase()).ok()
}

/// An IP address, without the name of a zone behind `%`.
pub(super) fn address_of(text: &str) -> Option<Address> {
    let bare = text.split('%').next().unwrap_or_default();
    bare.parse::<std::net::IpAddr>().ok().map(Address::from)
}

/// The size of a disk in bytes; none for what is no disk of the guest.
fn disk(key: &str, value: &str) -> Option<u64> {
    let numbered = ["scsi", "virtio", "sata", "ide", "mp"].iter().any(|kind| {
        key.strip_prefix(kind)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if !(numbered || key == "rootfs") || value.contains("media=cdrom") || value.contains("cloudinit") {
        return None;
    }
    let size = *pairs(value).get("size")?;
    let (digits, factor) = match size.bytes().last()? {
        b'K' => (size.trim_end_matches('K'), 1 << 10),
        b'M' => (size.trim_end_matches('M'), 1 << 20),
        b'G' => (size.trim_end_matches('G'), 1 << 30),
        b'T' => (size.trim_end_matches('T'), 1 << 40),
        _ => (size, 1),
    };
    digits.parse::<u64>().ok().map(|number| number.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> GuestConfig {
        GuestConfig::read(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_configuration_is_taken_apart() {
        let config = read(json!({
            "name": "web1", "agent": "enabled=1,fstrim_cloned_disks=1", "cores": 2, "sockets": "2", "memory": "4096",
            "scsi0": "local-lvm:vm-101-disk-0,iothread=1,size=32G", "ide2": "local:iso/x.iso,media=cdrom,size=600M",
            "efidisk0": "local:1,size=4M", "scsihw": "virtio-scsi-single",
            "net1": "model=virtio,macaddr=bc:24:11:00:00:02,bridge=vnet1",
            "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=100", "ipconfig0": "ip=10.0.0.5/24,gw=10.0.0.1,ip6=auto",
            "smbios1": "uuid=6F1C2F8E-0000-4000-8000-000000000101", "meta": "creation-qemu=10.1.0,ctime=1760000000",
        }));
        let nic = |number: u8, bridge: &str, tag, fixed: &[&str]| Nic {
            number,
            name: None,
            mac: mac_of(&format!("bc:24:11:00:00:{:02}", number + 1)),
            bridge: Some(bridge.into()),
            tag,
            fixed: fixed.iter().filter_map(|text| address_of(text)).collect(),
        };
        assert_eq!(
            config,
            GuestConfig {
                name: Some("web1".into()),
                agent: true,
                nics: vec![nic(0, "vmbr0", Some(100), &["10.0.0.5"]), nic(1, "vnet1", None, &[])],
                description: None,
                tags: None,
                cpus: Some(4),
                memory: Some(4 << 30),
                disk: Some(32 << 30),
                incarnation: Some("6f1c2f8e".into()),
                created: Some(1_760_000_000),
            }
        );
    }

    #[test]
    fn an_agent_that_is_switched_off_is_not_asked() {
        for (agent, on) in [
            (json!("1"), true),
            (json!(1), true),
            (json!("0"), false),
            (json!("enabled=0,type=virtio"), false),
        ] {
            assert_eq!(read(json!({ "agent": agent })).agent, on);
        }
    }
}
