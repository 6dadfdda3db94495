//! The command line: commands, flags and their help.

pub(crate) mod admin;
pub(crate) mod adopt_and_rollback;
pub(crate) mod claim;
pub(crate) mod cluster;
pub(crate) mod dns;
pub(crate) mod get;
pub(crate) mod import;
#[cfg(feature = "kubernetes")]
pub(crate) mod operator;
pub(crate) mod pipam_aliases;
pub(crate) mod pool;

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, path::PathBuf};

use clap::{
    ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum,
    parser::ValueSource,
};
use netstead_model::Span;

use crate::{
    config::Listen,
    drop_privileges::User,
    logging::{LogFilter, LogFormat},
};

/// How long a request may take unless said otherwise.
pub(crate) const REQUEST: Span = Span::from_secs(30);
/// Where the server is unless said otherwise.
pub(crate) const URL: &str = "http://127.0.0.1:5301";

/// An address and a name for everything you run.
#[derive(Debug, Parser)]
#[command(name = "netstead", version, propagate_version = true, max_term_width = 110, mut_args = hide_global)]
#[command(after_help = "\
Examples:
  netstead run                                           start a server for yourself
  netstead pool create lan --range 10.0.3.50-10.0.3.200  say what there is to hand out
  netstead claim lan web-1                               get an address, and its name
  netstead plan                                          see what would change on DNS servers
  netstead status                                        see how things are

Options that every command takes, such as --url and --output: netstead help options
Exit codes: 0 fine, 1 error, 2 changes or claims pending, 3 stopped by a guard.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that somebody types")]
pub(crate) struct Global {
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "NETSTEAD_URL",
        hide_env = true,
        help = "The server to talk to; several nodes of a cluster with commas between them [default: `api.listen` of the configuration file, else the server started last, else http://127.0.0.1:5301]"
    )]
    pub(crate) url: Option<String>,
    /// Your token; without it the one that `netstead run` left for you is used
    #[arg(long, global = true, value_name = "TOKEN", env = "NETSTEAD_TOKEN", hide_env = true)]
    pub(crate) token: Option<String>,
    /// A file with your token
    #[arg(long, global = true, value_name = "FILE", env = "NETSTEAD_TOKEN_FILE", hide_env = true)]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates to trust instead of the system's
    #[arg(long, global = true, value_name = "FILE", env = "NETSTEAD_CA_FILE", hide_env = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Trust any certificate; for trying things out only
    #[arg(long, global = true)]
    pub(crate) insecure: bool,
    /// Take what the server knows, however old; for when its store cannot be reached
    #[arg(long, global = true)]
    pub(crate) stale: bool,
    /// How long a request may take, or all of `run --once` [default: 30s; 5m for `run --once`]
    #[arg(long, global = true, value_name = "TIME", env = "NETSTEAD_TIMEOUT", hide_env = true)]
    pub(crate) timeout: Option<Span>,
    /// Open the store in the data directory instead of asking a server; none may be running on it
    #[arg(long, global = true)]
    pub(crate) local: bool,
    /// The data directory, for `run`, `--local` and `store` [default: the user's state directory]
    #[arg(long, global = true, value_name = "DIR", env = "NETSTEAD_DATA_DIR", hide_env = true)]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file, for `run`, `--local`, `store` and `plan` [default: the first found]
    #[arg(long, global = true, value_name = "FILE", env = "NETSTEAD_CONFIG", hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// It was typed, and does not come from the environment.
    #[arg(skip)]
    pub(crate) config_typed: bool,
    /// How to print data
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Level of the log: error, warn, info, debug, trace, or per module [default: info for `run`, else warn]
    #[arg(long, global = true, value_name = "LEVEL", env = "NETSTEAD_LOG_LEVEL", hide_env = true)]
    pub(crate) log_level: Option<LogFilter>,
    /// How to log
    #[arg(long, global = true, value_name = "FORMAT", env = "NETSTEAD_LOG_FORMAT", hide_env = true)]
    pub(crate) log_format: Option<LogFormat>,
}

