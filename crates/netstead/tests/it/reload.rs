//! The configuration while the server runs.

use std::time::Duration;

use crate::{
    resolve::{self, Stopwatch},
    sandbox::Sandbox,
};

fn write(sandbox: &Sandbox, file: &str, text: &str) {
    std::fs::write(sandbox.path().join(file), text).unwrap();
}

fn wait_for(sandbox: &mut Sandbox, sign: &str) {
    let begun = Stopwatch::start();
    while !sandbox.server().log().contains(sign) {
        assert!(begun.elapsed() < Duration::from_secs(20), "no `{sign}` in:\n{}", sandbox.server().log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn names_of_a_hosts_file_appear_and_follow_it() {
    let mut sandbox = Sandbox::empty();
    write(&sandbox, "netstead.toml", "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n");
    write(&sandbox, "hosts", "10.0.7.1 printer.office.test\n10.0.7.2 nas.office.test files.office.test\n");
    sandbox.start(&[]);
    let dns = sandbox.dns();
    resolve::until(&["10.0.7.1"], || resolve::a(dns, "printer.office.test"));
    resolve::until(&["10.0.7.2"], || resolve::a(dns, "files.office.test"));
    write(
        &sandbox,
        "hosts",
        "10.0.7.9 printer.office.test\n10.0.7.2 nas.office.test files.office.test\n10.0.7.3 new.office.test\n",
    );
    resolve::until(&["10.0.7.3"], || resolve::a(dns, "new.office.test"));
    assert!(sandbox.does("get sources").contains("office  hosts   complete"));
}

#[test]
fn a_bad_file_changes_nothing_and_a_good_one_is_taken_over() {
    let mut sandbox = Sandbox::empty();
    let pool = "[pool.lan]\nnetwork = \"10.0.3.0/24\"\ndomain = \"home.test\"\n";
    let hosts = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n";
    write(&sandbox, "netstead.toml", pool);
    write(&sandbox, "hosts", "10.0.7.1 printer.office.test\n");
    sandbox.start(&[]);
    sandbox.does("claim lan web-1");
    resolve::until(&["10.0.3.1"], || resolve::a(sandbox.dns(), "web-1.home.test"));

    write(&sandbox, "netstead.toml", &format!("{pool}{}", hosts.replace("path", "pth")));
    wait_for(&mut sandbox, "netstead.toml:6:1: unknown key `pth` in `source.office`");
    assert!(!sandbox.does("get sources").contains("office"));
    assert_eq!(resolve::a(sandbox.dns(), "web-1.home.test").values, ["10.0.3.1"]);
    let said = sandbox.netstead(["status", "--check"]);
    let told = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        told.contains("is degraded") && told.contains("source.office.path: it is missing (and 1 more)"),
        "{told}"
    );

    let more = "[pool.new]\nranges = [\"10.1.0.1\"]\n[domain.\"home.test\"]\nnetworks = [\"10.0.3.0/24\"]\n";
    write(&sandbox, "netstead.toml", &format!("{pool}{hosts}{more}"));
    wait_for(&mut sandbox, "Configuration read again; it is in force.");
    resolve::until(&["10.0.7.1"], || resolve::a(sandbox.dns(), "printer.office.test"));
    assert_eq!(sandbox.does("get pools -o name"), "lan\nnew\n");
    // What the file calls a domain is a zone that denies what it does not know.
    let begun = Stopwatch::start();
    while resolve::a(sandbox.dns(), "nothing.home.test").code != 3 {
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(resolve::a(sandbox.dns(), "web-1.home.test").values, ["10.0.3.1"]);

    // Without its file a server goes on.
    std::fs::remove_file(sandbox.path().join("netstead.toml")).unwrap();
    wait_for(&mut sandbox, "The configuration file is gone");
    assert!(sandbox.does("get sources").contains("office"));
}

#[test]
fn a_file_that_cannot_be_used_is_told_wherever_people_look_until_it_is_mended() {
    let mut sandbox = Sandbox::empty();
    let pool = "[pool.lan]\nnetwork = \"10.0.3.0/24\"\n";
    write(&sandbox, "netstead.toml", pool);
    sandbox.start(&[]);
    let provider =
        "[dns.ns1]\ntype = \"powerdns\"\nurl = \"http://127.0.0.1:9\"\ndomains = [\"home.test\"]\n";
    // It reads well, and the secret is not there.
    write(&sandbox, "netstead.toml", &format!("{pool}{provider}api_key = {{ file = \"key\" }}\n"));
    wait_for(&mut sandbox, "The configuration cannot be used; the old one stays.");
    let said = sandbox.netstead(["status", "--check"]);
    assert_eq!(said.code, 1, "{said:?}");
    let told = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("The changed configuration is not in force") && told.contains("dns.ns1"), "{told}");
    let said = sandbox.netstead(["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("cannot be used, and what was in force before stays"), "{}", said.out);
    let ready = sandbox.get("/readyz");
    assert!(ready.contains("degraded, leading: the changed configuration is not in force"), "{ready}");

    // The file stays as it is; the secret comes.
    write(&sandbox, "key", "secret\n");
    wait_for(&mut sandbox, "Configuration read again; it is in force.");
    assert!(sandbox.does("get providers").contains("ns1"));
    assert_eq!(sandbox.server().log().matches("The configuration cannot be used").count(), 1);
    assert_eq!(sandbox.get("/readyz").lines().last(), Some("ok, leading"));

    // A refusal ends with the file that was refused.
    write(&sandbox, "netstead.toml", &format!("{pool}nonsense = 1\n"));
    wait_for(&mut sandbox, "The configuration is wrong, and the old one stays");
    std::fs::remove_file(sandbox.path().join("netstead.toml")).unwrap();
    wait_for(&mut sandbox, "The configuration file is gone");
    assert_eq!(sandbox.get("/readyz").lines().last(), Some("ok, leading"));

    write(&sandbox, "netstead.toml", &format!("{pool}# mended\n"));
    let begun = Stopwatch::start();
    while sandbox.netstead(["status", "--check"]).code != 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", sandbox.does("status"));
    }
}
