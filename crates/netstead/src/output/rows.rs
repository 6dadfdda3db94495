//! The rows of tables: how each kind of thing is shown.

mod dns;
mod streamed;

use std::collections::BTreeMap;

use netstead_client::types::{
    AddressOutput, ClaimOutput, EventOutput, MemberOutput, PoolOutput, ReservationOutput, TokenOutput, Usage,
    UsageDay,
};
use netstead_model::readable_count;

pub(crate) use self::dns::budget;
use super::{Audience, Row};

/// Longer ranges, which are those of IPv6, are cut in narrow tables.
const LONGEST_RANGE: usize = 24;

impl Row for PoolOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["NAME", "FAMILY", "RANGES", "SIZE", "HELD", "RESTING", "FREE", "USED"],
        &[
            "AGE", "VRF", "NETWORK", "GATEWAY", "DOMAIN", "RESERVED", "OBSERVED", "WAITING", "ORDER",
            "ORIGIN", "LABELS",
        ],
    );

    fn cells(&self, look: Audience) -> Vec<String> {
        let network = self.network.iter().filter(|_| self.ranges.is_empty());
        let extent: Vec<&str> = self.ranges.iter().chain(network).map(String::as_str).collect();
        vec![
            self.name.clone(),
            self.family.to_string(),
            ranges(&extent, look),
            count(&self.usage.size, look),
            count(&self.usage.held, look),
            count(&self.usage.resting, look),
            count(&self.usage.free, look),
            used(&self.usage, look),
            look.since(self.created),
            self.vrf.clone(),
            text(self.network.as_ref()),
            text(self.gateway.as_ref()),
            text(self.domain.as_ref()),
            count(&self.usage.reserved, look),
            count(&self.usage.observed, look),
            self.usage.waiting.to_string(),
            self.order.to_string(),
            self.origin.to_string(),
            labels(&self.labels),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for UsageDay {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["DAY", "USED", "CLAIMS", "MADE", "ENDED"], &[]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.day.to_string(),
            permyriad(self.used_permyriad, look),
            self.claims.to_string(),
            self.claimed.to_string(),
            self.ended.to_string(),
        ]
    }

    fn name(&self) -> String {
        self.day.to_string()
    }
}

impl Row for MemberOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["NAME", "ROLE", "URL", "VERSION", "SEEN", "AGE"], &["ID", "FORMAT"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.name.clone(),
            if self.leads { "leader" } else { "follower" }.to_owned(),
            self.url.clone(),
            self.version.clone(),
            look.since(self.seen),
            look.since(self.since),
            self.id.clone(),
            self.format.to_string(),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}

impl Row for ClaimOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) = (
        &["POOL", "KEY", "ADDRESS", "STATE", "OWNER", "AGE", "ENDS IN"],
        &["ID", "NAMES", "FIXED", "VRF", "LABELS", "DESCRIPTION"],
    );

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.pool.clone(),
            self.key.clone(),
            text(self.address.as_ref()),
            self.state.to_string(),
            self.owner.clone(),
            look.since(self.since),
            self.until.map(|until| look.until(until)).unwrap_or_default(),
            text(self.id.as_ref()),
            self.names.join(" "),
            self.fixed.to_string(),
            self.vrf.clone(),
            labels(&self.labels),
            text(self.description.as_ref()),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.pool, self.key)
    }
}

impl Row for AddressOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["ADDRESS", "STATE", "POOL", "KEY", "OWNER", "AGE", "ENDS IN"], &["VRF", "SEEN BY", "NOTE"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.address.clone(),
            self.state.to_string(),
            text(self.pool.as_ref()),
            text(self.key.as_ref()),
            text(self.owner.as_ref()),
            self.since.map(|since| look.since(since)).unwrap_or_default(),
            self.until.map(|until| look.until(until)).unwrap_or_default(),
            self.vrf.clone(),
            self.seen_by.join(" "),
            text(self.note.as_ref()),
        ]
    }

    fn name(&self) -> String {
        self.address.clone()
    }

    fn identity(&self) -> String {
        format!("{} {}", self.vrf, self.address)
    }
}

impl Row for EventOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["SEQ", "AT", "WHAT", "POOL", "KEY", "ADDRESS", "BY"], &["OWNER", "REASON", "REQUEST"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.seq.to_string(),
            format!("{:.0}", self.at),
            self.what.to_string(),
            text(self.pool.as_ref()),
            text(self.key.as_ref()),
            text(self.address.as_ref()),
            self.by.clone(),
            text(self.owner.as_ref()),
            text(self.reason.as_ref()),
            text(self.request.as_ref()),
        ]
    }

    fn name(&self) -> String {
        self.seq.to_string()
    }
}

