//! The whole move from dnsweaver: another program, the same variables.

use std::collections::BTreeMap;

use netstead_testkit::{Dockerd, PowerDns, free_port, wait_until};
use serde_json::{Value, json};

use super::dns_fixture::SOON;
use crate::{
    plain_http::{get, try_get},
    sandbox::Sandbox,
};

const ZONE: &str = "home.test";

/// Record sets as the server has them, by name and type: TTL and values.
type Sets = BTreeMap<(String, String), (u64, Vec<String>)>;

fn port_of(url: &str) -> u16 {
    url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap()
}

/// The records of the zone, but for its SOA and those that are ours alone.
fn sets(server: &PowerDns) -> Sets {
    all(server).into_iter().filter(|((name, _), _)| !name.contains("_netstead-")).collect()
}

/// How many values are marked as ours.
fn marked(server: &PowerDns) -> usize {
    let ours = |name: &str| name.contains("_netstead-") && !name.contains("_netstead-fence-");
    all(server).iter().filter(|((name, _), _)| ours(name)).map(|(_, (_, values))| values.len()).sum()
}

fn all(server: &PowerDns) -> Sets {
    let path = format!("/api/v1/servers/localhost/zones/{ZONE}.");
    let key = format!("X-API-Key: {}", server.api_key());
    let (status, zone) = get(port_of(&server.api_url()), &path, &[&key]);
    assert_eq!(status, 200, "{zone}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let set = |set: &Value| {
        let values = set["records"].as_array().unwrap().iter().map(|record| text(&record["content"]));
        let mut values: Vec<String> = values.collect();
        values.sort();
        ((text(&set["name"]), text(&set["type"])), (set["ttl"].as_u64().unwrap(), values))
    };
    let sets = zone["rrsets"].as_array().unwrap().iter().map(set);
    sets.filter(|((_, kind), _)| kind != "SOA").collect()
}

fn put(server: &PowerDns, name: &str, kind: &str, content: &str, ttl: u32) {
    let statement = format!(
        "INSERT INTO records (domain_id, name, type, content, ttl) SELECT id, '{name}', '{kind}', '{content}', {ttl} \
         FROM domains WHERE name = '{ZONE}'"
    );
    server.sql(&statement).unwrap();
}

/// A server as dnsweaver left it: its records, its marks of both kinds, and a foreign record.
fn filled() -> Option<PowerDns> {
    let server = PowerDns::start(&[ZONE])?;
    for name in ["web", "www", "api", "file"] {
        put(&server, &format!("{name}.home.test"), "A", "10.0.3.9", 300);
    }
    put(&server, "_http._tcp.home.test", "SRV", "10 5 8080 api.home.test", 300);
    let mark = "\"heritage=dnsweaver,instance=home\"";
    for name in ["web.home.test", "www.home.test", "_http._tcp.home.test", "file.home.test"] {
        put(&server, &format!("_dnsweaver.{name}"), "TXT", mark, 300);
    }
    let mark =
        "\"heritage=dnsweaver,instance=home,record-target=MTAuMC4zLjk,record-type=A,record-version=2\"";
    put(&server, "_dnsweaver.api.home.test", "TXT", mark, 300);
    put(&server, "hand.home.test", "A", "192.0.2.3", 60);
    Some(server)
}

