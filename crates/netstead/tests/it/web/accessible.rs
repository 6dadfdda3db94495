//! axe-core finds no violation of WCAG 2.1 A or AA on any page, in light and dark.

use netstead_testkit::{Browser, axe};

use super::site::{PAGES, Site};

#[test]
fn no_page_violates_wcag_a_or_aa() {
    let (Some(script), Some(browser)) = (axe(), Browser::start(1280, 900)) else { return };
    let site = Site::start();
    site.fill();
    site.park();
    let mut violations = Vec::new();
    let mut look = |path: &str, colours: &str| {
        browser.script(&script);
        let found = browser.async_script(
            "const done = arguments[arguments.length - 1]; \
             axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then( \
               r => done(r.violations.map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | '))), \
               e => done(['axe failed: ' + e]))",
        );
        for one in found.as_array().unwrap() {
            violations.push(format!("{path} ({colours}): {}", one.as_str().unwrap()));
        }
    };
    for colours in ["light", "dark"] {
        browser.prefer(colours);
        browser.open(&site.url("/login"));
        look("/login", colours);
    }
    site.log_in(&browser);
    for colours in ["light", "dark"] {
        browser.prefer(colours);
        for path in PAGES {
            browser.open(&site.url(path));
            look(path, colours);
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
