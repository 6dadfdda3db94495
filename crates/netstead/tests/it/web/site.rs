//! A server with something of everything on its pages.

use std::time::Duration;

use netstead_testkit::{Browser, wait_until};

use crate::sandbox::Sandbox;

/// A name that would be a script if a page did not escape it.
pub(super) const SCRIPT: &str = "<script>alert(1)</script>";

/// Every page that stands in the menu or is reached from one: what axe looks at, what is photographed, and what is no wider
/// than a phone.
pub(super) const PAGES: [&str; 29] = [
    "/",
    "/addresses",
    "/addresses?find=%2F27",
    "/pools/new",
    "/pools/lan",
    "/pools/lan?pick=10.0.3.77",
    "/pools/lan/edit",
    "/pools/lan/delete",
    "/pools/big",
    "/pools/six",
    "/pools/sites",
    "/addresses/10.0.3.50",
    "/addresses/10.0.3.53",
    "/names",
    "/names?text=web",
    "/names/web-1.home.test",
    "/workloads",
    "/plan",
    "/drift",
    "/servers",
    "/servers?test=dns.own",
    "/history",
    "/history?of=names",
    "/history?address=10.0.3.50&until=2m",
    "/rollback?provider=own&to=0",
    "/doctor",
    "/access",
    "/cluster",
    "/search?q=o",
];

const ROUTERS: &str =
    "http:\n  routers:\n    web:\n      rule: Host(`app.home.test`) || Host(`*.home.test`)\n";

/// A server whose names come from a hosts file, with a pool of each family.
pub(super) struct Site {
    pub(super) sandbox: Sandbox,
}

impl Site {
    pub(super) fn start() -> Self {
        Self::with("")
    }

    /// As [`Site::start`], with more in the configuration.
    pub(super) fn with(more: &str) -> Self {
        let mut sandbox = Sandbox::empty();
        std::fs::write(sandbox.path().join("hosts"), hosts()).unwrap();
        std::fs::write(sandbox.path().join("web.yml"), ROUTERS).unwrap();
        let site = |sandbox: &Sandbox, wildcard| {
            std::fs::write(config_path(sandbox), config(wildcard, more)).unwrap();
        };
        site(&sandbox, true);
        sandbox.start(&["--config", config_path(&sandbox).to_str().unwrap()]);
        Self { sandbox }
    }

    /// Stops the server, lets `change` do something to its data directory, and starts it again.
    pub(super) fn restart_after(&mut self, change: impl FnOnce(&std::path::Path)) {
        self.sandbox.stop();
        change(&self.sandbox.data());
        let config = config_path(&self.sandbox);
        self.sandbox.start(&["--config", config.to_str().unwrap()]);
    }

    /// Pools of all families, claims, a reservation, and an address that rests.
    pub(super) fn fill(&self) {
        let does = |line: &str| self.sandbox.does(line);
        does(
            "pool create lan --network 10.0.3.0/24 --range 10.0.3.50-10.0.3.200 --gateway 10.0.3.1 --domain home.test --cooldown 1h",
        );
        does("pool create big --network 10.16.0.0/16");
        does("pool create six --network fd00:7::/64");
        does("pool create macs --range 52:54:00:00:00:00-52:54:00:00:ff:ff");
        does("pool create sites --prefix 10.64.0.0/12 --length 24");
        for key in ["web-1", "web-2", "db", "mail", "git"] {
            does(&format!("claim lan {key}"));
        }
        does("claim lan printer --address 10.0.3.120");
        does("claim big one --address 10.16.7.9");
        does("claim six one");
        does("claim macs one");
        does("claim sites ams");
        does("reserve lan phones 10.0.3.150-10.0.3.169");
        does("release lan mail");
        let said = self.sandbox.netstead([
            "claim",
            "lan",
            SCRIPT,
            "--description",
            SCRIPT,
            "--hostname",
            "odd.home.test",
        ]);
        assert_eq!(said.code, 0, "{said:?}");
    }

    /// Makes a change wait for a person: a wildcard that the file no longer allows.
    pub(super) fn park(&self) {
        let listed = wait_until(Duration::from_secs(20), || {
            let records = self.sandbox.does("get records -o csv");
            records.contains("*.home.test").then_some(())
        });
        assert!(listed.is_some(), "{}", self.sandbox.does("get records -o csv"));
        std::fs::write(config_path(&self.sandbox), config(false, "")).unwrap();
        let parked = wait_until(Duration::from_secs(30), || {
            self.sandbox.netstead(["plan", "own"]).out.contains("parked").then_some(())
        });
        assert!(parked.is_some(), "{:?}", self.sandbox.netstead(["plan", "own"]));
    }

    /// Logs in as the holder of the admin token, by a link.
    pub(super) fn log_in(&self, browser: &Browser) {
        let link = self.sandbox.does("web --print");
        browser.open(link.trim());
        browser.click("form button");
        // On a phone the menu is folded.
        browser.wait_for_text(".top", "Netstead");
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.sandbox.url())
    }
}

fn config_path(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.path().join("netstead.toml")
}

fn hosts() -> String {
    "10.0.3.9 router.home.test\n10.0.3.10 nas.home.test files.home.test\n10.0.3.61 tv.home.test\n".to_owned()
}

fn config(wildcard: bool, more: &str) -> String {
    format!(
        "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n[source.files]\ntype = \"traefik\"\n\
         paths = [\"web.yml\"]\ntarget = \"10.0.3.9\"\nwildcard = {wildcard}\n\
         [dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\", \"3.0.10.in-addr.arpa\"]\n{more}"
    )
}
