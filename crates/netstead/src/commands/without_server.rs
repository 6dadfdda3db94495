//! Commands that ask a server, and do their work from the configuration file when none answers.

use std::time::Duration;

use netstead_client::{
    Client, ClientError, Options, ProviderQuery, SourceQuery,
    types::{DoctorOutput, FindingOutput},
};
use netstead_model::SystemClock;
use tokio::time::timeout;

use super::{
    Context, adopt_and_rollback, dns, doctor::show_findings, once, once::Unseen, say, workload_list,
};
use crate::{
    cli::{Command, Global},
    config::{Config, FoundConfig},
    dns_service::Writes,
    failure::{Exit, Failure},
    loaded_config::LoadedConfig,
    server_url,
    temporary_leader::{Running, TemporaryLeader},
};

/// How long a server may take to say that it lives.
const LIVES: Duration = Duration::from_secs(2);
/// How long sources and servers may take unless said otherwise.
const PATIENCE: Duration = Duration::from_mins(2);

/// Does the command without a server. None if one answers, or one was named: then that one is asked.
pub(crate) async fn run(global: &Global, command: &Command) -> Option<anyhow::Result<Exit>> {
    // `--local` opens a store that needs no file for these.
    let opens_itself = global.local && matches!(command, Command::Resume(_));
    if global.url.is_some() || opens_itself || (!global.local && answers(global).await) {
        return None;
    }
    Some(Box::pin(work(global, command)).await)
}

/// Whether something answers where the server is looked for. Only silence counts as no.
async fn answers(global: &Global) -> bool {
    // The command itself says why no server can be named.
    let Ok(url) = server_url::find(global).await else { return true };
    // Any certificate will do: nothing is sent, and the command itself looks at it.
    let options = Options { timeout: LIVES, retries: 0, insecure: true, ..Options::default() };
    match Client::new(&url, None, options) {
        Ok(client) => !matches!(client.alive().await, Err(ClientError::Unreachable { .. })),
        Err(_) => true,
    }
}

async fn work(global: &Global, command: &Command) -> anyhow::Result<Exit> {
    let settings = LoadedConfig::read(global.config.as_deref())?;
    let FoundConfig::File { path, .. } = &settings.found else {
        let hint =
            "start a server with `netstead run`, name one with `--url`, or name the file with `--config`";
        let message = "no server answers, and there is no configuration file to work from";
        return Err(Failure::new(message).hint(hint).into());
    };
    let changes_a_store = matches!(command, Command::Clean(_) | Command::Resume(_));
    if changes_a_store && settings.store(global).is_shared() {
        let hint = "name a node with `--url`: another one may lead";
        return Err(Failure::new("no server answers, and the store is one that several share")
            .hint(hint)
            .into());
    }
    say!("no server answers: working from {}", path.display());
    let patience = global.timeout.map_or(PATIENCE, Duration::from);
    let context = |running: Running<'_>| Context {
        client: running.client,
        clock: SystemClock::shared(),
        format: global.output,
    };
    match command {
        Command::Reconcile(_) => once::reconcile(global, &settings, false, false).await,
        Command::Output(args) => {
            // Only the sources: what they say needs no server.
            let Config { sources, domains, log, ledger, .. } = settings.config;
            let config = Config { log, ledger, sources, domains, ..Config::default() };
            let leader = TemporaryLeader::in_memory(config, global, patience);
            leader
                .run(async |running: Running<'_>| {
                    let unseen = Unseen::after(&running, patience).await;
                    let failed = running.client.all(SourceQuery::default()).await?;
                    let context = context(running);
                    workload_list::output(&context, args).await?;
                    unseen.print();
                    let mut exit = if unseen.is_nothing() { Exit::Fine } else { Exit::Error };
                    for source in failed {
                        if let Some(reason) = source.reason.filter(|_| !unseen.is_silent(&source.name)) {
                            say!("error: source {} is {}: {reason}", source.name, source.view);
                            exit = Exit::Error;
                        }
                    }
                    Ok(exit)
                })
                .await
        }
        Command::Health(_) => {
            let leader = TemporaryLeader::in_memory(settings.config, global, patience);
            leader
                .run(async |running: Running<'_>| {
                    running.engine.first_reports(patience).await;
                    // What a server says is in its pass; one that takes too long is a finding too.
                    let _ = timeout(patience, running.engine.pass_everywhere()).await;
                    let context = context(running);
                    let found = findings(&context).await?;
                    show_findings(&context, &found)
                })
                .await
        }
        Command::Clean(args) => {
            let leader = TemporaryLeader::of(&settings, global, Writes::Commands, patience);
            leader.run(async |running| adopt_and_rollback::clean(&context(running), args).await).await
        }
        Command::Resume(args) => {
            let leader = TemporaryLeader::of(&settings, global, Writes::Commands, patience);
            leader.run(async |running| dns::resume(&context(running), args).await.map(|()| Exit::Fine)).await
        }
        _ => Err(Failure::new("this command needs a server").into()),
    }
}

/// Findings about each source and server. What is ours there only the store knows, so nothing is said of single names.
async fn findings(context: &Context) -> anyhow::Result<DoctorOutput> {
    let doctor = context.client.doctor().await?.findings.into_iter();
    let mut findings: Vec<FindingOutput> = doctor
        .filter(|one| one.about.starts_with("source.") || one.about.starts_with("backend."))
        .filter(|one| !["source.ledger", "source.manual"].contains(&one.about.as_str()))
        .collect();
    for provider in context.client.all(ProviderQuery::default()).await? {
        let about = format!("{}.{}", if provider.ipam { "ipam" } else { "dns" }, provider.name);
        let error =
            provider.error.or_else(|| provider.pass.is_none().then(|| "no answer in time".to_owned()));
        findings.push(match error {
            Some(error) => FindingOutput::problem(about, error, "`netstead doctor` on a server says more"),
            None => FindingOutput::ok(about, format!("{} answers", provider.server)),
        });
    }
    Ok(DoctorOutput { findings })
}
