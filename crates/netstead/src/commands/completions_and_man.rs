//! `netstead completions` and `netstead man`

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::say;
use crate::{
    cli::{Cli, admin::Completions},
    output,
};

pub(crate) fn completions(args: &Completions) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "netstead", &mut text);
    output::emit(&String::from_utf8(text)?)
}

/// One page per command: netstead.1, netstead-claim.1, netstead-pool-create.1 and so on.
pub(crate) fn man(dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let command = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, dir).with_context(|| format!("cannot write to {}", dir.display()))?;
    say!("man pages are in {}; try: man -l {}", dir.display(), dir.join("netstead.1").display());
    Ok(())
}
