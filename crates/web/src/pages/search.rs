//! Finds anything: an address in any notation, a network, a MAC address, a name, a key, a pool.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use netstead_client::types::{ClaimOutput, NameOutput, Page, PoolOutput, RecordOutput};
use netstead_model::{Address, Cidr};

use super::history::encoded;
use crate::{
    calls::Target,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

#[derive(Debug, Template)]
#[template(path = "search.html")]
struct SearchPage {
    shell: Shell,
    query: String,
    hits: Vec<Hit>,
}

#[derive(Debug)]
struct Hit {
    kind: &'static str,
    text: String,
    href: String,
    note: String,
}

pub(crate) async fn find(visit: Visit, params: Params) -> Response {
    let query = params.text("q").to_owned();
    if query.parse::<Address>().is_ok() || query.parse::<Cidr>().is_ok() {
        return Redirect::to(&format!("{}/addresses/{}", visit.base(), encoded(&query))).into_response();
    }
    let hits = if query.is_empty() { Vec::new() } else { hits(&visit, &query).await };
    // A single hit is what was meant.
    if let [hit] = hits.as_slice() {
        return Redirect::to(&hit.href).into_response();
    }
    let mut shell = visit.shell(Section::None, "Search");
    shell.searched.clone_from(&query);
    visit.page(&SearchPage { shell, query, hits })
}

async fn hits(visit: &Visit, query: &str) -> Vec<Hit> {
    let base = visit.base();
    let claims = Target::of(["claims"]).with("key", query).with("limit", "20");
    let records = Target::of(["records"]).with("text", query).with("limit", "30");
    let (claims, pools, name, records) = tokio::join!(
        visit.calls.look::<Page<ClaimOutput>>(claims),
        visit.calls.look::<Page<PoolOutput>>(Target::of(["pools"]).with("limit", "1000")),
        visit.calls.aside::<NameOutput>(Target::of(["names", query])),
        visit.calls.aside::<Page<RecordOutput>>(records)
    );
    let wanted = query.to_lowercase();
    let mut hits = Vec::new();
    for pool in pools.map(|page| page.items).unwrap_or_default() {
        let told = [Some(pool.name.as_str()), pool.description.as_deref(), pool.domain.as_deref()];
        if told.into_iter().flatten().any(|text| text.to_lowercase().contains(&wanted)) && hits.len() < 20 {
            hits.push(Hit {
                kind: "pool",
                href: format!("{base}/pools/{}", encoded(&pool.name)),
                note: pool.description.or(pool.network).unwrap_or_default(),
                text: pool.name,
            });
        }
    }
    for claim in claims.map(|page| page.items).unwrap_or_default() {
        let address = claim.address.unwrap_or_default();
        let href = if address.is_empty() {
            format!("{base}/pools/{}", encoded(&claim.pool))
        } else {
            format!("{base}/addresses/{}", encoded(&address))
        };
        hits.push(Hit {
            kind: "claim",
            href,
            note: format!("{address} in {}, of {}", claim.pool, claim.owner),
            text: claim.key,
        });
    }
    let mut nameless = None;
    if let Ok(name) = name {
        let is_known = !name.records.is_empty();
        let hit = Hit {
            kind: "name",
            href: format!("{base}/names/{}", encoded(&name.name)),
            note: name
                .records
                .iter()
                .map(|record| format!("{} {}", record.kind, record.value))
                .take(3)
                .collect::<Vec<_>>()
                .join(", "),
            text: name.name,
        };
        if is_known {
            hits.push(hit);
        } else if query.contains('.') {
            nameless = Some(hit);
        }
    }
    // Names of which it is a part, or whose value it is part of.
    for record in records.map(|page| page.items).unwrap_or_default() {
        let note = format!("{} {}", record.kind, record.value);
        match hits.iter_mut().find(|hit| hit.kind == "name" && hit.text == record.name) {
            Some(hit) if !hit.note.contains(&note) && hit.note.len() < 200 => {
                hit.note = format!("{}, {note}", hit.note);
            }
            Some(_) => {}
            None => hits.push(Hit {
                kind: "name",
                href: format!("{base}/names/{}", encoded(&record.name)),
                note,
                text: record.name,
            }),
        }
    }
    // A name that nothing has yet can be looked at too, and get a record.
    if hits.is_empty() {
        hits.extend(nameless);
    }
    hits
}
