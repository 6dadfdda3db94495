//! A grace that runs out is acted on at once, not with the next poll.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use netstead_engine::{Engine, Options};
use netstead_model::{Clock, Ended, Span, View};
use tokio::time::{Instant, sleep};

use crate::world::{World, fleet, vm};

/// Follows the runtime's own clock, which stands still while anything can be done.
#[derive(Debug)]
struct TokioClock(Instant);

#[allow(clippy::disallowed_methods, reason = "this is a clock")]
impl TokioClock {
    fn shared() -> Arc<dyn Clock> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TokioClock {
    fn wall(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH.checked_add(self.monotonic()).unwrap()
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Ten machines on a server, with these graces.
async fn started(grace: u64, ended: u64) -> (World, Engine) {
    let world = World::new();
    world.source.sees(fleet(1..11));
    let mut setup = world.setup();
    for provider in &mut setup.providers {
        (provider.settings.grace, provider.settings.ended_grace) =
            (Span::from_secs(grace), Span::from_secs(ended));
    }
    let engine =
        Engine::start(world.store.clone(), TokioClock::shared(), setup, Options::default()).await.unwrap();
    engine.apply(None).await.unwrap();
    (world, engine)
}

/// Seconds until the name is gone.
async fn seconds_until_gone(world: &World, name: &str) -> u64 {
    for second in 0..1000 {
        if !world.server().has(name, "A 10.0.0.10") {
            return second;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("{name} stays");
}

#[tokio::test(start_paused = true)]
async fn a_short_grace_takes_as_long_as_it_says() {
    let (world, engine) = started(5, 30).await;
    world.source.sees(fleet(1..10));
    world.source.announces_change();
    let took = seconds_until_gone(&world, "w10.example.com").await;
    assert!((5..=7).contains(&took), "{took} s");
    engine.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_workload_takes_as_long_as_its_grace() {
    let (world, engine) = started(300, 30).await;
    let ended = vec![Ended { id: "w10".parse().unwrap(), asked: false }];
    *world.source.says.lock().unwrap() = (View::Complete, fleet(1..10), ended);
    world.source.announces_change();
    let took = seconds_until_gone(&world, "w10.example.com").await;
    assert!((30..=32).contains(&took), "{took} s");
    engine.close().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_waited_for_is_shown_until_it_happens() {
    let (world, engine) = started(300, 30).await;
    world.source.sees(fleet(1..5));
    world.source.announces_change();
    sleep(Duration::from_secs(2)).await;
    let source = || engine.status().sources.into_iter().find(|source| source.name == "pve").unwrap();
    assert!(source().suspect.is_some() && source().waiting.is_none(), "{:?}", source());
    sleep(Duration::from_mins(5)).await;
    let waiting = source().waiting.unwrap();
    assert!(source().suspect.is_none() && waiting.workloads == 6, "{waiting:?}");
    assert!((290..=300).contains(&waiting.next.as_secs()), "{waiting:?}");
    let why = engine.plans()[0].1.kept[0].why.clone();
    let before = why.at(engine.now());
    sleep(Duration::from_secs(100)).await;
    assert_ne!(why.at(engine.now()), before, "it is worded when it is shown");
    sleep(Duration::from_secs(210)).await;
    let left = (1..11).filter(|n| world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}")));
    assert_eq!(left.collect::<Vec<_>>(), [1, 2, 3, 4], "six in a zone are fewer than the breaker parks");
    assert!(source().waiting.is_none());
    engine.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_at_rest_is_looked_at_no_more_often_than_its_interval() {
    let (world, engine) = started(5, 30).await;
    let before = world.source.looks();
    sleep(Duration::from_mins(10)).await;
    assert!(world.source.looks() - before <= 11, "{} looks", world.source.looks() - before);
    world.source.sees(fleet(1..10).into_iter().chain([vm("new", "10.0.0.77")]));
    world.source.announces_change();
    let before = world.source.looks();
    sleep(Duration::from_mins(10)).await;
    assert!(world.source.looks() - before <= 13, "{} looks", world.source.looks() - before);
    engine.close().await;
}
