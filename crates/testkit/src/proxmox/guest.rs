//! [`PveGuest`]: one virtual machine or container.

use serde_json::{Map, Value, json};

/// The two kinds of guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PveGuestKind {
    Qemu,
    Lxc,
}

impl PveGuestKind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }
}

/// How the guest agent of a virtual machine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PveAgent {
    Answers,
    /// 500: `QEMU guest agent is not running`.
    Silent,
    /// 500 after a long wait: `got timeout`.
    Hung,
    /// 200 with an error inside.
    Blocked,
}

/// One network interface inside of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PveInterface {
    pub name: String,
    /// None for a device without one, like a tunnel.
    pub mac: Option<String>,
    /// `ADDRESS/LENGTH`.
    pub addresses: Vec<String>,
}

/// One guest. `config` is what its `config` call shows.
#[derive(Debug, Clone, PartialEq)]
pub struct PveGuest {
    pub vmid: u32,
    pub kind: PveGuestKind,
    pub node: String,
    pub name: String,
    pub status: String,
    pub uptime: u64,
    pub lock: Option<String>,
    pub pool: Option<String>,
    pub template: bool,
    pub config: Map<String, Value>,
    pub agent: PveAgent,
    /// The name that the agent tells.
    pub hostname: String,
    pub interfaces: Vec<PveInterface>,
}

impl PveGuest {
    /// A running machine with one NIC on `vmbr0`, whose agent shows `address` (`10.0.3.9/24`).
    pub fn machine(vmid: u32, node: &str, name: &str, address: &str) -> Self {
        let mac = format!("BC:24:11:{:02X}:{:02X}:{:02X}", vmid >> 16 & 255, vmid >> 8 & 255, vmid & 255);
        let config = json!({
            "name": name,
            "agent": "enabled=1,fstrim_cloned_disks=1",
            "cores": 2,
            "sockets": 1,
            "memory": "4096",
            "ostype": "l26",
            "scsi0": format!("local-lvm:vm-{vmid}-disk-0,iothread=1,size=32G"),
            "ide2": "local:iso/x.iso,media=cdrom,size=600M",
            "net0": format!("virtio={mac},bridge=vmbr0,firewall=1"),
            "smbios1": format!("uuid={vmid:08x}-0000-4000-8000-000000000001"),
            "meta": format!("creation-qemu=10.1.0,ctime={}", 1_760_000_000 + vmid),
        });
        Self {
            kind: PveGuestKind::Qemu,
            hostname: name.to_owned(),
            interfaces: vec![PveInterface::new("eth0", Some(&mac.to_lowercase()), &[address])],
            ..Self::bare(vmid, node, name, config)
        }
    }

    /// A running container with one NIC on `vmbr0` that gets `address` by DHCP.
    pub fn container(vmid: u32, node: &str, name: &str, address: &str) -> Self {
        let mac = format!("BC:24:11:{:02X}:{:02X}:{:02X}", vmid >> 16 & 255, vmid >> 8 & 255, vmid & 255);
        let config = json!({
            "hostname": name,
            "arch": "amd64",
            "cores": 1,
            "memory": 512,
            "rootfs": format!("local-lvm:vm-{vmid}-disk-0,size=8G"),
            "net0": format!("name=eth0,bridge=vmbr0,hwaddr={mac},ip=dhcp,type=veth"),
        });
        Self {
            kind: PveGuestKind::Lxc,
            interfaces: vec![PveInterface::new("eth0", Some(&mac.to_lowercase()), &[address])],
            ..Self::bare(vmid, node, name, config)
        }
    }

    fn bare(vmid: u32, node: &str, name: &str, config: Value) -> Self {
        let Value::Object(config) = config else { unreachable!("it was written as an object") };
        Self {
            vmid,
            kind: PveGuestKind::Qemu,
            node: node.to_owned(),
            name: name.to_owned(),
            status: "running".into(),
            uptime: 3600,
            lock: None,
            pool: None,
            template: false,
            config,
            agent: PveAgent::Answers,
            hostname: String::new(),
            interfaces: Vec::new(),
        }
    }

    /// Sets a key of its configuration.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.config.insert(key.to_owned(), value.into());
        self
    }

    /// Removes a key of its configuration.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.config.remove(key);
        self
    }

    #[must_use]
    pub fn with_agent(self, agent: PveAgent) -> Self {
        Self { agent, ..self }
    }

    /// Replaces what is inside of it.
    #[must_use]
    pub fn with_interfaces(self, interfaces: Vec<PveInterface>) -> Self {
        Self { interfaces, ..self }
    }

    pub(super) fn tags(&self) -> Option<&Value> {
        self.config.get("tags")
    }

    pub(super) fn is_running(&self) -> bool {
        self.status == "running"
    }

    /// Its configuration with the digest, as the call shows it.
    pub(super) fn shown_config(&self) -> Value {
        let mut config = self.config.clone();
        let text = Value::Object(config.clone()).to_string();
        let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        config.insert("digest".into(), json!(format!("{digest:040x}")));
        if let Some(lock) = &self.lock {
            config.insert("lock".into(), json!(lock));
        }
        config.into()
    }
}

impl PveInterface {
    pub fn new(name: &str, mac: Option<&str>, addresses: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            mac: mac.map(str::to_owned),
            addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
        }
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.addresses.iter().filter_map(|address| address.split_once('/'))
    }

    /// As the guest agent shows it: families are `ipv4` and `ipv6`, lengths are numbers, empty lists are left out.
    pub(super) fn of_agent(&self) -> Value {
        let mut shown = Map::new();
        shown.insert("name".into(), json!(self.name));
        if let Some(mac) = &self.mac {
            shown.insert("hardware-address".into(), json!(mac));
        }
        let address = |(address, length): (&str, &str)| {
            let family = if address.contains(':') { "ipv6" } else { "ipv4" };
            let length: u8 = length.parse().unwrap_or_default();
            json!({ "ip-address": address, "ip-address-type": family, "prefix": length })
        };
        if !self.addresses.is_empty() {
            shown.insert("ip-addresses".into(), self.pairs().map(address).collect());
        }
        let counts = ["bytes", "packets", "errs", "dropped"];
        let counts = counts.iter().flat_map(|count| [format!("rx-{count}"), format!("tx-{count}")]);
        let counts: Map<String, Value> = counts.map(|name| (name, json!(1))).collect();
        shown.insert("statistics".into(), counts.into());
        shown.into()
    }

    /// As a container shows it: families are `inet` and `inet6`, lengths are text, `inet6` is the last address alone.
    pub(super) fn of_container(&self) -> Value {
        let mac = self.mac.as_deref().unwrap_or("00:00:00:00:00:00");
        let mut shown = Map::new();
        shown.insert("name".into(), json!(self.name));
        shown.insert("hwaddr".into(), json!(mac));
        shown.insert("hardware-address".into(), json!(mac));
        for (key, six) in [("inet", false), ("inet6", true)] {
            if let Some(last) = self.addresses.iter().rfind(|address| address.contains(':') == six) {
                shown.insert(key.into(), json!(last));
            }
        }
        let address = |(address, length): (&str, &str)| {
            let family = if address.contains(':') { "inet6" } else { "inet" };
            json!({ "ip-address": address, "ip-address-type": family, "prefix": length })
        };
        shown.insert("ip-addresses".into(), self.pairs().map(address).collect());
        shown.into()
    }
}
