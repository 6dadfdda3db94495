//! [`Same`]: the act of a form as a command, for the command line and for curl.

use netstead_client::types::Problem;
use serde_json::Value;

use crate::{calls::Target, visit::Visit};

/// The same act as a form, to be typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Same {
    /// The last part of the form's address.
    pub(crate) action: &'static str,
    /// The line for the command line; empty if it has none.
    pub(crate) cli: String,
    pub(crate) curl: String,
}

impl Same {
    /// The words of the command after `netstead`, and the call of the API.
    pub(crate) fn new(
        visit: &Visit,
        action: &'static str,
        words: &[&str],
        method: &str,
        target: &Target,
        body: Option<&Value>,
    ) -> Self {
        let cli = if words.is_empty() { String::new() } else { line("netstead", words) };
        let url = format!("{}{}", visit.url(), target.uri());
        let mut parts = vec!["-X", method, "-H", "Authorization: Bearer $NETSTEAD_TOKEN"];
        let body = body.map(Value::to_string);
        if let Some(body) = &body {
            parts.extend(["-H", "Content-Type: application/json", "-d", body]);
        }
        parts.push(&url);
        Self { action, cli, curl: line("curl", &parts) }
    }
}

/// A line for a shell: each word is one word of it.
fn line(program: &str, words: &[&str]) -> String {
    let words = words.iter().map(|word| quoted(word));
    std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it. The variable with the token is the only one that is put in.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@%+=,-".contains(&byte);
    if word.contains("$NETSTEAD_TOKEN") {
        return format!("\"{word}\"");
    }
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The reason of a refused act of one line of a page, beside that line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The line that it is about.
    pub(crate) of: String,
    pub(crate) text: String,
}

impl Wrong {
    pub(crate) fn new(of: impl Into<String>, problem: &Problem) -> Self {
        let field = problem.field.as_deref().map(|field| format!("{field}: ")).unwrap_or_default();
        // Some reasons name their field themselves.
        let detail = problem.detail.strip_prefix(&field).unwrap_or(&problem.detail);
        Self { of: of.into(), text: format!("{field}{detail}") }
    }

    /// The error of this line; empty without one.
    pub(crate) fn at(&self, line: &str) -> &str {
        if self.of == line { &self.text } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        assert_eq!(
            line("netstead", &["claim", "lan", "<script>alert(1)</script>", "it's", ""]),
            "netstead claim lan '<script>alert(1)</script>' 'it'\\''s' ''"
        );
        assert_eq!(
            line("curl", &["-H", "Authorization: Bearer $NETSTEAD_TOKEN", "http://h:1/a%20b"]),
            "curl -H \"Authorization: Bearer $NETSTEAD_TOKEN\" http://h:1/a%20b"
        );
        assert_eq!(quoted("a?b=c&d"), "'a?b=c&d'");
    }

    #[test]
    fn a_field_is_named_once() {
        let text = |detail: &str| {
            let problem =
                Problem { field: Some("reason".into()), detail: detail.into(), ..Problem::default() };
            Wrong::new("line", &problem).text
        };
        assert_eq!(text("give one"), "reason: give one");
        assert_eq!(text("reason: give one"), "reason: give one");
    }
}