/// Options of every command are listed once, by `netstead help options`, and not in the help of each.
fn hide_global(arg: clap::Arg) -> clap::Arg {
    let global = arg.is_global_set();
    arg.hide(global)
}

/// Adds where the options of every command are listed to the help of every command that has none of them.
fn with_footer(command: clap::Command) -> clap::Command {
    const FOOTER: &str = "Options of every command: netstead help options";
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .filter(|name| name != "options")
        .collect();
    let mut command = command;
    for name in names {
        command = command.mut_subcommand(name, |inner| {
            let help = inner.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
            with_footer(inner.after_help(format!("{help}{FOOTER}")))
        });
    }
    command
}

impl Cli {
    /// The commands as people read them: with the options of every command in one place.
    pub(crate) fn for_people() -> clap::Command {
        let command = with_footer(Self::command());
        let globals: Vec<_> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
        let shown = globals.into_iter().map(|arg| arg.hide(false));
        command.mut_subcommand("options", |options| options.args(shown))
    }

    /// Parses the command line.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let matches = Self::for_people().try_get_matches()?;
        let mut cli = Self::from_arg_matches(&matches)?;
        let inner = matches.subcommand().map_or(&matches, |(_, inner)| inner);
        let typed = |matches: &ArgMatches| matches.value_source("config") == Some(ValueSource::CommandLine);
        cli.global.config_typed = typed(&matches) || typed(inner);
        Ok(cli)
    }

    /// Whether this process may make files of a store itself.
    pub(crate) fn writes_a_store(&self) -> bool {
        self.global.local
            || matches!(self.command, Command::Run(_) | Command::Store(_))
            || self.command.works_without_server()
    }
}

/// Options that every command takes, before or after its own
///
/// Most may also be set by a variable, such as `NETSTEAD_URL`, `NETSTEAD_TOKEN_FILE` and `NETSTEAD_TIMEOUT`; an option goes before it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead get pools -o json
  netstead status --url http://10.0.0.1:5301 --token-file token
  netstead --timeout 5s doctor")]
pub(crate) struct OptionsOfAll {}

impl Command {
    /// Whether it does its work from the configuration file when no server answers.
    pub(crate) fn works_without_server(&self) -> bool {
        matches!(
            self,
            Self::Output(_) | Self::Reconcile(_) | Self::Health(_) | Self::Clean(_) | Self::Resume(_)
        )
    }

    /// Whether it only looks, and can do with something old.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(
            self,
            Self::Status(_)
                | Self::Doctor(_)
                | Self::Get(_)
                | Self::Describe(_)
                | Self::History(_)
                | Self::Explain(_)
                | Self::Events(_)
                | Self::Export(_)
                | Self::Output(_)
                | Self::Health(_)
        )
    }
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// More columns for people
    Wide,
    Json,
    Yaml,
    /// All columns, with a header
    Csv,
    /// Just what it is called, one per line
    Name,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Doctor(Doctor),
    #[command(subcommand)]
    Pool(pool::Pool),
    Claim(Box<claim::Claim>),
    Release(claim::Release),
    Renew(claim::Renew),
    Move(claim::Move),
    Reserve(claim::Reserve),
    Unreserve(claim::Unreserve),
    Plan(dns::Plan),
    Apply(dns::Apply),
    #[command(subcommand)]
    Record(dns::Record),
    Adopt(adopt_and_rollback::Adopt),
    Ignore(adopt_and_rollback::Ignore),
    Recover(adopt_and_rollback::Recover),
    Clean(adopt_and_rollback::Clean),
    Rollback(adopt_and_rollback::Rollback),
    Get(get::Get),
    Describe(get::Describe),
    History(get::History),
    Explain(get::Explain),
    #[command(subcommand)]
    Events(admin::Events),
    Pause(dns::Pause),
    Resume(dns::Resume),
    Export(dns::Export),
    #[command(subcommand)]
    Store(admin::Store),
    #[command(subcommand)]
    Cluster(cluster::Cluster),
    #[command(subcommand)]
    Token(admin::Token),
    Web(admin::Web),
    #[command(subcommand)]
    Config(admin::Config),
    #[command(subcommand)]
    Import(import::Import),
    #[cfg(feature = "kubernetes")]
    Operator(operator::Operator),
    #[cfg(feature = "kubernetes")]
    Crds(operator::Crds),
    Completions(admin::Completions),
    Man(admin::Man),
    #[command(hide = true)]
    CompleteValues(admin::CompleteValues),
    #[command(hide = true)]
    Options(OptionsOfAll),
    #[command(hide = true)]
    Output(pipam_aliases::Output),
    #[command(hide = true)]
    Reconcile(pipam_aliases::Reconcile),
    #[command(hide = true)]
    Health(pipam_aliases::Health),
}

