//! A command that names no server finds the one that is meant.

use crate::sandbox::{CommandOutput, Sandbox};

/// Types a line without `NETSTEAD_URL`.
fn types(sandbox: &Sandbox, line: &str) -> CommandOutput {
    let mut command = sandbox.command();
    CommandOutput::from(command.env_remove("NETSTEAD_URL").args(line.split(' ')).output().unwrap())
}

#[test]
fn the_server_started_last_is_found_and_the_one_of_the_configuration_goes_before_it() {
    let mut sandbox = Sandbox::with_server();
    let said = types(&sandbox, "status");
    assert!(said.code == 0 && said.out.contains(&sandbox.url()), "{said:?}");
    // The file of this directory has another one in mind.
    std::fs::write(sandbox.path().join("netstead.toml"), "[api]\nlisten = \"127.0.0.1:1\"\n").unwrap();
    let said = types(&sandbox, "status");
    assert!(said.code == 1 && said.err.contains("nothing answers at http://127.0.0.1:1"), "{said:?}");
    let listen = format!("[api]\nlisten = \"0.0.0.0:{}\"\n", sandbox.url().rsplit(':').next().unwrap());
    std::fs::write(sandbox.path().join("netstead.toml"), listen).unwrap();
    assert_eq!(types(&sandbox, "status").code, 0);
    // A server that is gone is not waited for.
    std::fs::remove_file(sandbox.path().join("netstead.toml")).unwrap();
    sandbox.stop();
    let said = types(&sandbox, "get pools --timeout 2s");
    assert!(!said.err.contains(&sandbox.url()), "{said:?}");
}

#[test]
fn a_file_in_a_foreign_directory_does_not_decide_where_a_token_is_sent() {
    let sandbox = Sandbox::empty();
    std::fs::write(sandbox.path().join("netstead.toml"), "[api]\nlisten = \"192.0.2.1:5301\"\n").unwrap();
    let mut command = sandbox.command();
    command.env_remove("NETSTEAD_URL").env("NETSTEAD_TOKEN", "secret").args(["get", "pools"]);
    let said = CommandOutput::from(command.output().unwrap());
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("add `--url http://192.0.2.1:5301`"), "{}", said.err);
}

#[test]
fn a_url_without_a_scheme_and_one_with_the_wrong_scheme_are_told_with_the_right_one() {
    let sandbox = Sandbox::with_server();
    let place = sandbox.url().trim_start_matches("http://").to_owned();
    let said = sandbox.fails(&format!("--url {place} status"));
    assert!(said.err.contains(&format!("write `http://{place}`")), "{}", said.err);
    let said = sandbox.fails(&format!("--url https://{place} status"));
    assert!(
        said.err.contains("answers in plain HTTP, not in TLS") && said.err.contains("write `http://`"),
        "{}",
        said.err
    );
}
