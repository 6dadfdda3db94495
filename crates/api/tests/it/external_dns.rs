//! The webhook protocol as a server, asked byte for byte as external-dns asks.

use std::sync::Arc;

use netstead_api::{ExternalDns, ExternalDnsOptions, ServeOptions, TlsFiles, bind, cluster::EngineSlot};
use netstead_engine::{Engine, Options, PushedSetup, Setup};
use netstead_model::SystemClock;
use netstead_plan::SourceRules;
use netstead_store::{MemoryStore, Store};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

use crate::dns_server::DnsServer;

const MEDIA: &str = "application/external.dns.webhook+json;version=1";
/// `netstead:s3cret` in base64, as Go makes it of `http://netstead:s3cret@host`.
const BASIC: &str = "Authorization: Basic bmV0c3RlYWQ6czNjcmV0";

struct Webhook {
    address: std::net::SocketAddr,
    slot: EngineSlot,
    store: Arc<dyn Store>,
    server: Arc<DnsServer>,
    tables: ExternalDns,
    _stop: tokio_util::sync::DropGuard,
}

impl Webhook {
    async fn open() -> Self {
        let (slot, stop) = (EngineSlot::default(), CancellationToken::new());
        let name = |text: &str| text.parse().unwrap();
        let options = ExternalDnsOptions {
            source: "k8s".parse().unwrap(),
            token: Some("s3cret".into()),
            domains: vec![name("a.test")],
            exclude: vec![name("kept.a.test")],
        };
        let bound = bind(ServeOptions::new("127.0.0.1:0")).await.unwrap();
        let tables = ExternalDns::new(&slot, None, SystemClock::shared());
        tables.configure([options]);
        let address = bound.serve_external_dns(&tables, &"k8s".parse().unwrap(), stop.clone()).address();
        let (store, server) = (Arc::new(MemoryStore::new()), DnsServer::new(&["a.test"]));
        Self { address, slot, store, server, tables, _stop: stop.drop_guard() }
    }

    /// This node leads.
    async fn lead(&self) -> Engine {
        let pushed = PushedSetup { name: "k8s".parse().unwrap(), rules: SourceRules::default() };
        let setup = Setup {
            pushed: vec![pushed],
            providers: vec![self.server.setup("lan", &["a.test"])],
            ..Setup::default()
        };
        let store = Arc::clone(&self.store);
        let engine = Engine::start(store, SystemClock::shared(), setup, Options::default()).await.unwrap();
        self.slot.install(engine.clone());
        engine
    }