/// Start a server and run until it is stopped
///
/// Without any configuration it keeps its data in your state directory, serves the API on 127.0.0.1:5301 and answers
/// DNS for the names of claims on 127.0.0.1:5300. On its first start it makes an admin token and leaves it where the
/// command line of the same user finds it. A changed configuration file is read again by itself, and on SIGHUP; one that
/// is wrong is refused and the old one stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead run
  netstead run --data-dir /tmp/n --listen 127.0.0.1:6301 --dns-listen 127.0.0.1:6300
  netstead run --dry-run
  netstead run --config /etc/netstead/netstead.toml --log-format json
  netstead run --once --dry-run        see what would change, and end
  netstead run --once --timeout 10m    from a timer, without a server

Exit codes of --once: 0 all is in line, 1 error, 2 changes are pending, 3 a guard or a pause holds changes back.")]
pub(crate) struct Run {
    /// Where the API listens [default: 127.0.0.1:5301]
    #[arg(long, value_name = "ADDRESS:PORT", env = "NETSTEAD_LISTEN", hide_env = true)]
    pub(crate) listen: Option<Listen>,
    /// Where the nameserver listens; may be given more than once [default: 127.0.0.1:5300, if it is free]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "NETSTEAD_DNS_LISTEN",
        hide_env = true,
        value_delimiter = ','
    )]
    pub(crate) dns_listen: Vec<SocketAddr>,
    /// Plan, and write to no DNS server
    #[arg(long = "dry-run")]
    pub(crate) dry: bool,
    /// Wait for one report of every source and one pass of every provider, print what was done, and end; nothing listens
    #[arg(long)]
    pub(crate) once: bool,
    /// With --once: stay until no name waits for its workload to come back, so that names of what is gone are removed
    #[arg(long, requires = "once")]
    pub(crate) settle: bool,
    /// A node of the cluster that this one is to join, with `type = "raft"`, or the URL of its API; looked at until it is in one
    #[arg(long, value_name = "HOST[:PORT]|URL", env = "NETSTEAD_JOIN", hide_env = true)]
    pub(crate) join: Option<String>,
    /// When started by root: go on as this user, in the group of Docker's socket; for containers
    #[arg(long, value_name = "UID[:GID]", env = "NETSTEAD_USER", hide_env = true)]
    pub(crate) user: Option<User>,
}

/// Show how things are, on one screen
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead status
  netstead status --check || echo \"a person must look\"
  netstead status --ready

Exit code 1 if nothing answers or the server is not ready. What a server that is not ready knew last is shown,
marked as stale, with the reason.

With --check: exit code 0 if all is well, 1 if something is wrong or nothing answers, 3 if the ledger is
paused or a guard holds changes back.")]
pub(crate) struct Status {
    /// Say it by the exit code
    #[arg(long)]
    pub(crate) check: bool,
    /// Say only whether it serves, by the exit code: for health checks, which end what fails them
    #[arg(long, conflicts_with = "check")]
    pub(crate) ready: bool,
}

/// Look at everything and say what is wrong, and what to do about it
///
/// The running server looks at its configuration, store, listeners and clock, asks every source and DNS server, and the
/// resolvers of its machine for its own zones. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead doctor
  netstead doctor -o json

Exit code 0 if nothing is wrong, 1 if there are problems. A note is no problem: it may be meant so.")]
pub(crate) struct Doctor {}
