//! `netstead store`, `token`, `config`, `events`, `completions` and `man`.

use std::path::PathBuf;

use crate::config::layout;
use clap::{Args, Subcommand, ValueEnum};
use netstead_model::{Ident, Span};

use super::get::Period;

/// Watch events as they happen, or export them for archives
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead events watch
  netstead events export > events.jsonl")]
pub(crate) enum Events {
    /// Show what happens to addresses and names from now on, until it is stopped
    #[command(after_help = "\
Examples:
  netstead events watch
  netstead events watch -o json | jq -r 'select(.of == \"engine\") | .text'")]
    Watch,
    /// Write all events, oldest first, one JSON object per line
    #[command(after_help = "\
Examples:
  netstead events export > events.jsonl
  netstead events export --since 30d --pool lan | gzip > november.jsonl.gz")]
    Export(Export),
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) period: Period,
    /// Only those of this pool
    #[arg(long)]
    pub(crate) pool: Option<Ident>,
    /// Only those after this cursor, which an earlier export ended with
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

/// Back up, restore, move and check what is stored
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead store backup netstead.backup
  netstead store restore netstead.backup --data-dir /var/lib/netstead
  netstead store check")]
pub(crate) enum Store {
    /// Write everything to one file; the server goes on running
    #[command(after_help = "\
Examples:
  netstead store backup netstead.backup
  netstead store backup - | ssh elsewhere 'cat > netstead.backup'
  netstead store backup netstead.backup --local --data-dir /var/lib/netstead
  netstead store backup left.backup --local --leave-out-damaged --data-dir /var/lib/netstead

With `--local` and `--leave-out-damaged` the store need not be fit to be served. Damage of anything but history is an error:
an address whose holder is left out could be handed out again.")]
    Backup(Backup),
    /// Read a backup into an empty data directory; no server may be running on it
    #[command(after_help = "\
Example:
  netstead store restore netstead.backup --data-dir /var/lib/netstead-new

The restored ledger hands out nothing by itself until `netstead resume`.")]
    Restore(Restore),
    /// Move everything to another kind of store, or another place; no server may be running on either
    #[command(after_help = "\
Examples:
  netstead store migrate with-etcd.toml
  netstead store migrate /srv/netstead --data-dir /var/lib/netstead

All keys are copied and compared, then the old store is sealed: no server opens it any more. If it breaks off, type
the same again.")]
    Migrate(Migrate),
    /// Compare what is stored with what may be stored
    #[command(after_help = "\
Examples:
  netstead store check
  netstead store check --repair --local --data-dir /var/lib/netstead

Exit code 0 if all is well, 1 if not.")]
    Check(Check),
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which must not exist; `-` is stdout
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Leave out history that cannot be read: events, and past plans
    #[arg(long)]
    pub(crate) leave_out_damaged: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The file to read; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// A configuration file whose `[store]` is the new one, or a directory for files on this machine
    #[arg(value_name = "TO")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Repair what can be derived from the rest; needs --local
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Say who may do what
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  netstead token create ci --role claim --pool lan
  netstead token list
  netstead token revoke k3v9x2ab")]
pub(crate) enum Token {
    /// Make a token; its secret is printed on stdout, this once
    #[command(after_help = "\
Examples:
  netstead token create ci --role claim --pool lan --expires 90d
  NETSTEAD_TOKEN=$(netstead token create me --role admin) netstead status

A token with zones sees and changes the names in them. One with pools or VRFs and no zones sees and changes the names
in the domains of its pools, and the reverse names of their addresses. What concerns everything needs a token without
any of them.")]
    Create(TokenCreate),
    /// List tokens, without their secrets
    #[command(after_help = "\
Example:
  netstead token list -o wide")]
    List,
    /// End a token at once
    #[command(after_help = "\
Example:
  netstead token revoke k3v9x2ab")]
    Revoke(TokenRevoke),
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// The subject: the owner of what is claimed with it
    pub(crate) subject: String,
    /// Its role; each includes those before it
    #[arg(long, default_value = "claim")]
    pub(crate) role: Role,
    /// Only in this VRF, with names as with --pool; may be given more than once
    #[arg(long = "vrf", value_name = "VRF")]
    pub(crate) vrfs: Vec<Ident>,
    /// Only in this pool, with names below its domain unless --zone says more; may be given more than once
    #[arg(long = "pool", value_name = "POOL")]
    pub(crate) pools: Vec<Ident>,
    /// Only names in this zone; may be given more than once
    #[arg(long = "zone", value_name = "ZONE")]
    pub(crate) zones: Vec<String>,
    /// How long it is valid; 0 for ever
    #[arg(long, value_name = "TIME", default_value = "90d")]
    pub(crate) expires: Span,
    /// A description
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Read,
    Claim,
    Write,
    Admin,
}

#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// The id that `netstead token list` shows
    pub(crate) id: String,
}

/// Look at the configuration
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Example:
  netstead config check netstead.toml")]
pub(crate) enum Config {
    /// Say what was understood, or everything that is wrong
    #[command(after_help = config_check_help())]
    Check(ConfigCheck),
    /// Print a JSON Schema of the file, for editors that complete and check it
    #[command(after_help = "\
Example:
  netstead config schema > netstead.schema.json

In VS Code with Even Better TOML, put this at the top of netstead.toml:
  #:schema ./netstead.schema.json")]
    Schema,
}

/// The help of `config check` with every setting.
fn config_check_help() -> String {
    format!(
        "\
Examples:
  netstead config check
  netstead config check ./netstead.toml -o json
  netstead config check --no-secrets    where the secrets are not, in CI

Settings, which docs/reference/configuration.md explains:
{}
  and tables [backend.NAME], [source.NAME], [dns.NAME] and [domain.\"NAME\"], whose settings depend on their type.
Each may also be set by a variable: NETSTEAD_API_LISTEN, NETSTEAD_POOL_LAN_NETWORK.",
        layout::settings_help()
    )
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheck {
    /// The file to check [default: the one that `run` would read]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Open no secret, key or certificate that the file names, for a machine that has none of them
    #[arg(long)]
    pub(crate) no_secrets: bool,
}

/// Open the web page in your browser, logged in as the holder of your token
///
/// The link works once, for a minute. Where no browser can be opened it is printed, and can be opened by hand.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead web
  netstead web --print
  netstead web --url https://ipam.example.net --token-file ~/.netstead-token")]
pub(crate) struct Web {
    /// Only print the link
    #[arg(long)]
    pub(crate) print: bool,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead completions bash > ~/.local/share/bash-completion/completions/netstead
  netstead completions zsh > ~/.zfunc/_netstead
  netstead completions fish > ~/.config/fish/completions/netstead.fish")]
pub(crate) struct Completions {
    pub(crate) shell: clap_complete::Shell,
}

/// Write the man pages of all commands into a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead man ~/.local/share/man/man1 && man netstead-claim")]
pub(crate) struct Man {
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Print the names that the last of these words may become; the completions of shells ask for that
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  netstead complete-values release lan web")]
pub(crate) struct CompleteValues {
    /// The words of the line, without `netstead`; the last may be empty
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}
