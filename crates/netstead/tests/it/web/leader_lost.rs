//! The leader is lost while a page of another node is looked at: the page goes on, and says so.

use netstead_testkit::{Browser, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::{cluster::raft::Nodes, sandbox::SOON};

#[test]
fn a_page_of_a_follower_says_that_the_leader_is_lost_and_goes_on() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let mut nodes = Nodes::start_with("[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\n");
    let pool = json!({"family": "ipv4", "ranges": ["10.0.3.50-10.0.3.200"]});
    nodes.done(0, &Method::PUT, "/pools/lan", &pool);
    nodes.done(0, &Method::PUT, "/pools/lan/claims/web", &json!({}));
    let leader = nodes.leader();
    let here = (leader + 1) % 3;
    let third = (leader + 2) % 3;
    let link = nodes.sandboxes[here].does("web --print");
    browser.open(link.trim());
    browser.click("form button");
    browser.wait_for_text("nav", "Addresses");
    browser.open(&format!("{}/pools/lan", nodes.sandboxes[here].url()));
    browser.wait_for_text("#table", "web");
    browser.script("window.here = true");
    // One node is left of three, so there is no leader.
    nodes.kill(third);
    nodes.kill(leader);
    browser.wait_for_text("#fresh", "The store cannot be asked now");
    browser.wait_for_text("#table", "web");
    assert_eq!(browser.script("return window.here"), json!(true), "the page was never left");
    // A page that needs the leader says so, and no act is said to have failed.
    browser.open(&format!("{}/plan", nodes.sandboxes[here].url()));
    browser.wait_for_text("main h1", "Not available now");
    browser.wait_for_text("main", "comes by itself");
    assert!(!browser.text("main").contains("Not done"));
    // The overview does not wait for it.
    browser.open(&format!("{}/", nodes.sandboxes[here].url()));
    browser.wait_for_text("#state", "The store cannot be asked");
    browser.wait_for_text("#changes", "Changes of names are not among these");

    // Two are a majority: the page comes back without a click.
    browser.open(&format!("{}/plan", nodes.sandboxes[here].url()));
    browser.wait_for_text("main h1", "Not available now");
    nodes.restart(third);
    let came_back = wait_until(SOON, || {
        let heading = browser.script("return document.querySelector('main h1')?.innerText ?? ''");
        heading.as_str().is_some_and(|text| text.starts_with("Plan")).then_some(())
    });
    assert!(came_back.is_some(), "{}", browser.text("main"));
    browser.open(&format!("{}/pools/lan", nodes.sandboxes[here].url()));
    browser.wait_for_text("#table", "web");
    assert_eq!(browser.text("#fresh"), "");
}
