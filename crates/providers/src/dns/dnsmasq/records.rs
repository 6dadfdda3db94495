//! [`Records`]: all records of dnsmasq's directories, each with the file it is in.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use netstead_model::{ChangeSign, Name, RecordData};

use super::lines::{Line, add_hosts_line, conf_line, hosts_line, to_conf_line};
use crate::dns::{config_files::File, preconditions::ServerRecords};

/// Our file in `hostsdir`.
pub(super) const HOSTS_FILE: &str = "netstead.hosts";
/// Our file in `conf_dir`. Debian reads every file there, others only those that end so.
pub(super) const CONF_FILE: &str = "netstead.conf";
/// The first line of our files.
const HEADER: &[u8] = b"# Written by Netstead, which adds and removes records here. Other lines stay.\n";
/// The time to live that dnsmasq answers with unless `local-ttl` says otherwise.
pub(super) const TTL: u32 = 0;

type Record = (Name, RecordData);

/// The two directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dir {
    Hosts,
    Conf,
}

/// One of our files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OurFile {
    pub(super) records: BTreeSet<Record>,
    /// Lines that hold no record of ours to read.
    rest: Vec<Vec<u8>>,
    /// The bytes that are there now; none if there is no file.
    pub(super) written: Option<Vec<u8>>,
}

/// The file that dnsweaver wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DnsweaverFile {
    lines: Vec<(Vec<u8>, Line)>,
    pub(super) written: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    pub(super) found: ServerRecords,
    pub(super) hosts: OurFile,
    pub(super) conf: OurFile,
    pub(super) dnsweaver: DnsweaverFile,
    /// Records in files of others, with the name of one such file.
    pub(super) foreign: BTreeMap<Record, String>,
}

impl OurFile {
    /// `lines` are those of `bytes`.
    fn of(bytes: &[u8], lines: &[(&[u8], Line)]) -> Self {
        let mut file = Self { written: Some(bytes.to_vec()), ..Self::default() };
        for (line, parsed) in lines.iter().filter(|(line, _)| !HEADER.starts_with(line)) {
            if parsed.opaque.is_empty() && !parsed.records.is_empty() {
                file.records.extend(parsed.records.iter().cloned());
            } else {
                file.rest.push(line.to_vec());
            }
        }
        file
    }

    /// The file as it shall be; none if nothing would be in it.
    pub(super) fn text(&self, dir: Dir) -> Option<Vec<u8>> {
        if self.records.is_empty() && self.rest.is_empty() {
            return None;
        }
        let mut text = HEADER.to_vec();
        for line in &self.rest {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        for (name, data) in &self.records {
            match (dir, data.to_address()) {
                (Dir::Hosts, Some(address)) => add_hosts_line(&mut text, name, address),
                // Records without a line were refused before.
                _ => text.extend(to_conf_line(name, data).unwrap_or_default()),
            }
        }
        Some(text)
    }
}

impl DnsweaverFile {
    fn read(bytes: &[u8]) -> Self {
        let lines = lines_of(bytes).map(|line| (line.to_vec(), conf_line(line))).collect();
        Self { lines, written: Some(bytes.to_vec()) }
    }

    /// Removes the line that holds nothing but `record`. Whether there was one.
    pub(super) fn remove(&mut self, record: &Record) -> bool {
        let before = self.lines.len();
        self.lines.retain(|(_, line)| line.records.as_slice() != std::slice::from_ref(record));
        before != self.lines.len()
    }

    /// The records that have a line of their own.
    pub(super) fn records(&self) -> Vec<Record> {
        let lone = |(_, line): &(Vec<u8>, Line)| match line.records.as_slice() {
            [record] => Some(record.clone()),
            _ => None,
        };
        self.lines.iter().filter_map(lone).collect()
    }

    pub(super) fn has(&self, record: &Record) -> bool {
        self.lines.iter().any(|(_, line)| line.records.as_slice() == std::slice::from_ref(record))
    }

    /// The file as it shall be; none once nothing but comments is left.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        let bare = |line: &[u8]| line.trim_ascii().is_empty() || line.trim_ascii_start().starts_with(b"#");
        if self.lines.iter().all(|(line, _)| bare(line)) {
            return None;
        }
        let lines = self.lines.iter().map(|(line, _)| [line.as_slice(), b"\n"].concat());
        Some(lines.collect::<Vec<_>>().concat())
    }
}

