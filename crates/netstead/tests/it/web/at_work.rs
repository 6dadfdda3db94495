//! More of a day's work in a real Chromium: by keys alone, in many tabs, on many lines, with drift and a second window.

use netstead_testkit::{Browser, PowerDns, wait_until};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::site::Site;
use crate::sandbox::{SOON, Sandbox};

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

fn focused(browser: &Browser, what: &str) -> Value {
    browser.script(&format!("const at = document.activeElement; return {what}"))
}

/// Presses Tab until the focus is where `is_there` (of `at`) says.
fn tab_to(browser: &Browser, is_there: &str) {
    for _ in 0..120 {
        if focused(browser, is_there) == json!(true) {
            return;
        }
        browser.press(TAB);
    }
    panic!("Tab never leads to {is_there}; it is at {}", focused(browser, "at.outerHTML"));
}

#[test]
fn keys_alone_claim_an_address_and_release_it() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    browser.open(&site.url("/pools/lan"));
    browser.press(TAB);
    assert_eq!(focused(&browser, "at.className"), json!("skip"), "the first thing is the way past the menu");
    browser.press(ENTER);
    // One stop for the whole grid: its first free address.
    tab_to(&browser, "at.closest('#cells') !== null");
    let address = focused(&browser, "at.id.slice(2)").as_str().unwrap().to_owned();
    assert!(focused(&browser, "at.ariaLabel").as_str().unwrap().ends_with(", free"));
    browser.press(ENTER);
    browser.wait_for_text("#panel", &address);
    let ready = wait_until(SOON, || (focused(&browser, "at.id") == json!("f-key")).then_some(()));
    assert!(ready.is_some(), "the focus is where one types next: {}", focused(&browser, "at.outerHTML"));
    browser.press(&format!("by-keys{ENTER}"));
    browser.wait_for_text("#said", &format!("by-keys has {address}"));
    tab_to(&browser, "at.tagName === 'SUMMARY' && at.innerText === 'Release it'");
    browser.press(ENTER);
    tab_to(&browser, "at.tagName === 'BUTTON' && at.innerText.startsWith('Release')");
    browser.press(ENTER);
    browser.wait_for_text("#said", &format!("by-keys has released {address}"));
    assert!(!site.sandbox.does("get claims -o csv").contains("by-keys"));
}

#[test]
fn a_refused_form_goes_on_as_the_page_that_it_came_from() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    browser.open(&site.url("/pools/lan?pick=10.0.3.77"));
    browser.type_into("#f-key", "db");
    browser.click("form.claim button");
    browser.wait_for_text("#panel", "db");
    assert!(browser.has("#panel .wrong, #panel .notice.bad"), "{}", browser.text("#panel"));
    let page = site.url("/pools/lan?pick=10.0.3.77");
    let renamed = wait_until(SOON, || (browser.url().split('#').next() == Some(&*page)).then_some(()));
    assert!(renamed.is_some(), "an address that can be asked for: {}", browser.url());
    // Live updates go on.
    site.sandbox.does("claim lan far --address 10.0.3.99");
    browser.wait_for_text("#table", "far");
    // And so does the switch of colours.
    browser.click(".me summary");
    browser.click(".themes button[value=dark]");
    let dark = wait_until(SOON, || {
        (browser.script("return document.documentElement.dataset.theme") == json!("dark")).then_some(())
    });
    assert!(dark.is_some());
    assert_eq!(browser.url(), page);
}

#[test]
fn many_tabs_do_not_use_up_the_connections_of_the_browser() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    // A browser has six connections to one server, and each tab would hold one for its stream.
    for _ in 0..8 {
        browser.open(&site.url("/pools/lan"));
        browser.wait_for_text("#table", "web-1");
        browser.open_tab();
    }
    browser.open(&site.url("/pools/lan"));
    browser.wait_for_text("#table", "web-1");
    site.sandbox.does("claim lan last --address 10.0.3.101");
    browser.wait_for_text("#table", "last");
}

#[test]
fn a_tab_that_is_not_seen_holds_no_stream_and_catches_up_when_it_is() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    browser.open(&site.url("/pools/lan"));
    browser.wait_for_text("#table", "web-1");
    let hide = |hidden: bool| {
        browser.script(&format!(
            "Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}}); \
             document.dispatchEvent(new Event('visibilitychange'))"
        ));
    };
    // The page asks for nothing while it is hidden: requests to it are counted by the page itself.
    browser.script("window.asked = 0; const plain = window.fetch; window.fetch = (...all) => { window.asked += 1; return plain(...all); }");
    hide(true);
    site.sandbox.does("claim lan unseen --address 10.0.3.102");
    let claimed =
        wait_until(SOON, || site.sandbox.does("get claims -o csv").contains("unseen").then_some(()));
    assert!(claimed.is_some());
    assert_eq!(browser.script("return window.asked"), json!(0));
    hide(false);
    browser.wait_for_text("#table", "unseen");
    assert_ne!(browser.script("return window.asked"), json!(0));
}

