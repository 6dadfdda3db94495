//! Single addresses.

use std::sync::Arc;

use jiff::Timestamp;
use netstead_client::types::{self, AddressOutput, ListedAddressState};
use netstead_ledger::{AddressState, AddressView, BlockView};
use netstead_model::{Cidr, Observation, Range, Span, Usage, readable_count};

use super::ending;

/// The state of that name, as the ledger writes it.
pub(crate) fn state(text: &str) -> Result<&'static str, String> {
    let known = ListedAddressState::KNOWN.iter().map(ListedAddressState::as_str);
    known.clone().find(|state| *state == text).ok_or_else(|| {
        let known: Vec<String> = known.map(|state| format!("`{state}`")).collect();
        format!("it is none of {}", known.join(", "))
    })
}

pub(crate) fn output(view: &AddressView, now: Timestamp) -> AddressOutput {
    let mut output = AddressOutput {
        address: shown(view),
        vrf: view.vrf.to_string(),
        pool: view.pool.as_ref().map(ToString::to_string),
        state: view.state.as_str().into(),
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
        AddressState::GivingBack { key, owner, .. } => {
            output.key = Some(key.to_string());
            output.owner = Some(owner.to_string());
            output.since = None;
        }
        AddressState::Reserved(reservation) => {
            output.key = Some(reservation.key.to_string());
            output.owner = Some(reservation.owner.to_string());
            output.since = Some(reservation.since);
            let whole = view.through.is_some() && output.address == reservation.range.to_string();
            output.note = if whole {
                reservation.description.clone()
            } else {
                Some(format!("part of the reservation of {}", reservation.range))
            };
        }
        AddressState::Withheld(reason) => output.note = Some((*reason).to_owned()),
        AddressState::Observed | AddressState::Free | AddressState::Outside => {}
    }
    output
}

fn shown(view: &AddressView) -> String {
    if let Some(stretch) = view.through.and_then(|last| Range::new(view.address, last).ok()) {
        return stretch.to_string();
    }
    let prefix = view.length.and_then(|length| Cidr::new(view.address, length).ok());
    prefix.map_or_else(|| view.address.to_string(), |prefix| prefix.to_string())
}

/// Why an address is as it is, one sentence each. `output` is the same as data.
pub(crate) fn why(view: &AddressView, output: &AddressOutput, now: Timestamp) -> Vec<String> {
    let place = shown(view);
    let in_pool = view.pool.as_ref().map(|pool| format!(" in pool `{pool}`")).unwrap_or_default();
    let left = output.until.map(|until| remaining(now, until)).unwrap_or_default();
    let mut why = vec![match &view.state {
        AddressState::Held(held) => {
            let claim = &held.claim;
            let how = if claim.fixed { "this exact address was requested" } else { "handed out by the pool" };
            format!(
                "{place} is held by `{}` of `{}`{in_pool} since {:.0}, {how}.",
                claim.key, claim.owner, claim.since
            )
        }
        AddressState::Resting { key, owner, .. } => format!(
            "{place} rests{in_pool} for {left} more, since the claim `{key}` of `{owner}` ended; only they get it back \
             before that, or a claim that forces it."
        ),
        AddressState::GivingBack { key, owner, .. } => format!(
            "{place} has rested{in_pool} since the claim `{key}` of `{owner}` ended, and is being given back to the pool's \
             backend."
        ),
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
        format!("`{}` has seen it in use since {:.0}{note}.", seen.source, seen.since)
    }));
    if let AddressState::Held(held) = &view.state
        && let (Some(ttl), Some(_)) = (held.claim.ttl, held.left)
    {
        why.push(format!("Its claim lives for {ttl} and ends in {left} unless it is renewed."));
    }
    why
}

/// How long it is until then, as people count: in whole seconds.
fn remaining(now: Timestamp, until: Timestamp) -> Span {
    let left = u64::try_from(now.duration_until(until).as_millis()).unwrap_or_default();
    Span::from_secs(left.div_ceil(1000))
}

/// A block that is no claim, in one pool.
pub(crate) fn block(block: &Cidr, view: &BlockView) -> AddressOutput {
    AddressOutput {
        address: block.to_string(),
        vrf: view.vrf.to_string(),
        pool: Some(view.pool.to_string()),
        state: block_state(view),
        key: None,
        owner: None,
        since: None,
        until: None,
        seen_by: Vec::new(),
        note: None,
    }
}

/// The state of the whole block, if it is all the same.
fn block_state(view: &BlockView) -> types::AddressState {
    let Some(usage) = &view.usage else { return types::AddressState::Mixed };
    if usage.size == 0 {
        return types::AddressState::Excluded;
    }
    let all = states(usage).into_iter().find(|(count, _)| *count == usage.size);
    all.map_or(types::AddressState::Mixed, |(_, state)| state)
}

/// Explains a block of a pool and its content, one sentence each.
pub(crate) fn block_why(block: &Cidr, view: &BlockView) -> Vec<String> {
    let pool = &view.pool;
    let mut why = vec![match (view.inside, view.whole) {
        (true, true) => format!("{block} is all of pool `{pool}`."),
        (true, false) => format!("{block} lies in pool `{pool}`."),
        (false, true) => format!("All of pool `{pool}` lies in {block}."),
        (false, false) => format!("{block} shares addresses with pool `{pool}`."),
    }];
    if let Some(around) = &view.around {
        let around = shown(around);
        if around != block.to_string() {
            why.push(format!("It is part of {around}."));
        }
        return why;
    }
    let Some(usage) = &view.usage else {
        why.push(
            "There is too much in it to count it here: list it with `get addresses --within`.".to_owned(),
        );
        return why;
    };
    why.push(counted(usage));
    if !view.claims.is_empty() {
        let claims = view.claims.iter().map(|view| &view.claim);
        let named: Vec<_> = claims.map(|claim| format!("{} by `{}`", claim.held(), claim.key)).collect();
        let more = usage.claims.saturating_sub(named.len() as u64);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        why.push(format!("Held are {}{more}.", named.join(", ")));
    }
    why
}

/// Each address is one of these.
fn states(usage: &Usage) -> [(u128, types::AddressState); 5] {
    [
        (usage.held, types::AddressState::Held),
        (usage.resting, types::AddressState::Resting),
        (usage.reserved, types::AddressState::Reserved),
        (usage.observed, types::AddressState::Observed),
        (usage.free, types::AddressState::Free),
    ]
}

fn counted(usage: &Usage) -> String {
    if usage.size == 0 {
        return "None of these addresses is ever handed out.".to_owned();
    }
    let states = states(usage).into_iter().filter(|(count, _)| *count > 0);
    let states: Vec<_> = states.map(|(count, state)| format!("{} {state}", readable_count(count))).collect();
    let addresses = if usage.size == 1 { "address" } else { "addresses" };
    format!("Of {} {addresses} that can be handed out: {}.", readable_count(usage.size), states.join(", "))
}

/// A sighting on its own.
pub(crate) fn sighting(seen: &Arc<Observation>, pool: Option<String>) -> AddressOutput {
    AddressOutput {
        address: seen.address.to_string(),
        vrf: seen.vrf.to_string(),
        pool,
        state: types::AddressState::Observed,
        key: None,
        owner: None,
        since: Some(seen.since),
        until: None,
        seen_by: vec![seen.source.to_string()],
        note: seen.note.clone(),
    }
}
