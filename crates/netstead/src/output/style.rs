//! Colour at a terminal, and a pager for what does not fit on one screen.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::{Command, Stdio},
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use anyhow::Context as _;
use netstead_plan::wrap;

use super::WIDTH;

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";

/// A text with fewer lines is on one screen anyway.
const SCREEN: usize = 20;

/// Words of tables that say how something is, with their colours.
const STATES: [(&str, &str); 13] = [
    ("in sync", GREEN),
    ("complete", GREEN),
    ("failing", RED),
    ("failed", RED),
    ("rejected", RED),
    ("parked", YELLOW),
    ("paused", YELLOW),
    ("pending", YELLOW),
    ("partial", YELLOW),
    ("suspect", YELLOW),
    ("detached", YELLOW),
    ("starting", DIM),
    ("unknown", YELLOW),
];

fn painted(colour: &str, text: &str) -> String {
    format!("{colour}{text}{RESET}")
}

/// A line of a plan, by its sign.
pub(crate) fn plan_line(line: &str) -> String {
    let mut characters = line.strip_prefix("  ").unwrap_or_default().chars();
    let colour = match (characters.next(), characters.next()) {
        (Some('+'), Some(' ')) => GREEN,
        (Some('-'), Some(' ')) => RED,
        (Some('~' | '!'), Some(' ')) => YELLOW,
        (Some('='), Some(' ')) => DIM,
        _ if line.starts_with(' ') => return line.to_owned(),
        _ => BOLD,
    };
    painted(colour, line)
}

/// The title of a part of a screen.
pub(crate) fn title(text: &str) -> String {
    painted(BOLD, text)
}

/// A table whose words for states have colours. Columns stay where they are.
pub(crate) fn states(table: &str) -> String {
    table.lines().map(|line| state_in(line) + "\n").collect()
}

fn state_in(line: &str) -> String {
    let found = STATES.iter().filter_map(|(word, colour)| {
        let at = line.find(&format!("  {word}"))? + 2;
        Some((at, at + word.len(), *colour))
    });
    match found.min_by_key(|(at, ..)| *at) {
        Some((from, to, colour)) => {
            let (before, rest) = line.split_at(from);
            let (word, after) = rest.split_at(to - from);
            format!("{before}{}{after}", painted(colour, word))
        }
        None => line.to_owned(),
    }
}

/// The first word of a line of the doctor.
pub(crate) fn finding(state: &str, line: &str) -> String {
    let colour = match state {
        "ok" => GREEN,
        "note" => YELLOW,
        _ => RED,
    };
    match line.strip_prefix(state) {
        Some(rest) => painted(colour, state) + rest,
        None => line.to_owned(),
    }
}

/// A long line at a terminal, in lines that fit: those after the first behind `indent` spaces. Programs get it as one.
pub(crate) fn fitted(line: &str, indent: usize) -> String {
    if !io::stdout().is_terminal() || line.chars().count() <= WIDTH {
        return line.to_owned();
    }
    // What stands in the first columns keeps its distance.
    let head: String = line.chars().take(indent).collect();
    let rest: String = line.chars().skip(indent).collect();
    let lines = wrap(&rest, indent, WIDTH).join("\n");
    format!("{head}{}", lines.trim_start())
}

/// Writes to stdout, with colours only at a terminal that wants them.
pub(crate) fn emit(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// The same; at a terminal a long text goes through `$PAGER`, or `less`.
pub(crate) fn emit_paged(text: &str) -> anyhow::Result<()> {
    let stdout = io::stdout();
    if !stdout.is_terminal() || text.lines().count() < SCREEN {
        return emit(text);
    }
    let wanted = std::env::var("PAGER").unwrap_or_else(|_| "less -FRX".to_owned());
    let mut words = wanted.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return emit(text) };
    let mut pager = Command::new(program);
    pager.args(words).stdin(Stdio::piped());
    // Without -R, less shows colours as letters.
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let Ok(mut pager) = pager.spawn() else { return emit(text) };
    if let Some(mut input) = pager.stdin.take() {
        let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        let text = if colours { text.to_owned() } else { strip_str(text).to_string() };
        // A person who has seen enough closes the pager.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().map(drop).context("the pager did not end well")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_plan_have_the_colour_of_their_sign() {
        assert_eq!(plan_line("  + web.test  A"), "\x1b[32m  + web.test  A\x1b[0m");
        assert_eq!(plan_line("  - web.test  A"), "\x1b[31m  - web.test  A\x1b[0m");
        assert_eq!(plan_line("      there: A 10.0.0.1"), "      there: A 10.0.0.1");
        assert_eq!(plan_line("zone test on lan"), "\x1b[1mzone test on lan\x1b[0m");
    }

    #[test]
    fn only_the_state_of_a_row_is_painted_and_no_column_moves() {
        let table = "NAME  TYPE  STATE\npending  builtin  in sync  0\n";
        let shown = states(table);
        assert_eq!(shown, "NAME  TYPE  STATE\npending  builtin  \x1b[32min sync\x1b[0m  0\n");
        assert_eq!(strip_str(&shown).to_string(), table);
    }
}
