use crate::sandbox::Sandbox;

/// Each of these is refused with a message that names the field, and changes nothing.
#[test]
fn bad_input_is_named_and_changes_nothing() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan web-1");
    let before = sandbox.does("events export");
    let long = "x".repeat(300);
    for (line, field) in [
        ("pool create a --range 10.0.9.200-10.0.9.50", "--range"),
        ("pool create a --range 10.0.9.1 --range fd00::1", "ranges"),
        ("pool create a --range 10.0.9.1-fd00::1", "--range"),
        ("pool create a --network fd00::/129", "--network"),
        ("pool create a --range 52:54:00:00:00-52:54:00:ff:ff:ff", "--range"),
        ("pool create a", "names no address"),
        ("pool create A --range 10.0.9.1", "NAME"),
        (&format!("pool create {long} --range 10.0.9.1"), "NAME"),
        (&format!("claim lan {long}"), "KEY"),
        ("claim nowhere web-1", "nowhere"),
        ("claim lan", "key"),
        ("claim", "key"),
        ("claim lan,lan x", "lan"),
        ("claim --any lan a b", "--any"),
        ("claim lan web-2 --address 10.0.9.1", "10.0.9.1"),
        ("claim lan web-2 --address fd00::1", "fd00::1"),
        ("claim lan web-2 --ttl 10", "--ttl"),
        ("claim lan web-2 --length 24", "length"),
        ("pool create b --range 10.0.3.55-10.0.3.99", "overlap"),
        ("pool create b --range 10.0.9.1-10.0.9.9 --length 24", "length"),
        ("pool create b --range 10.0.9.1 --gateway fd00::1", "gateway"),
        ("pool update nowhere --cooldown 1m", "nowhere"),
        ("pool delete nowhere", "nowhere"),
        ("release nowhere web-1", "nowhere"),
        ("renew lan web-1 --id nonsense", "--id"),
        ("reserve lan r 10.9.9.9", "10.9.9.9"),
        ("get claims --selector =", "--selector"),
        ("get addresses --state strange", "state"),
        ("history web-1 --since whenever", "--since"),
        ("explain 10.0.3.999", "ADDRESS"),
        ("token revoke nobody", "nobody"),
        ("pool create b --range 10.0.9.1 --gateway=", "--gateway"),
        ("pool update lan --max-per-owner 0", "--max-per-owner"),
        ("frobnicate", "frobnicate"),
        ("--url ftp://x status", "ftp://x"),
    ] {
        let said = sandbox.fails(line);
        assert!(said.err.contains(field), "`netstead {line}` does not name {field}:\n{}", said.err);
        assert_eq!(said.out, "", "`netstead {line}`");
    }
    for words in [["claim", "lan", ""].as_slice(), &["pool", "create", "", "--range", "10.0.9.1"]] {
        let said = sandbox.netstead(words);
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{words:?}: {}", said.err);
    }
    assert_eq!(sandbox.does("events export"), before);
}

/// A file that cannot be claimed is refused by its line and the field in it, here or by the server.
#[test]
fn a_wrong_line_of_a_file_is_named_and_changes_nothing() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    sandbox.does("claim lan web-1");
    let before = sandbox.does("events export");
    let fine = "{\"key\":\"a\",\"each\":[\"lan\"]}";
    for (line, told) in [
        ("lan", "it has 1 field;"),
        ("lan,b,10.0.3.999", "address: "),
        ("lan,b,10.0.9.9", "10.0.9.9"),
        ("lan,b,10.0.3.50", "`web-1`"),
        ("nowhere,b", "`nowhere`"),
        (
            "{\"key\":\"b\",\"each\":[\"lan\"],\"claim\":{\"ttl\":60}}",
            "claim.ttl: invalid type: integer `60`",
        ),
        ("{\"key\":\"b\",\"each\":[\"lan\"],\"claim\":{\"ttl\":\"10\"}}", "claim.ttl: "),
        (
            "{\"key\":\"b\",\"each\":[\"lan\"],\"claim\":{\"hostnames\":[\"x\",\"a..b\"]}}",
            "claim.hostnames[1]: ",
        ),
        ("{\"key\":\"b\",\"each\":\"lan\"}", "each: invalid type: string \"lan\""),
        ("{\"key\":\"b\",\"each\":[\"lan\"],\"wait\":\"1s\"}", "wait: unknown field `wait`"),
        ("{\"key\":\"b\",\"each\":[\"lan\"],\"claim\":{\"wait\":\"1s\"}}", "claim.wait: "),
        ("{\"key\":\"\",\"each\":[\"lan\"]}", "key: "),
        ("{\"key\":\"b\"}", "any: "),
        ("{\"key\":\"b\",\"each\":[\"lan\"],\"claim\":{\"owner\":\"ann\"}}", "claim.owner: "),
    ] {
        // The comment has a number, too.
        std::fs::write(sandbox.path().join("hosts"), format!("# hosts\n{fine}\n{line}\n{fine}\n")).unwrap();
        let said = sandbox.fails("claim --file hosts");
        let first = said.err.lines().next().unwrap_or_default();
        assert!(first.starts_with("error: hosts:3: ") && first.contains(told), "{line}\n{}", said.err);
        assert!(!first.contains("entries[") && said.out.is_empty(), "{line}\n{}", said.err);
    }
    assert_eq!(sandbox.does("events export"), before);
}

#[test]
fn when_nothing_answers_it_says_how_to_start_one() {
    let sandbox = Sandbox::empty();
    let said = sandbox.fails("status");
    assert!(said.err.starts_with(&format!("error: nothing answers at {}", sandbox.url())), "{}", said.err);
    assert!(said.err.contains("`netstead run`"), "{}", said.err);
}

#[test]
fn help_and_version_are_no_errors() {
    let sandbox = Sandbox::empty();
    for line in ["--help", "--version", "help", "help pool create", "claim --help", "pool -h"] {
        assert!(!sandbox.does(line).is_empty(), "{line}");
    }
    assert_eq!(sandbox.netstead(["claim", "--frob"]).code, 1);
}

#[test]
fn a_file_without_end_is_not_read_to_it() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.3.50-10.0.3.60");
    let told = |most: u64| format!("/dev/zero: it has more than {most} bytes, the most that is read");
    for (line, told) in [
        ("run --config /dev/zero", told(16 << 20)),
        ("config check /dev/zero", told(16 << 20)),
        ("import dnsweaver --env-file /dev/zero", told(16 << 20)),
        ("import dnsweaver --file /dev/zero", told(16 << 20)),
        ("claim --file /dev/zero", told(256 << 20)),
        ("store restore /dev/zero --data-dir other", "it has more than 16777216 bytes".to_owned()),
        ("--ca-file /dev/zero status", "/dev/zero holds no certificate: it is not a regular file".to_owned()),
    ] {
        let said = sandbox.fails(line);
        assert!(said.err.contains(&told), "`netstead {line}`:\n{}", said.err);
    }
}
