//! Services get addresses, keep them while they have them, and get all of them in the end.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use netstead_model::{
    Address, BackendClaim, BackendError, BackendErrorKind, BackendObject, BackendPoolInfo, Call,
    CallObserver, Family, GivenBack, ManualClock, NameState, ObjectPage, Outcome, PoolBackend, Source, Want,
    WorkloadNames, WrittenState,
};
use netstead_settings::{BuildContext, Configured as _};
use netstead_sources::kubernetes::{LoadBalancerPool, LoadBalancerPools};
use netstead_testkit::{KubeApiServer, Link};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{names, until, view};

/// One pool in memory, that hands out 192.0.2.1 and so on.
#[derive(Debug, Default)]
struct MemoryPool(Mutex<BTreeMap<String, BackendObject>>);

impl MemoryPool {
    /// `key address` of all claims.
    fn held(&self) -> Vec<String> {
        self.0.lock().unwrap().values().map(|one| format!("{} {}", one.key, one.address)).collect()
    }
}

#[async_trait]
impl PoolBackend for MemoryPool {
    async fn claim(&self, claim: &BackendClaim) -> Result<BackendObject, BackendError> {
        let mut held = self.0.lock().unwrap();
        let refused = || BackendError::new(BackendErrorKind::Held, "it holds another address");
        if let Some(known) = held.get(&claim.key) {
            let same = matches!(claim.want, Want::Any) || claim.want == Want::Exact(known.address);
            return if same { Ok(known.clone()) } else { Err(refused()) };
        }
        let free = |address: &Address| held.values().all(|one| one.address != *address);
        let mut all = (1..250).map(|last| format!("192.0.2.{last}").parse::<Address>().unwrap());
        let object = BackendObject {
            reference: claim.key.clone(),
            key: claim.key.clone(),
            holder: Some("kubernetes".to_owned()),
            address: all.find(free).unwrap(),
            length: None,
            since: None,
        };
        held.insert(claim.key.clone(), object.clone());
        Ok(object)
    }

    async fn release(&self, _: &str, object: &BackendObject) -> Result<GivenBack, BackendError> {
        let removed = self.0.lock().unwrap().remove(&object.key);
        Ok(if removed.is_some() { GivenBack::Done } else { GivenBack::AlreadyGone })
    }

    async fn look_up(&self, _: &str, key: &str) -> Result<Vec<BackendObject>, BackendError> {
        Ok(self.0.lock().unwrap().get(key).cloned().into_iter().collect())
    }

    async fn list(&self, _: &str, prefix: &str, _: Option<&str>) -> Result<ObjectPage, BackendError> {
        let held = self.0.lock().unwrap();
        let objects = held.values().filter(|one| one.key.starts_with(prefix)).cloned().collect();
        Ok(ObjectPage { objects, next: None })
    }

    async fn describe(&self, _: &str) -> Result<BackendPoolInfo, BackendError> {
        Err(BackendError::unavailable("it is not asked"))
    }

    async fn changed(&self, _: &str) -> Result<Option<String>, BackendError> {
        Ok(None)
    }
}

/// Counts patches that the server refused.
#[derive(Debug, Default)]
struct Refusals(Mutex<u32>);

impl CallObserver for Refusals {
    fn called(&self, call: Call) {
        if call.operation == "PATCH" && call.outcome == Outcome::Refused {
            *self.0.lock().unwrap() += 1;
        }
    }
}

/// A source that gives Services of the class `netstead.io/lan` addresses.
fn source(
    kubeconfig: &Path,
    more: &str,
    pool: &Arc<MemoryPool>,
    context: impl FnOnce(BuildContext) -> BuildContext,
) -> Arc<dyn Source> {
    let settings = super::read(&format!("kubeconfig = \"{}\"\n{more}\n", kubeconfig.display()));
    let backend: Arc<dyn PoolBackend> = Arc::<MemoryPool>::clone(pool);
    let pools = LoadBalancerPools {
        pools: vec![LoadBalancerPool {
            name: "lan".parse().unwrap(),
            class: "netstead.io/lan".to_owned(),
            family: Family::Ipv4,
            grace: "1m".parse().unwrap(),
        }],
        backend,
        owner: "kubernetes".to_owned(),
    };
    let context = context(BuildContext::new("k".parse().unwrap())).with_part(pools);
    settings.build(&context).unwrap()
}