/// A sandbox with dnsweaver's variables, and nothing else of its own.
fn sandbox(server: &PowerDns, docker: &Dockerd, more: &[(&'static str, &str)]) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    let rules = sandbox.path().join("rules");
    std::fs::create_dir(&rules).unwrap();
    std::fs::write(rules.join("f.yml"), "http:\n  routers:\n    f:\n      rule: Host(`file.home.test`)\n")
        .unwrap();
    for (name, value) in [
        ("DNSWEAVER_INSTANCES", "internal-dns"),
        ("DNSWEAVER_SOURCES", "traefik,dnsweaver"),
        ("DNSWEAVER_INSTANCE_ID", "home"),
        ("DNSWEAVER_DOCKER_HOST", &docker.host()),
        ("DNSWEAVER_RECONCILE_INTERVAL", "1s"),
        ("DNSWEAVER_SOURCE_TRAEFIK_FILE_PATHS", rules.to_str().unwrap()),
        ("DNSWEAVER_INTERNAL_DNS_TYPE", "powerdns"),
        ("DNSWEAVER_INTERNAL_DNS_URL", &server.api_url()),
        ("DNSWEAVER_INTERNAL_DNS_API_KEY", server.api_key()),
        ("DNSWEAVER_INTERNAL_DNS_ZONE", ZONE),
        ("DNSWEAVER_INTERNAL_DNS_TARGET", "10.0.3.9"),
        ("DNSWEAVER_INTERNAL_DNS_DOMAINS", "*.home.test"),
    ] {
        sandbox.set(name, value);
    }
    for (name, value) in more {
        sandbox.set(name, value);
    }
    sandbox
}

fn containers() -> Option<Dockerd> {
    let docker = Dockerd::start()?;
    let rule = "traefik.http.routers.web.rule=Host(`web.home.test`) || Host(`www.home.test`)";
    docker.docker(&["run", "-d", "--name", "web", "--label", rule, "tiny:1"]);
    let labels = [
        "dnsweaver.hostname=api.home.test",
        "dnsweaver.records.srv.hostname=_http._tcp.home.test",
        "dnsweaver.records.srv.type=SRV",
        "dnsweaver.records.srv.target=api.home.test",
        "dnsweaver.records.srv.port=8080",
        "dnsweaver.records.srv.priority=10",
        "dnsweaver.records.srv.weight=5",
    ];
    let labels = labels.iter().flat_map(|label| ["--label", label]);
    let words: Vec<&str> =
        ["run", "-d", "--name", "api"].into_iter().chain(labels).chain(["tiny:1"]).collect();
    docker.docker(&words);
    Some(docker)
}

/// Waits until the plan is empty.
fn plans_nothing(sandbox: &Sandbox) {
    let done = wait_until(SOON, || {
        let seen = sandbox.netstead(["plan", "internal-dns"]);
        let known = sandbox.does("get workloads -o name").lines().count() >= 3;
        (seen.code == 0 && known).then_some(())
    });
    let seen = sandbox.netstead(["plan", "internal-dns"]);
    assert!(done.is_some(), "plan says {}:\n{}{}", seen.code, seen.out, seen.err);
}

#[test]
fn with_dnsweavers_variables_and_adoption_nothing_is_left_to_do_and_no_record_changes() {
    let Some(server) = filled() else { return };
    let Some(docker) = containers() else { return };
    let before = sets(&server);

    // dnsweaver was told to adopt: all that is equal becomes ours by itself.
    let mut sandbox = self::sandbox(&server, &docker, &[("DNSWEAVER_ADOPT_EXISTING", "true")]);
    sandbox.start(&["--log-format", "json"]);
    plans_nothing(&sandbox);
    assert_eq!(sets(&server), before);
    assert_eq!(marked(&server), 5);
    sandbox.stop();
    sandbox.start(&["--log-format", "json"]);
    sandbox.does("apply");
    plans_nothing(&sandbox);
    assert_eq!(sets(&server), before);
    sandbox.stop();
}

#[test]
fn without_it_one_command_takes_over_what_dnsweaver_marked_and_only_the_marks_go() {
    let Some(server) = filled() else { return };
    let Some(docker) = containers() else { return };
    let before = sets(&server);
    let mut sandbox = self::sandbox(&server, &docker, &[]);
    sandbox.start(&["--log-format", "json"]);
    let blocked = wait_until(SOON, || {
        let seen = sandbox.netstead(["plan", "internal-dns"]);
        (seen.out.contains("web.home.test") && seen.out.contains("blocked")).then_some(())
    });
    assert!(blocked.is_some(), "{}", sandbox.netstead(["plan", "internal-dns"]).out);
    assert_eq!(sets(&server), before, "nothing is touched before somebody says so");

    let taken = sandbox.does("adopt --from dnsweaver --id home");
    assert!(taken.contains("api.home.test A 10.0.3.9  from dnsweaver home"), "{taken}");
    plans_nothing(&sandbox);
    let mut left = before;
    left.retain(|(name, _), _| !name.starts_with("_dnsweaver."));
    assert_eq!(sets(&server), left);
    assert_eq!(marked(&server), 5);
    sandbox.stop();
}

#[test]
fn probes_are_answered_on_dnsweavers_port_as_dnsweaver_does() {
    let Some(mut server) = PowerDns::start(&[ZONE]) else { return };
    let port = free_port().unwrap();
    let mut sandbox = Sandbox::empty();
    sandbox.write("rules.yml", "http:\n  routers:\n    f:\n      rule: Host(`file.home.test`)\n");
    for (name, value) in [
        ("DNSWEAVER_INSTANCES", "internal-dns,far"),
        ("DNSWEAVER_PLATFORM", "none"),
        ("DNSWEAVER_HEALTH_PORT", &port.to_string()),
        ("DNSWEAVER_RECONCILE_INTERVAL", "1s"),
        ("DNSWEAVER_SOURCE_TRAEFIK_FILE_PATHS", "rules.yml"),
        ("DNSWEAVER_INTERNAL_DNS_TYPE", "powerdns"),
        ("DNSWEAVER_INTERNAL_DNS_URL", &server.api_url()),
        ("DNSWEAVER_INTERNAL_DNS_API_KEY", server.api_key()),
        ("DNSWEAVER_INTERNAL_DNS_TARGET", "10.0.3.9"),
        ("DNSWEAVER_INTERNAL_DNS_DOMAINS", "*.home.test"),
        ("DNSWEAVER_FAR_TYPE", "powerdns"),
        ("DNSWEAVER_FAR_URL", &format!("http://127.0.0.1:{}", free_port().unwrap())),
        ("DNSWEAVER_FAR_API_KEY", "none"),
        ("DNSWEAVER_FAR_TARGET", "10.0.3.9"),
        ("DNSWEAVER_FAR_DOMAINS", "*.far.test"),
    ] {
        sandbox.set(name, value);
    }
    sandbox.start(&["--log-format", "json"]);
    assert_eq!(get(port, "/health", &[]), (200, json!({"status": "healthy"})));
    // One server is there, the other was never: it is waited for.
    let pending = json!([{"name": "provider-manager", "message": "1 providers pending: [far]"}]);
    let fine = json!([{"name": "provider:internal-dns", "healthy": true}]);
    let wanted = (200, json!({"status": "degraded", "components": fine, "degraded": pending}));
    let seen = wait_until(SOON, || try_get(port, "/ready", &[]).filter(|seen| *seen == wanted));
    assert!(seen.is_some(), "{:?}", get(port, "/ready", &[]));
    assert!(get(port, "/metrics", &[]).1.as_str().is_some_and(|text| text.contains("netstead_")));
    assert_eq!(get(port, "/api/v1/status", &[]).0, 404, "the API is elsewhere");

    // It answered, and does not any more.
    server.process().kill().unwrap();
    let unready = wait_until(SOON, || try_get(port, "/ready", &[]).filter(|(status, _)| *status == 503));
    let Some((_, said)) = unready else { panic!("{:?}", get(port, "/ready", &[])) };
    assert_eq!((&said["status"], &said["components"][0]["healthy"]), (&json!("not_ready"), &json!(false)));
    assert!(said["components"][0]["error"].is_string(), "{said}");
    assert_eq!(get(port, "/health", &[]).0, 200);
    sandbox.stop();
    assert!(try_get(port, "/health", &[]).is_none());
}

#[test]
fn a_port_for_probes_that_is_taken_stops_nothing() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sandbox = Sandbox::empty();
    sandbox.write("netstead.toml", &format!("[api]\nprobes = \"{}\"\n", taken.local_addr().unwrap()));
    sandbox.start(&[]);
    let log = sandbox.server().log();
    assert!(log.contains("No probes are answered."), "{log}");
    sandbox.stop();
}
