//! Documents that are typed as they are written.
//!
//! In a Markdown file, a block marked `console` shows commands behind `$ ` and below each what it prints, on
//! stdout and stderr together:
//!
//! ````text
//! ```console
//! $ netstead claim lan web-1
//! 10.0.3.50
//! ```
//! ````
//!
//! A line `...` stands for any lines, none too; a `…` inside a line for any text. A command ends with its line
//! unless that ends in a backslash.

use std::{fmt::Write, fs, io, path::Path, process::Command, time::Duration};

use crate::process::Process;

/// Not printed by any command: it tells the output of one from that of the next.
const MARK: char = '\u{1e}';

/// The commands of one document with what they should print.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

impl Transcript {
    pub fn read(document: &Path) -> io::Result<Self> {
        fs::read_to_string(document).map(|text| Self::parse(&text))
    }

    pub fn parse(markdown: &str) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let mut inside = false;
        let mut open = false;
        for (line, text) in (1..).zip(markdown.lines()) {
            if text.trim_start().starts_with("```") {
                inside = !inside && text.trim() == "```console";
                open = false;
            } else if inside && let Some(command) = text.strip_prefix("$ ") {
                open = command.ends_with('\\');
                steps.push(Step { line, command: command.to_owned(), expected: Vec::new() });
            } else if inside && let Some(step) = steps.last_mut() {
                if open {
                    open = text.ends_with('\\');
                    step.command.push('\n');
                    step.command.push_str(text);
                } else {
                    step.expected.push(text.to_owned());
                }
            }
        }
        Self { steps }
    }

    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().map(|step| step.command.as_str())
    }

    /// Types all commands into one bash, whose environment `prepare` sets, and compares what they print.
    ///
    /// The error names the line of each command that printed something else.
    pub fn run(&self, prepare: impl FnOnce(&mut Command), patience: Duration) -> io::Result<()> {
        let mut script = String::new();
        for step in &self.steps {
            // Writing to a string cannot fail.
            let _ = writeln!(script, "printf '\\036\\n'\n{}", step.command);
        }
        let mut bash = Command::new("bash");
        prepare(bash.args(["--norc", "-c", &script]));
        let mut process = Process::start("bash", &mut bash)?;
        process.wait(patience)?;
        let log = process.log();
        // The first piece is what came before the first mark: nothing.
        let outputs: Vec<&str> = log.split(MARK).skip(1).collect();
        let mut report = String::new();
        for (number, step) in self.steps.iter().enumerate() {
            let output = outputs.get(number).copied().unwrap_or_default();
            let printed: Vec<&str> = output.strip_prefix('\n').unwrap_or(output).lines().collect();
            if !lines_match(&step.expected, &printed) {
                let expected = step.expected.join("\n");
                let printed = printed.join("\n");
                let _ = write!(
                    report,
                    "line {}: $ {}\n--- the document says\n{expected}\n--- it printed\n{printed}\n\n",
                    step.line, step.command
                );
            }
        }
        if report.is_empty() { Ok(()) } else { Err(io::Error::other(report)) }
    }
}

fn lines_match(expected: &[String], printed: &[&str]) -> bool {
    match (expected.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "..." => {
            (0..=printed.len()).any(|skip| lines_match(rest, printed.get(skip..).unwrap_or_default()))
        }
        (None, Some(_)) | (Some(_), None) => false,
        (Some((first, rest)), Some((line, lines))) => line_matches(first, line) && lines_match(rest, lines),
    }
}

/// Trailing space is nobody's meaning: editors remove it from documents.
fn line_matches(expected: &str, printed: &str) -> bool {
    let (expected, printed) = (expected.trim_end(), printed.trim_end());
    let Some((start, more)) = expected.split_once('…') else { return expected == printed };
    let Some(mut rest) = printed.strip_prefix(start) else { return false };
    let mut parts = more.split('…').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn run(markdown: &str) -> Result<(), String> {
        Transcript::parse(markdown).run(|_| {}, SOON).map_err(|error| error.to_string())
    }

    #[test]
    fn only_console_blocks_are_typed() {
        let text = "a\n```sh\n$ false\n```\n```console\n$ echo one \\\n  two\none two\n$ true\n```\n$ no\n";
        let found = Transcript::parse(text);
        assert_eq!(found.commands().collect::<Vec<_>>(), ["echo one \\\n  two", "true"]);
        found.run(|_| {}, SOON).unwrap();
    }

    #[test]
    fn both_outputs_are_compared_and_one_shell_types_all() {
        run("```console\n$ x=1\n$ echo $x; echo error >&2\n1\nerror\n```\n").unwrap();
    }

    #[test]
    fn what_varies_is_left_open() {
        run("```console\n$ printf 'at 12:00 by me\\na\\nb\\nend\\n'\nat … by …\n...\nend\n```\n").unwrap();
    }

    #[test]
    fn another_output_is_an_error_with_its_line() {
        assert_eq!(
            run("# title\n```console\n$ echo 2\n1\n$ true\n```\n").unwrap_err(),
            "line 3: $ echo 2\n--- the document says\n1\n--- it printed\n2\n\n"
        );
        assert!(run("```console\n$ true\nmissing\n```\n").is_err());
        assert!(run("```console\n$ echo too much\n```\n").is_err());
        assert!(run("```console\n$ exit 1\n$ true\nnever\n```\n").is_err());
    }

    #[test]
    fn open_text_keeps_the_order_of_the_rest() {
        assert!(line_matches("a … b … c", "a 1 b 2 c"));
        assert!(!line_matches("a … b … c", "a 1 c 2 b"));
        assert!(!line_matches("a …", "b"));
        assert!(line_matches("…", ""));
    }
}
