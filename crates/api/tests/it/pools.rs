//! Pools: make, look, replace, delete; versions and conditions.

use serde_json::json;

use crate::support::House;

#[tokio::test]
async fn a_pool_is_made_looked_at_replaced_and_deleted() {
    let house = House::open().await;
    let lan = json!({"ranges": ["10.0.3.50-10.0.3.200"], "gateway": "10.0.3.1", "labels": {"site": "ams"}});
    let made = house.put("/pools/lan").json(&lan).go().await;
    assert_eq!(made.created()["family"], "ipv4");
    assert_eq!(made.body["usage"]["size"], "151");
    assert_eq!(made.body["cooldown"], "10m");
    assert!(!made.header("netstead-seq").is_empty());

    let seen = house.get("/pools/lan").go().await;
    assert_eq!(seen.fine(), &made.body);
    assert_eq!(seen.header("etag"), made.header("etag"));
    let same = house.get("/pools/lan").header("if-none-match", seen.header("etag")).go().await;
    assert_eq!((same.status, same.text.as_str()), (304, ""));

    // A replacement is whole: what is not named is at its default again.
    let wider = house.put("/pools/lan").json(&json!({"ranges": ["10.0.3.10-10.0.3.200"]})).go().await;
    assert_eq!(wider.status, 200);
    assert_eq!(wider.body["usage"]["size"], "191");
    assert_eq!(wider.body["labels"], json!({}));
    assert_ne!(wider.header("etag"), made.header("etag"));

    assert_eq!(house.delete("/pools/lan").go().await.fine(), &json!({"released": 0}));
    house.get("/pools/lan").go().await.problem(404, "no-such-pool");
    house.delete("/pools/lan").go().await.problem(404, "no-such-pool");
}

#[tokio::test]
async fn conditions_keep_two_people_from_overwriting_each_other() {
    let house = House::open().await;
    let (one, two) = (json!({"network": "10.0.0.0/24"}), json!({"network": "10.0.0.0/24", "order": "next"}));
    let made = house.put("/pools/a").header("if-none-match", "*").json(&one).go().await;
    let first = made.header("etag").to_owned();
    assert_eq!(made.status, 201);
    assert_eq!(house.put("/pools/a").header("if-none-match", "*").json(&one).go().await.status, 200);
    house.put("/pools/a").header("if-none-match", "*").json(&two).go().await.problem(409, "pool-exists");

    let changed = house.put("/pools/a").header("if-match", &first).json(&two).go().await;
    assert_eq!(changed.status, 200);
    // Its answer was lost, and it is sent again: it is as asked.
    let again = house.put("/pools/a").header("if-match", &first).json(&two).go().await;
    assert_eq!((again.status, again.header("etag")), (200, changed.header("etag")));
    // Another caller still has the old version.
    house.put("/pools/a").header("if-match", &first).json(&one).go().await.problem(412, "version-mismatch");
    house.delete("/pools/a").header("if-match", &first).go().await.problem(412, "version-mismatch");
    house
        .put("/pools/a")
        .header("if-match", "\"00000000-1\"")
        .json(&one)
        .go()
        .await
        .problem(412, "version-mismatch");
    house.put("/pools/a").header("if-match", "nonsense").json(&one).go().await.invalid(400);
    house.put("/pools/b").header("if-match", "*").json(&one).go().await.problem(412, "version-mismatch");
    let tag = changed.header("etag");
    assert_eq!(house.delete("/pools/a").header("if-match", tag).go().await.status, 200);
}

#[tokio::test]
async fn a_pool_with_claims_stays_unless_a_reason_is_given() {
    let house = House::with_lan().await;
    house.claim("lan", "web-1").await;
    let stays = house.delete("/pools/lan").go().await;
    stays.problem(409, "pool-in-use");
    assert_eq!(stays.body["facts"]["claims"], "1");
    house.delete("/pools/lan?force=").go().await.invalid(422);
    let narrow = json!({"ranges": ["10.0.3.100-10.0.3.200"]});
    house.put("/pools/lan").json(&narrow).go().await.problem(409, "would-strand");
    assert_eq!(house.delete("/pools/lan?force=moving%20out").go().await.fine(), &json!({"released": 1}));
}

