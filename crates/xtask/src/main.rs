//! The tasks of a contributor: `cargo xtask test`, `cargo xtask bench`, `cargo xtask faults`, `cargo xtask fuzz`,
//! `cargo xtask simulate`, `cargo xtask fixture` and `cargo xtask image`.

mod bench;
mod documents;
mod faults;
mod fixture;
mod fuzz;
mod image;
mod lint;
mod needs;
mod shell;
mod simulate;
mod test;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

/// What a contributor types.
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