impl Row for ReservationOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["POOL", "KEY", "RANGE", "OWNER", "AGE"], &["DESCRIPTION"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.pool.clone(),
            self.key.clone(),
            self.range.clone(),
            self.owner.clone(),
            look.since(self.since),
            text(self.description.as_ref()),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.pool, self.key)
    }
}

impl Row for TokenOutput {
    const COLUMNS: (&'static [&'static str], &'static [&'static str]) =
        (&["ID", "SUBJECT", "ROLE", "SCOPE", "AGE", "ENDS IN"], &["DESCRIPTION"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        let scope = |kind: &str, names: &[String]| {
            names.iter().map(|name| format!("{kind}:{name}")).collect::<Vec<_>>()
        };
        let scopes =
            [scope("vrf", &self.vrfs), scope("pool", &self.pools), scope("zone", &self.zones)].concat();
        vec![
            self.id.clone(),
            self.subject.clone(),
            self.role.to_string(),
            if scopes.is_empty() { "everywhere".into() } else { scopes.join(" ") },
            look.since(self.created),
            self.expires.map(|expires| look.until(expires)).unwrap_or_default(),
            text(self.description.as_ref()),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// Ranges in a cell: all of them in a wide table, else the first, and how many more there are.
fn ranges(extent: &[&str], look: Audience) -> String {
    let (Audience::People { wide: false, .. }, [first, more @ ..]) = (look, extent) else {
        return extent.join(" ");
    };
    let mut shown: String = (*first).to_owned();
    if shown.chars().count() > LONGEST_RANGE {
        shown = shown.chars().take(LONGEST_RANGE - 1).chain(['…']).collect();
    }
    if more.is_empty() { shown } else { format!("{shown} +{}", more.len()) }
}

fn text(value: Option<&String>) -> String {
    value.cloned().unwrap_or_default()
}

fn labels(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn count(number: &str, look: Audience) -> String {
    match (number.parse::<u128>(), look) {
        (Ok(number), Audience::People { .. }) => readable_count(number),
        _ => number.to_owned(),
    }
}

fn used(usage: &Usage, look: Audience) -> String {
    let (whole, part) = (usage.used_permyriad / 100, usage.used_permyriad % 100);
    if matches!(look, Audience::Programs) {
        return format!("{whole}.{part:02}");
    }
    match usage.used_permyriad {
        0 if usage.held != "0" => "<0.01%".into(),
        0 => "0%".into(),
        1..100 if is_less(usage) => "<0.01%".into(),
        1..100 => format!("0.{part:02}%"),
        // All is never almost all.
        10_000.. => format!("{whole}%"),
        used => format!("{}%", ((used + 50) / 100).min(99)),
    }
}

/// A part in hundredths of a percent.
fn permyriad(part: u32, look: Audience) -> String {
    let exact = format!("{}.{:02}", part / 100, part % 100);
    match look {
        Audience::Programs => exact,
        Audience::People { .. } if part.is_multiple_of(100) => format!("{}%", part / 100),
        Audience::People { .. } => format!("{exact}%"),
    }
}

/// Whether less than a hundredth of a percent is used: the server never says 0 of what is something.
fn is_less(usage: &Usage) -> bool {
    let number = |text: &str| text.parse::<u128>().unwrap_or_default();
    let (size, free) = (number(&usage.size), number(&usage.free));
    size.saturating_sub(free).saturating_mul(10_000) < size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_rounded_and_never_all_or_nothing_too_early() {
        let shown = |size: u128, free: u128, used_permyriad| {
            let usage = Usage {
                size: size.to_string(),
                held: (size - free).to_string(),
                free: free.to_string(),
                used_permyriad,
                ..Usage::default()
            };
            used(&usage, Audience::People { now: jiff::Timestamp::UNIX_EPOCH, wide: false })
        };
        assert_eq!(shown(151, 145, 397), "4%");
        assert_eq!(shown(1 << 24, (1 << 24) - 1, 1), "<0.01%");
        assert_eq!(shown(10_000, 9_999, 1), "0.01%");
        assert_eq!((shown(1_000, 1, 9_990), shown(3, 0, 10_000)), ("99%".into(), "100%".into()));
        assert_eq!(shown(3, 3, 0), "0%");
    }
}
