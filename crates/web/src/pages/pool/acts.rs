//! Claim, reserve and release, from the page of a pool.

use axum::{extract::Path, response::Response};
use netstead_client::types::{ClaimInput, ClaimOutput, ReservationInput, ReservationOutput, TokenRole};
use netstead_model::Range;

use super::{Asked, again, missing};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    pages::history::encoded,
    visit::Visit,
};

pub(crate) async fn claim(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Claim) {
        return refused;
    }
    let length = form.maybe("length").map(|text| text.trim_start_matches('/').to_owned());
    let input = ClaimInput {
        address: form.maybe("address"),
        length: length.as_deref().and_then(|text| text.parse().ok()),
        hostnames: Some(form.words("hostnames")).filter(|names| !names.is_empty()),
        description: form.maybe("description"),
        ttl: form.maybe("ttl"),
        adopt: form.is_set("adopt"),
        force: form.is_set("force"),
        ..ClaimInput::default()
    };
    let key = form.text("key").to_owned();
    let claimed: Result<ClaimOutput, Trouble> = if key.is_empty() {
        Err(missing("key", "give the claim a key: the name of what gets the address"))
    } else {
        visit.calls.put(Target::of(["pools", &pool, "claims", &key]), &input).await
    };
    match claimed {
        Ok(claim) => {
            let address = claim.address.clone().unwrap_or_else(|| "a place in the queue".to_owned());
            let place = match claim.address.as_deref().filter(|address| !address.contains('/')) {
                Some(address) => format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(address)),
                None => format!("/pools/{}", encoded(&pool)),
            };
            visit.done(&place, &format!("{} has {address}", claim.key))
        }
        Err(problem) => {
            let known = ["key", "address", "hostnames", "description", "ttl", "length"];
            // An address that was typed into the form of the pool is not one that was chosen in the grid.
            let pick = form.text("pick").to_owned();
            let asked = Asked { pick, claim: form.wrong(&problem, &known), ..Asked::default() };
            again(&visit, &pool, &asked, &problem).await
        }
    }
}

pub(crate) async fn reserve(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let key = form.text("reserve_key").to_owned();
    let input = ReservationInput {
        range: form.text("range").to_owned(),
        description: form.maybe("reserve_description"),
    };
    let reserved: Result<ReservationOutput, Trouble> = if key.is_empty() {
        Err(missing("reserve_key", "give the reservation a key: what it is for"))
    } else {
        visit.calls.put(Target::of(["pools", &pool, "reservations", &key]), &input).await
    };
    match reserved {
        Ok(made) => {
            let place = format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(&first_of(&made.range)));
            visit.done(&place, &format!("{} is reserved for {}", made.range, made.key))
        }
        Err(problem) => {
            let pick = first_of(form.text("range"));
            let known = ["range", "reserve_key"];
            let asked = Asked { pick, reserve: form.wrong(&problem, &known), ..Asked::default() };
            again(&visit, &pool, &asked, &problem).await
        }
    }
}

pub(crate) async fn release(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Claim) {
        return refused;
    }
    let (key, id) = (form.text("key"), form.text("id"));
    let target = Target::of(["pools", &pool, "claims", key]).with("id", id);
    let address = form.text("address");
    match visit.calls.delete(target).await {
        Ok(()) => {
            let place = format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(address));
            visit.back(form.text("back"), &place, &format!("{key} has released {address}"))
        }
        Err(problem) => again(&visit, &pool, &Asked::with(form.text("address"), &problem), &problem).await,
    }
}

pub(crate) async fn unreserve(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let key = form.text("key");
    let target = Target::of(["pools", &pool, "reservations", key]);
    match visit.calls.delete(target).await {
        Ok(()) => {
            visit.done(&format!("/pools/{}", encoded(&pool)), &format!("the reservation for {key} has ended"))
        }
        Err(problem) => again(&visit, &pool, &Asked::with("", &problem), &problem).await,
    }
}

fn first_of(range: &str) -> String {
    let parsed = range.parse::<Range>().ok();
    parsed.map_or_else(|| range.to_owned(), |range| range.first().to_string())
}
