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

/// As the binary has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Parts that can be measured alone, in the order in which all of them are.
const SECTIONS: [&str; 5] = ["book", "clients", "api", "fill", "startup"];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut json: Option<PathBuf> = None;
    let mut dir = std::env::temp_dir();
    let mut only: Vec<String> = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--dir" => dir = arguments.next().map_or(dir, PathBuf::from),
            // The bench calls itself, so that what it measures is one process that does nothing else.
            "--open" => return startup::open(&arguments.next().unwrap_or_default()),
            "--only" => {
                let Some(part) = arguments.next().filter(|part| SECTIONS.contains(&part.as_str())) else {
                    eprintln!("error: `--only` takes one of {}", SECTIONS.join(", "));
                    return ExitCode::FAILURE;
                };
                only.push(part);
            }
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --dir DIR says on which disk, \
                     --only PART measures that alone"
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
    let wanted = |section: &str| only.is_empty() || only.iter().any(|name| name == section);
    if wanted("book") {
        book::measure(&mut report);
    }
    if wanted("clients") {
        durable::measure(&mut report, dir.path());
    }
    if wanted("api") {
        through_api::measure(&mut report, dir.path());
    }
    if wanted("fill") {
        durable::measure_filling(&mut report, dir.path());
    }
    if wanted("startup") {
        startup::measure(&mut report, dir.path());
    }
    report.finish(json.as_deref())
}
