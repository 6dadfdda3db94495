//! `docs/reference/cli.md` comes from the types; this compares the two, and with `UPDATE_DOCS=1` writes the page.

use std::{fmt::Write as _, path::Path};

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut text = String::from(
        "# The command line\n\n<!-- Made from the types by `UPDATE_DOCS=1 cargo test -p netstead reference`. -->\n\n\
         Data goes to stdout, talk to stderr. Exit codes: 0 fine, 1 error (wrong usage too), 2 changes or claims pending, 3 stopped \
         by a guard.\n\n## Global options\n\nEvery command takes these, before or after its own.\n\n",
    );
    options(&mut text, root.get_arguments().filter(|arg| arg.is_global_set()));
    for command in root.get_subcommands_mut().filter(|command| !is_hidden(command)) {
        section(&mut text, command, "netstead");
    }
    text
}

fn is_hidden(command: &Command) -> bool {
    command.get_name() == "help" || command.is_hide_set()
}

fn section(text: &mut String, command: &mut Command, parent: &str) {
    let path = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let _ = write!(text, "\n## {path}\n\n{about}\n\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let own = |arg: &&Arg| !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    if command.get_arguments().any(|arg| own(&arg)) {
        text.push('\n');
        options(text, command.get_arguments().filter(own));
    }
    if let Some(examples) = command.get_after_help() {
        let _ = write!(text, "\n```text\n{examples}\n```\n");
    }
    for inner in command.get_subcommands_mut().filter(|command| !is_hidden(command)) {
        section(text, inner, &path);
    }
}

fn options<'a>(text: &mut String, args: impl Iterator<Item = &'a Arg>) {
    text.push_str("| option | meaning |\n|---|---|\n");
    for arg in args {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let variable = arg.get_env().map(|name| format!(" (`{}`)", name.display())).unwrap_or_default();
        let written = arg.to_string().replace('|', "\\|");
        let _ = writeln!(text, "| `{written}` | {}{variable} |", help.replace('|', "\\|"));
    }
}

#[test]
fn the_reference_page_is_what_the_types_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/reference/cli.md is old: UPDATE_DOCS=1 cargo test -p netstead reference"
    );
}
