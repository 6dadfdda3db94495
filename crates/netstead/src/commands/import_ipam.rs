//! `netstead import netbox` and `netstead import phpipam`

use std::collections::BTreeMap;

use anyhow::Context as _;
use netstead_client::{
    Change, ClaimQuery,
    types::{PoolInput, PoolOutput, Problem},
};

use super::{Context, many, say};
use crate::{
    failure::{Exit, Failure},
    import::ipam::{ImportPlan, ImportedClaim, ImportedPool, LeftOut, System, TOGETHER},
    output,
};

/// Shows what an import would make.
pub(crate) fn preview(plan: &ImportPlan) -> anyhow::Result<Exit> {
    output::emit(&plan.preview())?;
    let (claims, pools) = (many(plan.claims(), "claim"), many(plan.pools.len(), "pool"));
    say!("{claims} in {pools}{}; nothing was changed. To import them: the same with --yes", own(plan));
    Ok(Exit::Fine)
}

/// Makes pools and claims. All of it may be done again; what is refused is told, and the rest goes on.
pub(crate) async fn import(context: &Context, plan: &ImportPlan, system: System) -> anyhow::Result<Exit> {
    let mut told: Vec<LeftOut> = plan.left_out.clone();
    let (mut pools, mut claims) = (Counts::default(), Counts::default());
    for pool in &plan.pools {
        match make_pool(context, pool).await? {
            Ok(change) => pools.add(change),
            Err(why) => {
                told.push(LeftOut::refused(format!("{} as pool `{}`", pool.from, pool.spec.name), why));
                continue;
            }
        }
        make_claims(context, pool, &mut claims, &mut told).await?;
    }
    for one in &told {
        say!("left out: {}", one.line());
    }
    say!(
        "{} made, {} there already; {} made, {} there already{}; {} was not changed",
        many(claims.made, "claim"),
        claims.there,
        many(pools.made, "pool"),
        pools.there,
        own(plan),
        system.name
    );
    Ok(if told.iter().any(|one| one.refused) { Exit::Pending } else { Exit::Fine })
}

fn own(plan: &ImportPlan) -> String {
    match plan.own {
        0 => String::new(),
        own => format!("; {} of Netstead left out", many(own, "object")),
    }
}

#[derive(Debug, Default)]
struct Counts {
    made: usize,
    there: usize,
}

impl Counts {
    fn add(&mut self, change: Change) {
        match change {
            Change::Created => self.made += 1,
            Change::Kept | Change::Queued => self.there += 1,
        }
    }
}

/// Makes a pool, or finds it. A refusal is a sentence for people.
async fn make_pool(context: &Context, pool: &ImportedPool) -> anyhow::Result<Result<Change, String>> {
    let (name, input) = (pool.spec.name.as_str(), pool.pool_input());
    let error = match context.client.create_pool(name, &input).await {
        Ok((_, change)) => return Ok(Ok(change)),
        Err(error) => error,
    };
    if error.is("pool-exists") {
        let there = context.client.pool(name).await?.value;
        // People may have changed how it hands out.
        return Ok(if has_addresses_of(&there, &input) {
            Ok(Change::Kept)
        } else {
            Err("there is a pool of this name with other addresses; delete it, or choose a name with --pool"
                .into())
        });
    }
    match error.problem().filter(|problem| is_refusal(problem)) {
        Some(problem) => Ok(Err(problem.detail.clone())),
        None => Err(error).with_context(|| format!("the pool `{name}` cannot be made")),
    }
}

/// Whether a pool hands out the addresses of an import, however it does that.
fn has_addresses_of(pool: &PoolOutput, input: &PoolInput) -> bool {
    let same_vrf = input.vrf.as_deref().unwrap_or("default") == pool.vrf;
    same_vrf && pool.ranges == input.ranges && pool.network == input.network && pool.backend.is_none()
}

/// Makes the claims that are not there. A claim that is refused does not keep the others back.
async fn make_claims(
    context: &Context,
    pool: &ImportedPool,
    counts: &mut Counts,
    told: &mut Vec<LeftOut>,
) -> anyhow::Result<()> {
    let name = pool.spec.name.to_string();
    let query = ClaimQuery { pool: Some(name.clone()), ..ClaimQuery::default() };
    let there = context.client.all(query).await?;
    let there: BTreeMap<&str, Option<&str>> =
        there.iter().map(|claim| (claim.key.as_str(), claim.address.as_deref())).collect();
    let is_there = |claim: &&ImportedClaim| {
        there.get(claim.key.as_str()).copied().flatten() == Some(claim.address.to_string().as_str())
    };
    let (kept, new): (Vec<_>, Vec<_>) = pool.claims.iter().partition(is_there);
    counts.there += kept.len();
    for some in new.chunks(TOGETHER) {
        let mut rest = some.to_vec();
        while !rest.is_empty() {
            let answer = context.client.bulk(&pool.bulk(&rest)).await?;
            let Some((place, problem)) = answer.at_fault() else {
                counts.made += rest.len();
                break;
            };
            if !is_refusal(problem) || place >= rest.len() {
                let hint = "do the same again; what is imported stays as it is";
                let message = format!("the claims of pool `{name}` cannot be made: {}", problem.detail);
                return Err(Failure::new(message).hint(hint).into());
            }
            let claim = rest.remove(place);
            let what = format!("{} as `{}` of pool `{name}`", claim.address, claim.key);
            told.push(LeftOut::refused(what, problem.detail.clone()));
        }
    }
    Ok(())
}

/// Whether the ledger refuses this one thing. Everything else, such as a wrong token, concerns all of them.
fn is_refusal(problem: &Problem) -> bool {
    matches!(problem.status, 400..500) && !matches!(problem.status, 401 | 403 | 408 | 429)
}
