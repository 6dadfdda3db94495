//! Files that hold claims, tokens or records are for their owner alone, whatever the umask and the directory let through.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use crate::sandbox::Sandbox;

/// `path mode` of all below `dir` that group or others may do something with.
fn open_to_others(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let entry = entry.unwrap();
            let (path, mode) = (entry.path(), entry.metadata().unwrap().permissions().mode() & 0o777);
            if mode & 0o077 != 0 {
                found.push(format!("{} {mode:o}", path.strip_prefix(dir).unwrap().display()));
            }
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found.sort();
    found
}

fn open_up(path: &Path) {
    let is_dir = path.is_dir();
    if is_dir {
        for entry in fs::read_dir(path).unwrap() {
            open_up(&entry.unwrap().path());
        }
    }
    fs::set_permissions(path, Permissions::from_mode(if is_dir { 0o755 } else { 0o644 })).unwrap();
}

/// A directory for data that a person made.
fn made_by_hand() -> Sandbox {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.data()).unwrap();
    fs::set_permissions(sandbox.data(), Permissions::from_mode(0o755)).unwrap();
    sandbox
}

#[test]
fn files_in_a_directory_made_by_hand_are_private() {
    let mut sandbox = made_by_hand();
    // The loosest there is.
    sandbox.start_after("umask 000", &[]);
    sandbox.does("pool create lan --range 10.0.3.1-10.0.3.200 --domain lan.test");
    sandbox.does("claim lan web-1");
    let saved = sandbox.netstead(["plan", "builtin", "--save", "case.json"]);
    assert!(saved.err.contains("case.json has what the plan of builtin is made of"), "{}", saved.err);
    sandbox.does("store backup kept.backup");
    sandbox.stop();
    sandbox.does("--local claim lan web-2 --data-dir data");
    assert_eq!(open_to_others(&sandbox.data()), [""; 0]);
    for file in
        ["case.json", "kept.backup", "state/netstead/credentials.json", "state/netstead/.credentials.lock"]
    {
        let mode = fs::metadata(sandbox.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn what_an_older_version_left_open_is_closed_at_the_next_start() {
    let mut sandbox = made_by_hand();
    sandbox.start(&[]);
    sandbox.stop();
    fs::create_dir(sandbox.data().join("backups")).unwrap();
    open_up(&sandbox.data());
    sandbox.start(&[]);
    // What lies below a directory that is closed cannot be reached.
    let reachable: Vec<_> =
        open_to_others(&sandbox.data()).into_iter().filter(|line| !line.contains('/')).collect();
    assert_eq!(reachable, [""; 0]);
    let top = fs::metadata(sandbox.data()).unwrap().permissions().mode();
    assert_eq!(top & 0o777, 0o755, "the directory itself is as its owner made it");
    sandbox.stop();
}
