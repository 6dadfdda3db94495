//! The completions of shells know what the server knows.

use std::process::Command;

use crate::sandbox::Sandbox;

/// The words that bash offers for the last of these.
fn bash(sandbox: &Sandbox, words: &[&str]) -> Vec<String> {
    let script = sandbox.does("completions bash");
    let line = format!(
        "PATH={}:$PATH\n{script}\nCOMP_WORDS=(netstead {})\nCOMP_CWORD={}\n_netstead_with_values netstead '{}' x\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        std::path::Path::new(env!("CARGO_BIN_EXE_netstead")).parent().unwrap().display(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len(),
        words.last().unwrap(),
    );
    let command = sandbox.command();
    // It is longer than an argument may be.
    let file = sandbox.path().join("line.sh");
    std::fs::write(&file, line).unwrap();
    let mut bash = Command::new("bash");
    bash.arg("--norc").arg(file).current_dir(sandbox.path());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    let done = bash.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_offer_pools_claims_and_providers_of_the_server() {
    let sandbox = Sandbox::with_server();
    sandbox.does("pool create hosts --range 10.0.3.50-10.0.3.200");
    sandbox.does("pool create guests --range 10.0.4.50-10.0.4.200");
    sandbox.does("claim hosts web-1");
    // A key is never taken for a command of the shell.
    let said = sandbox.netstead(["claim", "hosts", "web-$(touch broken)"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(bash(&sandbox, &["claim", "ho"]), ["hosts"]);
    let keys = bash(&sandbox, &["release", "hosts", "web-"]);
    assert_eq!(keys, ["web-1", "web-\\$\\(touch\\ broken\\)"]);
    assert!(!sandbox.path().join("broken").exists());
    assert_eq!(bash(&sandbox, &["get", "pool", "g"]), ["guests"]);
    assert!(bash(&sandbox, &["plan", "b"]).contains(&"builtin".to_owned()));
    // Without a server there is nothing to offer, and nothing is said.
    let mut sandbox = sandbox;
    sandbox.stop();
    assert_eq!(bash(&sandbox, &["claim", "ho"]), Vec::<String>::new());
}

#[test]
fn scripts_of_other_shells_ask_too() {
    let sandbox = Sandbox::empty();
    for shell in ["zsh", "fish"] {
        let script = sandbox.does(&format!("completions {shell}"));
        assert!(script.contains("netstead complete-values "), "{shell}");
    }
    assert!(sandbox.does("completions zsh").contains("compdef _netstead_with_values netstead"));
}
