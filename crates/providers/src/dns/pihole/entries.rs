//! Entries of Pi-hole: lines of a hosts file, and aliases as dnsmasq has them.

use std::{collections::BTreeSet, net::IpAddr};

use netstead_model::{Name, RecordData, RecordType};

use crate::dns::per_record::{Listing, Record};

/// All entries of a server, as it spells them.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    /// `192.0.2.1 name other-name # comment`
    pub(super) hosts: Vec<String>,
    /// `alias,target`, perhaps with more aliases in front and a time to live at the end.
    pub(super) aliases: Vec<String>,
}

impl Entries {
    /// The entries as records. An alias that shares its entry with others cannot be changed alone.
    pub(super) fn listing(&self, ttl: u32) -> Listing {
        let mut listing = Listing::default();
        let record = |name, data| Record { id: String::new(), name, ttl, data, proxied: None };
        for (address, names) in self.hosts.iter().filter_map(|entry| host(entry)) {
            let data = data(address);
            listing.records.extend(names.into_iter().map(|name| record(name, data.clone())));
        }
        for entry in &self.aliases {
            if let Some((names, target)) = alias(entry) {
                match names.as_slice() {
                    [name] => listing.records.push(record(name.clone(), RecordData::Cname(target))),
                    _ => listing.opaque.extend(names.into_iter().map(|name| (name, RecordType::Cname))),
                }
            } else {
                let names = entry.split(',').filter_map(|text| text.trim().parse().ok());
                listing.opaque.extend(names.map(|name| (name, RecordType::Cname)));
            }
        }
        let mut seen = BTreeSet::new();
        listing.records.retain(|record| seen.insert((record.name.clone(), record.data.to_string())));
        listing
    }
}

pub(super) fn data(address: IpAddr) -> RecordData {
    match address {
        IpAddr::V4(address) => RecordData::A(address),
        IpAddr::V6(address) => RecordData::Aaaa(address),
    }
}

/// Address and names of a line of a hosts file. What is no name of the DNS is left out.
pub(super) fn host(entry: &str) -> Option<(IpAddr, Vec<Name>)> {
    let mut words = words(entry);
    let address = words.next()?.parse().ok()?;
    Some((address, words.filter_map(|word| word.parse().ok()).collect()))
}

/// Whether it is worth reading an entry that is about `name`.
pub(super) fn may_have(entry: &str, name: &Name) -> bool {
    !entry.is_ascii() || entry.to_ascii_lowercase().contains(name.as_str())
}

/// A line of a hosts file without `name`; none if no other name is left.
pub(super) fn host_without(entry: &str, name: &Name) -> Option<String> {
    let comment = entry.find('#').and_then(|at| entry.get(at..)).unwrap_or_default();
    let mut words = words(entry);
    let address = words.next()?;
    let others: Vec<&str> = words.filter(|word| word.parse::<Name>().ok().as_ref() != Some(name)).collect();
    if others.is_empty() {
        return None;
    }
    Some(format!("{address} {} {comment}", others.join(" ")).trim_end().to_owned())
}

fn words(entry: &str) -> impl Iterator<Item = &str> {
    entry.split('#').next().unwrap_or_default().split_whitespace()
}

/// Aliases and target. None if that cannot be read.
pub(super) fn alias(entry: &str) -> Option<(Vec<Name>, Name)> {
    let mut parts: Vec<&str> = entry.split(',').map(str::trim).collect();
    if parts.len() > 2 && parts.last()?.bytes().all(|byte| byte.is_ascii_digit()) {
        parts.pop();
    }
    let target = parts.pop()?.parse().ok()?;
    let names: Option<Vec<Name>> = parts.into_iter().map(|part| part.parse().ok()).collect();
    names.filter(|names| !names.is_empty()).map(|names| (names, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_line_of_hosts_has_many_names() {
        let line = "192.0.2.1  nas.lan.test NAS bad..name # in the cellar";
        assert_eq!(host(line), Some(("192.0.2.1".parse().unwrap(), vec![name("nas.lan.test"), name("nas")])));
        assert_eq!(
            host_without(line, &name("nas")).unwrap(),
            "192.0.2.1 nas.lan.test bad..name # in the cellar"
        );
        assert_eq!(host_without("192.0.2.1 nas # mine", &name("nas")), None);
        for nothing in ["", "# all", "nas 192.0.2.1"] {
            assert_eq!(host(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_alias_may_have_a_time_to_live() {
        let one = |text: &str| alias(text).map(|(names, target)| (names.len(), target.to_string()));
        assert_eq!(one("www.lan.test,nas.lan.test"), Some((1, "nas.lan.test".into())));
        assert_eq!(one("www.lan.test, nas.lan.test, 60"), Some((1, "nas.lan.test".into())));
        assert_eq!(one("a.lan.test,b.lan.test,nas.lan.test"), Some((2, "nas.lan.test".into())));
        assert_eq!(one("alone"), None);
        let aliases =
            vec!["a.lan.test,b.lan.test,nas.lan.test".to_owned(), "c.lan.test,nas.lan.test".to_owned()];
        let listing = Entries { hosts: Vec::new(), aliases }.listing(2);
        assert_eq!(listing.records.len(), 1);
        assert_eq!(listing.opaque.len(), 2);
    }
}
