//! The names that one version of a workload asks for, and the values for them on this provider.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use netstead_model::{Address, Content, Interface, Name, RecordData, RecordType, Wish, Workload};

use super::{
    MissingBecause, WhyNot,
    name_rules::{NameCount, NameRules},
};
use crate::{DomainRule, Domains, Network, ProviderTarget, Settings};

/// One value at one name.
#[expect(clippy::struct_excessive_bools, reason = "independent things that workloads say")]
pub(super) struct WishedValue {
    pub(super) name: Name,
    pub(super) data: RecordData,
    pub(super) ttl: Option<u32>,
    pub(super) why: Arc<str>,
    pub(super) adopt: bool,
    pub(super) share: bool,
    pub(super) proxied: Option<bool>,
    pub(super) is_sole: bool,
    pub(super) target: bool,
    pub(super) moves: bool,
    pub(super) rank: Option<u8>,
    /// A rule does not let the workload have it: the end of a sentence.
    pub(super) refused: Option<Arc<str>>,
}

/// Why a wish gives no value, as a sentence without its full stop.
enum NoValue {
    /// A rule refuses it.
    Rule(String),
    /// The server cannot hold it.
    Unheld(String),
    Absent(MissingBecause, String),
    Other(String),
}

impl<T: Into<String>> From<T> for NoValue {
    fn from(why: T) -> Self {
        Self::Other(why.into())
    }
}

/// Calls `found` for every value, with the name as the workload asks for it unless a network gives it. What gives no
/// value, or one that is refused, goes to `why_not`.
pub(super) fn for_each_wished_value(
    workload: &Workload,
    rules: &NameRules<'_>,
    why_not: &mut Vec<WhyNot>,
    mut found: impl FnMut(WishedValue, Option<&Name>),
) {
    let mut no = |name: Option<&Name>, why: NoValue| {
        let (source, workload) = (workload.source.clone(), workload.id.clone());
        let (why, refused, unheld, absence) = match why {
            NoValue::Rule(why) => (why, true, false, None),
            NoValue::Unheld(why) => (why, false, true, None),
            NoValue::Absent(absence, why) => (why, false, false, Some(absence)),
            NoValue::Other(why) => (why, false, false, None),
        };
        why_not.push(WhyNot { source, workload, name: name.cloned(), why, refused, unheld, absence });
    };
    for why in &workload.why_not {
        no(None, NoValue::Other(why.clone()));
    }
    let mut count = NameCount::new(workload, rules.source);
    for wish in &workload.wishes {
        let name = qualified(wish, rules.domains);
        let surplus = count.surplus(&wish.name);
        let asked = |wished: WishedValue| found(wished, Some(&wish.name));
        match values_of_wish(wish, &name, workload, rules, surplus.as_ref(), asked) {
            Ok(refusals) if surplus.is_some() && !count.is_told() => drop(refusals),
            Ok(refusals) => refusals.iter().for_each(|why| no(Some(&name), NoValue::Rule(why.to_string()))),
            Err(why) => no(Some(&name), why),
        }
    }
    if let Some(why) = count.untold() {
        no(None, NoValue::Rule(why));
    }
    let networks =
        wishes_from_networks(workload, rules.domains, &mut |name, why| no(name, NoValue::Other(why)));
    for (wish, rank) in networks {
        let name = wish.name.clone();
        let before = |mut wished: WishedValue| {
            wished.rank = rank.filter(|_| wished.rank.is_some());
            found(wished, None);
        };
        match values_of_wish(&wish, &name, workload, rules, None, before) {
            Ok(refusals) => refusals.iter().for_each(|why| no(Some(&name), NoValue::Rule(why.to_string()))),
            Err(why) => no(Some(&name), why),
        }
    }
}

