//! Single addresses.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_client::types::AddressOutput;
use netstead_ledger::{AddressState, AddressView};
use netstead_model::{Cidr, Observation, Span};

use super::ending;

/// The states one can ask a list of addresses for.
const STATES: [&str; 6] = ["held", "resting", "reserved", "observed", "excluded", "gateway"];

/// The state of that name, as the ledger writes it.
pub(crate) fn state(text: &str) -> Result<&'static str, String> {
    let found = STATES.into_iter().find(|state| *state == text);
    found.ok_or_else(|| format!("it is none of {}", STATES.map(|state| format!("`{state}`")).join(", ")))
}

pub(crate) fn output(view: &AddressView, now: Timestamp) -> AddressOutput {
    let mut output = AddressOutput {
        address: shown(view),
        vrf: view.vrf.to_string(),
        pool: view.pool.as_ref().map(ToString::to_string),
        state: view.state.as_str().to_owned(),
        key: None,
        owner: None,
        since: view.observed.iter().map(|seen| seen.since).min(),
        until: None,
        seen_by: view.observed.iter().map(|seen| seen.source.to_string()).collect(),
        note: view.observed.iter().find_map(|seen| seen.note.clone()),
    };
    match &view.state {
        AddressState::Held(held) => {
            output.key = Some(held.claim.key.to_string());
            output.owner = Some(held.claim.owner.to_string());
            output.since = Some(held.claim.since);
            output.until = held.left.map(|left| ending(now, left));
        }
        AddressState::Resting { key, owner, left, .. } => {
            output.key = Some(key.to_string());
            output.owner = Some(owner.to_string());
            output.since = None;
            output.until = Some(ending(now, *left));
        }
        AddressState::Reserved(reservation) => {
            output.key = Some(reservation.key.to_string());
            output.owner = Some(reservation.owner.to_string());
            output.since = Some(reservation.since);
            output.note = Some(format!("part of the reservation of {}", reservation.range));
        }
        AddressState::Withheld(reason) => output.note = Some((*reason).to_owned()),
        AddressState::Observed | AddressState::Free | AddressState::Outside => {}
    }
    output
}

fn shown(view: &AddressView) -> String {
    let prefix = view.length.and_then(|length| Cidr::new(view.address, length).ok());
    prefix.map_or_else(|| view.address.to_string(), |prefix| prefix.to_string())
}

/// Why an address is as it is, one sentence each.
pub(crate) fn why(view: &AddressView) -> Vec<String> {
    let place = shown(view);
    let in_pool = view.pool.as_ref().map(|pool| format!(" in pool `{pool}`")).unwrap_or_default();
    let mut why = vec![match &view.state {
        AddressState::Held(held) => {
            let claim = &held.claim;
            let how = if claim.fixed { "asked for by name" } else { "handed out by the pool" };
            format!(
                "{place} is held by `{}` of `{}`{in_pool} since {}, {how}.",
                claim.key, claim.owner, claim.since
            )
        }
        AddressState::Resting { key, owner, left, .. } => {
            let left = Span::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
            format!(
                "{place} rests{in_pool} for {left} more, since `{key}` of `{owner}` released it; only they get it back \
                 before that, or a claim that forces it."
            )
        }
        AddressState::Reserved(reservation) => format!(
            "{place} lies in {}, which is reserved{in_pool} for `{}` of `{}`: only they can claim it, by its address.",
            reservation.range, reservation.key, reservation.owner
        ),
        AddressState::Observed => format!(
            "{place} is not claimed{in_pool}, but was seen in use: no claim gets it unless it adopts it."
        ),
        AddressState::Withheld(reason) => format!("{place} is never handed out{in_pool}: {reason}."),
        AddressState::Free => format!("{place} is free{in_pool}: the next claim may get it."),
        AddressState::Outside => format!("{place} is in no pool of VRF `{}`.", view.vrf),
    }];
    why.extend(view.observed.iter().map(|seen| {
        let note = seen.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("`{}` has seen it in use since {}{note}.", seen.source, seen.since)
    }));
    if let AddressState::Held(held) = &view.state
        && let (Some(ttl), Some(left)) = (held.claim.ttl, held.left)
    {
        let left = Span::from_millis(u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        why.push(format!("Its claim lives for {ttl} and ends in {left} unless it is renewed."));
    }
    why
}

/// A sighting on its own.
pub(crate) fn sighting(seen: &Arc<Observation>, pool: Option<String>) -> AddressOutput {
    AddressOutput {
        address: seen.address.to_string(),
        vrf: seen.vrf.to_string(),
        pool,
        state: "observed".to_owned(),
        key: None,
        owner: None,
        since: Some(seen.since),
        until: None,
        seen_by: vec![seen.source.to_string()],
        note: seen.note.clone(),
    }
}