fn service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{ name: {name}, labels: {{ tier: public }}, annotations: {{ \
         netstead.io/hostname: {name}.lb.test }} }}\nspec: {{ type: LoadBalancer, loadBalancerClass: netstead.io/lan, ports: [{{ \
         port: 80 }}] }}\n"
    )
}

/// The addresses of a Service, and the types of its conditions.
fn status(server: &KubeApiServer, namespace: &str, name: &str) -> (Vec<String>, Vec<String>) {
    let (_, object) = server.call("GET", &format!("/api/v1/namespaces/{namespace}/services/{name}"), None);
    let texts = |list: &Value, key: &str| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.filter_map(|one| one[key].as_str().map(str::to_owned)).collect()
    };
    let status = &object["status"];
    let mut conditions = texts(&status["conditions"], "type");
    conditions.sort();
    (texts(&status["loadBalancer"]["ingress"], "ip"), conditions)
}

/// Goes on as the engine does until nothing is due.
async fn settle(source: &dyn Source) {
    for _ in 0..600 {
        if !source.has_unwritten() {
            return;
        }
        source.hear_names(Vec::new()).await;
        sleep(Duration::from_millis(50)).await;
    }
    panic!("there is always something to write");
}

/// Waits until the source knows exactly these names.
async fn knows(source: &dyn Source, wanted: &[&str]) {
    let seen = until(source, |report| (names(report) == wanted).then_some(())).await;
    assert!(seen.is_ok(), "{:?}", names(&seen.unwrap_err()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_released_once_its_service_is_gone_and_not_when_it_is_no_longer_read() {
    let server = KubeApiServer::shared();
    let (pool, clock) = (Arc::new(MemoryPool::default()), ManualClock::default());
    let own = |more: &str| {
        let more = format!("kinds = \"service\"\nnamespaces = {more}");
        source(&server.kubeconfig(), &more, &pool, |context| context.with_clock(clock.shared()))
    };
    for name in ["gone", "plain", "web"] {
        server.apply_in("keep", &service(name));
    }
    let first = own("\"keep\"\nlabel_selector = \"tier=public\"");
    knows(first.as_ref(), &["gone.lb.test", "plain.lb.test", "web.lb.test"]).await;
    settle(first.as_ref()).await;
    let (gone, plain, web) =
        ("k/keep/gone/ipv4 192.0.2.1", "k/keep/plain/ipv4 192.0.2.2", "k/keep/web/ipv4 192.0.2.3");
    assert_eq!(pool.held(), [gone, plain, web]);
    assert_eq!(status(server, "keep", "web").0, ["192.0.2.3"]);

    // One loses its label, one its type, and one is deleted. The grace passes.
    let path = |name: &str| format!("/api/v1/namespaces/keep/services/{name}");
    server.patch(&path("web"), &json!({ "metadata": { "labels": { "tier": "private" } } }));
    server.patch(&path("plain"), &json!({ "spec": { "type": "ClusterIP", "loadBalancerClass": null } }));
    server.delete(&path("gone"));
    knows(first.as_ref(), &["plain.lb.test"]).await;
    settle(first.as_ref()).await;
    assert_eq!(pool.held(), [gone, plain, web], "the grace has not passed");
    clock.advance(Duration::from_secs(61));
    assert!(first.has_unwritten());
    settle(first.as_ref()).await;
    assert_eq!(pool.held(), [web]);

    // A source that reads other namespaces does not release it either.
    let other = own("\"elsewhere\"");
    server.apply_in("elsewhere", "");
    until(other.as_ref(), |report| (view(report, "service in elsewhere") == "complete").then_some(()))
        .await
        .unwrap();
    settle(other.as_ref()).await;
    clock.advance(Duration::from_secs(61));
    assert!(other.has_unwritten());
    settle(other.as_ref()).await;
    assert_eq!(pool.held(), [web]);

    // Nor does one that may not ask. It asks again, and releases the address once the Service is gone.
    let user = server.user("asker", &[]);
    let role = |verbs: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{ name: asker }}\nrules:\n- {{ apiGroups: \
             [\"\"], resources: [services], verbs: [{verbs}] }}\n---\napiVersion: \
             rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{ name: asker }}\nroleRef: {{ apiGroup: \
             rbac.authorization.k8s.io, kind: Role, name: asker }}\nsubjects: [{{ apiGroup: rbac.authorization.k8s.io, \
             kind: User, name: asker }}]\n"
        )
    };
    server.apply_in("keep", &role("list, watch"));
    let more = "kinds = \"service\"\nnamespaces = \"keep\"\nlabel_selector = \"tier=public\"";
    let asker = source(&user.kubeconfig, more, &pool, |context| context.with_clock(clock.shared()));
    server.delete(&path("web"));
    until(asker.as_ref(), |report| (view(report, "service in keep") == "complete").then_some(()))
        .await
        .unwrap();
    settle(asker.as_ref()).await;
    clock.advance(Duration::from_secs(61));
    settle(asker.as_ref()).await;
    assert_eq!(pool.held(), [web], "it is not known that the Service is gone");
    let told: Vec<String> = asker.diagnose().await.into_iter().map(|one| one.text).collect();
    for text in [
        "its role may not get services in the namespace keep",
        "its role may not patch services/status in the namespace keep",
    ] {
        assert!(told.iter().any(|one| one == text), "{told:?}");
    }
    server.apply_in("keep", &role("list, watch, get"));
    // The server learns of a role a moment later.
    for _ in 0..100 {
        clock.advance(Duration::from_secs(31));
        settle(asker.as_ref()).await;
        if pool.held().is_empty() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", pool.held());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_off_is_done_later_and_no_news_are_lost() {
    let server = KubeApiServer::shared();
    let link = Link::before(std::net::Ipv4Addr::LOCALHOST.into(), server.address()).unwrap();
    let kubeconfig = server.kubeconfig_at(&server.user("cut", &["system:masters"]), link.address());
    server.apply_in("cut", &service("a"));
    server.apply_in("cut", &service("b"));
    let pool = Arc::new(MemoryPool::default());
    let source = source(&kubeconfig, "kinds = \"service\"\nnamespaces = \"cut\"", &pool, |context| context);
    knows(source.as_ref(), &["a.lb.test", "b.lb.test"]).await;
    // 1. The server falls silent. 2. The engine tells news, and gives up on a source that does not return.
    link.hold();
    let taken = NameState {
        name: "a.lb.test".parse().unwrap(),
        provider: Some("lan".parse().unwrap()),
        state: WrittenState::Refused,
        why: Some("taken".to_owned()),
    };
    let news =
        WorkloadNames { id: "service/cut/a".parse().unwrap(), names: vec![taken], why_not: Vec::new() };
    let cut_off = timeout(Duration::from_millis(500), source.hear_names(vec![news])).await;
    assert!(cut_off.is_err(), "nothing comes through");
    // 3. The server answers again.
    link.release();
    assert!(source.has_unwritten(), "something is left to do");
    settle(source.as_ref()).await;
    for (name, address) in [("a", "192.0.2.1"), ("b", "192.0.2.2")] {
        assert_eq!(status(server, "cut", name).0, [address], "{name}");
    }
    let (_, events) = server.call("GET", "/apis/events.k8s.io/v1/namespaces/cut/events", None);
    let told = events["items"].as_array().unwrap().iter().any(|one| {
        one["reason"] == "Refused"
            && one["regarding"]["name"] == "a"
            && one["note"] == "a.lb.test at lan: taken"
    });
    assert!(told, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_of_other_writers_stay_even_those_that_were_not_seen_yet() {
    let server = KubeApiServer::start(&[]);
    server.apply(netstead_sources::kubernetes::DEFINITIONS);
    let link = Link::before(std::net::Ipv4Addr::LOCALHOST.into(), server.address()).unwrap();
    let kubeconfig = server.kubeconfig_at(&server.user("late", &["system:masters"]), link.address());
    let (pool, refusals) = (Arc::new(MemoryPool::default()), Arc::new(Refusals::default()));
    let counter: Arc<dyn CallObserver> = Arc::<Refusals>::clone(&refusals);
    let source = source(
        &kubeconfig,
        "kinds = [\"service\", \"dnsrecord\"]\nnamespaces = \"late\"",
        &pool,
        |context| context.with_calls(counter),
    );
    let record = |name: &str| {
        format!(
            "apiVersion: netstead.io/v1alpha1\nkind: DNSRecord\nmetadata: {{ name: {name} }}\nspec: {{ name: {name}.r.test, \
             type: A, values: [192.0.2.99] }}\n"
        )
    };
    let other = json!({ "status": { "conditions": [{
        "type": "example.com/Seen", "status": "True", "reason": "Seen", "message": "by another",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }] } });
    let services = |name: &str| format!("/api/v1/namespaces/late/services/{name}/status");
    let records = |name: &str| format!("/apis/netstead.io/v1alpha1/namespaces/late/dnsrecords/{name}/status");
    let (mut all, mut wanted): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for turn in 0..5 {
        let name = format!("w{turn}");
        server.apply_in("late", &format!("{}---\n{}", service(&name), record(&name)));
        wanted.extend([format!("{name}.lb.test"), format!("{name}.r.test")]);
        wanted.sort();
        knows(source.as_ref(), &wanted.iter().map(String::as_str).collect::<Vec<_>>()).await;
        all.push(name.clone());
        // 1. The watch breaks, and the pause before the next one grows. 2. Another controller writes. 3. The source writes, and
        // has not seen that.
        link.cut();
        sleep(Duration::from_secs(2)).await;
        server.patch(&services(&name), &other);
        server.patch(&records(&name), &other);
        link.mend();
        let written = NameState {
            name: format!("{name}.r.test").parse().unwrap(),
            provider: Some("lan".parse().unwrap()),
            state: WrittenState::Written,
            why: None,
        };
        let id = format!("dnsrecord/late/{name}").parse().unwrap();
        source.hear_names(vec![WorkloadNames { id, names: vec![written], why_not: Vec::new() }]).await;
        if *refusals.0.lock().unwrap() >= 2 {
            break;
        }
    }
    assert!(*refusals.0.lock().unwrap() >= 2, "no write was late");
    // Both conditions are there in the end, wherever the watch was faster.
    for _ in 0..200 {
        settle_or_wait(source.as_ref()).await;
        let mut whole = true;
        for name in &all {
            let (addresses, conditions) = status(&server, "late", name);
            whole &= addresses.len() == 1 && conditions == ["example.com/Seen", "netstead.io/Address"];
            let (_, record) = server.call("GET", &records(name), None);
            let types: Vec<&str> = record["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["type"].as_str())
                .collect();
            whole &= types.contains(&"example.com/Seen") && types.contains(&"Ready");
        }
        if whole {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("{:?}", all.iter().map(|name| status(&server, "late", name)).collect::<Vec<_>>());
}

/// One step of the engine.
async fn settle_or_wait(source: &dyn Source) {
    if source.has_unwritten() {
        source.hear_names(Vec::new()).await;
    }
}
