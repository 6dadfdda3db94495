//! Plain words in comments: a doc comment starts with a verb or a noun, and a process has a name.
//!
//! Comments written before this rule are listed in `old_comments.txt`. That list only shrinks: a comment that is
//! rewritten leaves it, and no comment is added to it.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf};

use anyhow::{Context, Result};

use super::files::{shown, sources};
use crate::shell::root;

/// Words that a doc comment may not begin with: they hide the subject of the sentence.
const NO_BEGINNING: &[&str] = &["That", "What", "Whatever", "Who", "Whoever", "Whom", "Whose"];

/// Words that no comment may have: a process is a node, leader, follower, caller, client or server.
const NOWHERE: &[&str] = &["nobody", "somebody", "whoever"];

/// Comments in hard words that are not in the list, and lines of the list that no comment has any more.
pub(crate) fn hard() -> Result<Vec<String>> {
    let old = old()?;
    let mut found = BTreeSet::new();
    let mut problems = Vec::new();
    for path in sources()? {
        let text = std::fs::read_to_string(&path)?;
        for hard in hard_lines(&text) {
            if !old.contains(hard.comment) {
                problems.push(format!("{}:{}: {}", shown(&path), hard.line, hard.why));
            }
            found.insert(hard.comment.to_owned());
        }
    }
    problems.extend(old.difference(&found).map(|gone| {
        format!(
            "{}: no comment reads \"{gone}\" any more; `cargo xtask test --only lint --fix` removes such lines",
            shown(&list())
        )
    }));
    Ok(problems)
}

/// Takes out of the list what no comment has any more.
pub(crate) fn shrink() -> Result<()> {
    let mut found = BTreeSet::new();
    for path in sources()? {
        let text = std::fs::read_to_string(&path)?;
        found.extend(hard_lines(&text).into_iter().map(|hard| hard.comment.to_owned()));
    }
    let mut text = String::new();
    for line in old()?.intersection(&found) {
        writeln!(text, "{line}")?;
    }
    std::fs::write(list(), text).with_context(|| format!("{} cannot be written", shown(&list())))
}

fn list() -> PathBuf {
    root().join("crates/xtask/src/lint/old_comments.txt")
}

fn old() -> Result<BTreeSet<String>> {
    let text =
        std::fs::read_to_string(list()).with_context(|| format!("{} cannot be read", shown(&list())))?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[derive(Debug, PartialEq, Eq)]
struct Hard<'t> {
    line: usize,
    comment: &'t str,
    why: String,
}

fn hard_lines(text: &str) -> Vec<Hard<'_>> {
    let mut found = Vec::new();
    let mut in_doc = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let begins = doc.is_some() && !in_doc;
        in_doc = doc.is_some();
        let Some(comment) = doc.or_else(|| line.strip_prefix("//")) else { continue };
        if let Some(why) = hardness(comment, begins) {
            found.push(Hard { line: number + 1, comment: comment.trim(), why });
        }
    }
    found
}

fn hardness(comment: &str, begins_doc: bool) -> Option<String> {
    let mut words =
        comment.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    if begins_doc
        && let Some(first) = words.clone().next()
        && NO_BEGINNING.contains(&first)
    {
        return Some(format!("a doc comment starts with a verb or a noun, not with \"{first}\""));
    }
    let word = words.find(|word| NOWHERE.contains(&word.to_lowercase().as_str()))?;
    Some(format!("\"{word}\": say which node, caller, client or server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_words_are_found_where_they_are() {
        let text = "/// Reads the head.\n/// What it says is ours.\nfn a() {}\n\n    /// What it says.\n    fn b() {}\n\
            // Nobody leads.\n//! Who leads.\nlet text = \"nobody\";\n";
        let found: Vec<_> = hard_lines(text).into_iter().map(|hard| (hard.line, hard.comment)).collect();
        assert_eq!(found, [(5, "What it says."), (7, "Nobody leads."), (8, "Who leads.")]);
    }

    #[test]
    fn the_reason_names_the_word() {
        assert_eq!(
            hardness(" Somebody waits.", false).as_deref(),
            Some("\"Somebody\": say which node, caller, client or server")
        );
        assert_eq!(hardness(" Whatever.", false), None);
        assert_eq!(hardness(" Thatch is no pronoun.", true), None);
    }
}
