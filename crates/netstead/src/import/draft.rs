//! A configuration under construction, which is valid at every step.

use std::{fmt::Write as _, path::Path};

use crate::config;

/// Text with comments; what would make it invalid is turned into a comment that says why.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: String,
}

/// One table in the making.
#[derive(Debug)]
pub(super) struct Table {
    lines: Vec<String>,
}

impl Table {
    pub(super) fn new(kind: &str, name: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = if name.chars().all(plain) && !name.is_empty() { name.to_owned() } else { quoted(name) };
        Self { lines: vec![format!("[{kind}.{name}]")] }
    }

    /// A table that there is once: `[log]`.
    pub(super) fn top(name: &str) -> Self {
        Self { lines: vec![format!("[{name}]")] }
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
}

impl Draft {
    pub(super) fn remark(&mut self, remark: &str) {
        for line in remark.lines() {
            let _ = writeln!(self.text, "# {line}");
        }
    }

    pub(super) fn space(&mut self) {
        self.text.push('\n');
    }

    /// Adds a table if what there is stays valid with it, and otherwise as a comment with the reasons.
    pub(super) fn table(&mut self, table: &Table) {
        self.space();
        let block = table.lines.join("\n");
        let whole = format!("{}{block}\n", self.text);
        let Err(problems) = config::read(Some((Path::new("netstead.toml"), &whole)), [], &[]) else {
            self.text = whole;
            return;
        };
        self.remark("This table cannot be used as it stands:");
        for problem in problems {
            self.remark(&format!("  {}", problem.message));
        }
        self.remark(&block);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A text as TOML has it.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
