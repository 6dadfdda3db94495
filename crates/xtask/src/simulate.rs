//! `cargo xtask simulate`: simulated machines, network and clients, and everything that can go wrong between them.

use anyhow::Result;
use clap::Args;

use crate::shell::{cargo, run};

/// Play histories of several ledgers on one store, each from its seed, and judge what everybody was told.
///
/// The same seed gives the same history. One that shows something wrong goes into
/// crates/ledger/tests/it/simulation/seeds.txt, whose seeds are played in each test run.
///
/// Example: cargo xtask simulate --seeds 1000
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How many seeds to play.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Play this one alone.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// The part of the ledger that is left out on purpose, by its name in crates/ledger/src/sabotage.rs: the first seed that finds it
    /// is told.
    #[arg(long, value_name = "NAME")]
    sabotage: Option<String>,
    /// Print everything that happens.
    #[arg(long)]
    trace: bool,
}

pub(crate) fn simulate(options: &Options) -> Result<bool> {
    let (from, seeds) = options.seed.map_or((options.from, options.seeds), |seed| (seed, 1));
    let mut tests =
        cargo("test --package netstead-ledger --test it -- simulation::whatever_happens --nocapture");
    tests.env("SIMULATION_FROM", from.to_string()).env("SIMULATION_SEEDS", seeds.to_string());
    if options.trace {
        tests.env("SIMULATION_TRACE", "1");
    }
    if let Some(sabotage) = &options.sabotage {
        tests.env("SIMULATION_SABOTAGE", sabotage);
    }
    run(&mut tests)
}
