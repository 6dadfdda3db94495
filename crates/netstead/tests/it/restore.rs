//! A restore that is refused, or interrupted: it leaves nothing behind that could be taken for a store.

use std::{fs, path::Path, time::Duration};

use netstead_store::{Commit, LocalStore, Store as _};
use netstead_testkit::Process;

use crate::{
    resolve::Stopwatch,
    sandbox::{CommandOutput, Sandbox},
};

const CLAIMS: usize = 2000;

/// A sandbox with a backup of many claims, `whole.backup`, and no server.
fn with_backup() -> Sandbox {
    let mut sandbox = Sandbox::with_server();
    sandbox.does("pool create lan --range 10.0.0.0-10.0.255.255");
    let keys: Vec<String> = (0..CLAIMS).map(|number| format!("lan,host-{number}")).collect();
    fs::write(sandbox.path().join("hosts"), keys.join("\n")).unwrap();
    sandbox.does("claim --file hosts");
    sandbox.does("store backup whole.backup");
    sandbox.stop();
    sandbox
}

fn restore(sandbox: &Sandbox) -> CommandOutput {
    sandbox.netstead("store restore whole.backup --data-dir new".split(' '))
}

/// How many claims the new store has, or why it cannot be opened.
fn claims(sandbox: &Sandbox) -> Result<usize, String> {
    let said = sandbox.netstead("get claims -o name --local --data-dir new".split(' '));
    if said.code == 0 { Ok(said.out.lines().count()) } else { Err(said.err) }
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_restore_that_is_refused_leaves_no_directory_behind() {
    let sandbox = with_backup();
    let text = fs::read_to_string(sandbox.path().join("whole.backup")).unwrap();
    fs::write(sandbox.path().join("changed.backup"), text.replace("host-7", "host-x")).unwrap();
    for file in ["changed.backup", "none.backup"] {
        sandbox.fails(&format!("store restore {file} --data-dir new"));
        assert!(!sandbox.path().join("new").exists(), "{file}");
    }
    // A directory that was there stays as it was.
    fs::create_dir(sandbox.path().join("new")).unwrap();
    sandbox.fails("store restore changed.backup --data-dir new");
    assert_eq!(entries(&sandbox.path().join("new")), Vec::<String>::new());
    assert_eq!(restore(&sandbox).code, 0);
    assert_eq!(claims(&sandbox), Ok(CLAIMS));
    let said = sandbox.fails("store restore whole.backup --data-dir new");
    assert!(said.err.contains("new holds a store already"), "{}", said.err);
    assert_eq!(claims(&sandbox), Ok(CLAIMS));
}

#[test]
fn a_restore_that_was_interrupted_is_not_served_and_can_be_begun_anew() {
    let sandbox = with_backup();
    let new = sandbox.path().join("new");
    // As its first moments leave it: a store without anything in it, and the mark of a restore.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { LocalStore::open(&new).await.unwrap().close().await });
    fs::write(new.join("restoring"), "").unwrap();
    let refusal = "a restore into new was interrupted before it had written anything\nhint: begin anew: `netstead store \
                   restore FILE --data-dir new`; for a new and empty store remove new/restoring\n";
    let listen = sandbox.url().replace("http://", "");
    let run =
        || sandbox.netstead(["run", "--listen", &listen, "--dns-listen", "127.0.0.1:0", "--data-dir", "new"]);
    let said = run();
    assert!(said.code == 1 && said.err.ends_with(refusal), "{said:?}");
    assert!(claims(&sandbox).unwrap_err().ends_with(refusal), "{:?}", claims(&sandbox));
    assert_eq!(restore(&sandbox).code, 0);
    assert_eq!(claims(&sandbox), Ok(CLAIMS));
    assert!(!new.join("restoring").exists());

    // As it is left later: with a part of the data, and a key that says so.
    runtime.block_on(async {
        let store = LocalStore::open(&new).await.unwrap();
        store.commit(Commit::new().put("meta/restoring", "1").put("ledger/pool/old", "1{}")).await.unwrap();
        store.close().await;
    });
    let refusal = "a restore into this store was interrupted: begin anew with `netstead store restore`";
    let said = run();
    assert!(said.code == 1 && said.err.contains(refusal), "{said:?}");
    assert!(claims(&sandbox).unwrap_err().contains(refusal), "{:?}", claims(&sandbox));
    assert_eq!(restore(&sandbox).code, 0);
    assert_eq!(claims(&sandbox), Ok(CLAIMS));
    let said = sandbox.netstead("store check --local --data-dir new".split(' '));
    assert!(said.code == 0 && said.err.contains("all well"), "{said:?}");

    // It ended, and only its mark was left.
    fs::write(new.join("restoring"), "").unwrap();
    assert_eq!(claims(&sandbox), Ok(CLAIMS));
    assert!(!new.join("restoring").exists());
}

#[test]
fn a_restore_may_be_killed_at_any_moment() {
    let sandbox = with_backup();
    let new = sandbox.path().join("new");
    let begun = Stopwatch::start();
    assert_eq!(restore(&sandbox).code, 0);
    let whole = begun.elapsed();
    for round in 0..16 {
        let _ = fs::remove_dir_all(&new);
        let mut command = sandbox.command();
        command.args(["store", "restore", "whole.backup", "--data-dir", "new"]);
        let mut process = Process::start("netstead", &mut command).unwrap();
        std::thread::sleep(whole * round / 16 + Duration::from_millis(2));
        process.kill().unwrap();
        // Nothing, half of it that is refused, or all of it.
        match claims(&sandbox) {
            Ok(count) => assert_eq!(count, CLAIMS, "round {round}"),
            Err(told) if told.contains("there is no store in new") => {}
            Err(told) => {
                assert!(told.contains("a restore into"), "round {round}: {told}");
                assert!(told.contains("interrupted"), "round {round}: {told}");
            }
        }
        let again = restore(&sandbox);
        assert!(again.code == 0 || again.err.contains("holds a store already"), "round {round}: {again:?}");
        assert_eq!(claims(&sandbox), Ok(CLAIMS), "round {round}");
    }
}