#[tokio::test]
async fn pools_of_one_vrf_do_not_overlap() {
    let house = House::with_lan().await;
    let over = json!({"ranges": ["10.0.3.200-10.0.3.210"]});
    let refused = house.put("/pools/over").json(&over).go().await;
    refused.problem(409, "overlap");
    assert_eq!(refused.body["facts"]["other"], "lan");
    let elsewhere = json!({"ranges": ["10.0.3.200-10.0.3.210"], "vrf": "lab"});
    house.put("/pools/over").json(&elsewhere).go().await.created();
}

#[tokio::test]
async fn lists_come_in_pages_and_can_be_narrowed() {
    let house = House::open().await;
    for number in 0..5 {
        let pool =
            json!({"network": format!("10.0.{number}.0/24"), "labels": {"odd": (number % 2).to_string()}});
        house.pool(&format!("p{number}"), pool).await;
    }
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = house.get(&format!("/pools?limit=2{after}")).go().await;
        names.extend(page.fine()["items"].as_array().unwrap().iter().map(|pool| pool["name"].clone()));
        let Some(next) = page.body["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4"]);
    let odd = house.get("/pools?selector=odd%3D1").go().await;
    assert_eq!(odd.fine()["items"].as_array().unwrap().len(), 2);
    assert_eq!(house.get("/pools?vrf=lab").go().await.fine()["items"], json!([]));
}

#[tokio::test]
async fn every_family_has_pools() {
    let house = House::open().await;
    house.pool("macs", json!({"ranges": ["52:54:00:00:00:00-52:54:00:ff:ff:ff"]})).await;
    house.pool("v6", json!({"ranges": ["fd00:1::/64"]})).await;
    house.pool("sites", json!({"family": "prefix", "network": "fd00:2::/48", "length": 64})).await;
    assert_eq!(house.claim("macs", "vm-1").await, "52:54:00:00:00:00");
    assert_eq!(house.claim("v6", "vm-1").await, "fd00:1::1");
    assert_eq!(house.claim("sites", "ams").await, "fd00:2::/64");
    let held = house.get("/addresses/fd00:2::%2F64").go().await;
    assert_eq!(held.fine()["places"][0]["address"]["key"], "ams");
}

#[tokio::test]
async fn reservations_set_a_range_aside() {
    let house = House::with_lan().await;
    let range = json!({"range": "10.0.3.50-10.0.3.59", "description": "printers"});
    let made = house.put("/pools/lan/reservations/print").json(&range).go().await;
    assert_eq!(
        (made.fine()["range"].as_str(), made.body["owner"].as_str()),
        (Some("10.0.3.50-10.0.3.59"), Some("root"))
    );
    assert_eq!(house.claim("lan", "web-1").await, "10.0.3.60");
    assert_eq!(house.get("/reservations").go().await.fine()["items"], json!([made.body]));
    assert_eq!(house.get("/pools/lan/reservations").go().await.fine()["items"], json!([made.body]));
    house.get("/pools/wan/reservations").go().await.problem(404, "no-such-pool");
    let gone = house.delete("/pools/lan/reservations/print").go().await;
    assert_eq!(gone.fine(), &json!({"outcome": "released"}));
    assert_eq!(
        house.delete("/pools/lan/reservations/print").go().await.fine(),
        &json!({"outcome": "already gone"})
    );
    assert_eq!(house.claim("lan", "web-2").await, "10.0.3.50");
}

#[tokio::test]
async fn a_map_of_a_pool_counts_what_is_in_each_part() {
    let house = House::with_lan().await;
    house.claim("lan", "web").await;
    let map = async |within: &str| house.get(&format!("/pools/lan/blocks?within={within}")).go().await;
    let fine = map("10.0.3.0%2F24").await;
    let blocks = fine.fine()["blocks"].as_array().unwrap();
    assert_eq!((blocks.len(), &blocks[50]["block"]), (256, &json!("10.0.3.50/32")));
    assert_eq!((&blocks[50]["usage"]["held"], &blocks[51]["usage"]["free"]), (&json!("1"), &json!("1")));
    assert_eq!(blocks[0]["usage"]["size"], "0", "it is not of this pool");
    let wide = map("10.0.0.0%2F16").await;
    let block = &wide.fine()["blocks"][3];
    assert_eq!((&block["block"], &block["usage"]["held"]), (&json!("10.0.3.0/24"), &json!("1")));
    assert_eq!((&block["usage"]["size"], &block["usage"]["free"]), (&json!("151"), &json!("150")));
    assert_eq!(map("everything").await.invalid(400).0, "within");
    house.get("/pools/none/blocks?within=10.0.3.0%2F24").go().await.problem(404, "no-such-pool");
}
