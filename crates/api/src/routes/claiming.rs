//! Claiming, releasing, renewing and moving.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use netstead_client::types::{
    ClaimFrom, ClaimInput, ClaimOutput, MoveInput, ReleaseOutcome, ReleaseOutput, RenewInput,
};
use netstead_ledger::{Command, Done, Freshness, Outcome, Refusal, Reply};
use netstead_model::{ClaimRef, ClaimRequest, Draw, Ident, Key, PoolChoice, Released, Waiting};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::visible;
use crate::{
    access::Role,
    convert::{
        self,
        claim::{ParsedClaim, claim_id, request, requests},
    },
    http::{
        answer::Answer,
        body::Json,
        path::KeyPath,
        query::{NoParams, Query},
        session::{self, RequestContext, Session},
        zone_scope,
    },
    openapi::{Changing, Ending},
    problem::Failure,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReleaseParams {
    /// Only this claim, not a later one under the same key.
    id: Option<String>,
}

/// The claims: one, or one per pool of `each`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimsOutput {
    claims: Vec<ClaimOutput>,
}

/// Claims an address of a pool. A repeat gives the same address.
#[utoipa::path(put, path = "/pools/{pool}/claims/{key}", tag = "claims", operation_id = "put_claim", request_body = ClaimInput,
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "The key, `/` as `%2F`")),
    responses((status = 201, description = "It is new", body = ClaimOutput),
        (status = 200, description = "It was there: just so, or changed as asked", body = ClaimOutput),
        (status = 202, description = "It waits in the queue", body = ClaimOutput), Changing))]
pub(crate) async fn put(
    session: Session<session::Claim>,
    KeyPath { pool, key }: KeyPath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<ClaimInput>,
) -> Result<Answer<ClaimOutput>, Failure> {
    let asked = request(key, PoolChoice::Pools(vec![pool]), input)?;
    let (status, claim, seq) = claim(&session, asked).await?;
    Ok(Answer::ok(claim).status(status).at(seq))
}

/// Claims from the first of several pools with room, or from each of several.
#[utoipa::path(post, path = "/claims", tag = "claims", operation_id = "claim_from", request_body = ClaimFrom,
    responses((status = 200, description = "Claimed: all of them", body = ClaimsOutput),
        (status = 202, description = "It waits in the queue", body = ClaimsOutput), Changing))]
pub(crate) async fn post(
    session: Session<session::Claim>,
    Query(NoParams {}): Query<NoParams>,
    Json(from): Json<ClaimFrom>,
) -> Result<Answer<ClaimsOutput>, Failure> {
    let mut asked = requests(&from)?;
    if asked.len() > 1 {
        return claim_each(&session, asked).await;
    }
    let Some(only) = asked.pop() else { return Err(Failure::impossible("each", "name at least one pool")) };
    let (status, claim, seq) = claim(&session, only).await?;
    let status = if status == StatusCode::ACCEPTED { status } else { StatusCode::OK };
    Ok(Answer::ok(ClaimsOutput { claims: vec![claim] }).status(status).at(seq))
}

async fn claim(
    session: &RequestContext,
    asked: ParsedClaim,
) -> Result<(StatusCode, ClaimOutput, u64), Failure> {
    let ParsedClaim { mut request, owner } = asked;
    check(session, &mut request).await?;
    let caller = session.caller_for(owner)?;
    let waits = request.wait.is_some() || request.keep;
    let command = Command::Claim(Box::new(request));
    let done = if waits {
        session.submit_waiting(caller, command).await
    } else {
        session.submit_as(caller, command).await
    }?;
    if let Reply::Queued(waiting) = &done.reply
        && let Some(draw) = waiting.draw.as_deref().filter(|_| !waits)
    {
        return Err(no_answer(waiting, draw));
    }
    let status = match &done.reply {
        Reply::Claimed { outcome: Outcome::Created, .. } => StatusCode::CREATED,
        Reply::Queued(_) => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    let seq = done.seq;
    match claim_outputs(session, done).await.pop() {
        Some(claim) => Ok((status, claim, seq)),
        None => Err(Failure::internal("a claim was not answered with one")),
    }
}

/// The answer to a caller that does not wait, when the backend does not answer either.
fn no_answer(waiting: &Waiting, draw: &Draw) -> Failure {
    let pool = waiting.pools.first().map(ToString::to_string).unwrap_or_default();
    let told = format!(
        "the backend of pool `{pool}` does not answer ({}); ask again with the key `{}`",
        convert::claim::why(draw),
        waiting.key
    );
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "backend-does-not-answer", told)
        .fact("pool", pool)
        .fact("key", &waiting.key)
        .retry_after(Duration::from_secs(5))
}