/// Calls `found` for the values of one wish. Returns why some are refused, each reason once.
fn values_of_wish(
    wish: &Wish,
    name: &Name,
    workload: &Workload,
    rules: &NameRules<'_>,
    surplus: Option<&Arc<str>>,
    mut found: impl FnMut(WishedValue),
) -> Result<Vec<Arc<str>>, NoValue> {
    let settings = rules.settings;
    let provider = &settings.provider;
    if !wish.providers.is_empty() && !wish.providers.iter().any(|name| settings.is_called(name)) {
        return Err(elsewhere(format!("it is not meant for `{provider}`")));
    }
    if !settings.answers_for(name) && !is_reverse(wish) {
        return Err(elsewhere(format!("it matches no domain of `{provider}`")));
    }
    if !settings.is_reached_by(&wish.entrypoints) {
        let own = wish.entrypoints.join(", ");
        let why = format!("it is on {own}, and `entrypoints` in [dns.{provider}] has none of these");
        return Err(elsewhere(why));
    }
    let (values, target) = match &wish.content {
        Content::Records { kind, values } => {
            (values.iter().filter(|value| value.kind() == *kind).cloned().collect(), false)
        }
        Content::Addresses(addresses) => resolve_target(addresses, settings),
    };
    if values.is_empty() {
        // A provider of one type may stand beside another one of the other type.
        let pointless = matches!(&wish.content, Content::Addresses(addresses) if addresses.is_empty());
        let absence = if pointless { MissingBecause::NoAddress } else { MissingBecause::Elsewhere };
        return Err(NoValue::Absent(absence, "it has no address of a type this provider writes".into()));
    }
    let rank = match &wish.content {
        _ if target || wish.borrowed || name.is_wildcard() => None,
        Content::Addresses(_) if wish.main && workload.kind == "claim" => Some(1),
        _ => Some(if wish.main { 2 } else { 3 }),
    };
    let why: Arc<str> = wish.reason.as_str().into();
    let mut refusals: Vec<Arc<str>> = Vec::new();
    for data in values {
        if data == RecordData::Cname(name.clone()) {
            return Err("it would point at itself".into());
        }
        if !settings.holds(data.kind()) {
            let why = format!("`{provider}` cannot hold {} records", data.kind());
            let by_itself = settings.unheld.contains(&data.kind());
            return Err(if by_itself { NoValue::Unheld(why) } else { NoValue::Other(why) });
        }
        let rank = rank.filter(|_| data.to_address().is_some());
        let (name, why) = (name.clone(), why.clone());
        let (ttl, adopt, share) = (wish.ttl, wish.adopt, wish.share);
        let proxied = wish.proxied.filter(|_| settings.proxies && can_be_proxied(data.kind()));
        let moves = wish.moves && !target;
        let refused = surplus.cloned().or_else(|| rules.refuse(&workload.source, &name, data.kind()));
        if let Some(refused) = refused.as_ref().filter(|refused| !refusals.contains(refused)) {
            refusals.push(refused.clone());
        }
        let is_sole = workload.sole_name && wish.main;
        found(WishedValue {
            name,
            data,
            ttl,
            why,
            adopt,
            share,
            proxied,
            is_sole,
            target,
            moves,
            rank,
            refused,
        });
    }
    Ok(refusals)
}

fn elsewhere(why: String) -> NoValue {
    NoValue::Absent(MissingBecause::Elsewhere, why)
}

/// Whether a proxy can stand in front of records of this type.
fn can_be_proxied(kind: RecordType) -> bool {
    matches!(kind, RecordType::A | RecordType::Aaaa | RecordType::Cname)
}

/// PTR records asked for exactly lie outside the domains; the server's reverse zones decide.
fn is_reverse(wish: &Wish) -> bool {
    matches!(&wish.content, Content::Records { kind: RecordType::Ptr, .. })
        && wish.name.labels().next_back() == Some("arpa")
}

/// Where a name points on this provider, and whether that is the provider's target.
fn resolve_target(addresses: &[Address], settings: &Settings) -> (Vec<RecordData>, bool) {
    let of = |addresses: &[Address]| -> Vec<RecordData> {
        let all = addresses.iter().filter_map(|address| address.to_ip()).map(RecordData::address);
        all.filter(|data| settings.kind.is_none_or(|kind| data.kind() == kind)).collect()
    };
    match &settings.target {
        None => (of(addresses), false),
        Some(ProviderTarget::Addresses(target)) => (of(target), true),
        Some(ProviderTarget::Name(_)) if settings.kind.is_some_and(|kind| kind != RecordType::Cname) => {
            (Vec::new(), true)
        }
        Some(ProviderTarget::Name(target)) => (vec![RecordData::Cname(target.clone())], true),
    }
}

/// A name of one label gets the domain of the first address that has one.
fn qualified(wish: &Wish, domains: &Domains) -> Name {
    if wish.name.as_str().contains('.') {
        return wish.name.clone();
    }
    let Content::Addresses(addresses) = &wish.content else { return wish.name.clone() };
    let domain = addresses.iter().find_map(|address| domains.of(*address));
    domain
        .and_then(|(rule, _)| Name::join(wish.name.as_str(), &rule.domain).ok())
        .unwrap_or(wish.name.clone())
}

