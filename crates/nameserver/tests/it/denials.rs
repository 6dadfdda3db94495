use insta::assert_snapshot;

use crate::fixture::House;

#[tokio::test]
async fn names_that_are_not_and_types_that_are_not_are_told_apart() {
    let house = House::new(&["example.test"]).await;
    house.fill("example.test", "a.b.c.example.test 300 A 192.0.2.1").await;
    assert_snapshot!(house.ask("nope.example.test.", "A").await, @r"
    NXDomain aa rd edns
    authority example.test. 60 IN SOA ns1.example.test. hostmaster.ns1.example.test. 1000000001 3600 600 1209600 60
    ");
    assert_snapshot!(house.ask("a.b.c.example.test.", "AAAA").await, @r"
    NoError aa rd edns
    authority example.test. 60 IN SOA ns1.example.test. hostmaster.ns1.example.test. 1000000001 3600 600 1209600 60
    ");
    // A name that only has others below it exists.
    for between in ["b.c.example.test.", "c.example.test.", "example.test."] {
        assert!(
            house.ask(between, "A").await.starts_with("NoError aa rd edns\nauthority example.test."),
            "{between}"
        );
    }
    house.fill("example.test", "").await;
    assert!(house.ask("b.c.example.test.", "A").await.starts_with("NXDomain"));
}

/// The zone and the queries of RFC 4592 section 2.2.1.
#[tokio::test]
async fn wildcards_are_those_of_rfc_4592() {
    let house = House::new(&["example.test"]).await;
    let zone = r#"
        *.example.test 3600 TXT "this is a wildcard"
        *.example.test 3600 MX 10 host1.example.test
        host1.example.test 3600 A 192.0.2.1
        _ssh._tcp.host1.example.test 3600 SRV 0 0 22 host1.example.test
        _ssh._tcp.host2.example.test 3600 SRV 0 0 22 host2.example.test
        subdel.example.test 3600 NS ns.example.com
        subdel.example.test 3600 NS ns.example.net
    "#;
    house.fill("example.test", zone).await;
    let mut answers = Vec::new();
    for (name, kind) in [
        // Answered by the wildcard.
        ("host3.example.test.", "MX"),
        ("host3.example.test.", "A"),
        ("foo.bar.example.test.", "TXT"),
        // The name exists, if only as a name between.
        ("host1.example.test.", "MX"),
        ("sub.*.example.test.", "MX"),
        ("_telnet._tcp.host1.example.test.", "SRV"),
        ("host2.example.test.", "MX"),
        ("x.host2.example.test.", "MX"),
        // Below a cut.
        ("host.subdel.example.test.", "A"),
        // The wildcard by its own name.
        ("*.example.test.", "MX"),
    ] {
        answers.push(format!("{name} {kind}: {}", house.ask(name, kind).await));
    }
    assert_snapshot!(answers.join("\n"));
}

#[tokio::test]
async fn a_name_of_its_own_denies_nothing_but_itself() {
    let house = House::new(&["example.test"]).await;
    house.fill("web.example.com", "web.example.com 300 A 192.0.2.1").await;
    assert!(house.ask("web.example.com.", "A").await.contains("192.0.2.1"));
    assert!(
        house
            .ask("web.example.com.", "AAAA")
            .await
            .starts_with("NoError aa rd edns\nauthority web.example.com.")
    );
    assert_eq!(house.ask("a.web.example.com.", "A").await, "Refused rd edns");
    assert_eq!(house.ask("example.com.", "A").await, "Refused rd edns");
    house.fill("web.example.com", "").await;
    assert_eq!(house.ask("web.example.com.", "A").await, "Refused rd edns");
    assert_eq!(house.server.zone_count(), 1);
}
