//! Keys as the reference page and `netstead.toml` show them.

use std::fmt::Write as _;

use crate::{
    key::{KeyDefault, KeyInfo},
    tree::Value,
};

/// The rows of a Markdown table: key, meaning, default.
pub fn key_rows(keys: &[KeyInfo]) -> String {
    let mut rows = String::from("| key | meaning | default |\n|---|---|---|\n");
    for key in keys {
        let default = match &key.default {
            KeyDefault::Required { .. } => "must be set".to_owned(),
            KeyDefault::Value(value) => format!("`{}`", bare(value)),
            KeyDefault::Unset { meaning: "" } => "–".to_owned(),
            KeyDefault::Unset { meaning } => (*meaning).to_owned(),
        };
        let _ = writeln!(rows, "| `{}` | {} | {default} |", key.name, key.help);
    }
    rows
}

/// The keys as comments of a TOML file, each with its help and its default.
pub fn toml_lines(keys: &[KeyInfo]) -> String {
    let mut text = String::new();
    for key in keys {
        text.push('\n');
        wrapped(&mut text, &key.help);
        let value = match &key.default {
            KeyDefault::Required { example } => format!(" {example}"),
            KeyDefault::Value(value) => format!(" {}", literal(value)),
            KeyDefault::Unset { meaning } => {
                if !meaning.is_empty() {
                    wrapped(&mut text, &format!("Default: {meaning}"));
                }
                String::new()
            }
        };
        let _ = writeln!(text, "#{} ={value}", key.name);
    }
    text
}

fn wrapped(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in unbroken(words) {
        if line.chars().count() + 1 + word.chars().count() > 100 {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(&word);
    }
    let _ = writeln!(text, "{line}");
}

/// The words of a text; what is between two backticks is one word.
fn unbroken(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_code = false;
    for word in text.split(' ') {
        match words.last_mut().filter(|_| is_code) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
        is_code ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// As TOML has it.
fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Plain(text) => format!("\"{text}\""),
        other => bare(other),
    }
}

/// As people read it: text without its quotes.
fn bare(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Plain(text) => text.clone(),
        Value::Integer(number) => number.as_ref().map_or_else(Clone::clone, ToString::to_string),
        Value::Bool(flag) => flag.to_string(),
        Value::Float | Value::Date | Value::Table(_) => String::new(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(|item| literal(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
