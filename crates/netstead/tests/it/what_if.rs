//! Plans of files that are not in force, and what plans are made of.

use netstead_plan::Case;

use crate::{resolve, sandbox::Sandbox};

const HOSTS: &str = "10.0.7.1 printer.office.test\n10.0.7.2 nas.office.test\n";
const FILE: &str = "[source.office]\ntype = \"hosts\"\npath = \"hosts\"\n\
                    [dns.own]\ntype = \"builtin\"\ndomains = [\"office.test\"]\nreverse = false\n";

/// A sandbox that keeps two names in line.
fn office() -> Sandbox {
    let mut sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), FILE).unwrap();
    std::fs::write(sandbox.path().join("hosts"), HOSTS).unwrap();
    sandbox.start(&[]);
    resolve::until(&["10.0.7.2"], || resolve::a(sandbox.dns(), "nas.office.test"));
    sandbox.does("apply");
    sandbox
}

fn with(sandbox: &Sandbox, text: &str) -> crate::sandbox::CommandOutput {
    std::fs::write(sandbox.path().join("pr.toml"), text).unwrap();
    sandbox.netstead(["plan", "--config", "pr.toml"])
}

#[test]
fn a_file_is_planned_without_being_in_force() {
    let sandbox = office();
    let same = with(&sandbox, FILE);
    assert_eq!((same.code, same.out.as_str(), same.err.as_str()), (0, "own: nothing to change\n", ""));

    let sooner = with(&sandbox, &format!("{FILE}ttl = 60\n"));
    assert_eq!(sooner.code, 2, "{sooner:?}");
    assert!(sooner.out.contains("nas.office.test"), "{}", sooner.out);

    // The domain is misspelt: everything would go, and a guard would not let it.
    let misspelt = with(&sandbox, &FILE.replace("office.test", "ofice.test"));
    assert_eq!(misspelt.code, 3, "{misspelt:?}");

    let more = format!(
        "{FILE}[dns.more]\ntype = \"powerdns\"\nurl = \"https://192.0.2.1:8081\"\n\
         api_key = {{ file = \"/etc/shadow\" }}\nca_file = \"/etc/shadow\"\ndomains = [\"office.test\"]\n"
    );
    let more = with(&sandbox, &more);
    assert_eq!(more.code, 2, "{more:?}");
    assert!(more.err.contains("`more`") && more.err.contains("was not asked"), "{}", more.err);
    assert!(!more.err.contains("shadow") && !more.out.contains("shadow"), "{more:?}");

    let gone =
        with(&sandbox, "[dns.own]\ntype = \"builtin\"\ndomains = [\"office.test\"]\nreverse = false\n");
    assert_eq!(gone.code, 0, "{gone:?}");
    assert!(gone.err.contains("source.office is missing: what it brought would stay."), "{}", gone.err);

    // Called otherwise now, which is said: nothing goes, and nothing comes.
    let renamed = with(&sandbox, &FILE.replace("[source.office]\n", "[source.desk]\nwas = \"office\"\n"));
    assert_eq!(
        (renamed.code, renamed.out.as_str(), renamed.err.as_str()),
        (0, "own: nothing to change\n", ""),
        "{renamed:?}"
    );
    // The same without a note about it: another source, which was not polled yet.
    let other = with(&sandbox, &FILE.replace("[source.office]", "[source.desk]"));
    assert_eq!(other.code, 0, "{other:?}");
    for told in ["source.office is missing", "source.desk is new: it was not looked at"] {
        assert!(other.err.contains(told), "{}", other.err);
    }
    let moved = with(&sandbox, &FILE.replace("[dns.own]\n", "[dns.mine]\nwas = \"own\"\n"));
    assert_eq!((moved.code, moved.out.as_str()), (0, "mine: nothing to change\n"), "{moved:?}");

    let pool = "[pool.lan]\nnetwork = \"10.0.3.0/24\"\n";
    let pool = with(&sandbox, &format!("{FILE}{pool}"));
    assert!(pool.err.contains("pool.lan is new: no claim and no name comes of that alone."), "{}", pool.err);

    let wrong = with(&sandbox, &FILE.replace("domains", "domians"));
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.err.contains("pr.toml:6:1") && wrong.err.contains("did you mean `domains`?"),
        "{}",
        wrong.err
    );

    // Nothing of all that happened, and a variable is no wish to imagine something.
    assert_eq!(sandbox.does("plan"), "own: nothing to change\n");
    let mut command = sandbox.command();
    let said = command.args(["plan"]).env("NETSTEAD_CONFIG", "nowhere.toml").output().unwrap();
    assert_eq!(said.status.code(), Some(0));
    assert_eq!(resolve::a(sandbox.dns(), "nas.office.test").values, ["10.0.7.2"]);
}

#[test]
fn what_a_guard_holds_back_is_said_by_the_exit_code() {
    let sandbox = office();
    let misspelt = FILE.replace("office.test", "ofice.test");
    std::fs::write(sandbox.path().join("netstead.toml"), misspelt).unwrap();
    let begun = resolve::Stopwatch::start();
    while sandbox.netstead(["plan"]).code != 3 {
        assert!(begun.elapsed().as_secs() < 20, "{:?}", sandbox.netstead(["plan"]));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(resolve::a(sandbox.dns(), "nas.office.test").values, ["10.0.7.2"]);
}

#[test]
fn what_a_plan_is_made_of_can_be_saved_and_gives_the_same_plan() {
    let sandbox = office();
    sandbox.does("pause");
    sandbox.does("record set www.office.test A 10.0.7.9");
    sandbox.netstead(["apply"]);
    let shown = sandbox.netstead(["plan", "own"]);
    assert_eq!(shown.code, 2, "{shown:?}");
    // A case is of the plan, not of the pause.
    let (paused, shown) = shown.out.split_once('\n').unwrap();
    assert_eq!(paused, "own is paused by admin; `netstead resume` ends that");
    let said = sandbox.netstead(["plan", "--save", "case.json"]);
    assert_eq!((said.code, said.out.as_str()), (2, shown), "{}", said.err);
    let text = std::fs::read_to_string(sandbox.path().join("case.json")).unwrap();
    let case: Case = serde_json::from_str(&text).unwrap();
    assert_eq!(case.plan().to_string().trim_end(), shown.trim_end());
    assert_eq!(case.expect.join("\n"), shown.trim_end());
    assert!(sandbox.fails("plan own --save case.json").err.contains("case.json"));
    let again: Case = serde_json::from_str(&sandbox.netstead(["plan", "own", "--save", "-"]).out).unwrap();
    assert_eq!(again.expect, case.expect);
}

#[test]
fn users_of_pipam_find_their_commands() {
    let sandbox = office();
    assert!(sandbox.does("output").contains("printer.office.test"));
    assert!(sandbox.does("output --json").starts_with('['));
    sandbox.does("reconcile");
    assert_eq!(sandbox.netstead(["health"]).code, sandbox.netstead(["status", "--check"]).code);
    let help = sandbox.does("--help");
    assert!(!help.contains("reconcile") && !help.contains("output  "), "{help}");
}
