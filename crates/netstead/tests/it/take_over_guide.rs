//! The guide of take-over, typed against a real PowerDNS.

use netstead_testkit::{PowerDns, wait_until};

use crate::{guide_reader::Reader, resolve, sandbox::SOON};

/// The hash that `netstead plan` asks a person to approve.
fn hash(plan: &str) -> String {
    plan.split("netstead apply ").nth(1).unwrap().split(['`', ' ', '\n']).next().unwrap().to_owned()
}

#[test]
fn the_guide_of_take_over_works_as_typed() {
    let Some(server) = PowerDns::start(&["home.test"]) else { return };
    let mut reader = Reader::of("take-over.md");
    let table = format!(
        "[dns.ns1]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\ndomains = [\"home.test\"]\n",
        server.api_url(),
        server.api_key()
    );
    let source = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";
    reader.file("hosts", "10.0.3.7 www.home.test\n");
    reader.file("netstead.toml", &format!("{table}{source}"));
    let foreign = "INSERT INTO records (domain_id, name, type, content, ttl) \
         SELECT id, 'www.home.test', 'A', '192.0.2.1', 300 FROM domains WHERE name = 'home.test'";
    server.sql(foreign).unwrap();
    reader.sandbox.start(&[]);
    let dns = server.address().port();
    let is = |wanted: &[&str]| resolve::until(wanted, || resolve::a(dns, "www.home.test"));

    // A name that is not ours: the plan says what the page says.
    let shown = reader.block("text", 0, &[]);
    let plan = || reader.types("netstead plan ns1").out;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let like = wait_until(SOON, || Some(words(&plan())).filter(|plan| plan.contains(&words(&shown))));
    assert!(like.is_some(), "{}", plan());
    assert_eq!(reader.types("netstead adopt www.home.test").code, 0);
    is(&["10.0.3.7"]);

    // The store is lost.
    reader.sandbox.stop();
    std::fs::remove_dir_all(reader.sandbox.data()).unwrap();
    reader.file("hosts", "10.0.3.8 www.home.test\n");
    reader.sandbox.start(&[]);
    let page = reader.block("sh", 2, &[]);
    let lines: Vec<&str> = page.lines().map(|line| line.split('#').next().unwrap().trim()).collect();
    let [first, look, recover, second, apply] = lines[..] else { panic!("{lines:?}") };
    let named = wait_until(SOON, || {
        let said = reader.types(first);
        said.out
            .split("recover --owner ")
            .nth(1)
            .map(|rest| rest.split_whitespace().next().unwrap().to_owned())
    });
    let owner = named.expect("the plan names the old id");
    for line in [look, recover] {
        let said = reader.types(&line.replace("3f9a0c51", &owner));
        assert_eq!(said.code, 0, "{line}: {said:?}");
    }
    let said = reader.types(second);
    assert_eq!(said.code, 3, "{said:?}");
    is(&["10.0.3.7"]);
    let said = reader.types(&apply.replace("HASH", &hash(&said.out)));
    assert_eq!(said.code, 0, "{said:?}");
    is(&["10.0.3.8"]);

    // What was done, and when.
    let said = reader.types("netstead get changes --name www.home.test");
    assert!(said.code == 0 && said.out.starts_with("AT ") && said.out.contains("10.0.3.8"), "{said:?}");

    // A table that only gets another name.
    let renamed = reader.block("toml", 0, &[]);
    reader.file("netstead.toml", &format!("{table}{renamed}"));
    let there = || {
        let said = reader.types("netstead get sources").out;
        (said.contains("lab") && !said.contains("detached") && !said.contains("office")).then_some(())
    };
    assert!(wait_until(SOON, there).is_some(), "{}", reader.types("netstead get sources").out);
    is(&["10.0.3.8"]);

    // A source goes.
    reader.file("netstead.toml", &table);
    let detached = || reader.types("netstead get sources").out.contains("detached").then_some(());
    assert!(wait_until(SOON, detached).is_some(), "{}", reader.types("netstead get sources").out);
    is(&["10.0.3.8"]);
    let clean = reader.block("sh", 3, &[]);
    let clean = clean.lines().next().unwrap().split('#').next().unwrap().trim().replace("office", "lab");
    let said = reader.types(&format!("{clean} --yes"));
    assert_eq!(said.code, 0, "{said:?}");
    is(&[]);
}
