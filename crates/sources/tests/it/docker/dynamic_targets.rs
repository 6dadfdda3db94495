//! Targets that move.

use std::{collections::BTreeMap, net::IpAddr, sync::Mutex, time::Duration};

use async_trait::async_trait;
use netstead_sources::{
    dialects::TargetSpec,
    dynamic_target::{DynamicTarget, TargetResolver},
};
use tokio::sync::Notify;

use super::*;

/// Places that are where a test puts them.
#[derive(Debug, Default)]
struct TestResolver {
    places: Mutex<BTreeMap<DynamicTarget, IpAddr>>,
    asked: Mutex<Vec<DynamicTarget>>,
    moved: Notify,
}

impl TestResolver {
    fn put(&self, place: DynamicTarget, at: &str) {
        self.places.lock().unwrap().insert(place, at.parse().unwrap());
        self.moved.notify_one();
    }
}

#[async_trait]
impl TargetResolver for TestResolver {
    async fn addresses_of(&self, place: &DynamicTarget) -> Result<Vec<IpAddr>, String> {
        self.asked.lock().unwrap().push(place.clone());
        let found = self.places.lock().unwrap().get(place).copied();
        found.map(|ip| vec![ip]).ok_or_else(|| format!("{place} cannot be found"))
    }

    async fn changed(&self) {
        self.moved.notified().await;
    }
}

#[tokio::test]
async fn names_follow_a_target_that_moves() {
    let fake = Fake::start();
    let labelled = |name: &str, target: &str| {
        let mut one = container(name, ("bridge", "n1"), "172.17.0.2");
        one["Labels"]["netstead.target"] = json!(target);
        one
    };
    fake.answers(
        "/containers/json",
        &json!([
            labelled("eth", "interface:eth7"),
            labelled("none", "interface:eth8"),
            labelled("odd", "interface:an-interface-with-a-long-name"),
            container("web", ("bridge", "n1"), "172.17.0.2"),
        ]),
    );
    let map = Arc::new(TestResolver::default());
    map.put(DynamicTarget::Public, "203.0.113.7");
    map.put(DynamicTarget::Interface("eth7".into()), "192.0.2.7");
    let source =
        docker(Config { target: TargetSpec::Public, places: Some(map.clone()), ..config(&fake.socket()) });
    let report = source.report().await;
    assert_eq!(wishes(&report), ["eth.home.test A [A(192.0.2.7)]", "web.home.test 203.0.113.7"]);
    let of_the_place = |report: &Report| {
        report.workloads().into_iter().flat_map(|one| &one.wishes).all(|wish| wish.moves && wish.borrowed)
    };
    assert!(of_the_place(&report));
    assert_eq!(report.workloads()[1].why_not, ["none.home.test: interface:eth8 cannot be found"]);
    assert!(report.workloads()[2].unclear, "{:?}", report.workloads()[2].why_not);
    let asked = std::mem::take(&mut *map.asked.lock().unwrap());
    assert_eq!(asked.len(), 3, "each place is asked for once: {asked:?}");

    fake.followed().await;
    source.changed().await;
    map.put(DynamicTarget::Public, "203.0.113.8");
    tokio::time::timeout(Duration::from_secs(10), source.changed()).await.expect("a move is news");
    assert_eq!(wishes(&source.report().await)[1], "web.home.test 203.0.113.8");
}
