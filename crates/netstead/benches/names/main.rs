#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    reason = "a bench may end badly"
)]
//! `cargo xtask bench names`: how long planning takes, beside how long the servers themselves take, in one run.
//!
//! Figures of one machine mean little; the ratios are what a change is measured by.

mod answers;
mod engine_setup;
mod into_powerdns;
mod planning;
#[path = "../shared/report.rs"]
mod report;
mod timed_store;

use std::{path::PathBuf, process::ExitCode};

use report::Report;

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "--json FILE writes the figures, --dir DIR says on which disk, \
    --only planning|powerdns|answers measures a part";

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
    let wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    let mut report = Report::default();
    if wanted("planning") {
        planning::measure(&mut report);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if wanted("powerdns") {
        runtime.block_on(into_powerdns::measure(&mut report, dir.path()));
    }
    if wanted("answers") {
        runtime.block_on(answers::measure(&mut report, dir.path()));
    }
    report.finish(json.as_deref())
}
