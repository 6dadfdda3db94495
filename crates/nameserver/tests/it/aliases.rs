use insta::assert_snapshot;

use crate::fixture::House;

#[tokio::test]
async fn aliases_are_followed_through_all_our_zones() {
    let house = House::new(&["example.test", "other.test"]).await;
    house.fill("other.test", "real.other.test 300 A 192.0.2.9").await;
    house
        .fill(
            "example.test",
            r"
            a.example.test 300 CNAME b.example.test
            b.example.test 300 CNAME real.other.test
            out.example.test 300 CNAME www.example.com
            gone.example.test 300 CNAME nope.other.test
            empty.example.test 300 CNAME real.other.test
            *.wild.example.test 300 CNAME real.other.test
            ",
        )
        .await;
    let mut answers = Vec::new();
    for (name, kind) in [
        ("a.example.test.", "A"),
        ("a.example.test.", "CNAME"),
        ("out.example.test.", "A"),
        ("gone.example.test.", "A"),
        ("empty.example.test.", "AAAA"),
        ("x.wild.example.test.", "A"),
    ] {
        answers.push(format!("{name} {kind}: {}", house.ask(name, kind).await));
    }
    assert_snapshot!(answers.join("\n"));
}

#[tokio::test]
async fn a_loop_of_aliases_ends() {
    let house = House::new(&["example.test"]).await;
    house
        .fill(
            "example.test",
            r"
            a.example.test 300 CNAME b.example.test
            b.example.test 300 CNAME a.example.test
            self.example.test 300 CNAME self.example.test
            ",
        )
        .await;
    assert_snapshot!(house.ask("a.example.test.", "A").await, @r"
    NoError aa rd edns
    a.example.test. 300 IN CNAME b.example.test.
    b.example.test. 300 IN CNAME a.example.test.
    ");
    assert_snapshot!(house.ask("self.example.test.", "A").await, @r"
    NoError aa rd edns
    self.example.test. 300 IN CNAME self.example.test.
    ");
    let long: Vec<String> =
        (0..40).map(|n| format!("n{n}.example.test 300 CNAME n{}.example.test", n + 1)).collect();
    house.fill("example.test", &long.join("\n")).await;
    assert_eq!(house.ask("n0.example.test.", "A").await.lines().count(), 17);
}
