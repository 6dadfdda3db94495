//! Nodes that talk TLS to each other.

use netstead_testkit::Etcd;
use reqwest::Method;
use serde_json::json;

use super::nodes::{Http, ready};

#[test]
fn a_node_sends_requests_on_to_one_whose_certificate_it_was_told_to_trust() {
    let Some(etcd) = Etcd::start(1) else { return };
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let store = format!("[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\n", etcd.endpoints()[0]);
    let tls = format!("[api]\ntls_cert = \"{}\"\ntls_key = \"{}\"\n", cert.display(), key.display());
    let (_, mut leader) = ready(&format!("{store}{tls}"));
    leader.wait_for_line("This node leads", crate::sandbox::SOON).unwrap();
    // These talk plainly to their callers, and TLS to the leader.
    let (trusting, _first) = ready(&format!("{store}[api]\npeer_ca_file = \"{}\"\n", cert.display()));
    let (doubting, _second) = ready(&store);
    let http = Http::new();
    let pool = |sandbox: &crate::sandbox::Sandbox, name: &str, range: &str| {
        let url = format!("{}/api/v1/pools/{name}", sandbox.url());
        let headers = [("Netstead-Timeout", "2")];
        http.ask(Method::PUT, &url, &sandbox.token(), &headers, Some(json!({"ranges": [range]})))
    };
    assert_eq!(pool(&trusting, "lan", "10.0.3.50-10.0.3.200").status, 201);
    let refused = pool(&doubting, "lab", "10.0.4.50-10.0.4.200");
    assert_eq!((refused.status, refused.problem()), (503, "no-leader"), "{refused:?}");
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("certificate") && detail.contains("`[api] peer_ca_file`"), "{refused:?}");
    let looked = doubting.netstead(["doctor"]);
    let told = looked.out.contains("the leader cannot be reached from here");
    assert!(looked.code == 1 && told && looked.out.contains("peer_ca_file"), "{looked:?}");
    assert!(!trusting.netstead(["doctor"]).out.contains("cannot be reached from here"));
    assert!(doubting.does("get pools -o name").contains("lan"), "reads need nobody's trust");
}
