//! `netstead completions`, `netstead man` and `netstead options`

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::say;
use crate::{
    cli::{Cli, admin::Completions},
    output,
};

pub(crate) fn completions(args: &Completions) -> anyhow::Result<()> {
    let mut text = Vec::new();
    // Options that the help lists once are completed everywhere.
    let mut command = Cli::command().mut_args(|arg| arg.hide(false));
    clap_complete::generate(args.shell, &mut command, "netstead", &mut text);
    output::emit(&with_values(args.shell, String::from_utf8(text)?))
}

/// Adds names that the server knows: pools, claims, providers, sources. They are never taken for words of the shell.
fn with_values(shell: Shell, script: String) -> String {
    match shell {
        Shell::Bash => script + BASH_VALUES,
        Shell::Fish => script + FISH_VALUES,
        Shell::Zsh => match script.rfind("if [ \"$funcstack[1]\"") {
            Some(end) => script.get(..end).unwrap_or_default().to_owned() + ZSH_VALUES,
            None => script,
        },
        _ => script,
    }
}

const BASH_VALUES: &str = r#"
_netstead_with_values() {
    local value
    _netstead "$@"
    while IFS= read -r value; do
        COMPREPLY+=("$(printf %q "$value")")
    done < <(netstead complete-values "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _netstead_with_values -o bashdefault -o default netstead
"#;

const FISH_VALUES: &str = "
complete -c netstead -f -a '(netstead complete-values (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
";

const ZSH_VALUES: &str = r#"_netstead_with_values() {
    local -a values
    values=(${(f)"$(netstead complete-values "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    (( ${#values} )) && compadd -a values
    _netstead "$@"
}

if [ "$funcstack[1]" = "_netstead" ]; then
    _netstead_with_values "$@"
else
    compdef _netstead_with_values netstead
fi
"#;

/// Prints the help of the options that every command takes.
pub(crate) fn options() -> anyhow::Result<()> {
    let mut command = Cli::for_people();
    command.build();
    let Some(options) = command.find_subcommand_mut("options") else { return Ok(()) };
    output::emit(&options.render_long_help().to_string())
}

/// One page per command: netstead.1, netstead-claim.1, netstead-pool-create.1 and so on.
pub(crate) fn man(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    // The first page has the options of every command.
    let first = command.clone().mut_args(|arg| arg.hide(false));
    page(first, dir)?;
    let inner: Vec<_> = command.get_subcommands().cloned().collect();
    inner.into_iter().try_for_each(|command| pages(command, dir))?;
    say!("man pages are in {}; try: man -l {}", dir.display(), dir.join("netstead.1").display());
    Ok(())
}

/// The page of a command, and those of the commands in it.
fn pages(command: clap::Command, dir: &Path) -> anyhow::Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    let inner: Vec<_> = command.get_subcommands().cloned().collect();
    page(command, dir)?;
    inner.into_iter().try_for_each(|command| pages(command, dir))
}

fn page(command: clap::Command, dir: &Path) -> anyhow::Result<()> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let has_commands = command.get_subcommands().any(|inner| !inner.is_hide_set());
    let has_options = command.get_arguments().any(|arg| !arg.is_hide_set());
    let man =
        Man::new(command).title(name.to_uppercase()).source(concat!("Netstead ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if has_options {
        man.render_options_section(&mut text)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut text)?;
    }
    text.extend(sections(&help).into_bytes());
    let file = dir.join(format!("{name}.1"));
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// The examples as a section of their own, line by line, and what else the help says after it.
fn sections(help: &str) -> String {
    let mut text = String::new();
    let mut rest = Vec::new();
    let mut lines = help.lines().peekable();
    while let Some(line) = lines.next() {
        if !matches!(line, "Examples:" | "Example:") {
            rest.push(line);
            continue;
        }
        text.push_str(".SH EXAMPLES\n.nf\n");
        while let Some(example) = lines.next_if(|line| line.starts_with("  ") || line.is_empty()) {
            // A blank line ends the examples unless another follows.
            if example.is_empty() && lines.peek().is_none_or(|next| !next.starts_with("  ")) {
                break;
            }
            text.push_str(&escaped(example));
        }
        text.push_str(".fi\n");
    }
    if rest.iter().any(|line| !line.is_empty()) {
        text.push_str(".SH NOTES\n.nf\n");
        for line in rest {
            text.push_str(&escaped(line));
        }
        text.push_str(".fi\n");
    }
    text
}

/// A line as roff shows it unchanged.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    format!("{guard}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_a_section_of_their_own_and_stay_as_they_are() {
        let help = "Examples:\n  netstead get pools -o json\n  netstead plan || echo 'look'\n\nExit code 0 if all is well.";
        insta::assert_snapshot!(sections(help), @r"
        .SH EXAMPLES
        .nf
          netstead get pools \-o json
          netstead plan || echo 'look'
        .fi
        .SH NOTES
        .nf
        Exit code 0 if all is well.
        .fi
        ");
    }
}
