//! The unit for systemd, in the eyes of systemd itself.

use std::{fs, path::Path, process::Command};

use netstead_testkit::{has_command, skip};

/// As `systemd-analyze security` counts, in tenths: 0 is locked up, 100 is wide open.
const MOST_EXPOSED: &str = "20";

/// The unit with the program of this build; its directory ends with the value.
fn unit() -> (tempfile::TempDir, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd/netstead.service");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("ExecStart=/usr/bin/netstead run\n"), "{text}");
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("netstead.service");
    fs::write(&copy, text.replace("/usr/bin/netstead", env!("CARGO_BIN_EXE_netstead"))).unwrap();
    let copy = copy.to_string_lossy().into_owned();
    (dir, copy)
}

fn analyze(args: &[&str]) -> (bool, String) {
    let output = Command::new("systemd-analyze").args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.into_owned())
}

#[test]
fn systemd_finds_no_fault_in_the_unit_and_calls_it_locked_up() {
    if !has_command("systemd-analyze") {
        return skip("systemd-analyze is not there");
    }
    let (_dir, unit) = unit();
    assert_eq!(analyze(&["verify", "--man=no", &unit]), (true, String::new()));
    let (locked, said) =
        analyze(&["security", "--offline=true", &format!("--threshold={MOST_EXPOSED}"), &unit]);
    assert!(locked, "{said}");
}
