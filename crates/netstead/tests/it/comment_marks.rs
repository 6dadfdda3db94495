//! Ownership in the comments of records, through the binary.

use std::time::Duration;

use netstead_testkit::FakeCloudflare;
use serde_json::{Value, json};

use crate::{resolve::Stopwatch, sandbox::Sandbox};

const ZONE: &str = "home.test";

fn configure(sandbox: &Sandbox, server: &FakeCloudflare, marks: &str) {
    let text = format!(
        "[dns.public]\ntype = \"cloudflare\"\nurl = \"{}\"\ntoken = \"{}\"\nmarks = \"{marks}\"\ndomains = [\"{ZONE}\"]\n\
         ended_grace = \"0s\"\n[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n",
        server.url(),
        server.token()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), text).unwrap();
}

fn hosts(sandbox: &Sandbox, text: &str) {
    std::fs::write(sandbox.path().join("hosts"), text).unwrap();
}

/// Name, value and whether the comment is a mark, for each record.
fn records(server: &FakeCloudflare) -> Vec<(String, String, bool)> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let record = |record: &Value| {
        (text(record, "name"), text(record, "content"), text(record, "comment").contains("netstead/1 "))
    };
    let mut all: Vec<_> = server.records(ZONE).iter().map(record).collect();
    all.sort();
    all
}

fn until(server: &FakeCloudflare, expected: &[(&str, &str, bool)]) {
    let begun = Stopwatch::start();
    loop {
        let seen = records(server);
        let same = seen.iter().map(|(name, value, marked)| (name.as_str(), value.as_str(), *marked));
        if same.eq(expected.iter().copied()) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{seen:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ownership_in_comments_is_adopted_recovered_and_moved() {
    let server = FakeCloudflare::start(&[ZONE]);
    let by_hand = |name: &str, content: &str| {
        let record =
            json!({ "name": name, "type": "A", "content": content, "ttl": 300, "comment": "by hand" });
        server.by_hand(ZONE, record);
    };
    by_hand("mail.home.test", "192.0.2.2");
    by_hand("hand.home.test", "192.0.2.3");
    let mut sandbox = Sandbox::empty();
    hosts(&sandbox, "10.0.3.7 www.home.test\n10.0.3.8 mail.home.test\n");
    configure(&sandbox, &server, "comment");
    sandbox.start(&[]);
    let hand = ("hand.home.test", "192.0.2.3", false);
    until(&server, &[hand, ("mail.home.test", "192.0.2.2", false), ("www.home.test", "10.0.3.7", true)]);
    sandbox.does("adopt mail.home.test");
    until(&server, &[hand, ("mail.home.test", "10.0.3.8", true), ("www.home.test", "10.0.3.7", true)]);
    let found = sandbox.netstead(["doctor"]);
    assert!(found.out.contains("marked in the comments of its records"), "{}{}", found.out, found.err);
    let seen = sandbox.does("status");
    assert!(seen.contains("public made ") && seen.contains(" of 1200 requests in 5m.\n"), "{seen}");
    let wide = sandbox.does("get providers -o wide");
    assert!(wide.contains("BUDGET") && wide.contains(" of 1200 requests in 5m"), "{wide}");
    sandbox.stop();

    // The store is lost.
    std::fs::remove_dir_all(sandbox.data()).unwrap();
    hosts(&sandbox, "10.0.3.9 www.home.test\n");
    sandbox.start(&[]);
    sandbox.does("apply");
    let plan = sandbox.netstead(["plan", "public"]).out;
    let owner = plan.split("recover --owner ").nth(1).expect(&plan).lines().next().unwrap().to_owned();
    until(&server, &[hand, ("mail.home.test", "10.0.3.8", true), ("www.home.test", "10.0.3.7", true)]);
    let taken = sandbox.does(&format!("recover --owner {owner}"));
    assert!(taken.contains("public  www.home.test A 10.0.3.7  from netstead "), "{taken}");
    let plan = sandbox.netstead(["plan", "public"]);
    let hash = plan.out.split("netstead apply ").nth(1).expect(&plan.out).split('`').next().unwrap();
    sandbox.does(&format!("apply {hash}"));
    until(&server, &[hand, ("www.home.test", "10.0.3.9", true)]);
    assert!(server.records(ZONE).iter().all(|record| record["type"] == "A"));

    // The other form, and back.
    sandbox.stop();
    for marks in ["txt", "comment"] {
        configure(&sandbox, &server, marks);
        sandbox.start(&[]);
        sandbox.does("apply");
        let begun = Stopwatch::start();
        let texts = || server.records(ZONE).iter().filter(|record| record["type"] == "TXT").count();
        while (texts() == 1) != (marks == "txt") || !sandbox.does("plan public").contains("nothing to change")
        {
            assert!(begun.elapsed() < Duration::from_secs(30), "{:#?}", server.records(ZONE));
            std::thread::sleep(Duration::from_millis(50));
        }
        let www = records(&server).into_iter().find(|(name, _, _)| name == "www.home.test");
        assert_eq!(www, Some(("www.home.test".to_owned(), "10.0.3.9".to_owned(), marks == "comment")));
        sandbox.stop();
    }
}