    /// Sends a request as Go's client writes it. Gives the status, the content type and the body.
    async fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, String, String) {
        let mut lines = vec![
            format!("{method} {path} HTTP/1.1"),
            format!("Host: {}", self.address),
            "User-Agent: Go-http-client/1.1".to_owned(),
        ];
        if method == "POST" {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        lines.extend(headers.iter().map(ToString::to_string));
        lines.push("Accept-Encoding: gzip".to_owned());
        // The stock client keeps its connections; here the end of the answer is the end of the connection.
        lines.push("Connection: close".to_owned());
        let text = format!("{}\r\n\r\n{body}", lines.join("\r\n"));
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
        (status, kind.to_owned(), body.to_owned())
    }

    async fn get(&self, path: &str) -> (u16, String, Value) {
        let (status, kind, body) = self.ask("GET", path, &[&format!("Accept: {MEDIA}"), BASIC], "").await;
        (status, kind, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    async fn adjust(&self, endpoints: Value) -> Value {
        let headers = [&format!("Accept: {MEDIA}"), BASIC, &format!("Content-Type: {MEDIA}")];
        let (status, kind, body) =
            self.ask("POST", "/adjustendpoints", &headers, &endpoints.to_string()).await;
        assert_eq!((status, kind.as_str()), (200, MEDIA), "{body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn change(&self, changes: Value) -> (u16, String) {
        let headers = [BASIC, &format!("Content-Type: {MEDIA}")];
        let (status, _, body) = self.ask("POST", "/records", &headers, &changes.to_string()).await;
        (status, body)
    }
}

async fn published(engine: &Engine) -> Vec<String> {
    engine.apply(None).await.unwrap();
    let records =
        engine.records().into_iter().filter(|record| !record.name.as_str().starts_with("_netstead"));
    records.map(|record| format!("{} {}", record.name, record.value)).collect()
}

fn www(targets: &[&str]) -> Value {
    json!({ "dnsName": "WWW.a.test", "targets": targets, "recordType": "A",
        "labels": { "owner": "k8s", "resource": "service/default/web" } })
}

fn registry() -> Value {
    json!({ "dnsName": "a-www.a.test", "recordType": "TXT",
        "targets": ["\"heritage=external-dns,external-dns/owner=k8s,external-dns/resource=service/default/web\""],
        "labels": { "ownedRecord": "www.a.test" } })
}

#[tokio::test]
async fn external_dns_writes_its_endpoints_and_reads_them_as_adjusted() {
    let webhook = Webhook::open().await;
    let engine = webhook.lead().await;
    let filter = json!({ "include": ["a.test"], "exclude": ["kept.a.test"] });
    assert_eq!(webhook.get("/").await, (200, MEDIA.to_owned(), filter));
    assert_eq!(webhook.get("/records").await, (200, MEDIA.to_owned(), json!([])));
    let desired = webhook.adjust(json!([www(&["192.0.2.2", "192.0.2.1"]), registry()])).await;
    assert_eq!(webhook.change(json!({ "create": desired })).await, (204, String::new()));
    let mut held = webhook.get("/records").await.2;
    held.as_array_mut().unwrap().reverse();
    assert_eq!(held, desired, "what is listed is what was adjusted, so no change is planned for ever");
    assert_eq!(desired[0]["dnsName"], "www.a.test");
    assert_eq!(desired[0]["targets"], json!(["192.0.2.1", "192.0.2.2"]));
    assert_eq!(desired[1], registry());
    // Its ownership records are held and not published.
    assert_eq!(published(&engine).await, ["www.a.test 192.0.2.1", "www.a.test 192.0.2.2"]);
    let status = engine.status();
    let source = status.sources.iter().find(|source| source.name.as_str() == "k8s").unwrap();
    assert_eq!(source.kind, Some("external-dns"));
    let why = engine.explain(&"www.a.test".parse().unwrap(), None).await.join("\n");
    assert!(why.contains("endpoint of external-dns for service/default/web"), "{why}");
    let new = webhook.adjust(json!([www(&["192.0.2.3"])])).await;
    let update = json!({ "updateOld": [desired[0]], "updateNew": new });
    assert_eq!(webhook.change(update.clone()).await.0, 204);
    assert_eq!(webhook.change(update).await.0, 204, "a repeat changes nothing");
    assert_eq!(published(&engine).await, ["www.a.test 192.0.2.3"]);
    assert_eq!(webhook.change(json!({ "delete": [new[0], registry()] })).await.0, 204);
    assert_eq!(webhook.get("/records").await.2, json!([]));
    assert_eq!(published(&engine).await, [""; 0]);
}

#[tokio::test]
async fn endpoints_survive_a_restart_and_a_node_that_does_not_lead_answers_503() {
    let webhook = Webhook::open().await;
    let engine = webhook.lead().await;
    let desired = webhook.adjust(json!([www(&["192.0.2.1"]), registry()])).await;
    assert_eq!(webhook.change(json!({ "create": desired })).await.0, 204);
    assert_eq!(published(&engine).await, ["www.a.test 192.0.2.1"]);
    let held = webhook.get("/records").await;
    webhook.slot.uninstall();
    engine.close().await;
    assert_eq!(webhook.get("/").await.0, 200, "the filter is known everywhere");
    assert_eq!(webhook.get("/records").await.0, 503);
    assert_eq!(webhook.change(json!({ "delete": desired })).await.0, 503);
    let engine = webhook.lead().await;
    assert_eq!(webhook.get("/records").await, held);
    assert_eq!(published(&engine).await, ["www.a.test 192.0.2.1"]);
    assert_eq!(webhook.change(json!({ "delete": desired })).await.0, 204);
    assert_eq!(published(&engine).await, [""; 0]);
}

#[tokio::test]
async fn one_endpoint_that_cannot_be_held_does_not_stop_the_others() {
    let webhook = Webhook::open().await;
    let engine = webhook.lead().await;
    let outside = json!({ "dnsName": "x.kept.a.test", "targets": ["192.0.2.9"], "recordType": "A" });
    let weighted = json!({ "dnsName": "w.a.test", "targets": ["192.0.2.9"], "recordType": "A",
        "setIdentifier": "blue" });
    let (status, reason) =
        webhook.change(json!({ "create": [outside, weighted, www(&["192.0.2.1"])] })).await;
    // A soft error: external-dns logs it and tries again, and its process goes on.
    assert_eq!(status, 500);
    assert_eq!(
        reason,
        "`x.kept.a.test` is outside the domains of [external_dns.k8s]; `w.a.test` A: sets with a set identifier are not held\n"
    );
    assert_eq!(published(&engine).await, ["www.a.test 192.0.2.1"]);
    assert_eq!(webhook.adjust(json!([weighted])).await, json!([]), "what cannot be held is not planned");
    assert_eq!(webhook.adjust(Value::Null).await, json!([]));
}

#[tokio::test]
async fn callers_without_the_token_and_requests_that_are_no_webhook_calls_are_refused() {
    let webhook = Webhook::open().await;
    let _engine = webhook.lead().await;
    let media = format!("Content-Type: {MEDIA}");
    for headers in
        [&[][..], &["Authorization: Basic bmV0c3RlYWQ6d3Jvbmc="], &["Authorization: Bearer s3cret"]]
    {
        for path in ["/", "/records"] {
            assert_eq!(webhook.ask("GET", path, headers, "").await.0, 401, "{headers:?}");
        }
        assert_eq!(webhook.ask("POST", "/records", &[headers, &[&media]].concat(), "{}").await.0, 401);
    }
    assert_eq!(webhook.ask("GET", "/healthz", &[], "").await.0, 200);
    assert_eq!(webhook.ask("POST", "/records", &[BASIC, &media], "{").await.0, 400);
    assert_eq!(
        webhook.ask("POST", "/records", &[BASIC, "Content-Type: application/json"], "{}").await.0,
        415
    );
    let unpaired = r#"{"updateOld":[{"dnsName":"x.a.test"}]}"#;
    assert_eq!(webhook.ask("POST", "/records", &[BASIC, &media], unpaired).await.0, 400);
    assert_eq!(webhook.ask("PUT", "/records", &[BASIC, &media], "").await.0, 405);
    assert_eq!(webhook.get("/elsewhere").await.0, 404);
}

#[tokio::test]
async fn the_token_may_stand_in_the_address_and_the_listener_has_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let options = ServeOptions { tls: Some(TlsFiles::new(cert, key)), ..ServeOptions::new("127.0.0.1:0") };
    let webhook = ExternalDnsOptions {
        source: "k8s".parse().unwrap(),
        token: Some("s3cret".into()),
        domains: vec!["a.test".parse().unwrap()],
        exclude: Vec::new(),
    };
    let stop = CancellationToken::new();
    let tables = ExternalDns::new(&EngineSlot::default(), None, SystemClock::shared());
    tables.configure([webhook]);
    let k8s = "k8s".parse().unwrap();
    let server = bind(options).await.unwrap().serve_external_dns(&tables, &k8s, stop.clone());
    let authority = reqwest::Certificate::from_pem(made.cert.pem().as_bytes()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([authority]).build().unwrap();
    let port = server.address().port();
    for (user, status) in [("any:s3cret@", 200), ("any:wrong@", 401), ("", 401)] {
        let answer = client.get(format!("https://{user}localhost:{port}")).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{user}");
    }
    stop.cancel();
}

#[tokio::test]
async fn another_table_counts_with_the_next_call_and_the_last_call_is_known() {
    let webhook = Webhook::open().await;
    let _engine = webhook.lead().await;
    let k8s = "k8s".parse().unwrap();
    assert_eq!(webhook.tables.last_call(&k8s), None);
    assert_eq!(webhook.ask("GET", "/", &[], "").await.0, 401);
    assert_eq!(webhook.tables.last_call(&k8s), None, "a stranger is not external-dns");
    assert_eq!(webhook.get("/").await.0, 200);
    assert!(webhook.tables.last_call(&k8s).is_some());
    webhook.tables.configure([ExternalDnsOptions {
        source: k8s,
        token: Some("s3cret".into()),
        domains: vec!["b.test".parse().unwrap()],
        exclude: Vec::new(),
    }]);
    assert_eq!(webhook.get("/").await.2, json!({ "include": ["b.test"], "exclude": [] }));
    assert_eq!(webhook.change(json!({ "create": [www(&["192.0.2.1"])] })).await.0, 500);
    webhook.tables.configure([]);
    assert_eq!(webhook.get("/records").await.0, 503);
}
