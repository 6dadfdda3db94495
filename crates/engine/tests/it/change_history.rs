//! The history: every change of a name with what became of it, and what was noticed.

use netstead_engine::{Change, ChangeQuery, Engine};
use netstead_model::{NameSet, ProviderError, View};
use netstead_store::Commit;

use crate::world::{World, fleet, ident, name, vm};

async fn list(engine: &Engine, query: ChangeQuery) -> Vec<Change> {
    let page = engine.changes(&ChangeQuery { limit: 10_000, ..query }).await.unwrap();
    assert_eq!(page.next, None);
    page.changes
}

/// One line each, the newest first.
fn change_lines(changes: &[Change]) -> Vec<String> {
    let line = |change: &Change| {
        let name = change.name.as_ref().or(change.zone.as_ref()).map(ToString::to_string).unwrap_or_default();
        let lines: Vec<String> =
            change.lines.iter().map(|line| format!("{}{}", line.sign.as_char(), line.text)).collect();
        let text = if lines.is_empty() { change.text.clone().unwrap_or_default() } else { lines.join(" ") };
        format!("{} {name} {text}", change.what)
    };
    changes.iter().map(line).collect()
}

/// The list page by page.
async fn paged(engine: &Engine, query: ChangeQuery, limit: usize) -> Vec<Change> {
    let mut query = ChangeQuery { limit, ..query };
    let mut all = Vec::new();
    loop {
        let page = engine.changes(&query).await.unwrap();
        assert!(page.changes.len() <= limit);
        all.extend(page.changes);
        let Some(next) = page.next else { return all };
        query.after = Some(next);
    }
}

#[tokio::test]
async fn every_change_of_a_name_is_kept_with_what_became_of_it() {
    let world = World::new();
    world.server().rejects.lock().unwrap().insert(name("bad.example.com"));
    world.source.sees([vm("web", "10.0.0.1"), vm("bad", "10.0.0.9")]);
    let engine = world.start().await;
    world.source.sees([vm("web", "10.0.0.2"), vm("bad", "10.0.0.9")]);
    world.minutes(&engine, 8).await;
    let of_web = ChangeQuery { name: Some(name("web.example.com")), ..ChangeQuery::default() };
    assert_eq!(
        change_lines(&list(&engine, of_web.clone()).await),
        ["applied web.example.com ~10.0.0.1 → 10.0.0.2", "applied web.example.com +10.0.0.1"]
    );
    let rejected = ChangeQuery { what: Some("rejected".into()), ..ChangeQuery::default() };
    let rejected = list(&engine, rejected).await;
    assert!(!rejected.is_empty());
    for change in &rejected {
        assert_eq!(change.name, Some(name("bad.example.com")));
        assert_eq!(change.text.as_deref(), Some("not here"));
        assert_eq!(change.provider, Some(ident("lan")));
    }
    let ChangeQuery { name: web, .. } = of_web;
    let within = |domain: &str| NameSet::new(vec![name(domain)], Vec::new());
    for (query, some) in [
        (ChangeQuery { provider: Some(ident("lan")), name: web.clone(), ..ChangeQuery::default() }, true),
        (ChangeQuery { provider: Some(ident("wan")), ..ChangeQuery::default() }, false),
        (ChangeQuery { zone: Some(name("example.com")), name: web.clone(), ..ChangeQuery::default() }, true),
        (ChangeQuery { zone: Some(name("example.org")), ..ChangeQuery::default() }, false),
        (ChangeQuery { within: Some(within("web.example.com")), ..ChangeQuery::default() }, true),
        (ChangeQuery { within: Some(within("example.org")), ..ChangeQuery::default() }, false),
    ] {
        assert_eq!(!list(&engine, query.clone()).await.is_empty(), some, "{query:?}");
    }
    // From some moment on, and up to it: together that is all.
    let all = list(&engine, ChangeQuery::default()).await;
    let at = all[all.len() / 2].at;
    let since = list(&engine, ChangeQuery { since: Some(at), ..ChangeQuery::default() }).await;
    let until = list(&engine, ChangeQuery { until: Some(at), ..ChangeQuery::default() }).await;
    assert!(!since.is_empty() && !until.is_empty());
    assert_eq!([since, until].concat(), all);
    engine.close().await;
}

