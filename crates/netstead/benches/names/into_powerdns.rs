//! New names into a real PowerDNS, beside the same requests sent without any thought.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use netstead_engine::{AppliedStep, ProviderSetup};
use netstead_model::{Clock as _, RecordSet, SystemClock};
use netstead_plan::Digest;
use netstead_providers::{
    BuildContext, Call, CallObserver, Secret,
    dns::{PowerDns, powerdns::Config},
};
use netstead_store::Store;
use netstead_testkit::PowerDns as Server;

use crate::{
    engine_setup::{self, BenchSource, ZONE, workload},
    report::{Report, median},
    timed_store::TimedStore,
};

const NAMES: u32 = 10_000;
const ROUNDS: usize = 3;
/// As much as the provider sends at once.
const MOST_BYTES: usize = 1_500_000;

/// Counts requests and the time they took.
#[derive(Debug, Default)]
struct CallCounter(Mutex<(u32, Duration)>);

impl CallObserver for CallCounter {
    fn called(&self, call: Call) {
        let mut seen = self.0.lock().expect("no panic");
        *seen = (seen.0 + 1, seen.1 + call.took);
    }
}

impl CallCounter {
    fn take(&self) -> (f64, Duration) {
        let (count, took) = std::mem::take(&mut *self.0.lock().expect("no panic"));
        (count.into(), took)
    }
}

pub async fn measure(report: &mut Report, dir: &Path) {
    let (mut ours, mut bare, mut last) = (Vec::new(), Vec::new(), None);
    for round in 0..ROUNDS {
        let Some(with_us) = Server::start(&[ZONE]) else { return };
        let Some(alone) = Server::start(&[ZONE]) else { return };
        let run = through_the_engine(&with_us, &dir.join(format!("pdns-{round}"))).await;
        ours.push(run.first.as_secs_f64());
        bare.push(by_hand(&alone, &run.steps).as_secs_f64());
        last = Some(run);
    }
    let (ours, bare, Some(run)) = (median(ours), median(bare), last) else { return };
    report.note("10 000 new names into PowerDNS, bare PATCHes", bare, "s");
    let sets = u32::try_from(sets(&run.steps).count()).unwrap_or(u32::MAX);
    report.note("  record sets in them, marks included: the same as ours", sets.into(), "");
    report.note("10 000 new names into PowerDNS", ours, "s");
    report.judge("  to the bare PATCHes", ours / bare, "x", "within 1.5", ours / bare <= 1.5);
    report.note("  of that in calls, in the last round", run.calls.as_secs_f64(), "s");
    report.note("  of that in commits, in the last round", run.commits.1.as_secs_f64(), "s");
    report.note("  commits", run.commits.0, "");
    report.note("one name more: requests", run.one.0, "");
    report.note("one name more: time", run.one.1.as_secs_f64(), "s");
    report.judge("pass without news: requests", run.idle.0, "", "1, no zone read", run.idle.0 <= 1.0);
    report.note("pass without news: time", run.idle.1.as_secs_f64(), "s");
}

struct Run {
    steps: Vec<AppliedStep>,
    first: Duration,
    calls: Duration,
    commits: (f64, Duration),
    one: (f64, Duration),
    idle: (f64, Duration),
}

async fn through_the_engine(server: &Server, dir: &Path) -> Run {
    let calls = Arc::new(CallCounter::default());
    let config = Config::new(server.api_url(), Secret::new(server.api_key()));
    let context = BuildContext::new("bench".parse().expect("a name")).with_calls(calls.clone());
    let provider = PowerDns::open(config, &context).expect("a provider");
    let timed = TimedStore::new(engine_setup::open(dir).await);
    let store: Arc<dyn Store> = timed.clone();
    let source = BenchSource::new();
    let setup = ProviderSetup::new(engine_setup::settings(), Arc::new(provider), Digest::of(["bench"]));
    let engine = engine_setup::engine(&store, &source, setup).await;
    engine_setup::apply(&engine).await;
    source.set_workloads((0..NAMES).map(workload).collect());
    calls.take();
    timed.take();
    let (_, first) = engine_setup::apply(&engine).await;
    let ((_, in_calls), commits) = (calls.take(), timed.take());
    // What the source saw woke the provider: the pass that carried it out is in the history.
    let steps =
        engine.applied(&"lan".parse().expect("a name")).await.expect("history").pop().expect("a plan").steps;
    assert_eq!(steps.len(), usize::try_from(NAMES).expect("small"));
    // The pass that confirms it.
    engine_setup::apply(&engine).await;
    calls.take();
    source.set_workloads((0..=NAMES).map(workload).collect());
    let (_, took) = engine_setup::apply(&engine).await;
    engine_setup::apply(&engine).await;
    let one = (calls.take().0, took);
    let (done, took) = engine_setup::apply(&engine).await;
    assert!(done.plan.is_some_and(|plan| plan.steps() == 0));
    let idle = (calls.take().0, took);
    engine.close().await;
    store.close().await;
    Run { steps, first, calls: in_calls, commits, one, idle }
}

/// Sends what the plan had, in as many requests as the provider does.
fn by_hand(server: &Server, steps: &[AppliedStep]) -> Duration {
    let mut bodies: Vec<String> = Vec::new();
    for text in sets(steps).map(rrset) {
        match bodies.last_mut().filter(|body| body.len() + text.len() < MOST_BYTES) {
            Some(body) => body.extend([",", &text]),
            None => bodies.push(text),
        }
    }
    let address = server.api_url().trim_start_matches("http://").to_owned();
    let start = SystemClock.monotonic();
    for body in bodies {
        // PowerDNS closes a connection after its answer.
        let mut connection = TcpStream::connect(&address).expect("a connection");
        connection.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        let body = format!("{{\"rrsets\":[{body}]}}");
        let head = format!(
            "PATCH /api/v1/servers/localhost/zones/{ZONE}. HTTP/1.1\r\nHost: {address}\r\nX-API-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            server.api_key(),
            body.len()
        );
        connection.write_all(head.as_bytes()).expect("a server that listens");
        connection.write_all(body.as_bytes()).expect("a server that listens");
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut some = [0; 4096];
            let read = connection.read(&mut some).expect("an answer");
            assert!(read > 0, "PowerDNS closed the connection");
            answer.extend_from_slice(&some[..read]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&answer));
    }
    SystemClock.monotonic() - start
}

/// The sets that the plan wrote.
fn sets(steps: &[AppliedStep]) -> impl Iterator<Item = &RecordSet> {
    steps.iter().flat_map(|done| &done.step.unit.changes).filter_map(|change| change.after.as_ref())
}

fn rrset(set: &RecordSet) -> String {
    let records: Vec<_> = set
        .values
        .iter()
        .map(|value| serde_json::json!({ "content": value.to_string(), "disabled": false }))
        .collect();
    serde_json::json!({
        "name": set.name.absolute(), "type": set.kind.as_str(), "ttl": set.ttl,
        "changetype": "REPLACE", "records": records,
    })
    .to_string()
}
