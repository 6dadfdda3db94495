//! `/doctor`: findings about everything.

use std::time::Duration;

use netstead_client::types::{DoctorOutput, FindingOutput, FindingState};
use netstead_engine::Grade;
use netstead_ledger::{
    Book, Freshness,
    damage::{advice, describe},
};
use netstead_model::PoolStatus;
use netstead_store::{Health, StoreFinding, StoreFindingGrade};

use super::status::backends;
use crate::{
    BackupFailure, DailyBackups,
    cluster::{Cluster, Peers},
    http::{
        answer::Answer,
        query::{NoParams, Query},
        session::{Read, RequestContext, Session},
    },
    openapi::Listing,
    problem::Failure,
};

/// A clock before this is not set: 2026-01-01.
const EARLIEST: i64 = 1_767_225_600;
/// Events may be this much younger than the clock says without its having been set back.
const APART: Duration = Duration::from_mins(1);

/// Looks at everything, servers included, and says what is wrong and what to do about it. Nothing is changed.
#[utoipa::path(get, path = "/doctor", tag = "server", operation_id = "doctor",
    responses((status = 200, description = "What was found", body = DoctorOutput), Listing))]
pub(crate) async fn get(
    session: Session<Read>,
    Query(NoParams {}): Query<NoParams>,
) -> Result<Answer<DoctorOutput>, Failure> {
    session.check_unscoped()?;
    let mut findings = Vec::new();
    if let Some(examiner) = &session.app.examiner {
        findings.extend(examiner.diagnose().await);
    }
    let remarks: Vec<FindingOutput> =
        session.app.ledger.store().examine().await.into_iter().map(remark).collect();
    let troubled = remarks.iter().any(|remark| remark.state == FindingState::Problem)
        || !session.app.ledger.health().damage.is_empty();
    findings.extend(server_findings(&session, troubled));
    findings.extend(remarks);
    findings.extend(stored(&session));
    findings.extend(session.app.cluster.as_ref().and_then(|(cluster, _)| reachable(cluster)));
    findings.push(clock(&session).await);
    match (session.app.engine_slot.engine(), &session.app.cluster) {
        (Some(engine), _) => {
            findings.extend(engine.diagnose().await.into_iter().map(output));
            findings.extend(pool_backends(&session).await?);
        }
        (None, Some((cluster, peers))) => findings.push(following(cluster, peers).await),
        (None, None) => findings.push(FindingOutput::ok("engine", "this server keeps no names")),
    }
    Ok(Answer::ok(DoctorOutput { findings }))
}

fn output(finding: netstead_engine::Finding) -> FindingOutput {
    let state = match finding.grade {
        Grade::Fine => FindingState::Ok,
        Grade::Note => FindingState::Note,
        Grade::Problem => FindingState::Problem,
    };
    let netstead_engine::Finding { about, text, hint, .. } = finding;
    FindingOutput { state, about, text, hint }
}

/// A finding of the storage engine.
fn remark(remark: StoreFinding) -> FindingOutput {
    let state = match remark.grade {
        StoreFindingGrade::Fine => FindingState::Ok,
        StoreFindingGrade::Note => FindingState::Note,
        StoreFindingGrade::Problem => FindingState::Problem,
    };
    FindingOutput { state, about: "store".to_owned(), text: remark.text, hint: remark.hint }
}

/// Damage that was found, and how the daily backups stand.
fn stored(session: &RequestContext) -> Vec<FindingOutput> {
    let app = &session.app;
    let (store, damage) = (app.ledger.store(), app.ledger.health().damage);
    let mut findings: Vec<FindingOutput> = damage
        .iter()
        .map(|one| {
            FindingOutput::problem(
                "store",
                format!("it is damaged: {}", describe(one)),
                advice(&**store, &damage),
            )
        })
        .collect();
    let Some(backups) = app.daily_backups.as_ref().map(DailyBackups::state) else { return findings };
    findings.push(match (backups.failure, backups.last) {
        (Some(BackupFailure { since, reason, hint }), _) => FindingOutput::problem(
            "backup",
            format!("none could be written since {since:.0}: {reason}"),
            hint,
        ),
        (None, Some(last)) => FindingOutput::ok("backup", format!("the newest is of {last:.0}")),
        (None, None) => FindingOutput::ok("backup", "the first one is not written yet"),
    });
    findings
}

