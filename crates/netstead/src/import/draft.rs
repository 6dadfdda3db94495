//! A configuration under construction, which is valid at every step.

use std::{fmt::Write as _, path::Path};

use super::Converted;
use crate::config::{self, Problem};

/// Text with comments; what would make it invalid is turned into a comment that says why.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
    warnings: Vec<Problem>,
}

/// One table in the making.
#[derive(Debug)]
pub(super) struct Table {
    /// The variables that it is made of, for people: `DNSWEAVER_LAN_*`.
    subject: String,
    lines: Vec<String>,
    warnings: Vec<Problem>,
    /// Why it must not be used, though it may be valid.
    refused: Option<String>,
}

impl Table {
    pub(super) fn new(kind: &str, name: &str, subject: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = if name.chars().all(plain) && !name.is_empty() { name.to_owned() } else { quoted(name) };
        Self::begun(format!("[{kind}.{name}]"), subject)
    }

    /// A table that there is once: `[log]`.
    pub(super) fn top(name: &str, subject: &str) -> Self {
        Self::begun(format!("[{name}]"), subject)
    }

    fn begun(line: String, subject: &str) -> Self {
        Self { subject: subject.to_owned(), lines: vec![line], warnings: Vec::new(), refused: None }
    }

    /// Leaves the table out, for this reason.
    pub(super) fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }

    /// A comment about a setting that is not carried over as it is, which is a warning too.
    pub(super) fn warn(&mut self, remark: &str) {
        self.warnings.push(Problem::new(&self.subject, remark));
        self.remark(remark);
    }

    /// A key with a value that is TOML already.
    pub(super) fn raw(&mut self, key: &str, value: impl AsRef<str>) {
        self.lines.push(format!("{key} = {}", value.as_ref()));
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quoted(value));
    }

    pub(super) fn list(&mut self, key: &str, values: &[impl AsRef<str>]) {
        let values: Vec<String> = values.iter().map(|value| quoted(value.as_ref())).collect();
        self.raw(key, format!("[{}]", values.join(", ")));
    }

    pub(super) fn remark(&mut self, remark: &str) {
        self.lines.push(format!("# {remark}"));
    }

    /// The problem that one more line would bring, whatever else is missing or wrong by now.
    pub(super) fn problem_with(&self, key: &str, value: &str) -> Option<String> {
        let problems = |lines: &[String]| {
            let text = format!("{}\n", lines.join("\n"));
            let read = config::read(Some((Path::new("netstead.toml"), &text)), [], &[]);
            read.err().unwrap_or_default().into_iter().map(|problem| problem.message).collect::<Vec<_>>()
        };
        let before = problems(&self.lines);
        let more: Vec<String> = self.lines.iter().cloned().chain([format!("{key} = {value}")]).collect();
        problems(&more).into_iter().find(|problem| !before.contains(problem))
    }
}

impl Draft {
    pub(super) fn remark(&mut self, remark: &str) {
        for line in remark.lines() {
            let _ = writeln!(self.text, "# {line}");
        }
    }

    /// A comment about something that is not carried over, which is a warning too.
    pub(super) fn warn(&mut self, subject: &str, remark: &str, hint: Option<&str>) {
        self.remark(&format!("{remark}."));
        if let Some(hint) = hint {
            self.remark(&format!("Hint: {hint}."));
        }
        let mut problem = Problem::new(subject, remark);
        problem.hint = hint.map(str::to_owned);
        self.warnings.push(problem);
    }

    /// A warning for a comment that is already there.
    pub(super) fn warn_silently(&mut self, subject: &str, message: &str) {
        self.warnings.push(Problem::new(subject, message));
    }

    pub(super) fn space(&mut self) {
        self.text.push('\n');
    }

    /// Adds a table if what there is stays valid with it, and otherwise as a comment with the reasons.
    pub(super) fn table(&mut self, table: Table) {
        self.space();
        let Table { subject, lines, warnings, refused } = table;
        let block = lines.join("\n");
        let whole = format!("{}{block}\n", self.text);
        let problems = match (refused, config::read(Some((Path::new("netstead.toml"), &whole)), [], &[])) {
            (Some(why), _) => vec![why],
            (None, Err(problems)) => problems.into_iter().map(|problem| problem.message).collect(),
            (None, Ok(_)) => {
                self.text = whole;
                self.warnings.extend(warnings);
                return;
            }
        };
        self.remark("This table cannot be used as it is:");
        for problem in &problems {
            self.remark(&format!("  {problem}"));
        }
        self.remark(&block);
        let header = lines.first().map(String::as_str).unwrap_or_default();
        let message = format!("{header} is left out: {}", problems.join("; "));
        let hint = "`netstead import` shows the table: correct it, and use that file";
        let mut problem = Problem::new(subject, message);
        problem.hint = Some(hint.to_owned());
        self.warnings.push(problem);
    }

    pub(super) fn finish(self) -> Converted {
        Converted { text: self.text, warnings: self.warnings }
    }
}

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
