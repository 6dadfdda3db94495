//! `/status`: the summary, and what a person must do.

pub(super) mod backends;
mod dns_todo;

use axum::http::HeaderMap;
use netstead_client::types::{
    BackendOutput, BackupOutput, DamageOutput, Degradation, ProviderOutput, ServerState, SourceOutput,
    StatusOutput,
};
use netstead_ledger::{
    Freshness, Health,
    damage::{advice, describe, part_name},
};
use netstead_model::{PoolStatus, Waiting};
use netstead_store::{Damage, Store};

use super::scoped;
use crate::{
    BackupState, DailyBackups, convert,
    http::{
        answer::Answer,
        forward,
        query::{FreshParams, NoParams, ReadQuery},
        session::{Read, RequestContext, Session},
    },
    openapi::Listing,
    problem::Failure,
};

/// From this many hundredths of a percent on a pool is nearly full.
const NEARLY_FULL: u32 = 9_000;

/// Shows how things stand, and what a person must do.
#[utoipa::path(get, path = "/status", tag = "server", operation_id = "get_status", params(FreshParams),
    responses((status = 200, description = "How things stand", body = StatusOutput), Listing))]
pub(crate) async fn get(
    session: Session<Read>,
    headers: HeaderMap,
    ReadQuery { freshness, .. }: ReadQuery<NoParams>,
) -> Result<Answer<StatusOutput>, Failure> {
    let scopes = session.scopes();
    let wanted = |status: &PoolStatus| scopes.allows_pool(&status.pool.spec.name, &status.pool.spec.vrf);
    let seen = session
        .read(freshness, |book| {
            let pools: Vec<PoolStatus> = book.pools().filter(wanted).collect();
            let visible = |waiting: &&std::sync::Arc<Waiting>| {
                waiting.pools.iter().any(|name| pools.iter().any(|status| status.pool.name() == name))
            };
            let waiting = book.waitings().filter(visible).count();
            (pools, waiting)
        })
        .await?;
    let (app, seq) = (&session.app, seen.seq);
    let health = app.ledger.health();
    let unchangeable = app.ledger.store().refuses_changes().filter(|_| health.ready);
    let (known, unasked) = match ask_leader(&session, &headers).await {
        None => {
            let drawn = backends::outputs(&app.backends.status(), &seen.value.0, scopes.is_all());
            (LeaderKnowledge { backends: drawn, ..leader_knowledge(&session, freshness).await? }, None)
        }
        Some(Ok(status)) => (LeaderKnowledge::from(status), None),
        Some(Err(why)) => (LeaderKnowledge::default(), Some(unasked(&why))),
    };
    let LeaderKnowledge { sources, providers, problems, backends } = known;
    let cluster = app.cluster.as_ref().map(|(cluster, _)| super::cluster::output(cluster));
    let backups = app.daily_backups.as_ref().map(DailyBackups::state);
    // The keys of damaged entries name pools, claims and names of all kinds.
    let damaged: &[Damage] = if scopes.is_all() { &health.damage } else { &[] };
    // A warning names servers and domains, so a token for a part does not get it.
    let warnings =
        app.examiner.as_ref().filter(|_| scopes.is_all()).map_or_else(Vec::new, |host| host.warnings());
    let refused = app.examiner.as_ref().and_then(|host| host.refused_config());
    let refused = refused.map(|reason| refused_config(scopes.is_all().then_some(reason)));
    let degraded = degraded(&health, unchangeable.is_some(), refused.is_some());
    let output = |(pools, waiting): (Vec<PoolStatus>, usize)| StatusOutput {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        state: state(&health, degraded.is_empty()),
        degraded: degraded.clone(),
        todo: [
            unchangeable.iter().map(|reason| format!("No change can be made: {reason}.")).collect(),
            Vec::from_iter(refused.clone()),
            todo(&health, &pools, waiting),
            stored_todo(&**app.ledger.store(), &health, damaged, backups.as_ref()),
            backends::todo(&backends),
            dns_todo::todo(&sources, &providers),
            Vec::from_iter(unasked),
        ]
        .concat(),
        warnings: warnings.clone(),
        problems,
        waiting: dns_todo::waiting(&sources),
        damage: damaged.iter().map(damage).collect(),
        backup: backups.as_ref().map(backup),
        reason: health.reason.clone().or(unchangeable),
        store: app.store.to_string(),
        ledger: format!("{:08x}", app.ledger.id()),
        seq,
        epoch: health.epoch,
        paused: health.paused,
        cluster,
        started: app.started,
        pools: pools.iter().map(convert::pool::output).collect(),
        sources,
        providers,
        backends,
        nameserver: app.nameserver.to_vec(),
    };
    Ok(Answer::from_read(seen.map(output), freshness))
}

