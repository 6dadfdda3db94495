//! Turns a guest into a workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use jiff::Timestamp;
use netstead_model::{Address, Content, Facts, Ident, Interface, Key, Name, Wish, Workload};

use super::{
    block::GuestBlock,
    guest::{Asked, Guest, GuestKind},
    guest_config::{GuestConfig, Nic, address_of, mac_of},
    node_network::NodeNetworks,
    settings::{GuestTarget, HostnameFrom, ProxmoxSettings},
};

/// Everything around a guest that its workload depends on.
pub(super) struct Surroundings<'a> {
    pub(super) source: &'a Ident,
    pub(super) settings: &'a ProxmoxSettings,
    pub(super) ip_map: &'a BTreeMap<IpAddr, IpAddr>,
    pub(super) networks: &'a NodeNetworks,
    pub(super) cluster: Option<&'a str>,
}

impl Surroundings<'_> {
    /// The workload of a guest. `id` is its stable id.
    pub(super) fn workload(&self, vmid: u64, id: Key, guest: &Guest) -> Workload {
        let empty = GuestConfig::default();
        let config = guest.config.as_ref().unwrap_or(&empty);
        let name =
            guest.resource.name.clone().or_else(|| config.name.clone()).unwrap_or_else(|| vmid.to_string());
        let kind = match guest.kind {
            GuestKind::Machine => "vm",
            GuestKind::Container => "container",
        };
        let mut workload = Workload::new(self.source.clone(), id, kind, name);
        workload.created = config.created.and_then(|created| Timestamp::from_second(created).ok());
        workload.facts = self.facts(guest, config).known();
        workload.sole_name = true;
        let block = match config.description.as_deref().map_or(Ok(None), GuestBlock::read) {
            Ok(block) => block.unwrap_or_default(),
            Err(why) => {
                workload.why_not.push(why);
                workload.unclear = true;
                GuestBlock::default()
            }
        };
        let tags = guest.resource.tags.as_deref().or(config.tags.as_deref()).unwrap_or_default();
        let tags: BTreeSet<String> = split_tags(tags).map(str::to_owned).chain(block.tags.clone()).collect();
        workload.tags = tags.into_iter().collect();
        Self::note_doubts(guest, &mut workload);
        if block.ignore {
            workload.why_not.push("the block in its description says `ignore`".into());
            return workload;
        }
        workload.interfaces = self.interfaces(vmid, guest, config, &block, &mut workload.why_not);
        workload.hostname = self.hostname(guest, config, &block, &mut workload.why_not);
        // A full name stands as it is.
        let full = workload.hostname.as_ref().is_some_and(|name| name.as_str().contains('.'));
        workload.interfaces.iter_mut().for_each(|interface| interface.mapped |= full);
        self.add_wishes(&block, &mut workload);
        workload
    }

    fn facts(&self, guest: &Guest, config: &GuestConfig) -> Facts {
        Facts {
            node: guest.resource.node.clone(),
            cluster: self.cluster.map(str::to_owned),
            cpus: config.cpus,
            memory: config.memory,
            disk: config.disk,
            status: guest.resource.status.clone(),
            comments: config.description.clone(),
        }
    }

    /// Notes everything that cannot be known of it now: all it had stays meanwhile.
    fn note_doubts(guest: &Guest, workload: &mut Workload) {
        let mut doubt = |why: String| {
            workload.why_not.push(why);
            workload.unclear = true;
        };
        if guest.is_lost() {
            let node = guest.resource.node.as_deref().unwrap_or("?");
            doubt(format!("node `{node}` is offline, so its names stay as they are"));
            return;
        }
        match (&guest.config, &guest.config_error) {
            (_, Some(error)) => doubt(format!("its configuration cannot be read: {error}")),
            (None, None) => doubt("its configuration is not read yet".into()),
            (Some(_), None) => {}
        }
        if let Some(lock) = &guest.resource.lock
            && matches!(lock.as_str(), "clone" | "create" | "disk" | "rollback")
        {
            doubt(format!("it is being made: Proxmox VE locks it for `{lock}`"));
        }
        match &guest.asked {
            Asked::Never if guest.is_running() && guest.config.is_some() => {
                doubt("its addresses are not read yet".into());
            }
            Asked::Silent(why) if guest.is_running() => {
                doubt(format!("its addresses cannot be read, and those known last are kept: {why}"));
            }
            _ => {}
        }
        if !guest.is_name_settled() {
            doubt("it started a moment ago, and its name counts once the agent told it twice".into());
        }
    }

    fn interfaces(
        &self,
        vmid: u64,
        guest: &Guest,
        config: &GuestConfig,
        block: &GuestBlock,
        why_not: &mut Vec<String>,
    ) -> Vec<Interface> {
        let node = guest.resource.node.as_deref().unwrap_or_default();
        let mut nics: Vec<&Nic> = config.nics.iter().collect();
        if let Some(primary) = block.primary_mac {
            nics.sort_by_key(|nic| nic.mac != Some(primary));
            if nics.first().is_none_or(|nic| nic.mac != Some(primary)) {
                why_not.push(format!("`primary_mac` {primary} is no card of it"));
            }
        }
        let mut strange: BTreeSet<&str> = BTreeSet::new();
        for interface in &guest.interfaces {
            let mac = mac_of_interface(interface);
            let known = mac.is_some() && nics.iter().any(|nic| nic.mac == mac);
            if !known && !interface.ip_addresses.is_empty() {
                strange.extend(interface.name.as_deref().filter(|name| *name != "lo"));
            }
        }
        if !strange.is_empty() {
            let shown: Vec<&str> = strange.iter().copied().take(5).collect();
            let more =
                if strange.len() > 5 { format!(" and {} more", strange.len() - 5) } else { String::new() };
            why_not.push(format!(
                "the addresses of {}{more} are left out: no network card of the guest has their MAC address",
                shown.join(", ")
            ));
        }
        let made = nics.iter().map(|nic| {
            let mut addresses: Vec<Address> = Vec::new();
            for found in Self::addresses_of(nic, guest) {
                match self.published(found, block) {
                    Ok(address) if !addresses.contains(&address) => addresses.push(address),
                    Ok(_) => {}
                    Err(why) => why_not.push(format!("{found} is left out: {why}")),
                }
            }
            let of_guest = guest.interfaces.iter().find(|one| mac_of_interface(one) == nic.mac);
            let told = of_guest.and_then(|one| one.name.clone());
            Interface {
                name: nic.name.clone().or(told).or_else(|| Some(format!("net{}", nic.number))),
                mac: nic.mac,
                vlan: self.networks.vlan(node, vmid, nic),
                addresses,
                local: false,
                mapped: !block.mapping.is_empty(),
            }
        });
        made.collect()
    }

    /// The addresses of a card: from the guest, else as the network learned them, else as they are configured.
    fn addresses_of(nic: &Nic, guest: &Guest) -> Vec<Address> {
        if guest.asked == Asked::Answered || !guest.interfaces.is_empty() {
            let own =
                guest.interfaces.iter().filter(|one| nic.mac.is_some() && mac_of_interface(one) == nic.mac);
            let all = own.flat_map(|one| &one.ip_addresses);
            return all.filter_map(|one| address_of(one.ip_address.as_deref()?)).collect();
        }
        let own = guest.learned.iter().filter(|one| one.mac.as_deref().and_then(mac_of) == nic.mac);
        let learned: Vec<Address> = own.filter_map(|one| address_of(one.ip.as_deref()?)).collect();
        if learned.is_empty() { nic.fixed.clone() } else { learned }
    }

    /// The address to publish for `found`; the error says why there is none.
    fn published(&self, found: Address, block: &GuestBlock) -> Result<Address, String> {
        let ip = found.to_ip().ok_or("it is no IP address")?;
        unpublishable(ip).map_or(Ok(()), |why| Err(why.to_owned()))?;
        if let Some(cidr) = self.settings.skip_cidrs.iter().find(|cidr| cidr.contains(found)) {
            return Err(format!("`skip_cidrs` has {cidr}"));
        }
        let networks = &self.settings.networks;
        if !networks.is_empty() && !networks.iter().any(|cidr| cidr.contains(found)) {
            return Err("it is in none of `networks`".into());
        }
        Ok(block.ip_map.get(&ip).or_else(|| self.ip_map.get(&ip)).copied().map_or(found, Address::from))
    }

    fn hostname(
        &self,
        guest: &Guest,
        config: &GuestConfig,
        block: &GuestBlock,
        why_not: &mut Vec<String>,
    ) -> Option<Name> {
        let told = guest.told.as_ref().map(|(name, _)| name.as_str());
        let of = |place: &HostnameFrom| match place {
            HostnameFrom::Agent => told.filter(|name| !name.starts_with("localhost")),
            HostnameFrom::Config => config.name.as_deref(),
            HostnameFrom::Name => guest.resource.name.as_deref(),
        };
        let candidates =
            block.hostname.as_deref().into_iter().chain(self.settings.hostname.iter().filter_map(of));
        for candidate in candidates {
            match Name::host(candidate.trim_end_matches('.')) {
                Ok(name) => return Some(name),
                Err(error) => why_not.push(format!("`{candidate}` gives no name: {error}")),
            }
        }
        None
    }

    fn add_wishes(&self, block: &GuestBlock, workload: &mut Workload) {
        let all: Vec<Address> =
            workload.interfaces.iter().flat_map(|one| one.addresses.iter().copied()).collect();
        let mut wishes: Vec<Wish> = Vec::new();
        let mut why_not = Vec::new();
        let mut ask =
            |name: Result<Name, String>, addresses: Vec<Address>, reason: String, main: bool| match name {
                Ok(name) => match wishes.iter_mut().find(|wish| wish.name == name) {
                    Some(Wish { content: Content::Addresses(known), borrowed, .. }) => {
                        let new = addresses.into_iter().filter(|_| !*borrowed);
                        for address in new {
                            if !known.contains(&address) {
                                known.push(address);
                            }
                        }
                    }
                    _ => wishes.push(self.wish(name, addresses, reason, main)),
                },
                Err(why) => why_not.push(why),
            };
        let host = workload.hostname.clone();
        let join = |label: &str, domain: &Name| Name::join(label, domain).map_err(|error| error.to_string());
        if let Some(prefix) = &self.settings.hostname_tag_prefix {
            let asked =
                workload.tags.iter().filter_map(|tag| tag.strip_prefix(prefix.as_str())?.strip_prefix('+'));
            for text in asked {
                let name = match &self.settings.domain_suffix {
                    Some(suffix) if !text.contains('.') => join(text, suffix),
                    _ => Name::host(text).map_err(|error| error.to_string()),
                };
                ask(name, all.clone(), format!("tag {prefix}+{text}"), false);
            }
        }
        if let Some(host) = &host {
            if host.as_str().contains('.') {
                ask(Ok(host.clone()), all.clone(), format!("hostname of guest {}", workload.name), true);
            } else if let Some(suffix) = &self.settings.domain_suffix {
                ask(join(host.as_str(), suffix), all.clone(), "hostname and `domain_suffix`".into(), true);
            }
        }
        let label = host.as_ref().and_then(|host| host.labels().next().map(str::to_owned));
        let own = workload.interfaces.iter().flat_map(|one| one.addresses.iter().map(move |it| (one, it)));
        for (interface, address) in own {
            let found = block.mapped(*address);
            let Some(network) = found.or_else(|| block.inherited(*address, &interface.addresses)) else {
                continue;
            };
            let reason = format!("mapping of {} in its description", network.cidr);
            if let Some(shared) = network.shared_name.as_ref().filter(|_| found.is_some()) {
                ask(Ok(shared.clone()), vec![*address], reason.clone(), false);
            }
            if let Some(label) =
                label.as_deref().filter(|_| !host.as_ref().is_some_and(|host| host.as_str().contains('.')))
            {
                ask(join(label, &network.domain), vec![*address], reason, true);
            }
        }
        workload.wishes = wishes;
        workload.why_not.extend(why_not);
    }

    fn wish(&self, name: Name, addresses: Vec<Address>, reason: String, main: bool) -> Wish {
        let own = self.settings.target == GuestTarget::Guest;
        Wish {
            name,
            content: Content::Addresses(if own { addresses } else { Vec::new() }),
            ttl: None,
            providers: Vec::new(),
            reason,
            adopt: false,
            share: false,
            main,
            borrowed: !own,
            moves: false,
            proxied: None,
            entrypoints: Vec::new(),
        }
    }
}

/// The tags in one text; `;` stands between them, or `,` or a space.
pub(super) fn split_tags(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', ',', ' ']).map(str::trim).filter(|tag| !tag.is_empty())
}

fn mac_of_interface(interface: &super::types::GuestInterface) -> Option<Address> {
    let text = interface.hardware_address.as_deref().or(interface.hwaddr.as_deref())?;
    mac_of(text)
}

/// Why an address is never published.
fn unpublishable(ip: IpAddr) -> Option<&'static str> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    if ip.is_loopback() {
        Some("it is a loopback address")
    } else if link_local {
        Some("it is a link-local address")
    } else if ip.is_multicast() {
        Some("it is a multicast address")
    } else {
        ip.is_unspecified().then_some("it is no address of a host")
    }
}
