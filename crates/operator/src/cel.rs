//! The rules of the definitions, in CEL: the API server refuses a pool that says nonsense, also where no webhook runs.
//!
//! CEL cannot compare two addresses, so a range that is written the wrong way round passes and is reported on the pool. Nor can it
//! see other objects, so it does not know which addresses are held.

use serde_json::{Value, json};

/// Entries of a list: the API server computes how long a rule may take from the most that it may have to look at.
pub(crate) const MOST_ENTRIES: u32 = 2000;
/// The longest entry: a range of two IPv6 addresses has 79 characters.
pub(crate) const LONGEST_ENTRY: u32 = 80;

/// Whether the pool is one of IPv6.
const IS_V6: &str = "self.addresses[0].contains(':')";

/// Whether a variable is a single address, a network or a range.
fn is_entry(name: &str) -> String {
    let ends = format!("isIP({name}.split('-')[0]) && isIP({name}.split('-')[1])");
    format!("(isIP({name}) || isCIDR({name}) || ({name}.contains('-') && {ends}))")
}

/// The network that all addresses must be in: that of the first, with the length of the pool. The lengths are a list of texts
/// because a number that is made a text has no known length.
fn network() -> String {
    let lengths: Vec<String> = (0..=128).map(|length| format!("'/{length}'")).collect();
    format!("cidr(self.addresses[0].split('-')[0].split('/')[0] + [{}][self.prefix])", lengths.join(","))
}

fn rule(rule: &str, message: &str, field: &str) -> Value {
    json!({ "rule": rule, "message": message, "fieldPath": field })
}

/// The rule of an entry of an address pool.
pub(crate) fn entry() -> Value {
    let message = "it is no IP address, network (`10.0.0.0/28`) or range (`10.0.0.10-10.0.0.20`)";
    json!([{ "rule": is_entry("self"), "message": message }])
}

/// The rules of the whole spec of an address pool.
pub(crate) fn address_spec() -> Value {
    let entry = is_entry("a");
    let is_inside = "a.contains('-') ? n.containsIP(a.split('-')[0]) && n.containsIP(a.split('-')[1]) : \
                     a.contains('/') ? n.containsCIDR(a) : n.containsIP(a)";
    let is_readable = format!(
        "self.addresses.all(a, {entry} && a.contains(':') == {IS_V6}) && ({IS_V6} || self.prefix <= 32)"
    );
    json!([
        rule(
            &format!("self.addresses.all(a, a.contains(':') == {IS_V6})"),
            "IPv4 and IPv6 are mixed; a pool has one of them",
            ".addresses"
        ),
        rule(
            &format!(
                "!has(self.excludedAddresses) || self.excludedAddresses.all(a, a.contains(':') == {IS_V6})"
            ),
            "the family is not that of addresses",
            ".excludedAddresses"
        ),
        rule(
            &format!(
                "!has(self.gateway) || self.gateway == '' || (isIP(self.gateway) && self.gateway.contains(':') == {IS_V6})"
            ),
            "it is no IP address of the family of addresses",
            ".gateway"
        ),
        rule(&format!("{IS_V6} || self.prefix <= 32"), "the prefix is not from 0 to 32", ".prefix"),
        rule(
            &format!("!({is_readable}) || [{}].all(n, self.addresses.all(a, {is_inside}))", network()),
            "the addresses belong to different subnets: all must be inside one network of the length `prefix`",
            ".addresses"
        ),
    ])
}

/// The rule of a prefix that others are cut out of.
pub(crate) fn aggregate() -> Value {
    json!([
        { "rule": "isCIDR(self) && self.contains(':')", "message": "it is no IPv6 network such as `2001:db8::/48`" },
        {
            "rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)",
            "message": "it has bits behind its length",
        },
    ])
}

/// The rule of an entry that is kept out of a prefix pool.
pub(crate) fn excluded_prefix() -> Value {
    let rule = format!("{} && self.contains(':')", is_entry("self"));
    json!([{ "rule": rule, "message": "it is no IPv6 address, network or range" }])
}

/// The rules of the whole spec of a prefix pool.
pub(crate) fn prefix_spec() -> Value {
    json!([
        rule(
            "self.prefixes.all(p, !isCIDR(p) || cidr(p).prefixLength() <= self.allocationPrefixLength)",
            "a network is smaller than one prefix of the length allocationPrefixLength",
            ".prefixes"
        ),
        rule(
            "!has(self.gateway) || self.gateway == '' || (isIP(self.gateway) && self.gateway.contains(':'))",
            "it is no IPv6 address",
            ".gateway"
        ),
    ])
}

/// The rule of a field that never changes.
pub(crate) fn never_changes(message: &str) -> Value {
    json!([{ "rule": "self == oldSelf", "message": message }])
}

/// The rule of a single address.
pub(crate) fn address() -> Value {
    json!([{ "rule": "isIP(self)", "message": "it is no IP address" }])
}

/// The rules of a prefix of NetBox.
pub(crate) fn netbox_prefix() -> Value {
    json!([
        { "rule": "has(self.id) != has(self.cidr)", "message": "one of id and cidr is needed" },
        { "rule": "!has(self.vrf) || has(self.cidr)", "message": "a vrf goes with a cidr: an id means one prefix by itself" },
        {
            "rule": "!has(self.cidr) || (isCIDR(self.cidr) && cidr(self.cidr).masked() == cidr(self.cidr))",
            "message": "cidr is no network such as `10.0.3.0/24`, or has bits behind its length",
        },
        {
            "rule": "!has(self.cidr) || !has(self.gateway) || self.cidr.contains(':') == self.gateway.contains(':')",
            "message": "cidr and gateway are not of one family",
        },
    ])
}
