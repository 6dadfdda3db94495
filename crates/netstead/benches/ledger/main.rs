#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    reason = "a bench may end badly"
)]
//! `cargo xtask bench ledger`: how fast the ledger is, beside how fast the disk is, in one run.
//!
//! Figures of one machine mean little; the ratios are what a change is measured by.

mod book;
mod durable;
#[path = "../shared/report.rs"]
mod report;
mod startup;
mod through_api;

use std::{path::PathBuf, process::ExitCode};

use report::Report;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut json: Option<PathBuf> = None;
    let mut dir = std::env::temp_dir();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--dir" => dir = arguments.next().map_or(dir, PathBuf::from),
            // The bench calls itself, so that what it measures is one process that does nothing else.
            "--open" => return startup::open(&arguments.next().unwrap_or_default()),
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --dir DIR says on which disk"
                );
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
    book::measure(&mut report);
    durable::measure(&mut report, dir.path());
    startup::measure(&mut report, dir.path());
    report.finish(json.as_deref())
}
