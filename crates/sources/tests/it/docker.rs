//! Docker's API as it is recorded, and what is made of it.

mod doctor;
mod dynamic_targets;
mod fake;
mod swarm;

use std::{path::Path, sync::Arc, time::Duration};

use netstead_model::{Content, Report, Source as _, View, Workload};
use netstead_settings::BuildContext;
use netstead_sources::{
    Docker, contract,
    dialects::{Dialect, Reader, TargetSpec},
    docker::{Config, DockerHost, Mode},
};
use serde_json::{Value, json};

use self::fake::Fake;

fn config(socket: &Path) -> Config {
    Config {
        host: DockerHost::Unix(socket.to_owned()),
        tls: None,
        mode: Mode::Auto,
        reader: Reader::new([Dialect::Netstead]),
        target: TargetSpec::Source,
        keep_stopped: false,
        observe: false,
        places: None,
    }
}

fn docker(config: Config) -> Docker {
    Docker::new(config, &BuildContext::new("dock".parse().unwrap())).unwrap()
}

/// A container that asks for `NAME.home.test`, on one network.
fn container(name: &str, network: (&str, &str), address: &str) -> Value {
    json!({
        "Id": format!("id-of-{name}"), "Names": [format!("/{name}")], "State": "running",
        "Labels": { "netstead.hostname": format!("{name}.home.test") },
        "NetworkSettings": { "Networks": { network.0: {
            "NetworkID": network.1, "IPAddress": address, "MacAddress": "02:42:ac:11:00:02", "GlobalIPv6Address": ""
        } } }
    })
}

/// `name address…` of every wish.
fn wishes(report: &Report) -> Vec<String> {
    let shown = |workload: &Workload| {
        let of = |content: &Content| match content {
            Content::Addresses(addresses) => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                [" ", &addresses.join(" ")].concat().trim_end().to_owned()
            }
            Content::Records { kind, values } => format!(" {kind} {values:?}"),
        };
        workload.wishes.iter().map(|wish| format!("{}{}", wish.name, of(&wish.content))).collect::<Vec<_>>()
    };
    report.workloads().into_iter().flat_map(shown).collect()
}

