//! `cargo xtask fuzz`: what people write into labels, at random and in quantity.

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, run};

/// Read random labels and rules in every dialect, in a release build.
///
/// Example: cargo xtask fuzz --cases 10000
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many cases each property is tried with.
    #[arg(long, default_value_t = 1_000_000)]
    cases: u32,
}

pub(crate) fn fuzz(options: &Options) -> Result<bool> {
    let mut tests =
        cargo("test --release --package netstead-sources --test it -- dialects::fuzz --nocapture");
    run(tests.env("FUZZ_CASES", options.cases.to_string()))
}