async fn claim_each(
    session: &RequestContext,
    asked: Vec<ParsedClaim>,
) -> Result<Answer<ClaimsOutput>, Failure> {
    let owner = asked.first().and_then(|asked| asked.owner.clone());
    let caller = session.caller_for(owner)?;
    let mut commands = Vec::with_capacity(asked.len());
    for ParsedClaim { mut request, .. } in asked {
        check(session, &mut request).await?;
        commands.push(Command::Claim(Box::new(request)));
    }
    let done = session.submit_as(caller, Command::Bulk(commands)).await?;
    let seq = done.seq;
    Ok(Answer::ok(ClaimsOutput { claims: claim_outputs(session, done).await }).at(seq))
}

/// Whether the caller may claim there; a selector is narrowed to the pools it may see and name something in.
pub(crate) async fn check(session: &RequestContext, request: &mut ClaimRequest) -> Result<(), Failure> {
    let scopes = session.scopes();
    match &request.from {
        PoolChoice::Pools(pools) => {
            for pool in pools {
                session.check_pool(pool).await?;
            }
            check_backends(session, pools).await?;
        }
        PoolChoice::Select(selector) if !scopes.is_all() => {
            let seen = session.read(Freshness::Fresh, |book| {
                let visible = visible(book, scopes);
                let specs = book.pools().map(|status| status.pool.spec);
                let names = specs.filter(|spec| selector.matches(&spec.labels)).map(|spec| spec.name);
                let reached = names.filter(|name| visible.as_ref().is_none_or(|seen| seen.contains(name)));
                let (mut pools, mut refused) = (Vec::new(), None);
                for pool in reached {
                    match zone_scope::check_claim(book, scopes, request, &pool) {
                        Ok(()) => pools.push(pool),
                        Err(failure) => refused = Some(failure),
                    }
                }
                (pools, refused)
            });
            match seen.await?.value {
                (pools, Some(refused)) if pools.is_empty() => return Err(refused),
                (pools, _) if pools.is_empty() => {
                    return Err(Refusal::NothingSelected { selector: selector.to_string() }.into());
                }
                (pools, _) => request.from = PoolChoice::Pools(pools),
            }
        }
        PoolChoice::Select(_) => {}
    }
    Ok(())
}

/// Refuses a claim that needs a backend where none is asked.
async fn check_backends(session: &RequestContext, pools: &[Ident]) -> Result<(), Failure> {
    let Some(reason) = session.app.backends.idle_reason() else { return Ok(()) };
    let drawn = |book: &netstead_ledger::Book| {
        book.upstreams().map(|(name, _)| name).find(|name| pools.contains(name)).cloned()
    };
    match session.read(Freshness::Stale, drawn).await?.value {
        Some(pool) => Err(Failure::impossible("pool", format!("pool `{pool}` has a backend, and {reason}"))),
        None => Ok(()),
    }
}

/// The claim, with what is left of its time and with its pool.
///
/// The claim is durable by now: if the Book cannot be asked any more, the answer says a little less.
pub(crate) async fn claim_outputs(session: &RequestContext, done: Done) -> Vec<ClaimOutput> {
    let replies = match done.reply {
        Reply::Bulk(replies) => replies,
        reply => vec![reply],
    };
    let in_book = session.read(Freshness::AtLeast(done.seq), |book| {
        let now = session.time_of(book);
        let shown = replies.iter().filter_map(|reply| match reply {
            Reply::Claimed { claim, .. } | Reply::Renewed { claim, .. } | Reply::Moved(claim) => {
                Some(convert::claim::in_book(book, claim, now))
            }
            Reply::Queued(waiting) => Some(convert::claim::waiting_in_book(book, waiting, None)),
            _ => None,
        });
        shown.collect::<Vec<_>>()
    });
    if let Ok(seen) = in_book.await {
        return seen.value;
    }
    let now = session.app.clock.wall();
    let bare = replies.iter().filter_map(|reply| match reply {
        Reply::Claimed { claim, .. } | Reply::Renewed { claim, .. } | Reply::Moved(claim) => {
            Some(convert::claim::lone(claim, None, now))
        }
        Reply::Queued(waiting) => Some(convert::claim::waiting(waiting, None)),
        _ => None,
    });
    bare.collect()
}