#[test]
fn chosen_lines_are_counted_in_the_button_and_released_together() {
    let Some(browser) = Browser::start(1280, 900) else { return };
    let site = Site::start();
    site.fill();
    site.log_in(&browser);
    browser.open(&site.url("/pools/lan"));
    let release = "button[value=release]";
    assert_eq!(browser.text(release), "Release what is chosen");
    assert_eq!(
        browser.script("return document.querySelector('button[value=release]').disabled"),
        json!(true)
    );
    browser.click("input[data-one][value=web-1]");
    browser.click("input[data-one][value=web-2]");
    assert_eq!(browser.text(release), "Release 2");
    // What is chosen stays chosen when something else changes.
    site.sandbox.does("claim lan other --address 10.0.3.103");
    browser.wait_for_text("#usage", "held");
    assert_eq!(browser.text(release), "Release 2");
    browser.click(release);
    browser.wait_for_text("main", "web-2.home.test");
    browser.click("button[name=sure]");
    browser.wait_for_text("#said", "2 claims are released");
    let claims = site.sandbox.does("get claims -o csv");
    assert!(!claims.contains("web-1") && claims.contains("other"), "{claims}");
}

#[test]
fn a_session_is_ended_from_a_second_window() {
    let (Some(first), Some(second)) = (Browser::start(1280, 900), Browser::start(1280, 900)) else { return };
    let site = Site::start();
    site.log_in(&first);
    site.log_in(&second);
    first.open(&site.url("/"));
    second.open(&site.url("/access"));
    second.wait_for_text("#sessions", "this one");
    // The own session stands first, so the last one is that of the other window.
    second.click("#sessions tbody tr:last-child details summary");
    second.wait_for_text("#sessions tbody tr:last-child", "has to log in again");
    second.click("#sessions tbody tr:last-child button.danger");
    second.wait_for_text("#said", "the session has ended");
    first.wait_for_text("label", "Token");
    assert!(first.url().contains("/login"), "{}", first.url());
    assert!(second.has("#sessions"), "the window that ended it goes on");
}

#[test]
fn drift_is_adopted_from_the_page() {
    let (Some(browser), Some(server)) = (Browser::start(1280, 900), PowerDns::start(&["home.test"])) else {
        return;
    };
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("hosts"), "10.0.3.7 www.home.test\n").unwrap();
    let config = format!(
        "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n[dns.lan]\ntype = \"powerdns\"\nurl = \"{}\"\napi_key = \"{}\"\n\
         domains = [\"home.test\"]\n",
        server.api_url(),
        server.api_key()
    );
    std::fs::write(sandbox.path().join("netstead.toml"), config).unwrap();
    sandbox.start(&[]);
    let listed = |what: &'static str, sign: &'static str| {
        wait_until(SOON, || {
            sandbox.does("apply");
            sandbox.does(what).contains(sign).then_some(())
        })
    };
    assert!(listed("get records -o csv", "www.home.test").is_some());
    let rrsets = json!({"rrsets": [{
        "name": "www.home.test.", "type": "A", "ttl": 300, "changetype": "REPLACE",
        "records": [{"content": "10.0.3.7", "disabled": false}, {"content": "192.0.2.1", "disabled": false}],
    }]});
    let http = Client::builder().tls_certs_only([]).build().unwrap();
    let zone = format!("{}/api/v1/servers/localhost/zones/home.test.", server.api_url());
    let patch = http.patch(zone).header("X-API-Key", server.api_key()).json(&rrsets).send();
    let patched = Runtime::new().unwrap().block_on(patch).unwrap();
    assert!(patched.status().is_success(), "{}", patched.status());
    assert!(listed("get drift", "192.0.2.1").is_some(), "{}", sandbox.does("get drift"));
    browser.open(sandbox.does("web --print").trim());
    browser.click("form button");
    browser.wait_for_text("nav", "Addresses");
    browser.open(&format!("{}/drift", sandbox.url()));
    browser.wait_for_text("#drift", "others put A 192.0.2.1 beside ours");
    browser.click("input[data-one]");
    assert_eq!(browser.text("button[value=adopt]"), "Adopt 1");
    browser.click("button[value=adopt]");
    browser.wait_for_text("#said", "1 taken over");
    browser.wait_for_text("#drift", "Everything is as Netstead left it");
}
