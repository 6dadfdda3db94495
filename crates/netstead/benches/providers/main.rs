#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    reason = "a bench may end badly"
)]
//! `cargo xtask bench providers`: names into each kind of DNS server, beside the same calls sent by a bare HTTP client.
//!
//! Figures of one machine mean little; the ratios are what a change is measured by.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "../names/engine_setup.rs"]
mod engine_setup;
mod measure;
mod recording;
#[path = "../shared/report.rs"]
mod report;
mod servers;

use std::{path::PathBuf, process::ExitCode};

use report::Report;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str =
    "--json FILE writes the figures, --dir DIR says on which disk, --only KIND measures one kind";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut json: Option<PathBuf> = None;
    let mut dir = std::env::temp_dir();
    let mut only: Option<String> = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--dir" => dir = arguments.next().map_or(dir, PathBuf::from),
            "--only" => only = arguments.next(),
            other => {
                eprintln!("error: `{other}` is not known\nhint: {USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    let dir = match tempfile::Builder::new().prefix("netstead-bench").tempdir_in(&dir) {
        Ok(dir) => dir,
        Err(error) => {
            eprintln!("error: no directory can be made in {}: {error}", dir.display());
            return ExitCode::FAILURE;
        }
    };
    let mut report = Report::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for kind in servers::KINDS.iter().filter(|kind| only.as_ref().is_none_or(|only| only == kind.name)) {
        runtime.block_on(measure::measure(kind, &mut report, dir.path()));
    }
    report.finish(json.as_deref())
}