/// Wishes that follow from the networks a workload has addresses in, each with its rank for the PTR.
fn wishes_from_networks(
    workload: &Workload,
    domains: &Domains,
    no: &mut impl FnMut(Option<&Name>, String),
) -> Vec<(Wish, Option<u8>)> {
    let mut own: BTreeMap<(Name, Option<u8>), (Vec<Address>, String)> = BTreeMap::new();
    if domains.0.is_empty() {
        return Vec::new();
    }
    let around = workload.interfaces.iter().filter(|interface| !interface.local);
    for (interface, address) in
        around.flat_map(|one| one.addresses.iter().map(move |address| (one, *address)))
    {
        if address.to_ip().is_none_or(is_private_to_the_machine) {
            continue;
        }
        let found = domains.of(address);
        let Some((rule, network)) = found.or_else(|| inherited(interface, address, domains)) else {
            continue;
        };
        if let Some(shared) = network.shared_name.as_ref().filter(|_| found.is_some()) {
            match rule.shared_name(shared) {
                Ok(name) => {
                    let why = format!("shared name of {}", network.cidr);
                    own.entry((name, None)).or_insert((Vec::new(), why)).0.push(address);
                }
                Err(error) => no(None, error.to_string()),
            }
        }
        if interface.mapped && names_itself(workload, address) {
            continue;
        }
        let named = workload.wishes.iter().any(|wish| {
            let asks = matches!(&wish.content, Content::Addresses(wished) if wished.contains(&address));
            asks && qualified(wish, domains).is_subdomain_of(&rule.domain)
        });
        if named {
            continue;
        }
        match rule.template.fill(workload, &rule.domain) {
            Ok(name) => {
                let why = format!("address in {}", network.cidr);
                own.entry((name, Some(2))).or_insert((Vec::new(), why)).0.push(address);
            }
            Err(why) => no(None, why),
        }
    }
    let wish = |((name, rank), (addresses, reason)): ((Name, Option<u8>), (Vec<Address>, String))| {
        let content = Content::Addresses(addresses);
        let (ttl, providers, adopt, share, main) = (None, Vec::new(), false, false, rank.is_some());
        let (borrowed, moves, proxied) = (false, false, None);
        let entrypoints = Vec::new();
        let wish = Wish {
            name,
            content,
            ttl,
            providers,
            reason,
            adopt,
            share,
            main,
            borrowed,
            moves,
            proxied,
            entrypoints,
        };
        (wish, rank)
    };
    own.into_iter().map(wish).collect()
}

/// Whether the workload asks for a name of its own for the address: others have that of their network.
fn names_itself(workload: &Workload, address: Address) -> bool {
    let asks = |wish: &&Wish| {
        let points = matches!(&wish.content, Content::Addresses(wished) if wished.contains(&address));
        wish.main && (wish.borrowed || points)
    };
    workload.wishes.iter().any(|wish| asks(&wish))
}

/// The rule that an address of IPv6 has from the IPv4 address beside it.
fn inherited<'a>(
    interface: &Interface,
    address: Address,
    domains: &'a Domains,
) -> Option<(&'a DomainRule, &'a Network)> {
    let beside = interface.addresses.iter().filter(|other| other.to_ip().is_some_and(|ip| ip.is_ipv4()));
    let found = beside.filter_map(|other| domains.of(*other)).find(|(rule, _)| rule.ipv6_inherit);
    found.filter(|_| address.to_ip().is_some_and(|ip| ip.is_ipv6()))
}

/// The name of each address of the workload's own that has one: the name it asks for as its main one, any other it asks
/// for, or that of the address's network. A full hostname names the rest.
pub(crate) fn names_of_addresses(workload: &Workload, domains: &Domains) -> BTreeMap<Address, Name> {
    let mut names = BTreeMap::new();
    let mut wishes: Vec<&Wish> = workload.wishes.iter().filter(|wish| !wish.borrowed).collect();
    wishes.sort_by_key(|wish| !wish.main);
    for wish in wishes.into_iter().filter(|wish| !wish.name.as_str().starts_with("*.")) {
        let name = qualified(wish, domains);
        let addresses: Vec<Address> = match &wish.content {
            Content::Addresses(addresses) => addresses.clone(),
            Content::Records { values, .. } => values.iter().filter_map(address_of).collect(),
        };
        for address in addresses.into_iter().filter(|_| name.as_str().contains('.')) {
            names.entry(address).or_insert_with(|| name.clone());
        }
    }
    for (wish, rank) in wishes_from_networks(workload, domains, &mut |_, _| {}) {
        let Content::Addresses(addresses) = &wish.content else { continue };
        for address in addresses.iter().filter(|_| rank.is_some()) {
            names.entry(*address).or_insert_with(|| wish.name.clone());
        }
    }
    let full = workload.hostname.as_ref().filter(|name| name.as_str().contains('.'));
    let around = workload.interfaces.iter().filter(|interface| !interface.local);
    for (address, name) in around.flat_map(|interface| &interface.addresses).zip(std::iter::repeat(full)) {
        if let Some(name) = name {
            names.entry(*address).or_insert_with(|| name.clone());
        }
    }
    names
}

/// Every name that the workload asks for, or that a `[domain]` table gives to its addresses.
pub fn names_of_workload(workload: &Workload, domains: &Domains) -> BTreeSet<Name> {
    let asked = workload.wishes.iter().map(|wish| qualified(wish, domains));
    let given = wishes_from_networks(workload, domains, &mut |_, _| {});
    asked.chain(given.into_iter().map(|(wish, _)| wish.name)).collect()
}

fn address_of(data: &RecordData) -> Option<Address> {
    match data {
        RecordData::A(address) => Some(IpAddr::V4(*address).into()),
        RecordData::Aaaa(address) => Some(IpAddr::V6(*address).into()),
        _ => None,
    }
}

fn is_private_to_the_machine(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}
