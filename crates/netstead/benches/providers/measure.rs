//! One kind of server: through the engine, through the provider alone, and bare.

use std::{fs, io::Write as _, path::Path, process::Command, sync::Arc, time::Duration};

use netstead_engine::ProviderSetup;
use netstead_model::{Clock as _, Fence, Name, SystemClock, Unit, UnitOutcome, WriteRequest};
use netstead_plan::Digest;
use netstead_providers::BuildContext;
use netstead_testkit::HttpRequest;

use crate::{
    engine_setup::{self, BenchSource, ZONE, workload},
    recording,
    report::{Report, median},
    servers::{Kind, Place, Recorded, Server},
};

const NAMES: u32 = 2_000;
const ROUNDS: usize = 3;
const MOST: f64 = 1.5;

pub async fn measure(kind: &Kind, report: &mut Report, dir: &Path) {
    let name = kind.name;
    let context = || BuildContext::new("bench".parse().expect("a name"));
    let Some(server) = (kind.start)(&context(), Recorded::Yes) else {
        println!("{name}: not on this machine");
        return;
    };
    let run = through_the_engine(&server, &dir.join(name)).await;
    drop(server);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Turn about, so that what else the machine does meets both.
        let server = (kind.start)(&context(), Recorded::No).expect("a server that started before");
        let (took, first, calls) = through_the_provider(&server, &run.units).await;
        ours.push(took.as_secs_f64());
        let other = (kind.start)(&context(), Recorded::No).expect("a server that started before");
        bare.push(match (&server.place, &other.place) {
            (Place::Http { .. }, Place::Http { url, .. }) => {
                // A real server keeps no calls: those of the recorded run are the same.
                let calls = if calls.is_empty() { &run.writes } else { &calls };
                recording::send_again(&first, calls, url).await.as_secs_f64()
            }
            (Place::File { dir: written, reload }, Place::File { dir: to, .. }) => {
                replace_file(written, to, *reload).as_secs_f64()
            }
            _ => return,
        });
    }
    let (ours, bare) = (median(ours), median(bare));
    report.note(format!("{name}: 2 000 names, through the engine"), run.took.as_secs_f64(), "s");
    report.note(format!("{name}: 2 000 names, the provider alone"), ours, "s");
    report.note(format!("{name}: the same calls, bare"), bare, "s");
    let ratio = ours / bare;
    report.judge(format!("{name}:   to the bare calls"), ratio, "x", "within 1.5", ratio <= MOST);
    if let Place::Http { .. } = run.place {
        report.note(format!("{name}: calls for 2 000 names"), run.all, "");
        report.note(format!("{name}: calls for one name more"), run.one, "");
        let (target, most) = if run.signs { ("0", 0.0) } else { ("1", 1.0) };
        report.judge(
            format!("{name}: lists in a pass without news"),
            run.lists,
            "",
            target,
            run.lists <= most,
        );
        report.note(format!("{name}: calls in a pass without news"), run.idle, "");
    }
}

struct Run {
    place: Place,
    units: Vec<Unit>,
    /// The calls that wrote all names.
    writes: Vec<HttpRequest>,
    took: Duration,
    all: f64,
    one: f64,
    idle: f64,
    lists: f64,
    signs: bool,
}

#[allow(clippy::cast_precision_loss, reason = "so many calls no bench makes")]
fn number(count: usize) -> f64 {
    count as f64
}

