//! Names that a token, a claim or a source may have, through the built binary.

use crate::{
    resolve::{self, Stopwatch},
    sandbox::{SOON, Sandbox},
};

/// The text without the line ends that a terminal's width asks for.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Waits until a command says something.
fn until(sandbox: &Sandbox, line: &str, told: &str) -> String {
    let begun = Stopwatch::start();
    loop {
        let said = on_one_line(&sandbox.does(line));
        if said.contains(told) {
            return said;
        }
        assert!(begun.elapsed() < SOON, "`netstead {line}` does not say {told}:\n{said}");
    }
}

#[test]
fn a_claim_token_of_one_pool_names_nothing_elsewhere() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create a --range 10.1.0.10-10.1.0.90 --domain a.test");
    sandbox.does("pool create b --range 10.2.0.10-10.2.0.90 --domain b.test");
    sandbox.does("record set www.z.test A 10.5.5.5");
    sandbox.does("claim b other");
    let secret = sandbox.does("token create ci --role claim --pool a").trim().to_owned();
    for name in ["www.z.test", "other.b.test", "b.test", "*.b.test", "a.test", "*.a.test"] {
        let said = sandbox.netstead(["--token", &secret, "claim", "a", "x", "--hostname", name]);
        let told = format!("so its claims and pools may have names below `a.test`, and not `{name}`");
        assert!(said.code == 1 && said.err.contains(&told), "{said:?}");
    }
    assert_eq!(sandbox.does(&format!("--token {secret} claim a x --hostname www.a.test")), "10.1.0.10\n");
    resolve::until(&["10.1.0.10"], || resolve::a(sandbox.dns(), "www.a.test"));
    assert_eq!(resolve::a(sandbox.dns(), "www.z.test").values, ["10.5.5.5"]);
}

#[test]
fn a_claim_does_not_join_a_name_that_somebody_has() {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create a --range 10.1.0.10-10.1.0.90 --domain a.test");
    sandbox.does("record set www.a.test A 10.5.5.5");
    resolve::until(&["10.5.5.5"], || resolve::a(sandbox.dns(), "www.a.test"));
    let secret = sandbox.does("token create ci --role claim").trim().to_owned();
    sandbox.does(&format!("--token {secret} claim a www"));
    let why = "manual/www.a.test/A has the name, and a claim does not join it";
    until(&sandbox, "explain www.a.test", why);
    let wide = sandbox.does("get workloads -o wide");
    assert!(wide.contains(&format!("www.a.test: {why}")), "{wide}");
    let plan = sandbox.netstead(["plan", "builtin"]).out;
    insta::assert_snapshot!(plan, @r"
    blocked on builtin
      ! www.a.test  A      10.1.0.10
          manual/www.a.test/A has the name, and ledger/a/www came later
          there: A 10.5.5.5
          free it: netstead record delete www.a.test A
          share the name: share = true in [dns.builtin]
    builtin: nothing to change, 1 blocked
    ");
    // Who was first is still so after a restart.
    sandbox.stop();
    sandbox.start(&[]);
    until(&sandbox, "explain www.a.test", why);
    assert_eq!(resolve::a(sandbox.dns(), "www.a.test").values, ["10.5.5.5"]);
    sandbox.does("record delete www.a.test A");
    resolve::until(&["10.1.0.10"], || resolve::a(sandbox.dns(), "www.a.test"));
}

#[test]
fn what_rules_refuse_is_told_and_consent_brings_it() {
    let mut sandbox = Sandbox::empty();
    let rule = "Host(`app.home.test`) || Host(`home.test`) || Host(`*.home.test`)";
    std::fs::write(
        sandbox.path().join("web.yml"),
        format!("http:\n  routers:\n    web:\n      rule: {rule}\n"),
    )
    .unwrap();
    let config = sandbox.path().join("netstead.toml");
    let text = "[source.files]\ntype = \"traefik\"\npaths = [\"web.yml\"]\ntarget = \"10.0.3.9\"\n";
    let provider = "[dns.own]\ntype = \"builtin\"\ndomains = [\"home.test\"]\n";
    std::fs::write(&config, format!("{text}{provider}")).unwrap();
    sandbox.start(&["--config", config.to_str().unwrap()]);
    resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), "app.home.test"));
    let top = "home.test: the top of a zone or domain needs `apex = true` in [source.files]";
    let wide = until(&sandbox, "get workloads -o wide", top);
    assert!(wide.contains("*.home.test: a wildcard needs `wildcard = true` in [source.files]"), "{wide}");
    let explained = on_one_line(&sandbox.does("explain home.test"));
    assert!(explained.contains("needs `apex = true` in [source.files]"), "{explained}");
    assert!(resolve::a(sandbox.dns(), "home.test").values.is_empty());

    // With consent they come; without it they stay until a person says so.
    std::fs::write(&config, format!("{text}apex = true\nwildcard = true\n{provider}")).unwrap();
    for name in ["home.test", "other.home.test"] {
        resolve::until(&["10.0.3.9"], || resolve::a(sandbox.dns(), name));
    }
    std::fs::write(&config, format!("{text}{provider}")).unwrap();
    let plan = {
        let begun = Stopwatch::start();
        loop {
            let said = sandbox.netstead(["plan", "own"]);
            if said.out.contains("2 parked") {
                break said.out;
            }
            assert!(begun.elapsed() < SOON, "{said:?}");
        }
    };
    let plan = on_one_line(&plan);
    assert!(plan.contains("because: what asks for them may not have them any more"), "{plan}");
    for name in ["home.test", "other.home.test"] {
        assert_eq!(resolve::a(sandbox.dns(), name).values, ["10.0.3.9"]);
    }
    let hash = plan.split_once("`netstead apply ").and_then(|(_, rest)| rest.split_once('`')).unwrap().0;
    sandbox.does(&format!("apply {hash}"));
    for name in ["home.test", "other.home.test"] {
        resolve::until(&[], || resolve::a(sandbox.dns(), name));
    }
    assert_eq!(resolve::a(sandbox.dns(), "app.home.test").values, ["10.0.3.9"]);
    let marked = sandbox.netstead(["record", "set", "_netstead-x.app.home.test", "TXT", "\"netstead/1\""]);
    assert!(marked.code == 1 && marked.err.contains("ownership mark"), "{marked:?}");
}
