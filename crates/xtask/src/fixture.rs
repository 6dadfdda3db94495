//! `cargo xtask fixture`: the stores that later releases must be able to open.

use anyhow::Result;
use clap::Args;

use crate::{
    needs,
    shell::{cargo, run},
};

/// Write the fixture of this release, from which later releases are tested.
///
/// It starts servers of this checkout, types commands and keeps their stores below `crates/netstead/tests/fixtures`.
/// Run it once, on the commit of the release; the fixture of a release is never written anew.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Install what is missing without asking.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn fixture(options: &Options) -> Result<bool> {
    needs::provide(needs::FIXTURE, options.yes)?;
    run(&mut cargo(
        "test --package netstead --test it -- --ignored --exact earlier_releases::make::the_fixture_of_this_release",
    ))
}
