//! Usage over time and changes per day: as a drawing, as text, on the command line.

use std::path::Path;

use netstead_model::{Clock as _, SystemClock};
use netstead_store::{Commit, LocalStore, Store as _};
use netstead_testkit::{Browser, axe};
use serde_json::{Value, json};

use super::{site::Site, visitor::Visitor};

const HOUR: i64 = 3600;
/// Claims of the pool `tight` now.
const CLAIMS: i64 = 12;

/// A site whose pool `tight` grew from 4 claims to 12 in a week, and was used for two months, save for ten days.
fn site() -> Site {
    let mut site = Site::start();
    site.fill();
    site.sandbox.does("pool create tight --range 10.0.9.1-10.0.9.20");
    for number in 0..CLAIMS {
        site.sandbox.does(&format!("claim tight host-{number}"));
    }
    let read = |line: &str| serde_json::from_str::<Value>(&site.sandbox.does(line)).unwrap();
    let created = read("get pool tight -o json")["created"].clone();
    let seq = read("status -o json")["seq"].clone();
    let hour = SystemClock.wall().as_second() / HOUR;
    let claims = |ago: i64| CLAIMS - 8 * ago / 168;
    let hours: Vec<Value> =
        (0..168).rev().map(|ago| json!([hour - ago, claims(ago), 500 * claims(ago)])).collect();
    let today = hour / 24;
    let of_day = |ago: i64| json!([today - ago, 4 + ago % 3, 500 * (4 + ago % 3), 3, 2]);
    let days: Vec<Value> = (1..60).rev().filter(|ago| !(30..40).contains(ago)).map(of_day).collect();
    let changes: Vec<Value> =
        (0..30).rev().map(|ago| json!([today - ago, ago % 7, ago % 3, (ago * 5) % 11])).collect();
    let value = |value: Value| format!("1{value}");
    let commit = Commit::new()
        .put(
            "usage/recent/tight",
            value(json!({"created": created, "seq": seq, "folded": today - 1, "hours": hours, "counts": [[today, 2, 0]]})),
        )
        .put("usage/days/tight", value(json!({"created": created, "days": days})))
        .put("usage/changes", value(json!({"hour": hour, "seq": seq, "days": changes})));
    site.restart_after(|data: &Path| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = LocalStore::open(data).await.unwrap();
            store.commit(commit).await.unwrap();
            store.close().await;
        });
    });
    site
}

#[test]
fn a_history_is_drawn_read_and_printed() {
    let site = site();
    let said = site.sandbox.does("get pool tight --usage");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["DAY", "USED", "CLAIMS", "MADE", "ENDED"]);
    assert_eq!(lines.len(), 1 + 50 + 2, "{said}");
    let today: Vec<&str> = lines[50].split_whitespace().collect();
    assert_eq!(today[1..], ["60%", "12", "2", "0"], "{said}");
    assert!(lines[52].starts_with("tight grows: at 1.0 a day, full in about 8 days"), "{said}");
    let whole: Value = serde_json::from_str(&site.sandbox.does("get pool tight --usage -o json")).unwrap();
    assert_eq!(whole["hours"].as_array().unwrap().len(), 169);
    assert!(
        site.sandbox.does("get pool tight --usage -o csv").starts_with("day,used_percent,claims,made,ended")
    );
    site.sandbox.fails("get pool nowhere --usage");
    let check: Value = serde_json::from_str(&site.sandbox.does("store check -o json")).unwrap();
    assert_eq!(check["problems"], json!([]));

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
        let page = visitor.page("/pools/tight").await;
        for part in [
            "<svg class=\"chart\"",
            "<title id=\"over-t\">Part in use of tight over time</title>",
            "<desc id=\"over-d\">Now 60 % in use, 12 claims. On ",
            "It grows: <strong>at 1.0 a day, full in about 8 days",
        ] {
            assert!(page.contains(part), "{part} is missing: {page}");
        }
        assert!(!page.contains(" style="), "nothing inline");
        // A month begins after the gap; in a year it breaks the line.
        assert_eq!(page.matches("class=\"line\"").count(), 1);
        let year = visitor.page("/pools/tight?chart=year").await;
        assert_eq!(year.matches("class=\"line\"").count(), 2);
        let overview = visitor.page("/").await;
        assert!(
            overview.contains("<strong>tight</strong>: 8 left: at 1.0 a day, full in about 8 days"),
            "{overview}"
        );
        assert_eq!(overview.matches("<g><title>").count(), 30);
    });
}

#[test]
fn charts_are_seen_in_light_and_dark_and_can_be_read_without_seeing() {
    let (Some(script), Some(browser)) = (axe(), Browser::start(1360, 900)) else { return };
    let site = site();
    site.log_in(&browser);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
    std::fs::create_dir_all(&dir).unwrap();
    for (size, width) in [("wide", 1360), ("phone", 360)] {
        browser.resize(width, 900);
        for colours in ["light", "dark"] {
            browser.prefer(colours);
            for (name, path, section) in [
                ("usage", "/pools/tight", "over-time"),
                ("year", "/pools/tight?chart=year", "over-time"),
                ("per-day", "/", "per-day"),
            ] {
                browser.open(&site.url(path));
                let drawn = browser.script(&format!(
                    "const box = document.querySelector('#{section} .chart').getBoundingClientRect(); \
                     const wide = document.documentElement; \
                     return [box.width > 200, box.height > 80, wide.scrollWidth - wide.clientWidth]"
                ));
                assert_eq!(drawn, json!([true, true, 0]), "{path} at {width}");
                browser.script(&script);
                let found = browser.async_script(
                    "const done = arguments[arguments.length - 1]; \
                     axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then( \
                       r => done(r.violations.map(v => v.id + ': ' + v.nodes[0].html)), e => done(['axe failed: ' + e]))",
                );
                assert_eq!(found, json!([]), "{path} ({colours}, {size})");
                browser.script(&format!("document.getElementById('{section}').scrollIntoView()"));
                std::fs::write(dir.join(format!("{name}-{size}-{colours}.png")), browser.screenshot())
                    .unwrap();
            }
        }
    }
    // Another span is a link, and is swapped in like any page.
    browser.resize(1360, 900);
    browser.open(&site.url("/pools/tight"));
    browser.click("#over-time .spans a");
    browser.wait_for_text("#over-time .spans [aria-current]", "Week");
    // What changes is seen without loading the page again.
    browser.script("window.here = true");
    site.sandbox.does("claim tight one-more");
    browser.wait_for_text("#over-time", "Now 65 % in use, 13 claims.");
    assert_eq!(browser.script("return window.here"), json!(true));
}
