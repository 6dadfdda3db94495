//! [`NameRequest`]: a name that a workload asks for, before its addresses are known.

use std::collections::BTreeMap;

use netstead_model::{Address, Content, Ident, Name, RecordData, RecordType, Wish};

use super::TargetSpec;

/// A name and what shall stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRequest {
    pub name: Name,
    pub content: RequestedContent,
    pub ttl: Option<u32>,
    /// Only these providers; empty means every one whose domains match.
    pub providers: Vec<Ident>,
    /// Take over an equal foreign record.
    pub adopt: Option<bool>,
    /// Share the name with foreign values.
    pub share: Option<bool>,
    /// Whether a provider that can stand in front of the target shall do so.
    pub proxied: Option<bool>,
    /// The entry points of the proxy that it is reached under; empty means all.
    pub entrypoints: Vec<String>,
    /// The labels it comes from.
    pub reason: String,
}

/// The wanted content of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedContent {
    /// The addresses of a target, of one type only if that was said.
    Points { target: TargetSpec, kind: Option<RecordType> },
    /// Exactly these values.
    Records { kind: RecordType, values: Vec<RecordData> },
}

impl NameRequest {
    /// A name that points wherever names of the source do.
    pub(crate) fn new(name: Name, reason: impl Into<String>) -> Self {
        Self {
            name,
            content: RequestedContent::Points { target: TargetSpec::Source, kind: None },
            ttl: None,
            providers: Vec::new(),
            adopt: None,
            share: None,
            proxied: None,
            entrypoints: Vec::new(),
            reason: reason.into(),
        }
    }

    /// Whether it says where the name points, rather than something about it.
    pub(super) fn is_pointer(&self) -> bool {
        match &self.content {
            RequestedContent::Points { .. } => true,
            RequestedContent::Records { kind, .. } => {
                matches!(kind, RecordType::A | RecordType::Aaaa | RecordType::Cname)
            }
        }
    }

    /// Everything but the reason and the entry points is the same.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        self.content == other.content
            && self.ttl == other.ttl
            && self.providers == other.providers
            && (self.adopt, self.share, self.proxied) == (other.adopt, other.share, other.proxied)
    }

    /// The wishes it makes once the addresses of its target are known.
    pub(super) fn wishes(self, found: &AddressesByTarget) -> Result<Vec<Wish>, String> {
        let contents = match &self.content {
            RequestedContent::Records { kind, values } => {
                vec![Content::Records { kind: *kind, values: values.clone() }]
            }
            RequestedContent::Points { target, kind } => contents(target, *kind, found)?,
        };
        let moves = matches!(&self.content, RequestedContent::Points { target, .. } if target.is_dynamic());
        let wish = |content| Wish {
            name: self.name.clone(),
            content,
            ttl: self.ttl,
            providers: self.providers.clone(),
            reason: self.reason.clone(),
            adopt: self.adopt.unwrap_or(false),
            share: self.share.unwrap_or(false),
            main: false,
            borrowed: false,
            moves,
            proxied: self.proxied,
            entrypoints: self.entrypoints.clone(),
        };
        Ok(contents.into_iter().map(wish).collect())
    }
}

/// Targets and their addresses, or why they have none.
pub(super) type AddressesByTarget = BTreeMap<TargetSpec, Result<Vec<Address>, String>>;

fn contents(
    target: &TargetSpec,
    kind: Option<RecordType>,
    found: &AddressesByTarget,
) -> Result<Vec<Content>, String> {
    if let TargetSpec::Name(name) = target {
        return Ok(vec![Content::Records {
            kind: RecordType::Cname,
            values: vec![RecordData::Cname(name.clone())],
        }]);
    }
    let addresses = match found.get(target) {
        None => Vec::new(),
        Some(Ok(addresses)) => addresses.clone(),
        // A provider may have a target of its own, so the name is still asked for.
        Some(Err(_)) if *target == TargetSpec::Source => Vec::new(),
        Some(Err(why)) => return Err(why.clone()),
    };
    let of_kind = |address: &Address| match kind {
        None => true,
        Some(kind) => address.to_ip().map(|ip| RecordData::address(ip).kind()) == Some(kind),
    };
    let addresses: Vec<Address> = addresses.into_iter().filter(of_kind).collect();
    if *target == TargetSpec::Source {
        return Ok(vec![Content::Addresses(addresses)]);
    }
    let mut by_kind: BTreeMap<RecordType, Vec<RecordData>> = BTreeMap::new();
    for data in addresses.into_iter().filter_map(Address::to_ip).map(RecordData::address) {
        by_kind.entry(data.kind()).or_default().push(data);
    }
    if by_kind.is_empty() {
        let what = kind.map_or(String::new(), |kind| format!(" for {kind}"));
        return Err(format!("its target has no address{what}"));
    }
    Ok(by_kind.into_iter().map(|(kind, values)| Content::Records { kind, values }).collect())
}
