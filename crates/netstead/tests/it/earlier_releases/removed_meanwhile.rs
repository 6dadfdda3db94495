//! A workload that was removed between the last stop of the old release and the first start of this one.

use std::fs;

use super::{
    NOWHERE,
    home::{Home, Kind},
    open, releases,
};
use crate::{resolve, sandbox::SOON};

/// The source still reports something, so it is not suspect, and `shop` is no longer among it.
const WITHOUT_SHOP: &str = "http:\n  routers:\n    blog:\n      rule: Host(`blog.web.test`)\n";

const GONE: [&str; 2] = ["shop.web.test", "www.shop.web.test"];

#[test]
fn its_names_are_removed_after_the_grace_period_and_not_parked_as_a_change_of_the_configuration() {
    for release in releases() {
        for kind in [Kind::Local, Kind::Raft] {
            let mut home = Home::prepare(&release, kind, NOWHERE);
            home.unpack(&release.join(format!("{kind}.tar.xz")));
            goes_after_grace(&mut home);
        }
    }
}

#[test]
fn its_names_are_removed_after_the_grace_period_from_a_restored_backup_too() {
    for release in releases() {
        let mut home = Home::prepare(&release, Kind::Local, NOWHERE);
        home.unpack(&release.join("local.tar.xz"));
        fs::remove_dir_all(home.sandbox.data()).unwrap();
        home.sandbox.does("store restore whole.backup");
        goes_after_grace(&mut home);
    }
}

fn goes_after_grace(home: &mut Home) {
    fs::write(home.sandbox.path().join("dynamic/web.yml"), WITHOUT_SHOP).unwrap();
    // The configuration is that of the old release, and it has a grace period of ten minutes.
    let mut server = open(&home.sandbox);
    home.until("plan own -o json", |said| GONE.iter().all(|name| said.out.contains(name)));
    let plan_now = plan(home);
    for name in GONE {
        let why = kept_because(&plan_now, name);
        assert!(why.ends_with("grace 10m") && why.starts_with("absent "), "{name}: {why}");
        assert!(!is_parked(&plan_now, name), "{name}: {plan_now:#}");
        assert_eq!(resolve::a(home.sandbox.dns(), name).values, ["127.0.0.1"]);
    }
    server.terminate().unwrap();
    assert_eq!(server.wait(SOON).unwrap().code(), Some(0));

    home.sandbox.set("NETSTEAD_DNS_OWN_GRACE", "1s");
    let _server = open(&home.sandbox);
    for name in GONE {
        resolve::until(&[], || resolve::a(home.sandbox.dns(), name));
        assert!(!is_parked(&plan(home), name));
    }
    resolve::until(&["127.0.0.1"], || resolve::a(home.sandbox.dns(), "blog.web.test"));
}

fn plan(home: &Home) -> serde_json::Value {
    let said = home.sandbox.netstead("plan own -o json".split(' '));
    serde_json::from_str::<Vec<serde_json::Value>>(&said.out).unwrap().remove(0)
}

fn kept_because(plan: &serde_json::Value, name: &str) -> String {
    let kept = plan["kept"].as_array().unwrap();
    let own = kept.iter().find(|value| value["name"] == name).unwrap_or_else(|| panic!("{name}: {plan:#}"));
    own["why"].as_str().unwrap().to_owned()
}

fn is_parked(plan: &serde_json::Value, name: &str) -> bool {
    let changes = plan["parked_changes"].as_array();
    changes.is_some_and(|changes| changes.iter().any(|change| change["name"] == name))
}

#[test]
fn its_configuration_and_variables_are_read_without_a_word() {
    for release in releases() {
        let home = Home::prepare(&release, Kind::Local, NOWHERE);
        let said = home.sandbox.netstead(["config", "check", "-o", "json"]);
        assert_eq!(said.code, 0, "{said:?}");
        let complaints: Vec<&str> =
            said.err.lines().filter(|line| line.contains("warning") || line.contains("error")).collect();
        assert_eq!(complaints, Vec::<&str>::new());
        let config: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let text = config.to_string();
        for part in
            ["10.30.0.0/28", "lab.test", "\"max_events\":5000", "\"grace\":\"10m\"", "ns1.office.test"]
        {
            assert!(text.contains(part), "{part}: {config:#}");
        }
    }
}
