//! Skips tests that need more than the machine has.

use std::{
    env,
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

/// Whether this is the whole run, in which nothing may be skipped: `NETSTEAD_TEST_FULL` is `1`.
pub fn full() -> bool {
    env::var_os("NETSTEAD_TEST_FULL").is_some_and(|value| value == "1")
}

/// Says why a test does not run here. The test returns right after; in the [`full`] run it fails instead.
///
/// The line also goes to the file that `NETSTEAD_TEST_SKIPS` names, if it names one, because a test that
/// returns early counts as passed: `cargo xtask test` subtracts those lines.
///
/// # Panics
///
/// In the full run.
pub fn skip(why: &str) {
    skip_unless(full(), why);
}

fn skip_unless(full: bool, why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(!full, "the whole run skips nothing, but {test} cannot run: {why}");
    skip_without(why);
}

/// As [`skip`], also in the full run: for servers that not every machine can build. A fake takes their place there.
///
/// # Panics
///
/// If the line cannot be written.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn skip_without(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("skipped: {test}: {why}");
    if let Some(file) = env::var_os("NETSTEAD_TEST_SKIPS")
        && let Err(error) = note(Path::new(&file), &test, why)
    {
        panic!("{} cannot be written: {error}", Path::new(&file).display());
    }
}

/// One line and one write in append mode, because lines are counted and tests run at the same time.
fn note(file: &Path, test: &str, why: &str) -> io::Result<()> {
    let why: Vec<&str> = why.split_whitespace().collect();
    let line = format!("{test}: {}\n", why.join(" "));
    OpenOptions::new().create(true).append(true).open(file)?.write_all(line.as_bytes())
}

/// Whether a program of this name stands in a directory of `PATH`.
pub fn has_command(name: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(name).is_file()))
}

/// Whether all of these programs are in `PATH`. If one is missing, the test is [skipped](skip()).
pub fn has_commands(names: &[&str]) -> bool {
    match names.iter().find(|name| !has_command(name)) {
        None => true,
        Some(missing) => {
            skip(&format!("`{missing}` is not installed"));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("skips");
        note(&file, "one", "mount: not permitted\n   see dmesg").unwrap();
        note(&file, "two", "no jq").unwrap();
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "one: mount: not permitted see dmesg\ntwo: no jq\n"
        );
    }

    #[test]
    #[should_panic(expected = "the whole run skips nothing, but ")]
    fn the_whole_run_fails_where_a_test_cannot_run() {
        skip_unless(true, "there is no Python 3.12");
    }

    #[test]
    fn a_shell_is_found_and_nonsense_is_not() {
        assert!(has_command("sh"));
        assert!(!has_command("no-program-has-this-name"));
    }
}