impl Records {
    /// Reads the files of both directories.
    pub(super) fn read(hosts: &[File], conf: &[File], dnsweaver_file: &str) -> Self {
        type Parse = fn(&[u8]) -> Line;
        let mut records = Self::default();
        let parts: [(&[File], &str, Parse); 2] =
            [(hosts, HOSTS_FILE, hosts_line), (conf, CONF_FILE, conf_line)];
        for (index, (files, own, parse)) in parts.into_iter().enumerate() {
            for file in files {
                let is_own = file.name == own;
                let lines: Vec<_> = lines_of(&file.bytes).map(|line| (line, parse(line))).collect();
                match index {
                    0 if is_own => records.hosts = OurFile::of(&file.bytes, &lines),
                    1 if is_own => records.conf = OurFile::of(&file.bytes, &lines),
                    1 if file.name == dnsweaver_file => {
                        records.dnsweaver = DnsweaverFile::read(&file.bytes);
                    }
                    _ => {}
                }
                for (_, line) in lines {
                    records.add(line, (!is_own).then_some(file.name.as_str()));
                }
            }
        }
        records
    }

    fn add(&mut self, line: Line, foreign: Option<&str>) {
        for (name, data) in line.records {
            self.found.add(name.clone(), data.kind(), TTL, data.clone());
            if let Some(file) = foreign {
                self.foreign.entry((name, data)).or_insert_with(|| file.to_owned());
            }
        }
        self.found.opaque.extend(line.opaque);
        self.found.others.extend(line.others);
    }

    /// Whether the record is in one of our files.
    pub(super) fn is_ours(&self, record: &Record) -> bool {
        self.hosts.records.contains(record) || self.conf.records.contains(record)
    }

    /// The part at names that are `wanted`.
    pub(super) fn part(&self, wanted: impl Fn(&Name) -> bool) -> ServerRecords {
        let sets = self.found.sets.iter().filter(|((name, _), _)| wanted(name));
        ServerRecords {
            sets: sets.map(|(key, set)| (key.clone(), set.clone())).collect(),
            opaque: self.found.opaque.iter().filter(|(name, _)| wanted(name)).cloned().collect(),
            others: self.found.others.iter().filter(|name| wanted(name)).cloned().collect(),
        }
    }
}

/// A digest over records, which differs once one of them does.
pub(super) fn sign_of(records: &ServerRecords) -> ChangeSign {
    let mut hasher = DefaultHasher::new();
    for set in records.sets.values() {
        (set.name.as_str(), set.kind.as_str()).hash(&mut hasher);
        set.values.iter().for_each(|data| data.to_string().hash(&mut hasher));
    }
    for (name, kind) in &records.opaque {
        (name.as_str(), kind.as_str()).hash(&mut hasher);
    }
    records.others.iter().for_each(|name| name.as_str().hash(&mut hasher));
    ChangeSign::Opaque(format!("{:016x}", hasher.finish()))
}

/// The lines, without their ends.
fn lines_of(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> File {
        File { name: name.into(), bytes: text.into() }
    }

    #[test]
    fn lines_that_hold_no_record_stay_in_our_file() {
        let text = "domain-needed\ncname=a.test,b.test\n# by hand\n";
        let records = Records::read(&[], &[file(CONF_FILE, text)], "dnsweaver.conf");
        let shown = String::from_utf8(records.conf.text(Dir::Conf).unwrap()).unwrap();
        let header = String::from_utf8_lossy(HEADER);
        assert_eq!(shown, format!("{header}domain-needed\n# by hand\ncname=a.test,b.test\n"));
        let again = Records::read(&[], &[file(CONF_FILE, &shown)], "dnsweaver.conf");
        assert_eq!(again.conf.text(Dir::Conf), records.conf.text(Dir::Conf), "nothing is doubled");
        assert_eq!(OurFile::default().text(Dir::Conf), None);
    }

    #[test]
    fn dnsweavers_file_loses_single_lines_and_then_itself() {
        let text = "# dnsweaver\naddress=/a.test/10.0.0.1\ncname=b.test,a.test\n";
        let mut records = Records::read(&[], &[file("dnsweaver.conf", text)], "dnsweaver.conf");
        let a = ("a.test".parse().unwrap(), RecordData::A([10, 0, 0, 1].into()));
        let b = ("b.test".parse().unwrap(), RecordData::Cname("a.test".parse().unwrap()));
        assert_eq!(records.foreign.keys().collect::<Vec<_>>(), [&a, &b]);
        assert!(records.dnsweaver.remove(&a) && !records.dnsweaver.remove(&a));
        assert_eq!(records.dnsweaver.text().unwrap(), b"# dnsweaver\ncname=b.test,a.test\n");
        assert!(records.dnsweaver.remove(&b));
        assert_eq!(records.dnsweaver.text(), None);
    }

    #[test]
    fn a_loop_of_aliases_is_found() {
        let text = "cname=a.test,b.test\ncname=b.test,c.test\n";
        let records = Records::read(&[], &[file("x.conf", text)], "dnsweaver.conf");
        let name = |text: &str| text.parse::<Name>().unwrap();
        assert!(records.found.would_loop(&name("c.test"), &name("a.test")));
        assert!(!records.found.would_loop(&name("d.test"), &name("a.test")));
    }
}
