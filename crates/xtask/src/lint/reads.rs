//! Every read from outside has a limit: files and bodies of HTTP messages are read with `netstead-wire`.

use anyhow::Result;

use super::files::{shown, sources};

/// Calls that read as much as the other side sends, and the one that stops at a limit.
const UNLIMITED: &[(&str, &str)] = &[
    ("fs::read(", "netstead_wire::files::read"),
    ("fs::read_to_string(", "netstead_wire::files::read_text"),
    ("pem_file", "netstead_wire::files::read"),
    (".bytes().await", "netstead_wire::read_body"),
    (".text().await", "netstead_wire::read_body"),
    (".json().await", "netstead_wire::read_body"),
    ("Limited::new(", "netstead_wire::read_body"),
];

/// Rooms that read nothing from outside: tests, our own files in a data directory, what a contributor types.
const OWN: &[&str] = &[
    "crates/testkit/",
    "crates/xtask/",
    "crates/providers/build.rs",
    "crates/wire/",
    "crates/store/src/local/",
    "crates/netstead/src/cli/reference.rs",
];

pub(crate) fn unlimited() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources()? {
        let name = shown(&path);
        let is_test = name.contains("/tests") || name.contains("/benches/") || name.ends_with("_tests.rs");
        if is_test || OWN.iter().any(|own| name.starts_with(own)) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let found = unlimited_lines(&text).into_iter();
        problems.extend(
            found.map(|(line, call, instead)| {
                format!("{name}:{line}: `{call}` has no limit: use `{instead}`")
            }),
        );
    }
    Ok(problems)
}

/// The number of each line with such a call, up to where the tests begin.
fn unlimited_lines(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let program = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    let code = program.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = code.flat_map(|(number, line)| {
        let calls = UNLIMITED.iter().filter(|(call, _)| line.contains(call));
        calls.map(move |(call, instead)| (number + 1, *call, *instead))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_without_a_limit_are_found_outside_of_tests() {
        let text = "// fs::read(path) is not for us\nlet text = std::fs::read_to_string(path)?;\nfiles::read(path, 9)?;\n\
            let body = response.bytes().await?;\n#[cfg(test)]\nmod tests { fn a() { std::fs::read(\"x\"); } }\n";
        assert_eq!(
            unlimited_lines(text),
            [
                (2, "fs::read_to_string(", "netstead_wire::files::read_text"),
                (4, ".bytes().await", "netstead_wire::read_body"),
            ]
        );
    }
}
