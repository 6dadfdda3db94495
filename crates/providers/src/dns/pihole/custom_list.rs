//! [`CustomList`]: the local records in Pi-hole's own files, line by line: `custom.list` as a hosts file, and CNAME records in
//! the syntax of dnsmasq.

use netstead_model::{Name, RecordData, SetChange, Unit, Values};

use super::entries::{Entries, alias, host, host_without, may_have};
use crate::dns::{
    per_record::Listing,
    preconditions::{ServerRecords, kind_of, wanted},
};

/// How a line of a CNAME begins.
const CNAME: &str = "cname=";
/// How dnsweaver writes an address, in a hosts file too, where Pi-hole does not understand it.
const ADDRESS: &str = "address=/";

/// The lines of both files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CustomList {
    hosts: Vec<String>,
    aliases: Vec<String>,
}

impl CustomList {
    pub(super) fn read(hosts: &str, aliases: &str) -> Self {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        Self { hosts: lines(hosts), aliases: lines(aliases) }
    }

    /// The files as they shall be; none for a file without lines.
    pub(super) fn texts(&self) -> [Option<Vec<u8>>; 2] {
        [&self.hosts, &self.aliases].map(|lines| {
            let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
            (!text.is_empty()).then(|| text.concat().into_bytes())
        })
    }

    pub(super) fn listing(&self, ttl: u32) -> Listing {
        let aliases = self.aliases.iter().filter_map(|line| line.trim().strip_prefix(CNAME));
        let entries = Entries { hosts: self.hosts.clone(), aliases: aliases.map(str::to_owned).collect() };
        entries.listing(ttl)
    }

    /// Makes a unit true that fits what was `found`; the reason if that cannot be.
    pub(super) fn apply(&mut self, unit: &Unit, found: &ServerRecords) -> Result<(), String> {
        let mut changed = self.clone();
        for change in &unit.changes {
            changed.change(change, found)?;
        }
        *self = changed;
        Ok(())
    }

    fn change(&mut self, change: &SetChange, found: &ServerRecords) -> Result<(), String> {
        let Some((some, kind)) = change.after.as_ref().or(change.before.as_ref()).zip(kind_of(change)) else {
            return Ok(());
        };
        let none = Values::default();
        let name = &some.name;
        let there = found.sets.get(&(name.clone(), kind)).map_or(&none, |set| &set.values);
        let wanted = wanted(change).map_or(&none, |set| &set.values);
        for data in there.difference(wanted) {
            self.remove(name, data);
        }
        for data in wanted.difference(there) {
            match data {
                RecordData::Cname(target) if found.would_loop(name, target) => {
                    return Err(format!("`{name}` would be an alias of itself, by way of `{target}`"));
                }
                RecordData::Cname(target) => self.aliases.push(format!("{CNAME}{name},{target}")),
                data => {
                    let address = data.to_address().ok_or_else(|| format!("no file holds {kind}"))?;
                    self.hosts.push(format!("{address} {name}"));
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, name: &Name, data: &RecordData) {
        if let RecordData::Cname(_) = data {
            let own = |line: &String| {
                let entry = line.trim().strip_prefix(CNAME).and_then(alias);
                entry.is_some_and(|(names, _)| names.as_slice() == std::slice::from_ref(name))
            };
            return self.aliases.retain(|line| !own(line));
        }
        let without = |line: String| match host(&line) {
            Some((address, names)) if may_have(&line, name) && data.to_address() == Some(address) => {
                if names.contains(name) { host_without(&line, name) } else { Some(line) }
            }
            _ => Some(line),
        };
        self.hosts = std::mem::take(&mut self.hosts).into_iter().filter_map(without).collect();
    }

    /// The values in lines that dnsweaver wrote into the hosts file in another syntax.
    pub(super) fn of_dnsweaver(&self) -> Vec<(Name, RecordData)> {
        self.hosts.iter().filter_map(|line| dnsweaver_line(line)).collect()
    }

    /// Puts values of dnsweaver into lines that Pi-hole understands, and removes its own.
    pub(super) fn absorb(&mut self, values: &[(Name, RecordData)]) {
        let before = self.hosts.len();
        self.hosts.retain(|line| dnsweaver_line(line).is_none_or(|value| !values.contains(&value)));
        if before == self.hosts.len() {
            return;
        }
        let found = self.listing(0).found();
        for (name, data) in values {
            let there =
                found.sets.get(&(name.clone(), data.kind())).is_some_and(|set| set.values.contains(data));
            match (data, data.to_address()) {
                _ if there => {}
                (_, Some(address)) => self.hosts.push(format!("{address} {name}")),
                (RecordData::Cname(target), None) => self.aliases.push(format!("{CNAME}{name},{target}")),
                _ => {}
            }
        }
    }
}

fn dnsweaver_line(line: &str) -> Option<(Name, RecordData)> {
    if let Some(rest) = line.strip_prefix(ADDRESS) {
        let (name, address) = rest.split_once('/')?;
        return Some((name.parse().ok()?, super::entries::data(address.trim().parse().ok()?)));
    }
    let (mut names, target) = alias(line.strip_prefix(CNAME)?)?;
    (names.len() == 1).then(|| names.pop().map(|name| (name, RecordData::Cname(target))))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_dnsweaver_become_lines_that_pihole_reads() {
        let text = "# mine\n192.0.2.1 nas.test\n# Managed by dnsweaver\naddress=/app.test/10.0.0.1\ncname=www.test,app.test\n";
        let mut list = CustomList::read(text, "");
        let values = list.of_dnsweaver();
        let shown: Vec<String> = values.iter().map(|(name, data)| format!("{name} {data}")).collect();
        assert_eq!(shown, ["app.test 10.0.0.1", "www.test app.test."]);
        list.absorb(&values);
        let [hosts, aliases] = list.texts().map(|text| String::from_utf8(text.unwrap()).unwrap());
        assert_eq!(hosts, "# mine\n192.0.2.1 nas.test\n# Managed by dnsweaver\n10.0.0.1 app.test\n");
        assert_eq!(aliases, "cname=www.test,app.test\n");
        let before = list.clone();
        list.absorb(&values);
        assert_eq!(list, before, "a second time changes nothing");
    }
}
