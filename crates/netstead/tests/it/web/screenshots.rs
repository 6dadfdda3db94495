//! A picture of every page, light and dark, wide and on a phone, below `target/screenshots`.

use std::path::Path;

use netstead_testkit::Browser;

use super::site::{PAGES, Site};

#[test]
fn every_page_has_its_picture() {
    let Some(browser) = Browser::start(1360, 900) else { return };
    let site = Site::start();
    site.fill();
    site.park();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
    std::fs::create_dir_all(&dir).unwrap();
    let shoot = |name: &str| {
        let png = browser.screenshot();
        assert!(png.len() > 1000, "{name} is empty");
        std::fs::write(dir.join(format!("{name}.png")), png).unwrap();
    };
    browser.open(&site.url("/login"));
    shoot("login");
    site.log_in(&browser);
    for (size, width, height) in [("wide", 1360, 900), ("phone", 360, 780)] {
        browser.resize(width, height);
        for colours in ["light", "dark"] {
            browser.prefer(colours);
            for path in PAGES {
                browser.open(&site.url(path));
                let name: String =
                    path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
                shoot(&format!(
                    "{}-{size}-{colours}",
                    if path == "/" { "overview" } else { name.trim_matches('-') }
                ));
            }
        }
    }
}
