//! The binary: command line, configuration, wiring.
//!
//! ```text
//!  main ─► Cli::read ─► dispatch ─┬─► run ─► store_location ─► Store
//!                                 │    │      node ─► Cluster      follow_ledger ─► Ledger
//!                                 │    │      DnsService: nameserver, sources, providers, engine
//!                                 │    └─► three tasks: serve (the API), Leadership::run, heartbeat
//!                                 │
//!                                 └─► commands ─► Session ─► Client ─► the API of a server
//!                                                  └─ --local: a server in this process
//! ```
//!
//! - `cli`: all commands and flags, with their help. `commands`: one module per command.
//! - `config`: the file, overlaid by the environment. `settings`: the same with the flags.
//! - `run.rs`: `netstead run`. `leadership.rs`: takes the lead, starts the services of a leader, and ends them when another
//!   node leads. `dns_service.rs`: the engine and everything it needs, built from the configuration.
//! - `temporary_leader.rs`: the same engine for one command, without listeners: `run --once`, and commands without a server.
//! - `drop_privileges.rs`: from root to `--user`, before any thread starts.
//! - `output`: tables, JSON, YAML, CSV. `failure.rs`: errors with a hint and an exit code.
//! - `import`: dnsweaver's settings as a configuration. `notify`: messages when a person must act. `doctor`: checks of the host.
//!
//! Start with `run.rs` for the server and `commands/claim.rs` for the command line.

mod admin_token;
mod cli;
mod commands;
mod config;
mod config_files;
mod credentials;
mod daily_backup;
mod dns_service;
mod docker_discovery;
mod doctor;
mod drop_privileges;
mod external_dns_listeners;
#[cfg(feature = "kubernetes")]
mod external_pools;
mod failure;
mod file_limit;
mod import;
mod leadership;
mod loaded_config;
mod local_server;
mod logging;
mod node;
mod notify;
mod output;
mod pool_backends;
mod progress;
mod restore_mark;
mod run;
mod server_url;
mod session;
mod startup_banner;
mod state_dir;
mod store_location;
mod temporary_leader;

use std::process::ExitCode;

use netstead_model::{Span, SystemClock};
use nix::sys::stat::{Mode, umask};

use self::{
    cli::{Cli, Command, Global},
    commands::Context,
    failure::{Exit, report},
    session::Session,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The one crypto provider of the process. A second installation cannot happen: this is the first line.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => {
            let fine = error.exit_code() == 0;
            let _ = error.print();
            return if fine { Exit::Fine } else { Exit::Error }.into();
        }
    };
    if cli.writes_a_store() {
        // What the database makes by itself is for its owner alone too.
        umask(Mode::S_IRWXG | Mode::S_IRWXO);
    }
    // While there is one thread.
    if let Err(error) = drop_privileges::to_requested_user(&cli) {
        return report(&error).into();
    }
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(dispatch(cli)));
    match done {
        Ok(exit) => exit.into(),
        Err(error) => report(&error).into(),
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    let Cli { mut global, command } = cli;
    match &command {
        Command::Run(args) if args.once => return commands::once::run(&global, args).await,
        Command::Run(args) => return run::run(&global, args).await.map(|()| Exit::Fine),
        Command::Config(cli::admin::Config::Check(args)) => {
            return commands::config::check(&global, args).map(|()| Exit::Fine);
        }
        Command::Config(cli::admin::Config::Schema) => {
            return commands::config::schema().map(|()| Exit::Fine);
        }
        Command::Import(cli::import::Import::Dnsweaver(args)) => {
            return commands::import::dnsweaver(args).map(|()| Exit::Fine);
        }
        Command::Import(cli::import::Import::Pipam(args)) => {
            return commands::import::pipam(args).map(|()| Exit::Fine);
        }
        Command::Import(cli::import::Import::ExternalDns(args)) => {
            return commands::import::external_dns(args).await.map(|()| Exit::Fine);
        }
        Command::Import(cli::import::Import::Netaddr(args)) if !args.yes => {
            return commands::import_netaddr::preview(args).await.map(|()| Exit::Fine);
        }
        Command::Import(cli::import::Import::Netbox(args)) if !args.shared.yes => {
            return commands::import_ipam::preview(&import::ipam::of_netbox(args).await?);
        }
        Command::Import(cli::import::Import::Phpipam(args)) if !args.shared.yes => {
            return commands::import_ipam::preview(&import::ipam::of_phpipam(args).await?);
        }
        Command::Completions(args) => {
            return commands::completions_and_man::completions(args).map(|()| Exit::Fine);
        }
        #[cfg(feature = "kubernetes")]
        Command::Crds(args) => return commands::operator::crds(args).map(|()| Exit::Fine),
        #[cfg(feature = "kubernetes")]
        Command::Operator(args) => {
            return commands::operator::operator(&global, args).await.map(|()| Exit::Fine);
        }
        Command::Options(_) => {
            return commands::completions_and_man::options().map(|()| Exit::Fine);
        }
        Command::Man(args) => return commands::completions_and_man::man(&args.dir).map(|()| Exit::Fine),
        _ => {}
    }
    let filter = global.log_level.clone().unwrap_or_else(logging::LogFilter::warn);
    logging::start(&filter, global.log_format.unwrap_or_default())?;
    if let Command::Store(command) = &command
        && let Some(done) = commands::store::directly(&global, command).await
    {
        return done;
    }
    if command.works_without_server() {
        // The file of these commands is that of the server.
        global.config_typed = false;
        if let Some(done) = commands::without_server::run(&global, &command).await {
            return done;
        }
    }
    let session = Session::open(&global).await?;
    let done = dispatch_to_server(&global, &session, &command).await;
    let done = if command.is_read_only() { done } else { done.map_err(failure::without_stale_advice) };
    if let (Ok(_), Some(age)) = (&done, session.client().age()) {
        commands::say!("as of {} ago: the store was not asked", Span::from_secs(age.as_secs().max(1)));
    }
    session.close().await;
    done
}

