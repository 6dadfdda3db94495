//! Nothing stands still unnoticed.

use std::time::Duration;

use netstead_engine::Engine;
use netstead_model::View;

use crate::world::{World, fleet, soon, vm};

fn age(engine: &Engine) -> Duration {
    let status = engine.status();
    let source = status.sources.iter().find(|source| source.name.as_ref() == "pve").unwrap();
    source.complete_age.unwrap()
}

#[tokio::test]
async fn how_old_the_last_complete_report_is_can_be_seen_and_nothing_goes_by_age() {
    let world = World::new();
    world.source.sees(fleet(1..4));
    let engine = world.start().await;
    assert_eq!(age(&engine), Duration::ZERO);
    for view in
        [View::Failed { reason: "forbidden".into() }, View::Partial { reason: "one page of two".into() }]
    {
        world.source.says(view, [], &[]);
        let before = age(&engine);
        world.minutes(&engine, 90).await;
        assert_eq!(age(&engine), before + Duration::from_mins(90));
        for n in 1..4 {
            assert!(world.server().has(&format!("w{n}.example.com"), &format!("A 10.0.0.{n}")));
        }
    }
    world.source.sees(fleet(1..4));
    world.minutes(&engine, 1).await;
    assert_eq!(age(&engine), Duration::ZERO);
    engine.close().await;
}

/// A stream of events that died without a word is no reason to know nothing: a timer looks anyway.
#[tokio::test]
async fn what_no_event_tells_of_is_found_by_the_timer() {
    let world = World::new();
    let mut setup = world.setup();
    setup.sources[0].interval = Duration::from_millis(20);
    setup.providers[0].interval = Duration::from_millis(20);
    let engine = world.start_with(setup).await;
    world.source.sees([vm("web", "10.0.0.1")]);
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    world.server().remove("web.example.com", "A 10.0.0.1");
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
}
