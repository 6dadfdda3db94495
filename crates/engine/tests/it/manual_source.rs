//! Records that people set.

use netstead_engine::EngineError;
use netstead_model::RecordType;
use netstead_store::Commit;

use crate::world::{World, data, name, soon};

#[tokio::test]
async fn a_record_is_set_changed_and_deleted_at_once() {
    let world = World::new();
    let engine = world.start().await;
    let web = name("web.example.com");
    let manual = engine.manual();
    manual.set(web.clone(), RecordType::A, vec![data("A 10.0.0.1")], Some(60), "ann").await.unwrap();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    manual.set(web.clone(), RecordType::A, vec![data("A 10.0.0.2")], None, "ann").await.unwrap();
    soon(|| world.server().has("web.example.com", "A 10.0.0.2")).await;
    soon(|| !world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
    let engine = world.start().await;
    assert_eq!(engine.manual().list().len(), 1);
    assert!(engine.manual().delete(&web, None, "ann").await.unwrap());
    soon(|| !world.server().has("web.example.com", "A 10.0.0.2")).await;
    assert!(!engine.manual().delete(&web, None, "ann").await.unwrap());
    engine.close().await;
}

#[tokio::test]
async fn what_was_deleted_right_before_a_crash_goes_at_once() {
    let world = World::new();
    let engine = world.start().await;
    let web = name("web.example.com");
    engine.manual().set(web, RecordType::A, vec![data("A 10.0.0.1")], None, "ann").await.unwrap();
    soon(|| world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
    // All that is left of the deletion.
    let key = b"engine/manual/web.example.com/A";
    assert!(world.store.get(key).await.unwrap().is_some());
    world.store.commit(Commit::new().delete(key.to_vec())).await.unwrap();
    let engine = world.start().await;
    soon(|| !world.server().has("web.example.com", "A 10.0.0.1")).await;
    engine.close().await;
}

#[tokio::test]
async fn what_cannot_be_a_record_is_refused() {
    let world = World::new();
    let engine = world.start().await;
    let web = name("web.example.com");
    let set = |kind, values: &[&str]| {
        let values = values.iter().map(|text| data(text)).collect();
        engine.manual().set(web.clone(), kind, values, None, "ann")
    };
    set(RecordType::A, &["A 10.0.0.1"]).await.unwrap();
    for (kind, values) in [
        (RecordType::A, &[][..]),
        (RecordType::A, &["AAAA ::1"]),
        (RecordType::Cname, &["CNAME a.example.com."]),
        (RecordType::Cname, &["CNAME a.example.com.", "CNAME b.example.com."]),
    ] {
        let refused = set(kind, values).await;
        assert!(matches!(refused, Err(EngineError::Invalid { .. })), "{refused:?}");
    }
    engine.close().await;
}
