//! `cargo xtask bench`: the figures, as a table and as JSON.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::shell::{cargo, root, run};

/// Measure, in a release build.
///
/// Example: cargo xtask bench ledger --json ledger.json
#[derive(Debug, Args)]
pub(crate) struct Options {
    what: Bench,
    /// Where the figures go as JSON [default: target/bench/NAME.json].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bench {
    /// Claims: in memory, through the ledger and through the API, beside what the disk itself can do.
    Ledger,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
        }
    }

    /// Each bench is a program of its own under `crates/netstead/benches`, where all rooms can be reached.
    fn cargo(self) -> &'static str {
        match self {
            Self::Ledger => "bench --package netstead --bench ledger --",
        }
    }
}

pub(crate) fn measure(options: &Options) -> Result<bool> {
    let file = match &options.json {
        Some(file) => std::path::absolute(file)?,
        None => root().join("target/bench").join(options.what.name()).with_extension("json"),
    };
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    }
    run(cargo(options.what.cargo()).arg("--json").arg(file))
}
