//! Checks the documents: links lead somewhere, and commands exist.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result};

use crate::{
    lint::files::{collect, shown},
    shell::{AS_TESTS, beside_us, cargo, command, root, run},
    tasks,
};

/// Text before a command.
const STARTS: &[&str] = &["\n", "`", "$ ", "| ", "&& ", "; "];

/// Links to files that are not there and tasks that do not exist.
pub(crate) fn broken() -> Result<Vec<String>> {
    let tasks = tasks();
    let mut problems = Vec::new();
    for (path, text) in documents()? {
        let dir = path.parent().unwrap_or(Path::new(""));
        for link in links(&text).filter(|link| !dir.join(link).exists()) {
            problems.push(format!("{}: `{link}` is not there", shown(&path)));
        }
        for words in mentions(&text, "cargo xtask") {
            if let Some(task) = words.first().filter(|task| !tasks.iter().any(|known| known == *task)) {
                problems.push(format!("{}: there is no `cargo xtask {task}`", shown(&path)));
            }
        }
    }
    Ok(problems)
}

/// Asks the binary for the help of each command that a document names. True if it has all of them.
pub(crate) fn commands_exist() -> Result<bool> {
    if !run(cargo("build --package netstead --bin netstead").args(AS_TESTS.split(' ')))? {
        return Ok(false);
    }
    let mut named: BTreeMap<Vec<String>, PathBuf> = BTreeMap::new();
    for (path, text) in documents()? {
        for words in mentions(&text, "netstead") {
            named.entry(words.into_iter().map(str::to_owned).collect()).or_insert_with(|| path.clone());
        }
    }
    let mut all = true;
    for (words, path) in named {
        let mut help = command(beside_us("netstead")?);
        // `help claim` is the help itself.
        let asked = words.strip_prefix(&["help".to_owned()]).unwrap_or(&words);
        help.args(asked).arg("--help").stdin(Stdio::null());
        let done = help.output().context("the netstead binary cannot be started")?;
        if !done.status.success() {
            let error = String::from_utf8_lossy(&done.stderr);
            eprintln!("error: {}: `netstead {}` does not exist", shown(&path), words.join(" "));
            eprintln!("{}", error.trim());
            all = false;
        }
    }
    Ok(all)
}

/// The Markdown files of the top directory, of `docs` and of `deploy`, with their text.
fn documents() -> Result<Vec<(PathBuf, String)>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(root())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    for dir in ["docs", "deploy"] {
        collect(&root().join(dir), "md", &mut paths)?;
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| shown(&path))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

/// The files a document links to; addresses of the web and of places in the same page are not files.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', '#']).next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

/// The one or two plain words after `program` wherever a command begins.
fn mentions<'a>(text: &'a str, program: &str) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for (place, _) in text.match_indices(program) {
        let before = text.get(..place).unwrap_or_default();
        let begins = before.is_empty() || STARTS.iter().any(|start| before.ends_with(start));
        let Some(rest) = text.get(place + program.len()..).and_then(|rest| rest.strip_prefix(' ')) else {
            continue;
        };
        let line = rest.lines().next().unwrap_or_default();
        let command = line.split(['`', '|', ';', '&', '#']).next().unwrap_or_default();
        let plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let words: Vec<&str> = command.split_whitespace().take_while(plain).take(2).collect();
        if begins && !words.is_empty() {
            found.push(words);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](docs/a.md), [b](docs/b.md#part) [web](https://example.net/x) [here](#there)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md", "docs/b.md"]);
    }

    #[test]
    fn commands_are_found_where_one_begins() {
        let text = "Say `netstead pool create lan`, not netstead loudly.\n\
            $ netstead release lan web-1 && netstead claim lan,v6 web-2\n\
            netstead get claims -o json | jq\n\
            The crate `netstead-model`, the binary `netstead`. `netstead history 10.0.3.50`";
        assert_eq!(
            mentions(text, "netstead"),
            [
                vec!["pool", "create"],
                vec!["release", "lan"],
                vec!["claim"],
                vec!["get", "claims"],
                vec!["history"]
            ]
        );
    }
}
