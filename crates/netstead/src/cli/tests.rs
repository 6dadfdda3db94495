use clap::{CommandFactory as _, Parser as _};
use jiff::SignedDuration;
use netstead_model::{Clock as _, ManualClock};

use super::{Cli, Command, get::Moment};

fn every_command(command: &clap::Command, path: &str, seen: &mut Vec<(String, clap::Command)>) {
    let path = if path.is_empty() {
        command.get_name().to_owned()
    } else {
        format!("{path} {}", command.get_name())
    };
    seen.push((path.clone(), command.clone()));
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        every_command(inner, &path, seen);
    }
}

fn commands() -> Vec<(String, clap::Command)> {
    let mut seen = Vec::new();
    every_command(&Cli::command(), "", &mut seen);
    seen
}

#[test]
fn the_types_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_help_of_every_command_has_an_example_that_parses() {
    for (path, mut command) in commands() {
        let help = command.render_long_help().to_string();
        let (_, examples) =
            help.split_once("Example").unwrap_or_else(|| panic!("{path} has no example:\n{help}"));
        let examples: Vec<_> = examples.lines().filter_map(|line| line.strip_prefix("  netstead ")).collect();
        assert!(!examples.is_empty(), "{path} has an empty example section:\n{help}");
        for example in examples {
            // What follows two spaces is a remark; pipes and the like belong to the shell.
            let typed = example.split("  ").next().unwrap_or_default();
            let typed = typed.split(['|', '>', '&', ';']).next().unwrap_or_default().trim();
            let words = words(typed);
            if let Err(error) = Cli::try_parse_from(std::iter::once("netstead".to_owned()).chain(words)) {
                panic!("the example `netstead {typed}` of {path} is wrong:\n{error}");
            }
        }
    }
}

/// Words as a shell cuts them, as far as examples need it.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' | '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_command_and_flag_says_what_it_does() {
    for (path, command) in commands() {
        assert!(command.get_about().is_some(), "{path} has no description");
        for arg in command.get_arguments().filter(|arg| arg.get_long().is_some() && !arg.is_hide_set()) {
            let said = arg.get_help().is_some() || matches!(arg.get_id().as_str(), "help" | "version");
            assert!(said, "{path} --{} has no description", arg.get_long().unwrap());
        }
    }
}

#[test]
fn the_help_reads_well() {
    let help = |words: &[&str]| {
        let error = Cli::try_parse_from(words).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        error.to_string()
    };
    insta::assert_snapshot!("help", help(&["netstead", "--help"]));
    insta::assert_snapshot!("help_claim", help(&["netstead", "claim", "--help"]));
}

#[test]
fn the_help_of_config_check_has_every_setting_of_the_tables_that_are_there_once() {
    let (_, mut check) = commands().into_iter().find(|(path, _)| path == "netstead config check").unwrap();
    let help = check.render_long_help().to_string();
    for crate::config::layout::PlainSection { name: table, keys, .. } in
        crate::config::layout::plain_sections()
    {
        let (_, rest) =
            help.split_once(&format!("  [{table}] ")).unwrap_or_else(|| panic!("no [{table}]: {help}"));
        let told = rest.split("\n  [").next().unwrap_or_default();
        let told: Vec<&str> = told.split(|c: char| c == ',' || c.is_whitespace()).collect();
        for key in keys.iter().map(|key| key.name) {
            assert!(told.contains(&key), "[{table}] {key} is missing:\n{help}");
        }
    }
}

#[test]
fn every_command_has_a_man_page() {
    let dir = tempfile::tempdir().unwrap();
    crate::commands::completions_and_man::man(dir.path()).unwrap();
    let shown = |command: &clap::Command| !command.is_hide_set();
    for (path, command) in commands().into_iter().filter(|(_, command)| shown(command)) {
        let page = dir.path().join(format!("{}.1", path.replace(' ', "-")));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{path}: {error}"));
        let about = command.get_about().unwrap().to_string();
        let first = about.split(['`', '-', '\'']).next().unwrap_or_default();
        assert!(text.contains(".TH") && text.contains(first), "{path}:\n{text}");
    }
}

#[test]
fn what_is_no_name_or_address_is_refused_by_the_flag_it_stands_in() {
    let long = "x".repeat(300);
    for (words, field) in [
        (["pool", "create", "", "--range=10.0.3.1"].as_slice(), "<NAME>"),
        (&["pool", "create", &long, "--range=10.0.3.1"], "<NAME>"),
        (&["pool", "create", "lan", "--range=10.0.3.200-10.0.3.50"], "--range"),
        (&["pool", "create", "lan", "--network=fd00::/129"], "--network"),
        (&["pool", "create", "macs", "--range=52:54:00:00:00-52:54:00:ff:ff:ff"], "--range"),
        (&["pool", "create", "lan", "--range=10.0.3.1", "--label=x"], "--label"),
        (&["pool", "update", "lan", "--gateway=x"], "--gateway"),
        (&["pool", "update", "lan", "--domain=a..b"], "--domain"),
        (&["pool", "update", "lan", "--length=300"], "--length"),
        (&["pool", "update", "lan", "--max-per-owner=0"], "--max-per-owner"),
        (&["claim", "lan", ""], "KEY"),
        (&["claim", "lan", &long], "KEY"),
        (&["claim", "lan", "x", "--address=10.0.3.999"], "--address"),
        (&["claim", "lan", "x", "--ttl=10"], "--ttl"),
        (&["claim", "lan", "x", "--keep"], "--wait"),
        (&["history", "x", "--since=yesterday"], "--since"),
        (&["get", "nothing"], "nothing"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let error = Cli::try_parse_from(std::iter::once(&"netstead").chain(words)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{words:?}: {error}");
        assert!(error.to_string().contains(field), "{words:?}: {error}");
    }
}

#[test]
fn global_flags_may_stand_anywhere() {
    for words in [
        ["netstead", "-o", "json", "get", "claims", "--url", "http://x"].as_slice(),
        &["netstead", "get", "-o", "json", "claims", "--url", "http://x"],
        &["netstead", "--url", "http://x", "get", "claims", "-o", "json"],
    ] {
        let cli = Cli::try_parse_from(words).unwrap();
        assert_eq!(cli.global.url.as_deref(), Some("http://x"), "{words:?}");
        assert_eq!(cli.global.output, Some(super::Format::Json), "{words:?}");
        assert!(matches!(cli.command, Command::Get(_)));
    }
}

#[test]
fn a_moment_is_a_time_a_date_or_how_long_ago() {
    let clock = ManualClock::default();
    let resolve = |text: &str| text.parse::<Moment>().unwrap().resolve(&clock);
    assert_eq!(resolve("2h"), clock.wall() - SignedDuration::from_hours(2));
    assert_eq!(resolve("2026-11-01T12:00:00Z").to_string(), "2026-11-01T12:00:00Z");
    assert!("2026-11-01".parse::<Moment>().is_ok());
    assert!("tomorrow".parse::<Moment>().is_err());
}
