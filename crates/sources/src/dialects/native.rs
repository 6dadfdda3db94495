//! Labels made for the DNS: `netstead.*`, and `dnsweaver.*` with the same meaning as there.

use std::collections::BTreeMap;

use super::{
    NameRequest, WorkloadLabels, defaults::Defaults, diagnostics::Diagnostics, fields::Fields, record,
};

/// The words of one of the two.
#[derive(Debug)]
pub(super) struct Native {
    /// With its dot.
    prefix: &'static str,
    /// Fields of the short form.
    short: &'static [&'static str],
    /// Fields of `records.<n>`.
    record: &'static [&'static str],
    defaults: fn(&Fields<'_>, &mut Diagnostics) -> Defaults,
    /// `ttl` and `proxied` of the short form are for its own names only, not for those of other dialects.
    own_ttl: bool,
}

pub(super) const NETSTEAD: Native = Native {
    prefix: "netstead.",
    short: &[
        "enabled",
        "hostname",
        "hostnames",
        "ttl",
        "type",
        "target",
        "provider",
        "providers",
        "proxied",
        "adopt",
        "share",
        "pool",
    ],
    record: &[
        "enabled",
        "hostname",
        "hostnames",
        "ttl",
        "type",
        "target",
        "value",
        "provider",
        "providers",
        "proxied",
        "adopt",
        "share",
        "port",
        "priority",
        "weight",
    ],
    defaults: Defaults::of_netstead,
    own_ttl: false,
};

pub(super) const DNSWEAVER: Native = Native {
    prefix: "dnsweaver.",
    short: &["enabled", "hostname", "hostnames", "ttl", "proxied", "adopt", "instances", "provider"],
    record: &[
        "enabled", "hostname", "type", "target", "provider", "ttl", "port", "priority", "weight", "proxied",
        "adopt",
    ],
    defaults: Defaults::of_dnsweaver,
    own_ttl: true,
};

impl Native {
    pub(super) fn reads(&self, label: &str) -> bool {
        let Some(field) = label.strip_prefix(self.prefix) else { return false };
        match field.strip_prefix("records.").and_then(|rest| rest.split_once('.')) {
            Some((name, field)) => is_record_name(name) && self.record.contains(&field),
            None => self.short.contains(&field),
        }
    }

    /// The names, and what holds for the names of every dialect.
    pub(super) fn read(
        &self,
        told: &WorkloadLabels<'_>,
        notes: &mut Diagnostics,
    ) -> (Vec<NameRequest>, Defaults) {
        let (short, records) = self.sorted(told, notes);
        short.check(self.short, notes);
        let mut asks: Vec<NameRequest> = Vec::new();
        let (ttl, proxied) =
            if self.own_ttl { (short.ttl(notes), short.flag("proxied", notes)) } else { (None, None) };
        for (name, label) in short.names(&["hostname", "hostnames"], notes) {
            asks.push(NameRequest { ttl, proxied, ..NameRequest::new(name, label) });
        }
        for fields in records.values() {
            fields.check(self.record, notes);
            asks.extend(record::read(fields, notes));
        }
        let defaults = (self.defaults)(&short, notes);
        if defaults.unusable {
            notes.unreadable(format!("no name is made while a label of {}* cannot be read", self.prefix));
        }
        (asks, defaults)
    }

    /// The fields of the short form, and those of each named record.
    fn sorted<'a>(
        &self,
        told: &WorkloadLabels<'a>,
        notes: &mut Diagnostics,
    ) -> (Fields<'a>, BTreeMap<&'a str, Fields<'a>>) {
        let mut short = Fields::new(self.prefix.into());
        let mut records: BTreeMap<&str, Fields<'a>> = BTreeMap::new();
        for (label, value) in told.labels.range(self.prefix.to_owned()..) {
            let Some(field) = label.strip_prefix(self.prefix) else { break };
            let Some(rest) = field.strip_prefix("records.") else {
                short.insert(field, value);
                continue;
            };
            match rest.split_once('.') {
                Some((name, field)) if is_record_name(name) => {
                    let prefix = || Fields::new(format!("{}records.{name}.", self.prefix));
                    records.entry(name).or_insert_with(prefix).insert(field, value);
                }
                _ => notes.add(format!(
                    "{} is not of the form {}records.<n>.<field>, with <n> of letters, digits, `_` and `-`",
                    super::diagnostics::excerpt(label),
                    self.prefix
                )),
            }
        }
        (short, records)
    }
}

fn is_record_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
