//! Many requests in few commits.

use std::collections::VecDeque;

use axum::http::StatusCode;
use netstead_client::types::{BulkInput, BulkOutput, BulkResult};
use netstead_ledger::{Book, Caller, Command, Done, Freshness, Reply};
use netstead_model::{Ident, Key, PoolChoice};

use super::{
    claiming::{check, check_new_owner, claim_outputs, released},
    visible,
};
use crate::{
    convert::bulk::{Entry, Group, entries, groups},
    http::{
        answer::Answer,
        body::ManyJson,
        name_scope::NameScope,
        pool_names::{self, PoolNames},
        query::{NoParams, Query},
        session::{self, RequestContext, Session},
        zone_scope,
    },
    openapi::Changing,
    problem::Failure,
};

/// Claims, releases, renews and moves many at once: up to 64 in one commit, more in several, each all or none.
///
/// A repeat gives the same results, as far as entries name the ids of their claims.
#[utoipa::path(post, path = "/bulk", tag = "claims", operation_id = "bulk", request_body = BulkInput,
    responses((status = 200, description = "One result per entry, in their order; a refused commit is `failed` in all its entries",
        body = BulkOutput), Changing))]
pub(crate) async fn post(
    session: Session<session::Claim>,
    Query(NoParams {}): Query<NoParams>,
    ManyJson(input): ManyJson<BulkInput>,
) -> Result<Answer<BulkOutput>, Failure> {
    let mut entries = entries(input)?;
    let scopes = session.scopes();
    let visible = session.read(Freshness::Fresh, |book| visible(book, scopes)).await?.value;
    for (place, entry) in entries.iter_mut().enumerate() {
        allow(&session, entry, visible.as_deref()).await.map_err(|failure| failure.fact("entry", place))?;
    }
    allow_names(&session, &entries).await?;
    let owner = entries.iter().find_map(|entry| entry.owner.clone());
    let caller = session.caller_for(owner)?;
    let mut results = Vec::with_capacity(entries.len());
    let mut seq = 0;
    for group in groups(entries) {
        let start = results.len();
        match run(&session, &caller, &group).await {
            Ok(done) => {
                seq = seq.max(done.seq);
                results.extend(answers(&session, &group, done).await?);
            }
            Err(failure) => results.extend(failures(&session, &group, start, &failure)),
        }
    }
    let answer = Answer::ok(BulkOutput { results });
    Ok(if seq > 0 { answer.at(seq) } else { answer })
}

/// Refuses an entry that is out of the token's reach, before anything is done. `visible` are the pools within it,
/// unless that is all of them; asking about each pool again would be slow.
async fn allow(
    session: &RequestContext,
    entry: &mut Entry,
    visible: Option<&[Ident]>,
) -> Result<(), Failure> {
    let reached = |pool: &Ident| visible.is_none_or(|visible| visible.contains(pool));
    for command in &mut entry.commands {
        match command {
            Command::Claim(request) => {
                let plain = matches!(&request.from, PoolChoice::Pools(pools) if pools.iter().all(reached));
                if !plain {
                    check(session, request).await?;
                }
            }
            Command::Release(target) | Command::Renew { target, .. } | Command::Move { target, .. } => {
                if !reached(&target.pool) {
                    session.check_pool(&target.pool).await?;
                }
                if let Command::Move { owner, .. } = command {
                    check_new_owner(session, owner.as_ref())?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same for its names, with one look at the Book.
async fn allow_names(session: &RequestContext, entries: &[Entry]) -> Result<(), Failure> {
    let scopes = session.scopes();
    let commands = || {
        let numbered = entries.iter().enumerate();
        numbered.flat_map(|(place, entry)| entry.commands.iter().map(move |one| (place, one)))
    };
    let by_pools =
        NameScope::depends_on_pools(scopes) && commands().any(|(_, command)| pool_names::concerns(command));
    if scopes.zones.is_empty() && !by_pools {
        return Ok(());
    }
    let look = |book: &Book| {
        let pools = by_pools.then(|| PoolNames::of(book, scopes));
        commands().try_for_each(|(place, command)| {
            let checked = match &pools {
                Some(pools) => pools.check(book, command),
                None => zone_scope::check_command(book, scopes, command),
            };
            checked.map_err(|failure| failure.fact("entry", place))
        })
    };
    session.read(Freshness::Fresh, look).await?.value
}

async fn run(session: &RequestContext, caller: &Caller, group: &Group) -> Result<Done, Failure> {
    let commands = group.iter().flat_map(|entry| entry.commands.iter().cloned()).collect();
    session.submit_as(caller.clone(), Command::Bulk(commands)).await
}

async fn answers(session: &RequestContext, group: &Group, done: Done) -> Result<Vec<BulkResult>, Failure> {
    let Reply::Bulk(replies) = done.reply else {
        return Err(Failure::internal("a bulk was not answered with one"));
    };
    let copy = Done { reply: Reply::Bulk(replies.clone()), seq: done.seq };
    let mut claims: VecDeque<_> = claim_outputs(session, copy).await.into();
    let mut replies = replies.into_iter();
    let mut results = Vec::with_capacity(group.len());
    for entry in group {
        let missing = || Failure::internal("a bulk was answered with too little");
        let result = match entry.commands.first() {
            Some(Command::Claim(_)) => {
                replies.nth(entry.commands.len() - 1);
                BulkResult::Claimed(claims.drain(..entry.commands.len().min(claims.len())).collect())
            }
            Some(Command::Renew { .. }) => {
                replies.next();
                BulkResult::Renewed(claims.pop_front().ok_or_else(missing)?)
            }
            Some(Command::Move { .. }) => {
                replies.next();
                BulkResult::Moved(claims.pop_front().ok_or_else(missing)?)
            }
            _ => BulkResult::Released(released(session, replies.next().ok_or_else(missing)?).await?),
        };
        results.push(result);
    }
    Ok(results)
}

/// A commit that was refused, told to each of its entries.
fn failures(session: &RequestContext, group: &Group, start: usize, failure: &Failure) -> Vec<BulkResult> {
    let refused = offender(group, failure);
    let problem = |failure: &Failure| BulkResult::Failed(failure.problem(Some(&session.request)));
    let of = |place: usize| match refused {
        Some((refused, _)) if refused == place => problem(&failure.clone().fact("entry", start + refused)),
        Some((refused, key)) => {
            let refused = start + refused;
            let key = key.map(|key| format!(", `{key}`,")).unwrap_or_default();
            let told = format!("nothing of this commit was done, because entry {refused}{key} was refused");
            problem(&Failure::new(StatusCode::CONFLICT, "not-done", told).fact("entry", refused))
        }
        None => problem(failure),
    };
    (0..group.len()).map(of).collect()
}

/// The entry the ledger refused, with its key: the ledger counts commands, of which an entry may have several.
fn offender<'a>(group: &'a Group, failure: &Failure) -> Option<(usize, Option<&'a Key>)> {
    let refused: usize = failure.fact_named("entry")?.parse().ok()?;
    let mut behind = 0;
    let place = group.iter().position(|entry| {
        behind += entry.commands.len();
        refused < behind
    })?;
    let key = group.get(place)?.commands.first().and_then(|command| match command {
        Command::Claim(request) => Some(&request.key),
        Command::Release(target) | Command::Renew { target, .. } | Command::Move { target, .. } => {
            Some(&target.key)
        }
        _ => None,
    });
    Some((place, key))
}