/// Only the leader knows how names stand. None if that is this node, or another one asks on behalf of its caller.
async fn ask_leader(session: &RequestContext, headers: &HeaderMap) -> Option<Result<StatusOutput, String>> {
    Some(match forward::leader_to_ask(session, headers)? {
        Ok((cluster, peers)) => {
            forward::get_from_leader(cluster, peers, headers, "/api/v1/status?stale=ok").await
        }
        Err(why) => Err(why),
    })
}

/// The part of the status that only the leader knows.
#[derive(Default)]
struct LeaderKnowledge {
    sources: Vec<SourceOutput>,
    providers: Vec<ProviderOutput>,
    problems: u64,
    backends: Vec<BackendOutput>,
}

impl From<StatusOutput> for LeaderKnowledge {
    fn from(status: StatusOutput) -> Self {
        let StatusOutput { sources, providers, problems, backends, .. } = status;
        Self { sources, providers, problems, backends }
    }
}

fn unasked(why: &str) -> String {
    format!(
        "How names stand is not known here: {why}. Addresses and DNS are answered; changes wait for a leader."
    )
}

/// Where names come from and go, as far as the token may see it, and how many workloads lack a name.
async fn leader_knowledge(
    session: &RequestContext,
    freshness: Freshness,
) -> Result<LeaderKnowledge, Failure> {
    let Some(engine) = session.app.engine_slot.engine() else { return Ok(LeaderKnowledge::default()) };
    let status = scoped::status(&engine, &session.name_scope(freshness).await?);
    let providers = convert::dns::providers(&status, session.app.clock.wall());
    let problems = u64::try_from(status.problems).unwrap_or(u64::MAX);
    let sources = status.sources.iter().map(convert::dns::source).collect();
    Ok(LeaderKnowledge { sources, providers, problems, backends: Vec::new() })
}

/// A configuration that was read and is not in force. A token for a part does not see the reason, which names servers.
fn refused_config(reason: Option<String>) -> String {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    format!(
        "The changed configuration is not in force; the one before it stays{reason}. Mend it, and it is read by itself; \
         `netstead config check` shows everything that is wrong with the file."
    )
}

/// Why all is not well, while the ledger answers.
fn degraded(health: &Health, unchangeable: bool, refused: bool) -> Vec<Degradation> {
    let reasons = [
        (!health.damage.is_empty(), Degradation::Damaged),
        (unchangeable, Degradation::ReadOnly),
        (refused, Degradation::ConfigurationRefused),
    ];
    reasons.into_iter().filter(|(is_so, _)| *is_so && health.ready).map(|(_, reason)| reason).collect()
}

fn state(health: &Health, whole: bool) -> ServerState {
    match (health.ready, whole) {
        (false, _) => ServerState::NotReady,
        (true, false) => ServerState::Degraded,
        (true, true) => ServerState::Ready,
    }
}

fn damage(damage: &Damage) -> DamageOutput {
    DamageOutput {
        part: part_name(damage).to_owned(),
        key: damage.key.clone(),
        reason: damage.reason.clone(),
    }
}

fn backup(state: &BackupState) -> BackupOutput {
    let failure = state.failure.as_ref();
    BackupOutput {
        last: state.last,
        failing_since: failure.map(|failure| failure.since),
        error: failure.map(|failure| failure.reason.clone()),
    }
}

