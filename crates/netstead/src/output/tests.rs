use insta::assert_snapshot;
use jiff::SignedDuration;
use netstead_client::types::{ClaimOutput, EventOutput, PoolOutput, SourceOutput, Usage};
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn pools() -> Vec<PoolOutput> {
    let pool = |name: &str, family: &str, ranges: &[&str], usage: Usage| {
        serde_json::from_value(json!({
            "name": name, "family": family, "vrf": "default", "ranges": ranges, "order": "lowest", "cooldown": "10m",
            "cooldown_min": "1m", "sticky": true, "origin": "api", "created": "2026-11-15T11:55:00Z", "version": 1,
            "labels": {"site": "ams"}, "usage": usage,
        }))
        .unwrap()
    };
    let usage = |size: &str, held: &str, used_permyriad| Usage {
        size: size.into(),
        held: held.into(),
        resting: "0".into(),
        reserved: "0".into(),
        observed: "0".into(),
        free: "1".into(),
        used_permyriad,
        ..Usage::default()
    };
    vec![
        pool("lan", "ipv4", &["10.0.3.50-10.0.3.200"], usage("151", "2", 132)),
        pool("v6", "ipv6", &["fd00:1::/64"], usage("18446744073709551615", "1", 0)),
        pool("full", "ipv4", &["10.0.9.0/30", "10.0.9.8"], usage("3", "3", 10_000)),
    ]
}

fn claims() -> Vec<ClaimOutput> {
    let claim = |key: &str, extra: serde_json::Value| {
        let mut claim = json!({
            "pool": "lan", "key": key, "state": "bound", "address": "10.0.3.50", "id": "1f0c22ab-17", "owner": "admin",
            "since": "2026-11-14T09:00:00Z", "vrf": "default", "family": "ipv4", "names": ["web-1.home.test"],
        });
        claim.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(claim).unwrap()
    };
    vec![
        claim("web-1", json!({})),
        claim(
            "evil",
            json!({"description": "a \u{1b}[31mred\nlie, \"quoted\"", "until": "2026-11-15T12:30:00Z"}),
        ),
        claim("queue", json!({"state": "waiting", "address": null, "id": null})),
    ]
}

#[test]
fn pools_in_every_format() {
    let table = |format| Printer::new(format, now()).table(&pools());
    assert_snapshot!("pools_table", table(Format::Table));
    assert_snapshot!("pools_wide", table(Format::Wide));
    assert_snapshot!("pools_csv", csv::csv(&pools()));
    assert_snapshot!("pools_yaml", yaml(&pools()[..1]).unwrap());
    assert_eq!(names(&pools()), "lan\nv6\nfull\n");
}

#[test]
fn claims_in_every_format() {
    let table = |format| Printer::new(format, now()).table(&claims());
    assert_snapshot!("claims_table", table(Format::Table));
    assert_snapshot!("claims_wide", table(Format::Wide));
    assert_snapshot!("claims_csv", csv::csv(&claims()));
    assert_eq!(names(&claims()), "lan/web-1\nlan/evil\nlan/queue\n");
}

#[test]
fn an_empty_table_is_its_head() {
    let empty: [EventOutput; 0] = [];
    assert_snapshot!(Printer::new(Format::Table, now()).table(&empty), @"SEQ  AT  WHAT  POOL  KEY  ADDRESS  BY");
}

#[test]
fn rows_that_come_later_stay_in_their_columns() {
    let mut printer = Printer::new(Format::Table, now());
    let claims = claims();
    let mut text = printer.changes(&[("listed", &claims[0]), ("listed", &claims[1])], true);
    text += &printer.changes(&[("new", &claims[2])], false);
    text += &printer.changes::<ClaimOutput>(&[], false);
    assert_snapshot!(text);
}

#[test]
fn ages_have_two_units_at_most() {
    let lengths = [0, 5, 119, 120, 330, 3600, 11_400, 86_400, 356_400, 900_000, -5];
    let shown: Vec<_> = lengths.map(|s| short(SignedDuration::from_secs(s))).into();
    assert_eq!(shown.join(" "), "0s 5s 119s 2m 5m30s 1h 3h10m 1d 4d3h 10d 0s");
}

#[test]
fn scopes_stand_below_their_source() {
    let source: SourceOutput = serde_json::from_value(json!({
        "name": "k8s", "type": "fake", "view": "failed", "reason": "services: forbidden", "workloads": 3,
        "begun": "2026-11-15T11:59:00Z",
        "scopes": [
            {"name": "nodes", "view": "complete", "workloads": 0, "absent": 6, "standing": "retired-by-platform",
                "begun": "2026-11-15T12:00:00Z", "suspect": "6 of 6 vanished at once"},
            {"name": "pods", "view": "complete", "workloads": 2, "absent": 1, "standing": "listed",
                "begun": "2026-11-15T12:00:00Z"},
            {"name": "services", "view": "failed", "reason": "forbidden", "workloads": 1, "absent": 0,
                "standing": "listed", "begun": "2026-11-15T11:59:00Z"},
        ],
    }))
    .unwrap();
    let rows: Vec<String> = source
        .parts(Audience::People { now: now(), wide: false })
        .iter()
        .map(|cells| cells.join(" | "))
        .collect();
    assert_eq!(
        rows,
        [
            "k8s/nodes |  | retired | 0s | 0 | 6 of 6 vanished at once | ",
            "k8s/pods |  | complete | 0s | 2 | 1 absent | ",
            "k8s/services |  | failed | 60s | 1 | nothing is removed | forbidden",
        ]
    );
}
