//! The pages in a real Chromium: log in, claim, watch, approve, log out.

use netstead_testkit::Browser;
use serde_json::json;

use super::site::{SCRIPT, Site};

#[test]
fn a_person_logs_in_by_a_link_and_claims_from_the_grid() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    let link = site.sandbox.does("web --print");
    browser.open(link.trim());
    browser.click("form button");
    browser.wait_for_text("h1", "All is in line");
    // The link is used up.
    browser.open(link.trim());
    browser.click("form button");
    browser.wait_for_text("[role=alert]", "netstead web");

    browser.open(&site.url("/pools/lan"));
    browser.click("[id='c-10.0.3.77']");
    browser.wait_for_text("#panel", "10.0.3.77");
    browser.type_into("#f-key", "kiosk");
    browser.click("form.claim button");
    browser.wait_for_text("#said", "kiosk has 10.0.3.77");
    assert!(site.sandbox.does("get claims -o csv").contains("kiosk"));
    assert!(browser.text("[id='c-10.0.3.77'][class=held]").contains("77"));

    // What cannot be is said beside the field, and what was typed stays.
    browser.click("[id='c-10.0.3.78']");
    browser.wait_for_text("#panel", "10.0.3.78");
    browser.type_into("#f-key", "kiosk");
    browser.click("form.claim button");
    browser.wait_for_text("#panel", "kiosk");
    assert_eq!(browser.script("return document.querySelector('#f-key').value"), json!("kiosk"));
    assert!(browser.has("#panel .wrong, #panel .notice.bad"), "{}", browser.text("#panel"));

    // It is released from its own page, and the names that go with it are told before.
    browser.open(&site.url("/addresses/10.0.3.77"));
    browser.click("details.act summary");
    browser.wait_for_text("details.act", "kiosk.home.test");
    browser.click("details.act button");
    browser.wait_for_text("#said", "kiosk has released 10.0.3.77");
    assert!(!site.sandbox.does("get claims -o csv").contains("kiosk"));
}

#[test]
fn a_change_appears_without_a_click_and_keys_alone_lead_through_the_grid() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    browser.open(&site.url("/pools/lan"));
    browser.script("window.here = true");
    assert!(browser.has("[id='c-10.0.3.99'].free"));
    site.sandbox.does("claim lan far --address 10.0.3.99");
    browser.wait_for_text("#table", "far");
    assert!(browser.has("[id='c-10.0.3.99'].held"));
    assert_eq!(browser.script("return window.here"), json!(true), "the page was never loaded again");

    // To the right, down, and Enter.
    browser.script("document.getElementById('c-10.0.3.99').focus()");
    browser.press("\u{e014}\u{e015}");
    assert_eq!(browser.script("return document.activeElement.id"), json!("c-10.0.3.132"));
    browser.press("\u{e007}");
    browser.wait_for_text("#panel", "10.0.3.132");
    // The slash leads to the search, which finds any notation.
    browser.script("document.activeElement.blur()");
    browser.press("/");
    assert_eq!(browser.script("return document.activeElement.id"), json!("q"));
    browser.press("10.0.3.99/32\u{e007}");
    browser.wait_for_text("main h1", "10.0.3.99");
    assert!(browser.url().contains("/addresses/10.0.3.99"), "{}", browser.url());
}

#[test]
fn a_parked_plan_is_approved_from_its_diff() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.log_in(&browser);
    site.park();
    browser.open(&site.url("/"));
    browser.wait_for_text("#todo", "waits for your approval");
    browser.click("#todo a.button");
    browser.wait_for_text(".parked", "*.home.test");
    browser.click(".parked button.main");
    browser.wait_for_text("#said", "own");
    browser.open(&site.url("/plan"));
    browser.wait_for_text("#plans", "In line");
    assert!(!site.sandbox.does("get records -o csv").contains("*.home.test"));
}

#[test]
fn a_session_that_is_ended_elsewhere_sees_nothing_more() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.log_in(&browser);
    browser.open(&site.url("/access"));
    browser.wait_for_text("#sessions", "this one");
    let sessions = site.sandbox.client();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let all = runtime.block_on(sessions.sessions()).unwrap().items;
    assert_eq!(all.len(), 1);
    browser.open(&site.url("/"));
    runtime.block_on(sessions.end_session(&all[0].id)).unwrap();
    // The page finds out by itself, and asks for a login.
    browser.wait_for_text("label", "Token");
    assert!(browser.url().contains("/login"), "{}", browser.url());
    browser.type_into("#token", &site.sandbox.token());
    browser.click("form button");
    browser.wait_for_text("nav", "Addresses");
}

#[test]
fn names_of_others_are_text_on_every_page_and_no_page_is_wider_than_a_phone() {
    let Some(browser) = Browser::start(360, 780) else { return };
    let site = Site::start();
    site.fill();
    site.park();
    site.log_in(&browser);
    // Beside the policy: the text itself is there, as text.
    browser.open(&site.url("/pools/lan"));
    browser.wait_for_text("#table", SCRIPT);
    let mut wide = Vec::new();
    for path in super::site::PAGES {
        browser.open(&site.url(path));
        assert!(browser.has("main h1") || browser.has(".door"), "{path} has no heading");
        assert_eq!(
            browser.script(
                "return document.querySelectorAll('main script, main style, [style], [onclick]').length"
            ),
            json!(0),
            "{path}"
        );
        let over = browser
            .script("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
        if over != json!(0) {
            wide.push(format!("{path}: {over}"));
        }
    }
    assert!(wide.is_empty(), "wider than 360 pixels: {wide:?}");
}
