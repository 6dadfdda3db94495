#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a bench may end badly")]
//! `cargo xtask bench terraform`: applies beside those of a provider without a store, and claims in the ranges of an etcd.
//!
//! A target is a ratio: both sides are measured in the same run, one after the other, several times.

mod apply;
mod netaddr;
#[allow(dead_code, reason = "other benches need more of it")]
#[path = "../../../netstead/benches/shared/report.rs"]
mod report;

use std::{path::PathBuf, process::ExitCode};

use self::report::Report;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut json, mut only): (Option<PathBuf>, Option<String>) = (None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => json = arguments.next().map(PathBuf::from),
            "--only" => only = arguments.next(),
            other => {
                eprintln!(
                    "error: `{other}` is not known\nhint: --json FILE writes the figures, --only apply|netaddr"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    let wanted = |part: &str| only.as_ref().is_none_or(|only| only == part);
    let mut report = Report::default();
    if wanted("apply") && !apply::measure(&mut report) {
        return ExitCode::FAILURE;
    }
    if wanted("netaddr") && !netaddr::measure(&mut report) {
        return ExitCode::FAILURE;
    }
    report.finish(json.as_deref())
}
