//! Records page by page.

use netstead_engine::{Engine, RecordQuery, RecordState, RecordView};
use netstead_model::{NameSet, ProviderError, RecordType};

use crate::{
    server::Server,
    world::{World, fleet, ident, name, vm},
};

fn paged(engine: &Engine, query: &RecordQuery, limit: usize) -> Vec<RecordView> {
    let mut query = RecordQuery { limit: Some(limit), ..query.clone() };
    let mut all: Vec<RecordView> = Vec::new();
    loop {
        let page = engine.list_records(&query);
        let Some(last) = page.last() else { return all };
        assert!(page.len() <= limit);
        query.after = Some(last.sort_key());
        all.extend(page);
    }
}

/// Everything that the query wants, picked from the whole list.
fn picked(engine: &Engine, query: &RecordQuery) -> Vec<RecordView> {
    let mut all = engine.records();
    all.retain(|view| {
        query.provider.as_ref().is_none_or(|provider| *provider == view.provider)
            && query.zone.as_ref().is_none_or(|zone| Some(zone) == view.zone.as_ref())
            && query.name.as_ref().is_none_or(|name| *name == view.name)
            && query.state.is_none_or(|state| state == view.state)
            && query.within.as_ref().is_none_or(|names| names.contains(&view.name))
    });
    all
}

#[tokio::test]
async fn pages_and_filters_give_what_the_whole_list_has() {
    let zones = ["example.com", "0.10.in-addr.arpa"];
    let store = std::sync::Arc::new(netstead_store::MemoryStore::new());
    let world = World::with(store, vec![("lan", Server::new(&zones)), ("wan", Server::new(&zones))]);
    world.server().add("w3.example.com", "A 192.0.2.3");
    world.server().rejects.lock().unwrap().insert(name("w4.example.com"));
    world.source.sees(fleet(1..40));
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    world.server().add("w5.example.com", "A 192.0.2.5");
    // So much goes that a guard holds it back.
    let some = fleet(1..25).into_iter().chain([vm("w-x", "10.0.9.9")]);
    world.source.sees(some);
    world.minutes(&engine, 12).await;
    let all = engine.records();
    assert!(all.is_sorted_by_key(RecordView::sort_key));
    let states: std::collections::BTreeSet<RecordState> = all.iter().map(|view| view.state).collect();
    for state in [RecordState::Ok, RecordState::Parked, RecordState::Blocked, RecordState::Foreign] {
        assert!(states.contains(&state), "{state} is not among {states:?}");
    }
    let any = RecordQuery::default;
    let within = NameSet::new(vec![name("w7.example.com")], vec!["10.0.0.0/29".parse().unwrap()]);
    let mut queries = vec![
        any(),
        RecordQuery { provider: Some(ident("wan")), ..any() },
        RecordQuery { zone: Some(name("example.com")), ..any() },
        RecordQuery { zone: Some(name("com")), ..any() },
        RecordQuery { name: Some(name("w5.example.com")), ..any() },
        RecordQuery { name: Some(name("w5.example.com")), state: Some(RecordState::Foreign), ..any() },
        RecordQuery { name: Some(name("nobody.example.com")), ..any() },
        RecordQuery { within: Some(within.clone()), ..any() },
    ];
    queries.extend(RecordState::ALL.map(|state| RecordQuery { state: Some(state), ..any() }));
    for query in &queries {
        let wanted = picked(&engine, query);
        assert_eq!(engine.list_records(query), wanted, "{query:?}");
        for limit in [1, 2, 5, 1000] {
            assert_eq!(paged(&engine, query, limit), wanted, "{query:?} by {limit}");
        }
    }
    // The numbers of zones are those of the list.
    for counted in [None, Some(&within)] {
        let all: Vec<&RecordView> =
            all.iter().filter(|view| counted.is_none_or(|names| names.contains(&view.name))).collect();
        let counts = engine.count_zones(counted);
        assert_eq!(counts.len(), 4, "{counts:?}");
        for ((provider, zone), (records, pending)) in counts {
            let of_it = |view: &&&RecordView| view.provider == provider && view.zone.as_ref() == Some(&zone);
            let known = all.iter().filter(of_it).filter(|view| view.state != RecordState::Foreign).count();
            let waits = |view: &&&RecordView| matches!(view.state, RecordState::Pending | RecordState::Drift);
            let waiting = all.iter().filter(of_it).filter(waits).count();
            assert_eq!((records, pending), (known as u64, waiting as u64), "{provider} {zone}");
        }
    }
    engine.close().await;
}

#[tokio::test]
async fn what_a_server_that_cannot_be_read_holds_is_unknown_and_what_it_lacks_is_pending() {
    let world = World::new();
    world.source.sees([vm("web", "10.0.0.1")]);
    let engine = world.start().await;
    world.minutes(&engine, 1).await;
    let states = || {
        let views = engine.records().into_iter().filter(|view| view.kind != RecordType::Ptr);
        views.map(|view| (view.name.to_string(), view.state, view.ttl.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(states(), [("web.example.com".to_owned(), RecordState::Ok, true)]);
    let gone = ProviderError::Unreachable { server: "lan".into(), reason: "no route to host".into() };
    *world.server().fails.lock().unwrap() = Some(gone);
    world.source.sees([vm("web", "10.0.0.1"), vm("db", "10.0.0.2")]);
    world.minutes(&engine, 1).await;
    let expected = [("db", RecordState::Pending), ("web", RecordState::Unknown)];
    let expected = expected.map(|(host, state)| (format!("{host}.example.com"), state, true));
    assert_eq!(states(), expected);
    let query = RecordQuery { state: Some(RecordState::Unknown), ..RecordQuery::default() };
    assert!(engine.list_records(&query).iter().all(|view| view.state == RecordState::Unknown));
    assert!(!engine.list_records(&query).is_empty());
    assert!(engine.status().providers[0].unread);
    *world.server().fails.lock().unwrap() = None;
    world.minutes(&engine, 5).await;
    assert!(states().iter().all(|(_, state, _)| *state == RecordState::Ok), "{:?}", states());
    engine.close().await;
}