/// Sentences about a damaged store and failed daily backups, each with the next step.
fn stored_todo(
    store: &dyn Store,
    health: &Health,
    damaged: &[Damage],
    backups: Option<&BackupState>,
) -> Vec<String> {
    let mut todo = Vec::new();
    if !damaged.is_empty() {
        let what: Vec<String> = damaged.iter().map(describe).collect();
        let served = if health.ready { ", and all else is served" } else { "" };
        todo.push(format!(
            "The store is damaged{served}: {}. To go on: {}.",
            what.join("; "),
            advice(store, damaged)
        ));
    }
    if let Some(failure) = backups.and_then(|state| state.failure.as_ref()) {
        let last = match backups.and_then(|state| state.last) {
            Some(last) => format!("the newest is of {last:.0}"),
            None => "there is none".to_owned(),
        };
        todo.push(format!(
            "The daily backup cannot be written since {:.0}, and {last}: {}. To go on: {}.",
            failure.since, failure.reason, failure.hint
        ));
    }
    todo
}

/// One sentence per thing a person must do, with the command that helps.
fn todo(health: &Health, pools: &[PoolStatus], waiting: usize) -> Vec<String> {
    let mut todo = Vec::new();
    if let Some(reason) = &health.reason {
        todo.push(format!("The ledger does not answer: {reason}. Look at the disk and the log, then run `netstead store check`."));
    }
    if health.paused {
        let told = "This ledger was restored from a backup and hands out no address by itself. Once its addresses agree \
                    with what runs, run `netstead resume`.";
        todo.push(told.to_owned());
    }
    for status in pools {
        let (name, used) = (status.pool.name(), convert::pool::used(&status.usage));
        if used == 10_000 {
            todo.push(format!("Pool `{name}` is full. Give it more with `netstead pool update {name} --range …`, or release what is not needed: `netstead get claims --pool {name}`."));
        } else if used > NEARLY_FULL {
            let (whole, part) = (used / 100, used % 100 / 10);
            todo.push(format!("Pool `{name}` is {whole}.{part} % full. Give it more with `netstead pool update {name} --range …`."));
        }
    }
    if waiting > 0 {
        let (claims, wait) = if waiting == 1 { ("claim", "waits") } else { ("claims", "wait") };
        todo.push(format!("{waiting} {claims} {wait} for an address. `netstead get claims` shows which, `netstead pool update` makes room."));
    }
    todo
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use jiff::Timestamp;
    use netstead_model::{Family, Origin, Pool, PoolSpec, Usage};

    use super::*;

    fn pool(name: &str, size: u128, free: u128) -> PoolStatus {
        let spec = PoolSpec::new(name.parse().unwrap(), Family::Ipv4);
        let pool = Pool {
            spec,
            version: 1,
            created: Timestamp::UNIX_EPOCH,
            origin: Origin::default(),
            within: None,
            closing: false,
        };
        PoolStatus { pool, usage: Usage { size, free, ..Usage::default() } }
    }

    #[test]
    fn each_sentence_names_the_command_that_helps() {
        let health =
            Health { reason: Some("no space left on device".into()), paused: true, ..Health::default() };
        let pools = [pool("roomy", 100, 10), pool("tight", 100, 5), pool("full", 100, 0)];
        assert_snapshot!(todo(&health, &pools, 2).join("\n"), @"
        The ledger does not answer: no space left on device. Look at the disk and the log, then run `netstead store check`.
        This ledger was restored from a backup and hands out no address by itself. Once its addresses agree with what runs, run `netstead resume`.
        Pool `tight` is 95.0 % full. Give it more with `netstead pool update tight --range …`.
        Pool `full` is full. Give it more with `netstead pool update full --range …`, or release what is not needed: `netstead get claims --pool full`.
        2 claims wait for an address. `netstead get claims` shows which, `netstead pool update` makes room.
        ");
    }

    #[test]
    fn when_all_is_well_there_is_nothing_to_do() {
        assert_eq!(todo(&Health::default(), &[pool("roomy", 100, 100)], 0), Vec::<String>::new());
    }
}
