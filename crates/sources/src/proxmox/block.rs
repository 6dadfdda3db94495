//! [`GuestBlock`]: settings of one guest, in a fenced block of its description.
//!
//! ````text
//! ```netstead
//! tags = ["web"]
//! ip_map = { "10.0.3.9" = "198.51.100.9" }
//! [mapping."dmz.example.com"]
//! networks = ["198.51.100.0/24"]
//! ```
//! ````
//!
//! `pipam` is read as the name of the block as well, and YAML as well as TOML.

use std::{collections::BTreeMap, net::IpAddr};

use netstead_model::{Address, Cidr, Name};
use serde::Deserialize;

use super::guest_config::mac_of;

/// Settings of one guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GuestBlock {
    /// The guest gets no names.
    pub(super) ignore: bool,
    /// Its name, whatever the agent or the configuration say.
    pub(super) hostname: Option<String>,
    pub(super) tags: Vec<String>,
    /// The card that comes first.
    pub(super) primary_mac: Option<Address>,
    pub(super) ip_map: BTreeMap<IpAddr, IpAddr>,
    /// Goes before the networks of `[domain]`.
    pub(super) mapping: Vec<MappedNetwork>,
}

/// A network whose addresses have names in a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MappedNetwork {
    pub(super) domain: Name,
    pub(super) cidr: Cidr,
    pub(super) shared_name: Option<Name>,
    /// An IPv6 address outside of all networks is called like the IPv4 address of its interface.
    pub(super) ipv6_inherit: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    ignore: bool,
    hostname: Option<String>,
    tags: Vec<String>,
    primary_mac: Option<String>,
    ip_map: BTreeMap<String, String>,
    #[serde(alias = "ipv6_inherit_ipv4_fqdn")]
    ipv6_inherit: bool,
    #[serde(alias = "domain")]
    mapping: BTreeMap<String, WrittenDomain>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WrittenDomain {
    networks: Vec<WrittenNetwork>,
    #[serde(alias = "ipv6_inherit_ipv4_fqdn")]
    ipv6_inherit: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WrittenNetwork {
    Plain(String),
    Named {
        cidr: String,
        #[serde(default, alias = "service_record")]
        shared_name: Option<String>,
    },
}

impl GuestBlock {
    /// The block in `description`; none if it has none. The error is a sentence without its full stop.
    pub(super) fn read(description: &str) -> Result<Option<Self>, String> {
        let Some(text) = fenced(description)? else { return Ok(None) };
        let written: Written = match toml::from_str(&text) {
            Ok(written) => written,
            Err(error) => serde_saphyr::from_str(&text).map_err(|as_yaml| {
                let error = if looks_like_toml(&text) {
                    error.message().to_owned()
                } else {
                    as_yaml.without_snippet().to_string().lines().next().unwrap_or_default().to_owned()
                };
                format!("the block in its description cannot be read: {error}")
            })?,
        };
        Self::checked(written)
            .map(Some)
            .map_err(|why| format!("the block in its description is wrong: {why}"))
    }

    fn checked(written: Written) -> Result<Self, String> {
        let ip = |text: &str| text.parse::<IpAddr>().map_err(|_| format!("`{text}` is no address"));
        let ip_map: Result<_, String> =
            written.ip_map.iter().map(|(from, to)| Ok((ip(from)?, ip(to)?))).collect();
        let mac = |text: &String| mac_of(text).ok_or_else(|| format!("`{text}` is no MAC address"));
        let mut mapping = Vec::new();
        for (domain, networks) in &written.mapping {
            let domain = Name::host(domain.trim_end_matches('.')).map_err(|error| error.to_string())?;
            for network in &networks.networks {
                let (cidr, shared) = match network {
                    WrittenNetwork::Plain(cidr) => (cidr, None),
                    WrittenNetwork::Named { cidr, shared_name } => (cidr, shared_name.as_deref()),
                };
                let cidr: Cidr =
                    cidr.parse().map_err(|error: netstead_model::ParseError| error.to_string())?;
                let shared_name = shared
                    .map(|name| shared_in(name, &domain))
                    .transpose()
                    .map_err(|error| error.to_string())?;
                let ipv6_inherit = written.ipv6_inherit || networks.ipv6_inherit;
                mapping.push(MappedNetwork { domain: domain.clone(), cidr, shared_name, ipv6_inherit });
            }
        }
        Ok(Self {
            ignore: written.ignore,
            hostname: written.hostname,
            tags: written.tags,
            primary_mac: written.primary_mac.as_ref().map(mac).transpose()?,
            ip_map: ip_map?,
            mapping,
        })
    }

    /// The network that an IPv6 address has from the IPv4 addresses beside it.
    pub(super) fn inherited(&self, address: Address, beside: &[Address]) -> Option<&MappedNetwork> {
        let is_six = |address: &Address| address.to_ip().is_some_and(|ip| ip.is_ipv6());
        let four = beside.iter().filter(|other| !is_six(other));
        let mut networks =
            four.filter_map(|other| self.mapped(*other)).filter(|network| network.ipv6_inherit);
        networks.next().filter(|_| is_six(&address))
    }

    /// The longest network of its mapping around `address`.
    pub(super) fn mapped(&self, address: Address) -> Option<&MappedNetwork> {
        let around = self.mapping.iter().filter(|network| network.cidr.contains(address));
        around.max_by_key(|network| network.cidr.len())
    }
}

/// Whether the first line that says something is one of TOML, to choose the more useful of two errors.
fn looks_like_toml(text: &str) -> bool {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    line.is_some_and(|line| {
        line.starts_with('[') || line.split_once('=').is_some_and(|(key, _)| !key.contains(':'))
    })
}

/// A name with a dot stands as it is; another lies in the domain.
fn shared_in(name: &str, domain: &Name) -> Result<Name, netstead_model::ParseError> {
    let name = name.trim_end_matches('.');
    if name.contains('.') { Name::host(name) } else { Name::join(name, domain) }
}

/// The lines between the fences of the first block of ours.
fn fenced(description: &str) -> Result<Option<String>, String> {
    let mut lines = description.lines();
    let opened = lines.by_ref().find(|line| {
        let word = line.trim().strip_prefix("```").map(str::trim);
        matches!(word, Some("netstead" | "pipam"))
    });
    if opened.is_none() {
        return Ok(None);
    }
    let mut text = String::new();
    for line in lines {
        if line.trim() == "```" {
            return Ok(Some(text));
        }
        text.push_str(line);
        text.push('\n');
    }
    Err("the block in its description has no end: close it with three backticks".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_and_yaml_say_the_same() {
        let toml = "text\n```netstead\ntags = [\"web\"]\nipv6_inherit = true\nprimary_mac = \"BC:24:11:00:00:01\"\n[ip_map]\n\"10.0.3.9\" = \
                    \"192.0.2.9\"\n[mapping.\"dmz.test\"]\nnetworks = [\"192.0.2.0/24\", { cidr = \"10.0.0.0/8\", \
                    service_record = \"all.example.test\" }]\n```\nmore\n";
        let yaml = "```pipam\ntags: [web]\nipv6_inherit_ipv4_fqdn: true\nprimary_mac: BC:24:11:00:00:01\nip_map:\n  10.0.3.9: 192.0.2.9\nmapping:\n  \
                    dmz.test:\n    networks:\n      - 192.0.2.0/24\n      - {cidr: 10.0.0.0/8, service_record: \
                    all.example.test}\n```\n";
        let network = |cidr: &str, shared: Option<&str>| MappedNetwork {
            domain: "dmz.test".parse().unwrap(),
            cidr: cidr.parse().unwrap(),
            shared_name: shared.map(|name| name.parse().unwrap()),
            ipv6_inherit: true,
        };
        let wanted = GuestBlock {
            tags: vec!["web".into()],
            primary_mac: mac_of("bc:24:11:00:00:01"),
            ip_map: BTreeMap::from([("10.0.3.9".parse().unwrap(), "192.0.2.9".parse().unwrap())]),
            mapping: vec![network("192.0.2.0/24", None), network("10.0.0.0/8", Some("all.example.test"))],
            ..GuestBlock::default()
        };
        for text in [toml, yaml] {
            assert_eq!(GuestBlock::read(text), Ok(Some(wanted.clone())), "{text}");
        }
        assert_eq!(GuestBlock::read("just text, and `netstead` in it"), Ok(None));
    }

    #[test]
    fn a_wrong_block_says_what_is_wrong() {
        for (text, why) in [
            (
                "```netstead\nignore = true\n",
                "the block in its description has no end: close it with three backticks",
            ),
            (
                "```netstead\nip_map = { a = \"b\" }\n```",
                "the block in its description is wrong: `a` is no address",
            ),
            (
                "```netstead\nprimary_mac = \"7\"\n```",
                "the block in its description is wrong: `7` is no MAC address",
            ),
        ] {
            assert_eq!(GuestBlock::read(text), Err(why.to_owned()));
        }
        let unknown = GuestBlock::read("```netstead\nignroe = true\n```").unwrap_err();
        assert!(
            unknown.starts_with("the block in its description cannot be read: unknown field `ignroe`"),
            "{unknown}"
        );
        let unknown = GuestBlock::read("```pipam\nignroe: true\n```").unwrap_err();
        assert!(unknown.contains("ignroe") && !unknown.contains("TOML"), "{unknown}");
    }
}