fn reason(report: &Report) -> String {
    report.view().reason().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn only_labels_that_a_dialect_reads_are_kept() {
    let read = [
        ("netstead.hostname", "web.home.test"),
        ("netstead.records.mail.type", "MX"),
        ("dnsweaver.ttl", "60"),
        ("external-dns.alpha.kubernetes.io/target", "10.0.3.9"),
        ("traefik.enable", "true"),
        ("Traefik.HTTP.Routers.web.Rule", "Host(`web.home.test`)"),
        ("traefik.tcp.routers.db.tls.domains[0].sans", "db.home.test"),
        ("com.docker.compose.service", "web"),
        ("caddy", "web.home.test"),
        ("caddy_1", "www.home.test"),
        ("VIRTUAL_HOST", "web.home.test"),
        ("com.nginx-proxy.virtual_host", "web.home.test"),
    ];
    let others = [
        "com.example.password",
        "netstead.meta.password",
        "netstead.records.mail.password",
        "netstead.records.password",
        "dnsweaver.password",
        "external-dns.alpha.kubernetes.io/password",
        "traefik.http.middlewares.auth.basicauth.users",
        "traefik.http.routers.web.tls.certresolver",
        "traefik.http.services.web.loadbalancer.server.port",
        "caddy.basicauth",
        "caddy_1.basic_auth.admin",
        "VIRTUAL_PORT",
    ];
    let all = read.iter().copied().chain(others.map(|name| (name, "LABELSECRET123")));
    let labels: serde_json::Map<String, Value> =
        all.map(|(name, value)| (name.into(), value.into())).collect();
    let fake = Fake::start();
    let mut container = container("web", ("bridge", "n1"), "172.17.0.2");
    container["Labels"] = labels.into();
    fake.answers("/containers/json", &json!([container]));
    let every = Config { reader: Reader::default(), ..config(&fake.socket()) };
    let report = docker(every).report().await;
    let kept: Vec<_> = report.workloads()[0].labels.iter().map(|(name, value)| (&**name, &**value)).collect();
    let mut wanted = read.to_vec();
    wanted.sort_unstable();
    assert_eq!(kept, wanted);
    assert!(!format!("{report:?}").contains("LABELSECRET123"), "{report:?}");
    // Of a dialect that is not chosen nothing is kept either.
    let report = docker(config(&fake.socket())).report().await;
    let kept: Vec<_> = report.workloads()[0].labels.keys().collect();
    assert_eq!(kept, ["netstead.hostname", "netstead.records.mail.type"]);
}

#[tokio::test]
async fn a_docker_host_keeps_the_contract() {
    let fake = Fake::start();
    fake.answers(
        "/containers/json",
        &json!([
            container("web", ("bridge", "n1"), "172.17.0.2"),
            container("db", ("lan", "n2"), "10.0.3.9")
        ]),
    );
    contract::sees_the_same_twice(&docker(config(&fake.socket()))).await;
    contract::admits_what_it_cannot_see(&docker(config(Path::new("/nowhere/docker.sock")))).await;
    fake.says("/containers/json", 500, r#"{"message":"the disk is full"}"#);
    contract::admits_what_it_cannot_see(&docker(config(&fake.socket()))).await;
    fake.says("/containers/json", 200, "[{\"Id\":");
    contract::admits_what_it_cannot_see(&docker(config(&fake.socket()))).await;
}

#[tokio::test]
async fn a_name_points_at_what_the_network_around_can_reach() {
    let fake = Fake::start();
    let mut restarting = container("slow", ("lan", "n2"), "");
    restarting["State"] = json!("restarting");
    fake.answers(
        "/containers/json",
        &json!([
            container("db", ("lan", "n2"), "10.0.3.9"),
            container("web", ("bridge", "n1"), "172.17.0.2"),
            restarting
        ]),
    );
    let report = docker(config(&fake.socket())).report().await;
    let seen = wishes(&report);
    assert_eq!(seen[0], "db.home.test 10.0.3.9");
    // It has a place of its own, only not now: never the host's meanwhile.
    assert_eq!(seen[1], "slow.home.test");
    assert_eq!(report.workloads()[1].why_not, ["it has no address: it has no address on its network now"]);
    assert!(!seen[2].contains("172.17."), "{seen:?}");
    let local: Vec<bool> =
        report.workloads().into_iter().flat_map(|one| &one.interfaces).map(|one| one.local).collect();
    assert_eq!(local, [false, true]);
    assert_eq!(report.workloads()[0].interfaces[0].mac.unwrap().to_string(), "02:42:ac:11:00:02");

    let fixed = TargetSpec::Addresses(vec!["198.51.100.7".parse().unwrap()]);
    for (target, wanted) in [
        (fixed, "web.home.test 198.51.100.7"),
        (TargetSpec::Network("bridge".into()), "web.home.test 172.17.0.2"),
        (TargetSpec::Network("none".into()), "web.home.test"),
    ] {
        let report = docker(Config { target, observe: true, ..config(&fake.socket()) }).report().await;
        assert_eq!(wishes(&report)[2], wanted);
        assert!(report.workloads().into_iter().flat_map(|one| &one.interfaces).all(|one| !one.local));
    }
}

#[tokio::test]
async fn five_hundred_containers_cost_four_calls() {
    let fake = Fake::start();
    let many: Vec<Value> =
        (0..500).map(|n| container(&format!("web{n}"), ("bridge", "n1"), "172.17.0.2")).collect();
    fake.answers("/containers/json", &json!(many));
    let source = docker(config(&fake.socket()));
    let report = source.report().await;
    assert_eq!((report.view(), report.workloads().len()), (View::Complete, 500));
    fake.followed().await;
    let mut calls = fake.calls();
    calls.sort();
    assert_eq!(calls, ["/containers/json", "/events", "/info", "/networks"]);
}

#[tokio::test]
async fn what_a_socket_proxy_keeps_back_is_named() {
    let fake = Fake::start();
    let no = "<html><body><h1>403 Forbidden</h1></body></html>";
    fake.answers("/containers/json", &json!([container("web", ("bridge", "n1"), "172.17.0.2")]));
    fake.says("/info", 403, no);
    fake.says("/networks", 403, no);
    let report = docker(config(&fake.socket())).report().await;
    assert!(matches!(report.view(), View::Partial { .. }));
    assert_eq!(
        reason(&report),
        "GET /info is not allowed (403): allow INFO in the socket proxy, or set `mode = \"standalone\"`; \
         GET /networks is not allowed (403): allow NETWORKS in the socket proxy, or set `target` to something else \
         than `auto`"
    );
    assert_eq!(report.workloads().len(), 1);

    let target = TargetSpec::Addresses(vec!["198.51.100.7".parse().unwrap()]);
    let mode = Mode::Standalone;
    let enough = docker(Config { target, mode, ..config(&fake.socket()) }).report().await;
    assert_eq!(
        (enough.view(), wishes(&enough)),
        (View::Complete, vec!["web.home.test 198.51.100.7".to_owned()])
    );

    fake.says("/containers/json", 403, no);
    let none = docker(config(&fake.socket())).report().await;
    assert_eq!(
        reason(&none),
        "GET /containers/json is not allowed (403): allow CONTAINERS in the socket proxy"
    );
}

#[tokio::test]
async fn a_removed_container_ended_unless_it_is_back_under_its_name() {
    let fake = Fake::start();
    let source = docker(config(&fake.socket()));
    source.report().await;
    fake.followed().await;
    source.changed().await;
    fake.event("container", "destroy", &json!({ "name": "gone" }));
    fake.event("container", "destroy", &json!({ "name": "back" }));
    fake.event("container", "die", &json!({ "name": "stopped" }));
    source.changed().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    fake.says("/containers/json", 500, "{}");
    let failed = source.report().await;
    assert!(failed.ended().is_empty(), "what could not be reported is kept");
    fake.answers("/containers/json", &json!([container("back", ("bridge", "n1"), "172.17.0.2")]));
    let report = source.report().await;
    let ended: Vec<(String, bool)> =
        report.ended().into_iter().map(|end| (end.id.to_string(), end.asked)).collect();
    assert_eq!(ended, [("gone".to_owned(), false)]);
    assert!(source.report().await.ended().is_empty(), "an end is told once");
}

#[tokio::test]
async fn a_docker_that_comes_back_is_looked_at_again() {
    let mut fake = Fake::start();
    let source = Arc::new(docker(config(&fake.socket())));
    assert_eq!(source.report().await.view(), View::Complete);
    fake.followed().await;
    source.changed().await;
    fake.stop().await;
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, source.changed()).await.expect("the end of the stream is news");
    let gone = source.report().await;
    assert_eq!(
        reason(&gone),
        format!("there is no {}: is Docker installed and running?", fake.socket().display())
    );
    fake.listen();
    tokio::time::timeout(soon, source.changed()).await.expect("its return is news");
    assert_eq!(source.report().await.view(), View::Complete);
}

#[tokio::test]
async fn only_an_address_of_its_own_is_called_after_a_container() {
    let fake = Fake::start();
    let mut fixed = container("fixed", ("bridge", "n1"), "172.17.0.3");
    fixed["Labels"]["netstead.target"] = json!("198.51.100.9");
    fixed["Labels"]["netstead.proxied"] = json!("true");
    fake.answers(
        "/containers/json",
        &json!([
            container("db", ("lan", "n2"), "10.0.3.9"),
            fixed,
            container("web", ("bridge", "n1"), "172.17.0.2"),
        ]),
    );
    let target = TargetSpec::Addresses(vec!["198.51.100.7".parse().unwrap()]);
    for (target, wanted) in [
        (TargetSpec::Source, [("db", false, true), ("fixed", true, false), ("web", true, false)]),
        (target, [("db", true, false), ("fixed", true, false), ("web", true, false)]),
        (TargetSpec::Host, [("db", true, false), ("fixed", true, false), ("web", true, false)]),
    ] {
        let report = docker(Config { target, ..config(&fake.socket()) }).report().await;
        let wishes =
            report.workloads().into_iter().flat_map(|one| one.wishes.iter().map(move |wish| (one, wish)));
        let seen: Vec<(&str, bool, bool)> =
            wishes.clone().map(|(one, wish)| (one.name.as_str(), wish.borrowed, wish.main)).collect();
        assert_eq!(seen, wanted);
        let proxied: Vec<Option<bool>> = wishes.map(|(_, wish)| wish.proxied).collect();
        assert_eq!(proxied, [None, Some(true), None]);
    }
}

#[tokio::test]
async fn a_label_that_cannot_be_read_is_a_matter_of_its_container_alone() {
    let fake = Fake::start();
    let mut bad = container("bad", ("bridge", "n1"), "172.17.0.3");
    bad["Labels"] = json!({ "traefik.http.routers.r.rule": "Host(`bad.home.test" });
    let mut pooled = container("pooled", ("lan", "n2"), "10.0.3.8");
    pooled["Labels"]["netstead.pool"] = json!("lan");
    fake.answers("/containers/json", &json!([bad, pooled, container("web", ("bridge", "n1"), "172.17.0.2")]));
    let reader = Reader::default();
    fake.answers("/containers/", &json!({ "Config": { "Env": [] } }));
    let report = docker(Config { reader, ..config(&fake.socket()) }).report().await;
    assert_eq!(report.view(), View::Complete);
    let seen: Vec<_> = report
        .workloads()
        .into_iter()
        .map(|one| (one.name.as_str(), one.unclear, one.pool.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(seen, [("bad", true, None), ("pooled", false, Some("lan".to_owned())), ("web", false, None)]);
    assert!(report.workloads()[0].why_not[0].contains("traefik.http.routers.r.rule"), "{report:?}");
}