async fn through_the_engine(server: &Server, dir: &Path) -> Run {
    let store = engine_setup::open(dir).await;
    let source = BenchSource::new();
    let provider = Arc::clone(&server.provider);
    let setup = ProviderSetup::new(engine_setup::settings(), provider, Digest::of(["bench"]));
    let engine = engine_setup::engine(&store, &source, setup).await;
    engine_setup::apply(&engine).await;
    let calls = || match &server.place {
        Place::Http { log, .. } => log(),
        Place::File { .. } => Vec::new(),
    };
    calls();
    source.set_workloads((0..NAMES).map(workload).collect());
    let begun = SystemClock.monotonic();
    let mut took = None;
    let lan = "lan".parse().expect("a name");
    let mut units = Vec::new();
    // A slow server takes several passes.
    while units.len() < usize::try_from(NAMES).expect("small") {
        engine_setup::apply(&engine).await;
        took = Some(SystemClock.monotonic() - begun);
        let plans = engine.applied(&lan).await.expect("history");
        units = plans.into_iter().flat_map(|plan| plan.steps).map(|done| done.step.unit).collect();
    }
    engine_setup::apply(&engine).await;
    let writes = calls();
    source.set_workloads((0..=NAMES).map(workload).collect());
    engine_setup::apply(&engine).await;
    let one = number(calls().len());
    engine_setup::apply(&engine).await;
    calls();
    let (done, _) = engine_setup::apply(&engine).await;
    assert!(done.plan.is_some_and(|plan| plan.steps() == 0));
    let idle = calls();
    engine.close().await;
    store.close().await;
    let (place, lists) = match &server.place {
        Place::Http { url, lists, .. } => {
            let counted = number(idle.iter().filter(|call| lists(call)).count());
            (Place::Http { url: url.clone(), log: Box::new(Vec::new), lists: *lists }, counted)
        }
        Place::File { dir, reload } => (Place::File { dir: dir.clone(), reload: *reload }, 0.0),
    };
    Run {
        place,
        units,
        took: took.unwrap_or_default(),
        all: number(writes.len()),
        one,
        idle: number(idle.len()),
        lists,
        signs: server.provider.capabilities().signs_changes,
        writes: only_of_write(writes),
    }
}

/// Without what the pass before the write asked for.
fn only_of_write(calls: Vec<HttpRequest>) -> Vec<HttpRequest> {
    let first = calls.iter().position(|call| call.method != "GET").unwrap_or_default();
    let last = calls.iter().rposition(|call| call.method != "GET").unwrap_or_default();
    let before = first.saturating_sub(1);
    calls.into_iter().take(last + 1).skip(before).collect()
}

/// How long it took, the calls before that (a login, for example), and those that it took.
async fn through_the_provider(
    server: &Server,
    units: &[Unit],
) -> (Duration, Vec<HttpRequest>, Vec<HttpRequest>) {
    let zone: Name = ZONE.parse().expect("a name");
    let provider = &server.provider;
    provider.prepare().await.expect("a server that is ready");
    provider.zones(std::slice::from_ref(&zone)).await.expect("zones");
    provider.read(&zone).await.expect("a zone");
    let calls = || match &server.place {
        Place::Http { log, .. } => log(),
        Place::File { .. } => Vec::new(),
    };
    let first = calls();
    let most = provider.capabilities().most_units.map_or(units.len(), std::num::NonZeroUsize::get);
    let begun = SystemClock.monotonic();
    for (generation, piece) in (1..).zip(units.chunks(most)) {
        let fence = Fence { owner: "bench".into(), epoch: 1, generation };
        let reply = provider.write(&zone, &WriteRequest::new(piece.to_vec(), fence)).await.expect("a reply");
        assert!(reply.stopped.is_none(), "{:?}", reply.stopped);
        assert!(reply.outcomes.iter().all(|outcome| *outcome == UnitOutcome::Applied));
    }
    (SystemClock.monotonic() - begun, first, calls())
}

/// Writes what is in a directory to another: a new file, flushed to the disk as Netstead's is, then renamed, with its new name
/// flushed too.
fn replace_file(from: &Path, to: &Path, reload: Option<&str>) -> Duration {
    let files: Vec<_> = fs::read_dir(from).expect("a directory").flatten().collect();
    let contents = files.iter().map(|file| (file.file_name(), fs::read(file.path()).expect("a file")));
    let contents: Vec<_> = contents.collect();
    let begun = SystemClock.monotonic();
    for (name, content) in contents {
        let fresh = to.join(".fresh");
        let mut file = fs::File::create(&fresh).expect("a file");
        file.write_all(&content).expect("room");
        file.sync_all().expect("a disk");
        fs::rename(&fresh, to.join(name)).expect("a file");
    }
    fs::File::open(to).and_then(|dir| dir.sync_all()).expect("a directory");
    if let Some(reload) = reload {
        assert!(Command::new(reload).status().expect("a program").success());
    }
    SystemClock.monotonic() - begun
}
