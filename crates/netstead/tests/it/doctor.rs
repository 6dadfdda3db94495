//! Findings of `doctor`, and what to do about them.

use netstead_testkit::{Bind, Etcd, TsigKey};

use crate::{
    sandbox::{SOON, Sandbox},
    shared_store,
};

fn rfc2136(port: u16, key: &TsigKey, domains: &str) -> String {
    format!(
        "[dns.lan]\ntype = \"rfc2136\"\nservers = [\"127.0.0.1:{port}\"]\ntsig_name = \"{}\"\n\
         tsig_algorithm = \"{}\"\ntsig_secret = \"{}\"\ndomains = [{domains}]\n",
        key.name, key.algorithm, key.secret
    )
}

fn sandbox(config: &str) -> Sandbox {
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    sandbox
}

#[test]
fn a_healthy_house_has_no_problems() {
    let sandbox = sandbox("");
    sandbox.does("apply");
    let said = sandbox.netstead(["doctor"]);
    assert_eq!((said.code, said.err.as_str()), (0, "nothing is wrong\n"), "{}", said.out);
    for line in [
        "ok       config",
        "ok       store",
        "ok       ledger",
        "ok       clock",
        "ok       dns.builtin",
        "ok       source.ledger",
    ] {
        assert!(said.out.contains(line), "{line} is missing in\n{}", said.out);
    }
    let json: serde_json::Value = serde_json::from_str(&sandbox.does("doctor -o json")).unwrap();
    assert!(json["findings"].as_array().unwrap().len() >= 7, "{json}");
}

#[test]
fn each_thing_that_is_wrong_is_found_and_says_what_to_do() {
    let Some(server) = Bind::start(&["home.test"]) else { return };
    let (port, key) = (server.address().port(), server.key().clone());
    // A missing zone, an unreadable source, and reverse names that have no zone.
    let config = rfc2136(port, &key, "\"home.test\", \"missing.test\"");
    let mut sandbox = sandbox(&format!("{config}[source.office]\ntype = \"hosts\"\npath = \"nowhere\"\n"));
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.200 --domain home.test");
    sandbox.does("claim lan web-1");
    sandbox.netstead(["apply"]);
    let said = sandbox.netstead(["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    for part in [
        "the server holds no zone for missing.test",
        "make the zone missing.test there",
        "1 address gets no PTR",
        "3.0.10.in-addr.arpa",
        "problem  source.office  it sees nothing",
    ] {
        assert!(said.out.contains(part), "{part} is missing in\n{}", said.out);
    }
    assert!(!said.out.contains("takes no changes"), "{}", said.out);
    sandbox.stop();

    // A key that the server does not know.
    let wrong =
        TsigKey { secret: TsigKey::with_algorithm("hmac-sha256").secret, name: "nobody".into(), ..key };
    std::fs::write(sandbox.path().join("netstead.toml"), rfc2136(port, &wrong, "\"home.test\"")).unwrap();
    sandbox.start(&[]);
    let said = sandbox.netstead(["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.contains("refuses these credentials") && said.out.contains("correct the key in `[dns.lan]`"),
        "{}",
        said.out
    );
    // What a source brought stays when it is gone from the file, and a file that is wrong is told.
    std::fs::write(sandbox.path().join("netstead.toml"), "[dns.lan]\ntype = \"powerdsn\"\n").unwrap();
    let said = sandbox.netstead(["doctor"]);
    assert!(
        said.out.contains("the file is wrong") && said.out.contains("netstead config check"),
        "{}",
        said.out
    );
}

#[test]
fn an_etcd_that_nobody_looks_after_is_told() {
    let Some(etcd) = Etcd::start_with(1, "http", &["--quota-backend-bytes", "16777216"]) else { return };
    let config = format!("[store]\ntype = \"etcd\"\nendpoints = [\"{}\"]\n", etcd.endpoints()[0]);
    let sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    let mut server = shared_store::run(&sandbox);
    server.wait_for_line("is ready", SOON).unwrap();
    let said = sandbox.netstead(["doctor"]);
    assert!(said.out.contains("MiB of 16.0 MiB"), "{said:?}");
    assert_eq!(said.code, 0, "{said:?}");
    for key in 0..100 {
        etcd.ctl(&["put", &format!("/others/{key}"), &"x".repeat(100_000)]).unwrap();
    }
    let said = sandbox.netstead(["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.contains("problem  store") && said.out.contains("more than half of its quota"),
        "{said:?}"
    );
}
