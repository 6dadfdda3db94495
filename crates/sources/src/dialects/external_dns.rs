//! The annotations of external-dns, written as labels.

use netstead_model::Span;

use super::{
    NameRequest, RequestedContent, TargetSpec, WorkloadLabels,
    diagnostics::{Diagnostics, excerpt},
    fields::{Fields, Unusable},
};

/// The newer first: it wins where both are written.
const PREFIXES: [&str; 2] = ["external-dns.kubernetes.io/", "external-dns.alpha.kubernetes.io/"];
/// The required value of the annotation `controller`, if it exists.
const CONTROLLER: &str = "dns-controller";

/// The annotations that are looked at.
const FIELDS: [&str; 7] =
    ["hostname", "internal-hostname", "controller", "target", "record-type", "ttl", "cloudflare-proxied"];

pub(super) fn reads(label: &str) -> bool {
    PREFIXES.iter().filter_map(|prefix| label.strip_prefix(prefix)).any(|field| FIELDS.contains(&field))
}

pub(super) fn read(told: &WorkloadLabels<'_>, notes: &mut Diagnostics) -> Vec<NameRequest> {
    let mut asks = Vec::new();
    let mut before: Option<Fields<'_>> = None;
    for prefix in PREFIXES {
        let mut fields = Fields::new(prefix.into());
        for (label, value) in told.labels.range(prefix.to_owned()..) {
            let Some(field) = label.strip_prefix(prefix) else { break };
            if before.as_ref().is_none_or(|before| !before.has(field)) {
                fields.insert(field, value);
            }
        }
        asks.extend(of(&fields, before.as_ref(), notes));
        before = Some(fields);
    }
    asks
}

/// The asks of one prefix; what it does not say may be said with the other.
fn of(fields: &Fields<'_>, other: Option<&Fields<'_>>, notes: &mut Diagnostics) -> Vec<NameRequest> {
    let names = fields.names(&["hostname", "internal-hostname"], notes);
    if names.is_empty() {
        return Vec::new();
    }
    let holder = |field: &str| other.filter(|other| other.has(field)).unwrap_or(fields);
    if let Some(controller) = holder("controller").text("controller")
        && controller != CONTROLLER
    {
        notes.add(format!(
            "{} is not {CONTROLLER}, so another tool shall read it",
            holder("controller").label("controller")
        ));
        return Vec::new();
    }
    let Ok(content) = content(holder("target"), holder("record-type"), notes) else { return Vec::new() };
    let ttl = ttl(holder("ttl"), notes);
    let proxied = holder("cloudflare-proxied").flag("cloudflare-proxied", notes);
    let ask = |(name, label)| NameRequest {
        content: content.clone(),
        ttl,
        proxied,
        entrypoints: Vec::new(),
        ..NameRequest::new(name, label)
    };
    names.into_iter().map(ask).collect()
}

fn content(
    target: &Fields<'_>,
    kind: &Fields<'_>,
    notes: &mut Diagnostics,
) -> Result<RequestedContent, Unusable> {
    let target = target.target(notes)?.unwrap_or(TargetSpec::Source);
    Ok(RequestedContent::Points { target, kind: kind.parsed("record-type", notes)? })
}

/// Seconds, or a duration such as `5m`.
fn ttl(fields: &Fields<'_>, notes: &mut Diagnostics) -> Option<u32> {
    let text = fields.text("ttl")?;
    let seconds = match text.parse::<u32>() {
        Ok(seconds) => Some(seconds),
        Err(_) => text.parse::<Span>().ok().and_then(|span| u32::try_from(span.as_millis() / 1000).ok()),
    };
    let seconds = seconds.filter(|seconds| (1..=0x7fff_ffff).contains(seconds));
    if seconds.is_none() {
        fields.note("ttl", format!("`{}` is no time to live", excerpt(text)), notes);
    }
    seconds
}
