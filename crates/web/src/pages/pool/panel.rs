//! [`Panel`]: what can be done with an address of a pool, or with the pool.

use netstead_client::types::{AddressState, ClaimOutput, PoolOutput, TokenRole};
use netstead_model::{Address, Range};
use serde_json::json;

use super::Asked;
use crate::{calls::Target, form::Form, pages::grid::Known, parts::When, same::Same, visit::Visit};

/// Forms for the address that was chosen, or for the pool.
#[allow(clippy::struct_excessive_bools, reason = "each is a question that a template asks")]
#[derive(Debug, Default)]
pub(super) struct Panel {
    /// The address that was chosen, if one was.
    pub(super) address: String,
    pub(super) state: String,
    pub(super) key: String,
    pub(super) owner: String,
    pub(super) id: String,
    pub(super) names: Vec<String>,
    pub(super) until: Option<When>,
    pub(super) note: String,
    /// The claim form: shown for the pool, for a free address, and for one that rests or was seen.
    pub(super) claim: Form,
    pub(super) reserve: Form,
    pub(super) may_claim: bool,
    pub(super) may_reserve: bool,
    pub(super) may_release: bool,
    pub(super) may_unreserve: bool,
    /// An exact claim has to adopt or force it.
    pub(super) needs: &'static str,
    /// The same acts as commands.
    pub(super) claim_same: Same,
    pub(super) reserve_same: Same,
    pub(super) release_same: Same,
    pub(super) unreserve_same: Same,
}

pub(super) async fn panel(
    visit: &Visit,
    pool: &PoolOutput,
    picked: Option<Address>,
    known: &Known<'_>,
    ranges: &[Range],
    asked: &Asked,
) -> Panel {
    let (claims, writes) = (visit.may(&TokenRole::Claim), visit.may(&TokenRole::Write));
    let mut panel = Panel {
        claim: asked.claim.clone(),
        reserve: asked.reserve.clone(),
        may_claim: claims && !pool.closing,
        may_reserve: writes && !pool.closing,
        ..Panel::default()
    };
    panel.address = picked.map(|address| address.to_string()).unwrap_or_default();
    panel.claim_same = same_claim(visit, pool, &panel.address);
    panel.reserve_same = same_reserve(visit, pool, &panel.address);
    let Some(address) = picked else { return panel };
    let inside = ranges.iter().any(|range| range.contains(address));
    let Some(entry) = known.at(address) else {
        if inside { "free" } else { "outside" }.clone_into(&mut panel.state);
        panel.may_claim &= inside;
        panel.may_reserve &= inside;
        return panel;
    };
    panel.state = entry.state.to_string();
    panel.key = entry.key.clone().unwrap_or_default();
    panel.owner = entry.owner.clone().unwrap_or_default();
    panel.note = entry.note.clone().unwrap_or_default();
    panel.until = entry.until.map(|until| When::new(until, visit.now));
    match entry.state {
        AddressState::Held => {
            panel.may_claim = false;
            panel.may_reserve = false;
            let target = Target::of(["pools", &pool.name, "claims", &panel.key]);
            if let Ok(claim) = visit.calls.look::<ClaimOutput>(target).await {
                panel.id = claim.id.unwrap_or_default();
                panel.names = claim.names;
            }
            panel.release_same = same_release(visit, &pool.name, &panel.key);
            panel.may_release = claims && (writes || panel.owner == visit.session.subject);
        }
        AddressState::Observed => panel.needs = "adopt",
        AddressState::Resting => {
            panel.needs = "force";
            panel.may_reserve = false;
        }
        AddressState::Reserved => {
            panel.may_claim = false;
            panel.may_reserve = false;
            panel.may_unreserve = writes;
            panel.unreserve_same = Same::new(
                visit,
                "unreserve",
                &["unreserve", &pool.name, &panel.key],
                "DELETE",
                &Target::of(["pools", &pool.name, "reservations", &panel.key]),
                None,
            );
        }
        _ => {
            panel.may_claim = false;
            panel.may_reserve = false;
        }
    }
    panel
}

fn same_claim(visit: &Visit, pool: &PoolOutput, address: &str) -> Same {
    let target = Target::of(["pools", &pool.name, "claims", "KEY"]);
    if address.is_empty() {
        return Same::new(visit, "claim", &["claim", &pool.name, "KEY"], "PUT", &target, Some(&json!({})));
    }
    let words = ["claim", &pool.name, "KEY", "--address", address];
    Same::new(visit, "claim", &words, "PUT", &target, Some(&json!({ "address": address })))
}

fn same_reserve(visit: &Visit, pool: &PoolOutput, address: &str) -> Same {
    let range = if address.is_empty() { "FIRST-LAST" } else { address };
    let target = Target::of(["pools", &pool.name, "reservations", "KEY"]);
    let words = ["reserve", &pool.name, "KEY", range];
    Same::new(visit, "reserve", &words, "PUT", &target, Some(&json!({ "range": range })))
}

pub(in crate::pages) fn same_release(visit: &Visit, pool: &str, key: &str) -> Same {
    let target = Target::of(["pools", pool, "claims", key]);
    Same::new(visit, "release", &["release", pool, key], "DELETE", &target, None)
}