/// The commands that talk to a server.
async fn dispatch_to_server(global: &Global, session: &Session, command: &Command) -> anyhow::Result<Exit> {
    let context =
        Context { client: session.client().clone(), clock: SystemClock::shared(), format: global.output };
    let context = &context;
    match command {
        Command::Status(args) => return commands::status::status(context, args).await,
        Command::Doctor(_) => return commands::doctor::doctor(context).await,
        Command::Store(args) => return commands::store::store(context, args).await,
        Command::Plan(args) => return commands::plan::plan(context, global, args).await,
        Command::Apply(args) => return commands::dns::apply(context, args).await,
        Command::Health(_) => {
            return commands::status::status(context, &cli::Status { check: true, ready: false }).await;
        }
        Command::Reconcile(_) => {
            return commands::dns::apply(context, &cli::dns::Apply { hash: None, provider: None }).await;
        }
        Command::Output(args) => commands::workload_list::output(context, args).await?,
        Command::Adopt(args) => return commands::adopt_and_rollback::adopt(context, args).await,
        Command::Ignore(args) => commands::adopt_and_rollback::ignore(context, args).await?,
        Command::Recover(args) => return commands::adopt_and_rollback::recover(context, args).await,
        Command::Clean(args) => return commands::adopt_and_rollback::clean(context, args).await,
        Command::Rollback(args) => return commands::adopt_and_rollback::rollback(context, args).await,
        Command::Import(cli::import::Import::Netaddr(args)) => {
            commands::import_netaddr::import(context, args).await?;
        }
        Command::Import(cli::import::Import::Netbox(args)) => {
            let plan = import::ipam::of_netbox(args).await?;
            return commands::import_ipam::import(context, &plan, import::ipam::NETBOX).await;
        }
        Command::Import(cli::import::Import::Phpipam(args)) => {
            let plan = import::ipam::of_phpipam(args).await?;
            return commands::import_ipam::import(context, &plan, import::ipam::PHPIPAM).await;
        }
        Command::Pool(args) => commands::pool::pool(context, args).await?,
        Command::Claim(args) => return commands::claim::claim(context, args).await,
        Command::Release(args) => commands::release::release(context, args).await?,
        Command::Renew(args) => commands::release::renew(context, args).await?,
        Command::Move(args) => commands::release::move_claim(context, args).await?,
        Command::Reserve(args) => commands::reserve::reserve(context, args).await?,
        Command::Unreserve(args) => commands::reserve::unreserve(context, args).await?,
        Command::Get(args) => commands::get::get(context, args).await?,
        Command::CompleteValues(args) => commands::complete_values::complete(context, args).await?,
        Command::Describe(args) => commands::describe::describe(context, args).await?,
        Command::History(args) => commands::events::history(context, args).await?,
        Command::Explain(args) => commands::explain::explain(context, args).await?,
        Command::Events(cli::admin::Events::Watch) => commands::events::stream(context).await?,
        Command::Events(cli::admin::Events::Export(args)) => commands::events::export(context, args).await?,
        Command::Cluster(args) => commands::cluster::cluster(context, args).await?,
        Command::Token(args) => commands::token::token(context, args).await?,
        Command::Web(args) => commands::web::web(context, args).await?,
        Command::Record(args) => commands::dns::record(context, args).await?,
        Command::Pause(args) => commands::dns::pause(context, args).await?,
        Command::Resume(args) => commands::dns::resume(context, args).await?,
        Command::Export(args) => commands::dns::export(context, args).await?,
        Command::Run(_)
        | Command::Config(_)
        | Command::Import(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Options(_) => {}
        #[cfg(feature = "kubernetes")]
        Command::Crds(_) | Command::Operator(_) => {}
    }
    Ok(Exit::Fine)
}
