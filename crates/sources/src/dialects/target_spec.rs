//! [`TargetSpec`]: where a name shall point, as a label says it.

use std::{fmt, str::FromStr};

use netstead_model::{Address, Kind, Name, ParseError};

use super::list::parts;
use crate::dynamic_target::DynamicTarget;

/// Where a name shall point. Only the source that knows the workload can tell the addresses of most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetSpec {
    /// Wherever names of this source point; a provider's own target comes before it.
    Source,
    Addresses(Vec<Address>),
    Name(Name),
    /// The workload's address on this network.
    Network(String),
    /// The address of the machine it runs on.
    Host,
    /// The address the world sees.
    Public,
    /// The address of an interface of this machine.
    Interface(String),
}

impl TargetSpec {
    /// The place it is found at, if it is found out while Netstead runs.
    pub fn to_dynamic(&self) -> Option<DynamicTarget> {
        match self {
            Self::Public => Some(DynamicTarget::Public),
            Self::Interface(name) => Some(DynamicTarget::Interface(name.clone())),
            _ => None,
        }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self, Self::Public | Self::Interface(_))
    }
}

impl FromStr for TargetSpec {
    type Err = ParseError;

    /// `auto`, addresses with commas between, a name, `network:NAME`, `host`, `public` or `interface:NAME`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let refuse = |reason: &str| Err(ParseError::new("target", text, None, reason));
        match text.split_once(':') {
            Some(("network", "")) => return refuse("write the network's name after `network:`"),
            Some(("interface", "")) => return refuse("write the interface's name after `interface:`"),
            // As long as the kernel lets it be.
            Some(("interface", name)) if name.len() > 15 || name.contains(['/', ' ', '\t', '\n']) => {
                return refuse("no interface is called so");
            }
            Some(("network", name)) => return Ok(Self::Network(name.into())),
            Some(("interface", name)) => return Ok(Self::Interface(name.into())),
            _ => {}
        }
        match text {
            "" => return refuse("it is empty"),
            "auto" => return Ok(Self::Source),
            "host" => return Ok(Self::Host),
            "public" => return Ok(Self::Public),
            _ => {}
        }
        let addresses: Result<Vec<Address>, ParseError> = parts(text).map(str::parse).collect();
        match addresses {
            Ok(addresses) if addresses.is_empty() => refuse("it is empty"),
            Ok(addresses) if addresses.iter().any(|address| address.kind() == Kind::Mac) => {
                refuse("a name cannot point at a MAC address")
            }
            Ok(addresses) => Ok(Self::Addresses(addresses)),
            Err(_) if !text.contains(',') && text.contains('.') => text.parse().map(Self::Name),
            Err(_) => refuse(
                "write addresses, a name with a dot, `auto`, `host`, `public`, `network:NAME` or `interface:NAME`",
            ),
        }
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source => f.write_str("auto"),
            Self::Addresses(addresses) => {
                let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
            Self::Name(name) => write!(f, "{name}"),
            Self::Network(name) => write!(f, "network:{name}"),
            Self::Host => f.write_str("host"),
            Self::Public => f.write_str("public"),
            Self::Interface(name) => write!(f, "interface:{name}"),
        }
    }
}

impl serde::Serialize for TargetSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
