//! Plain words in comments: a doc comment starts with a verb or a noun, and a process has a name.

use anyhow::Result;

use super::files::{shown, sources};

/// Words that a doc comment may not begin with: they hide the subject of the sentence.
const NO_BEGINNING: &[&str] = &["That", "What", "Whatever", "Who", "Whoever", "Whom", "Whose"];

/// Words that no comment may have: a process is a node, leader, follower, caller, client or server.
const NOWHERE: &[&str] = &["nobody", "somebody", "whoever"];

/// Comments in hard words.
pub(crate) fn hard() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in sources()? {
        let text = std::fs::read_to_string(&path)?;
        let found = hard_lines(&text).into_iter();
        problems.extend(found.map(|hard| format!("{}:{}: {}", shown(&path), hard.line, hard.why)));
    }
    Ok(problems)
}

#[derive(Debug, PartialEq, Eq)]
struct Hard {
    line: usize,
    why: String,
}

fn hard_lines(text: &str) -> Vec<Hard> {
    let mut found = Vec::new();
    let mut in_doc = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let begins = doc.is_some() && !in_doc;
        in_doc = doc.is_some();
        let Some(comment) = doc.or_else(|| line.strip_prefix("//")) else { continue };
        if let Some(why) = hardness(comment, begins) {
            found.push(Hard { line: number + 1, why });
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
        let lines = [
            "/// Reads the head.",
            "/// What it says is ours.",
            "fn a() {}",
            "    /// What it says.",
            "    fn b() {}",
            "    // Nobody leads.",
            "//! Who leads.",
            "let text = \"nobody\";",
        ];
        let found: Vec<_> = hard_lines(&lines.join("\n")).into_iter().map(|hard| hard.line).collect();
        assert_eq!(found, [4, 6, 7]);
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