#[tokio::test]
async fn pages_put_together_are_the_whole_list_in_both_directions_and_after_a_restart() {
    let world = World::new();
    world.source.sees(fleet(1..6));
    let engine = world.start().await;
    engine.pause(netstead_engine::Scope::All, None, None, "ann").await.unwrap();
    engine.resume(netstead_engine::Scope::All, "ann").await.unwrap();
    world.source.sees(fleet(1..9));
    world.minutes(&engine, 2).await;
    let all = list(&engine, ChangeQuery::default()).await;
    assert!(all.len() > 16, "{all:?}");
    for limit in [1, 2, 3, 7] {
        assert_eq!(paged(&engine, ChangeQuery::default(), limit).await, all);
        let oldest_first = ChangeQuery { oldest_first: true, ..ChangeQuery::default() };
        let mut turned = paged(&engine, oldest_first, limit).await;
        turned.reverse();
        assert_eq!(turned, all);
    }
    engine.close().await;
    let engine = world.start().await;
    let after = list(&engine, ChangeQuery::default()).await;
    assert_eq!(after[after.len() - all.len()..], all[..]);
    engine.close().await;
}

#[tokio::test]
async fn a_large_plan_is_listed_part_by_part_and_one_that_is_gone_in_one_line() {
    let world = World::new();
    let many = (0..1500u32).map(|n| vm(&format!("w{n}"), &format!("10.0.{}.{}", n / 250, n % 250)));
    world.source.sees(many);
    let engine = world.start().await;
    let all = list(&engine, ChangeQuery::default()).await;
    assert_eq!(all.len(), 3000, "each with its PTR");
    assert!(all.iter().map(|change| change.position.part).max() > Some(0), "it is stored in parts");
    assert_eq!(paged(&engine, ChangeQuery::default(), 700).await, all);
    let oldest_first = ChangeQuery { oldest_first: true, ..ChangeQuery::default() };
    let mut turned = paged(&engine, oldest_first, 700).await;
    turned.reverse();
    assert_eq!(turned, all);
    // What is left of a plan that is no longer kept.
    let generation = all[0].generation.unwrap();
    for part in 0..=all[0].position.part {
        let key = format!("engine/plan/lan/{generation:016x}/{part:04x}");
        world.store.commit(Commit::new().delete(key)).await.unwrap();
    }
    assert_eq!(
        change_lines(&list(&engine, ChangeQuery::default()).await),
        ["applied  generation 1: 3000 applied"]
    );
    engine.close().await;
}

#[tokio::test]
async fn what_was_noticed_is_told() {
    let world = World::new();
    world.source.sees(fleet(1..60));
    let engine = world.start().await;
    let first = list(&engine, ChangeQuery::default()).await[0].position;
    let news = |oldest_first| ChangeQuery { after: Some(first), oldest_first, ..ChangeQuery::default() };
    // Half of it is gone at once: suspect, then believed, then the breaker.
    world.source.sees(fleet(1..25));
    world.minutes(&engine, 12).await;
    let parked = engine.status().providers[0].parked.clone().unwrap();
    // It is back: nothing is parked any more.
    world.source.sees(fleet(1..60));
    world.minutes(&engine, 1).await;
    world.source.says(View::Failed { reason: "no route".into() }, [], &[]);
    world.minutes(&engine, 1).await;
    world.source.sees(fleet(1..60));
    world.minutes(&engine, 1).await;
    let reason = "the line is dead".to_owned();
    *world.server().fails.lock().unwrap() =
        Some(ProviderError::Unreachable { server: "fake".into(), reason });
    world.minutes(&engine, 2).await;
    *world.server().fails.lock().unwrap() = None;
    world.minutes(&engine, 1).await;
    let seen = change_lines(&list(&engine, news(true)).await);
    let kinds: Vec<&str> = seen.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(
        kinds,
        ["suspect", "believed", "parked", "unparked", "failing", "working", "failing", "working"],
        "{seen:#?}"
    );
    assert!(seen[0].contains("35 of 59 vanished from pve"), "{seen:#?}");
    assert!(seen[2].contains(&parked.hash), "{seen:#?}");
    assert!(seen[4].contains("pve does not show everything: no route"), "{seen:#?}");
    assert!(seen[6].contains("the line is dead"), "{seen:#?}");
    engine.close().await;
}

#[tokio::test]
async fn what_people_do_is_told_with_their_names() {
    let world = World::new();
    let engine = world.start().await;
    let (at, kind) = (name("www.example.com"), netstead_model::RecordType::A);
    let value = || vec![crate::world::data("A 10.0.0.7")];
    engine.manual().set(at.clone(), kind, value(), None, "ann").await.unwrap();
    engine.manual().set(at.clone(), kind, value(), None, "bob").await.unwrap();
    engine.manual().delete(&at, None, "cyd").await.unwrap();
    let done = list(&engine, ChangeQuery { name: Some(at), ..ChangeQuery::default() }).await;
    let by: Vec<(&str, &str)> = done.iter().filter_map(|one| Some((one.what, one.by.as_deref()?))).collect();
    assert_eq!(by, [("deleted", "cyd"), ("set", "ann")], "a repeat is no change: {done:?}");
    engine.close().await;
}