/// Releases a claim, or takes a waiting one out of the queue. Releasing what is gone is fine.
#[utoipa::path(delete, path = "/pools/{pool}/claims/{key}", tag = "claims", operation_id = "release_claim",
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "The key, `/` as `%2F`"), ReleaseParams),
    responses((status = 200, description = "It is gone; `outcome` says since when", body = ReleaseOutput), Ending))]
pub(crate) async fn release(
    session: Session<session::Claim>,
    KeyPath { pool, key }: KeyPath,
    Query(params): Query<ReleaseParams>,
) -> Result<Answer<ReleaseOutput>, Failure> {
    let target = ClaimRef { pool, key, id: claim_id(params.id.as_ref())? };
    session.check_pool(&target.pool).await?;
    let done = session.submit(Command::Release(target)).await?;
    let seq = done.seq;
    released(&session, done.reply).await.map(|output| Answer::ok(output).at(seq))
}

pub(crate) async fn released(session: &RequestContext, reply: Reply) -> Result<ReleaseOutput, Failure> {
    let claim = match reply {
        Reply::Released(Released::Done(claim)) => Some(claim),
        Reply::Released(Released::AlreadyGone) | Reply::Gone(false) => {
            return Ok(ReleaseOutput { outcome: ReleaseOutcome::AlreadyGone, claim: None });
        }
        Reply::Gone(true) => None,
        _ => return Err(Failure::internal("a release was not answered with one")),
    };
    let now = session.app.clock.wall();
    let claim = match claim {
        Some(claim) => {
            let pool = session
                .read(Freshness::Stale, |book| book.pool(&claim.pool))
                .await
                .ok()
                .and_then(|seen| seen.value);
            Some(convert::claim::lone(&claim, pool.as_ref().map(|status| &status.pool.spec), now))
        }
        None => None,
    };
    Ok(ReleaseOutput { outcome: ReleaseOutcome::Released, claim })
}

/// Gives a claim its full time again, or a new one.
#[utoipa::path(post, path = "/pools/{pool}/claims/{key}/renew", tag = "claims", operation_id = "renew_claim", request_body = RenewInput,
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "The key, `/` as `%2F`")),
    responses((status = 200, description = "It lives on", body = ClaimOutput), Changing))]
pub(crate) async fn renew(
    session: Session<session::Claim>,
    KeyPath { pool, key }: KeyPath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<RenewInput>,
) -> Result<Answer<ClaimOutput>, Failure> {
    let ttl = convert::maybe("ttl", input.ttl.as_ref())?;
    let target = ClaimRef { pool, key, id: claim_id(input.id.as_ref())? };
    session.check_pool(&target.pool).await?;
    changed(&session, session.submit(Command::Renew { target, ttl }).await?).await
}

/// Hands the address of a claim to another key.
#[utoipa::path(post, path = "/pools/{pool}/claims/{key}/move", tag = "claims", operation_id = "move_claim", request_body = MoveInput,
    params(("pool" = String, Path, description = "The pool"), ("key" = String, Path, description = "The key, `/` as `%2F`")),
    responses((status = 200, description = "The other key holds it", body = ClaimOutput), Changing))]
pub(crate) async fn transfer(
    session: Session<session::Claim>,
    KeyPath { pool, key }: KeyPath,
    Query(NoParams {}): Query<NoParams>,
    Json(input): Json<MoveInput>,
) -> Result<Answer<ClaimOutput>, Failure> {
    let to: Key = convert::parse("key", &input.key)?;
    let owner: Option<Key> = convert::maybe("owner", input.owner.as_ref())?;
    let owner = owner.map(|owner| Arc::<str>::from(owner.as_str()));
    check_new_owner(&session, owner.as_ref())?;
    let target = ClaimRef { pool, key, id: claim_id(input.id.as_ref())? };
    session.check_pool(&target.pool).await?;
    changed(&session, session.submit(Command::Move { target, key: to, owner }).await?).await
}

/// Only a manager gives claims to others.
pub(crate) fn check_new_owner(session: &RequestContext, owner: Option<&Arc<str>>) -> Result<(), Failure> {
    let foreign = owner.is_some_and(|owner| owner != session.grant.subject());
    if foreign && session.grant.role() < Role::Write {
        return Err(Failure::forbidden("only a token of role `write` may name another owner").on("owner"));
    }
    Ok(())
}

async fn changed(session: &RequestContext, done: Done) -> Result<Answer<ClaimOutput>, Failure> {
    let seq = done.seq;
    let claim = claim_outputs(session, done).await.pop();
    claim
        .map(|claim| Answer::ok(claim).at(seq))
        .ok_or_else(|| Failure::internal("a change was not answered with a claim"))
}
