//! One address or prefix: why it is as it is, what was before, and lines to copy.

use askama::Template;
use axum::{extract::Path, response::Response};
use netstead_client::types::{
    AddressState, ClaimOutput, ExplainOutput, ExplainPlace, Page, RecordOutput, TokenRole,
};

use super::{
    history::{Happened, encoded, of_event},
    names::{RecordLine, record_line},
    pool::panel::same_release,
};
use crate::{
    calls::Target,
    parts::{When, Words},
    same::Same,
    shell::{Section, Shell},
    visit::Visit,
};

/// Names of a claim whose records are looked up.
const NAMES: usize = 8;

#[derive(Debug, Template)]
#[template(path = "address.html")]
struct AddressPage {
    shell: Shell,
    address: String,
    places: Vec<Place>,
}

/// The address in one VRF.
#[derive(Debug)]
struct Place {
    pool: String,
    pool_href: String,
    vrf: String,
    state: String,
    why: Vec<Words>,
    claim: Option<Claim>,
    records: Vec<RecordLine>,
    /// Why they could not be asked for.
    records_missing: String,
    history: Vec<Happened>,
    copies: Vec<Copied>,
    claim_href: String,
    is_single: bool,
}

#[derive(Debug)]
struct Claim {
    key: String,
    owner: String,
    id: String,
    fixed: bool,
    since: When,
    until: Option<When>,
    description: String,
    labels: Vec<(String, String)>,
    names: Vec<String>,
    names_reason: String,
    may_release: bool,
    release: Same,
}

/// A line for the clipboard.
#[derive(Debug)]
struct Copied {
    name: &'static str,
    text: String,
}

pub(crate) async fn show(visit: Visit, Path(address): Path<String>) -> Response {
    let explained: ExplainOutput = match visit.calls.look(Target::of(["addresses", &address])).await {
        Ok(explained) => explained,
        Err(trouble) => return visit.trouble(&trouble),
    };
    let mut places = Vec::new();
    for place in explained.places {
        places.push(Place::of(&visit, &explained.address, place).await);
    }
    visit.page(&AddressPage {
        shell: visit.shell(Section::Addresses, explained.address.clone()),
        address: explained.address,
        places,
    })
}

impl Place {
    async fn of(visit: &Visit, address: &str, place: ExplainPlace) -> Self {
        let names = place.claim.as_ref().map(|claim| claim.names.clone()).unwrap_or_default();
        let (mut records, mut records_missing) = (Vec::new(), String::new());
        for name in names.iter().take(NAMES) {
            let target = Target::of(["records"]).with("name", name).with("limit", "50");
            match visit.calls.aside::<Page<RecordOutput>>(target).await {
                Ok(page) => records.extend(page.items.iter().map(|record| record_line(record, visit.base()))),
                Err(problem) => {
                    records_missing = problem.detail;
                    break;
                }
            }
        }
        let pool = place.address.pool.clone().unwrap_or_default();
        let free = matches!(
            place.address.state,
            AddressState::Free | AddressState::Resting | AddressState::Observed
        );
        let pool_href = format!("{}/pools/{}", visit.base(), encoded(&pool));
        let is_single = !address.contains('/') && !pool.is_empty();
        let claim_href = if free && visit.may(&TokenRole::Claim) && is_single {
            format!("{pool_href}?pick={}#grid", encoded(address))
        } else {
            String::new()
        };
        Self {
            copies: copies(address, &pool, place.claim.as_ref()),
            claim: place.claim.as_ref().map(|claim| Claim::of(visit, &pool, claim)),
            vrf: place.address.vrf.clone(),
            state: place.address.state.to_string(),
            why: Words::each(&place.why),
            history: place.history.iter().map(|event| of_event(event, visit.now)).collect(),
            records,
            records_missing,
            claim_href,
            pool_href,
            is_single,
            pool,
        }
    }
}

impl Claim {
    fn of(visit: &Visit, pool: &str, claim: &ClaimOutput) -> Self {
        let own = claim.owner == visit.session.subject;
        Self {
            key: claim.key.clone(),
            owner: claim.owner.clone(),
            id: claim.id.clone().unwrap_or_default(),
            fixed: claim.fixed,
            since: When::new(claim.since, visit.now),
            until: claim.until.map(|until| When::new(until, visit.now)),
            description: claim.description.clone().unwrap_or_default(),
            labels: claim.labels.clone().into_iter().collect(),
            names: claim.names.clone(),
            names_reason: claim.names_reason.clone(),
            release: same_release(visit, pool, &claim.key),
            may_release: visit.may(&TokenRole::Write) || (own && visit.may(&TokenRole::Claim)),
        }
    }
}

fn copies(address: &str, pool: &str, claim: Option<&ClaimOutput>) -> Vec<Copied> {
    let mut copies = vec![Copied { name: "Address", text: address.to_owned() }];
    let mut add = |name: &'static str, text: Option<String>| {
        copies.extend(text.map(|text| Copied { name, text }));
    };
    let network = claim.and_then(|claim| claim.network.as_deref());
    let length = network.and_then(|network| network.split_once('/')).map(|(_, length)| length);
    add(
        "With its network",
        length.filter(|_| !address.contains('/')).map(|length| format!("{address}/{length}")),
    );
    add("Name", claim.and_then(|claim| claim.names.first().cloned()));
    add("Reverse name", reverse(address));
    if let Some(claim) = claim {
        add("Command", Some(format!("netstead claim {pool} {} --address {address}", claim.key)));
        let resource: String =
            claim.key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        add(
            "Terraform",
            Some(format!(
                "resource \"netstead_address\" \"{resource}\" {{\n  pool = \"{pool}\"\n  key  = \"{}\"\n}}",
                claim.key
            )),
        );
    }
    copies
}

/// The name of the PTR record.
fn reverse(address: &str) -> Option<String> {
    match address.parse().ok()? {
        std::net::IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            Some(format!("{d}.{c}.{b}.{a}.in-addr.arpa"))
        }
        std::net::IpAddr::V6(ip) => {
            let digits = format!("{:032x}", u128::from(ip));
            let parts: Vec<String> = digits.chars().rev().map(|digit| digit.to_string()).collect();
            Some(format!("{}.ip6.arpa", parts.join(".")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_reverse_name() {
        assert_eq!(reverse("10.0.3.7").as_deref(), Some("7.3.0.10.in-addr.arpa"));
        assert!(
            reverse("fd00::1")
                .is_some_and(|name| name.starts_with("1.0.0.0.") && name.ends_with(".d.f.ip6.arpa"))
        );
        assert_eq!(reverse("52:54:00:00:00:01"), None);
    }
}
