//! `netstead release`, `renew` and `move`: they name the claim by its id, so that a repetition never meets a later
//! claim of the same key.

use netstead_client::{
    ClientError,
    types::{BulkEntry, BulkInput, BulkResult, ClaimOutput, ReleaseOutcome, ReleaseOutput, TargetInput},
};
use netstead_model::{ClaimId, Ident, Key};

use super::{Context, say};
use crate::{
    cli::{
        Format,
        claim::{Move, Release, Renew},
    },
    failure::Failure,
    output,
};

pub(crate) async fn release(context: &Context, args: &Release) -> anyhow::Result<()> {
    let answers = match args.pools.as_slice() {
        [pool] => vec![release_one(context, pool, &args.key, args.id).await?],
        pools => release_all(context, pools, &args.key, args.id).await?,
    };
    for (pool, answer) in args.pools.iter().zip(&answers) {
        match (&answer.claim, &answer.outcome) {
            (Some(claim), _) => say!("released {} (`{}` of `{}`)", shown(claim), args.key, claim.owner),
            (None, ReleaseOutcome::Released) => say!("`{}` left the queue of pool `{pool}`", args.key),
            (None, _) if args.id.is_some() => {
                say!("that claim of `{}` in pool `{pool}` is already gone; nothing was released", args.key);
            }
            (None, _) => say!("`{}` holds nothing in pool `{pool}`: already gone", args.key),
        }
    }
    match (context.format, answers.as_slice()) {
        (Some(format @ (Format::Json | Format::Yaml)), [answer]) => output::document(answer, format),
        (Some(format @ (Format::Json | Format::Yaml)), answers) => output::document(answers, format),
        (Some(format), answers) => {
            let claims: Vec<_> = answers.iter().filter_map(|answer| answer.claim.clone()).collect();
            output::list(&claims, Some(format), context.now())
        }
        (None, _) => Ok(()),
    }
}

async fn release_one(
    context: &Context,
    pool: &Ident,
    key: &Key,
    id: Option<ClaimId>,
) -> anyhow::Result<ReleaseOutput> {
    let (pool, key) = (pool.as_str(), key.as_str());
    if let Some(id) = id {
        return Ok(context.client.release(pool, key, &id.to_string()).await?);
    }
    match context.client.look_up(pool, key).await? {
        None => Ok(already_gone()),
        Some(ClaimOutput { id: Some(id), .. }) => Ok(context.client.release(pool, key, &id).await?),
        Some(_) => Ok(context.client.leave_queue(pool, key).await?),
    }
}

/// From all pools or, if one refuses, from none; one answer per pool.
async fn release_all(
    context: &Context,
    pools: &[Ident],
    key: &Key,
    id: Option<ClaimId>,
) -> anyhow::Result<Vec<ReleaseOutput>> {
    let mut entries = Vec::new();
    let mut answers = vec![already_gone(); pools.len()];
    let mut places = Vec::new();
    for (place, pool) in pools.iter().enumerate() {
        let found = context.client.look_up(pool.as_str(), key.as_str()).await?;
        if let Some(claim) = found {
            let id = id.map(|id| id.to_string()).or(claim.id);
            entries.push(BulkEntry::Release(TargetInput { pool: claim.pool, key: claim.key, id }));
            places.push(place);
        }
    }
    if entries.is_empty() {
        return Ok(answers);
    }
    let answer = context.client.bulk(&BulkInput { entries }).await?;
    if let Some((_, problem)) = answer.at_fault() {
        return Err(Failure::new(problem.detail.clone()).hint("nothing was released").into());
    }
    for (place, result) in places.into_iter().zip(answer.results) {
        if let (BulkResult::Released(answer), Some(at)) = (result, answers.get_mut(place)) {
            *at = answer;
        }
    }
    Ok(answers)
}

fn already_gone() -> ReleaseOutput {
    ReleaseOutput { outcome: ReleaseOutcome::AlreadyGone, claim: None }
}

pub(crate) async fn renew(context: &Context, args: &Renew) -> anyhow::Result<()> {
    let id = id_of(context, &args.pool, &args.key, args.id).await?;
    let ttl = args.ttl.map(|ttl| ttl.to_string());
    let claim = context.client.renew(args.pool.as_str(), args.key.as_str(), &id, ttl).await?;
    match &claim.until {
        Some(until) => say!("{} is held by `{}` until {until:.0}", shown(&claim), claim.key),
        None => say!("{} is held by `{}` and does not end by itself", shown(&claim), claim.key),
    }
    print_if_asked(context, &claim)
}

pub(crate) async fn move_claim(context: &Context, args: &Move) -> anyhow::Result<()> {
    let id = id_of(context, &args.pool, &args.key, args.id).await?;
    let (pool, key, to) = (args.pool.as_str(), args.key.as_str(), args.to.as_str());
    let moved = context.client.move_claim(pool, key, &id, to, args.owner.clone()).await;
    let claim = moved.map_err(|error| explain_key_held(error, pool, to))?;
    say!("{} went from `{key}` to `{}` of `{}`", shown(&claim), claim.key, claim.owner);
    print_if_asked(context, &claim)
}

/// A key that holds something cannot be moved to; to adopt is for claims.
fn explain_key_held(error: ClientError, pool: &str, to: &str) -> anyhow::Error {
    if !error.is("key-held") {
        return error.into();
    }
    let hint = format!("release `{to}` first, or move to a key that holds nothing");
    Failure::new(format!("`{to}` holds an address of pool `{pool}` already")).hint(hint).into()
}

async fn id_of(context: &Context, pool: &Ident, key: &Key, id: Option<ClaimId>) -> anyhow::Result<String> {
    if let Some(id) = id {
        return Ok(id.to_string());
    }
    let claim = context.client.look_up(pool.as_str(), key.as_str()).await?;
    match claim {
        Some(ClaimOutput { id: Some(id), .. }) => Ok(id),
        Some(_) => Err(Failure::new(format!("`{key}` still waits for an address in pool `{pool}`")).into()),
        None => {
            let hint = format!("`netstead history {key}` shows what it held");
            Err(Failure::new(format!("`{key}` holds nothing in pool `{pool}`")).hint(hint).into())
        }
    }
}

fn print_if_asked(context: &Context, claim: &ClaimOutput) -> anyhow::Result<()> {
    context.format.map_or(Ok(()), |format| output::one(claim, format, context.now()))
}

fn shown(claim: &ClaimOutput) -> &str {
    claim.address.as_deref().unwrap_or("a place in the queue")
}