/// Whether the others can find this node where it says it is.
fn reachable(cluster: &Cluster) -> Option<FindingOutput> {
    let here = |url: &str| ["//127.", "//localhost", "//[::1]"].iter().any(|host| url.contains(host));
    let (me, members) = (cluster.me(), cluster.members());
    let other = members.iter().find(|one| one.id != me.id && !here(&one.url) && here(&me.url))?;
    let text =
        format!("this node asks the others to find it at {}, where {} finds only itself", me.url, other.name);
    let hint = "listen on an address of this machine, or set `[api] advertise`";
    Some(FindingOutput::problem("cluster", text, hint))
}

/// Whether pool backends answer, and what they refuse.
async fn pool_backends(session: &RequestContext) -> Result<Vec<FindingOutput>, Failure> {
    let pools = |book: &Book| book.pools().collect::<Vec<PoolStatus>>();
    let pools = session.read(Freshness::Stale, pools).await?.value;
    Ok(backends::findings(&backends::outputs(&session.app.backends.status(), &pools, true)))
}

/// Findings of a follower about names, which the leader keeps.
async fn following(cluster: &Cluster, peers: &Peers) -> FindingOutput {
    match cluster.leader() {
        Some(leader) => {
            if let Err(why) = peers.reach(&leader.url).await {
                let text = format!(
                    "the leader cannot be reached from here, so this node can change nothing: {}: {why}",
                    leader.url
                );
                let hint = "it must answer this machine at that address, which its `[api] advertise` sets";
                return FindingOutput::problem("cluster", text, hint);
            }
            let text = format!("names are kept by the leader at {}", leader.url);
            let hint = format!("`netstead doctor --url {}` looks at them", leader.url);
            FindingOutput::note("engine", text, hint)
        }
        None => FindingOutput::problem(
            "engine",
            "no node leads, so no name changes",
            "a leader is found within seconds, unless most nodes, or the store, cannot be reached: look at the log",
        ),
    }
}

/// The store, the ledger and the listener. A store that is `troubled` is not said to be well.
fn server_findings(session: &RequestContext, troubled: bool) -> Vec<FindingOutput> {
    let app = &session.app;
    let mut findings = Vec::new();
    findings.push(match app.ledger.store().health() {
        Health::Ready if troubled => FindingOutput::ok("store", format!("{} answers", app.store)),
        Health::Ready => FindingOutput::ok("store", format!("{} takes changes", app.store)),
        Health::Failed { reason } => {
            let hint = if troubled {
                "the store's own finding below is the reason; it continues by itself once that is mended"
            } else {
                "look at the disk and the log; `netstead store check` compares what is stored with what may be"
            };
            FindingOutput::problem("store", format!("{} takes no changes: {reason}", app.store), hint)
        }
    });
    let health = app.ledger.health();
    findings.push(match (health.ready, health.paused) {
        (false, _) => {
            let why = health.reason.unwrap_or_else(|| "it does not answer yet".to_owned());
            FindingOutput::problem(
                "ledger",
                format!("it is not ready: {why}"),
                "look again in a moment; the log has more",
            )
        }
        (true, true) => {
            let text = "it was restored and hands out nothing by itself";
            FindingOutput::problem("ledger", text, "look at `netstead get claims`, then `netstead resume`")
        }
        (true, false) => FindingOutput::ok("ledger", format!("it answers, at change {}", health.seq)),
    });
    findings.push(if !app.host_check.loopback && !app.host_check.tls {
        let text = "others can reach the API, and tokens travel in clear text";
        FindingOutput::note(
            "api",
            text,
            "set `tls_cert` and `tls_key` in `[api]`, or put a proxy with TLS before it",
        )
    } else {
        FindingOutput::ok("api", "it answers")
    });
    findings
}

/// Whether the time of day can be true: TSIG and TLS need it, and people read it.
async fn clock(session: &RequestContext) -> FindingOutput {
    let now = session.app.clock.wall();
    let hint = "set the clock by NTP";
    if now.as_second() < EARLIEST {
        return FindingOutput::problem("clock", format!("it says {now:.0}, which is in the past"), hint);
    }
    if let Some(engine) = session.app.engine_slot.engine()
        && let Some(event) = engine.events(1).await.first()
        && event.at.duration_since(now) > jiff::SignedDuration::try_from(APART).unwrap_or_default()
    {
        let text = format!("it says {now:.0}, and something happened at {:.0} already", event.at);
        return FindingOutput::problem("clock", text, hint);
    }
    FindingOutput::ok("clock", format!("it says {now:.0}"))
}
