//! `netstead status`

use std::{fmt::Write as _, time::Duration};

use netstead_client::{
    Client, ClientError,
    types::{BackendOutput, ClusterOutput, ProviderOutput, ServerRole, ServerState, StatusOutput},
};
use netstead_model::Span;
use netstead_plan::wrap;

use super::{Context, say};
use crate::{
    cli::{Format, Status},
    failure::{Exit, without_stale_hint},
    output::{self, Printer, WIDTH, plain, style},
};

/// A server that does not answer fresh reads says that it is so.
/// An answer that is younger than this is as good as new.
const OLD: Duration = Duration::from_secs(1);
/// Shown for anything younger that may be out of date.
const LEAST: Span = Span::from_secs(1);

pub(crate) async fn status(context: &Context, args: &Status) -> anyhow::Result<Exit> {
    if args.ready {
        context.client.ready().await?;
        return Ok(Exit::Fine);
    }
    let LatestStatus { status, age } = match latest(&context.client).await {
        Ok(latest) => latest,
        // A server that has nothing to show yet says why.
        Err(ClientError::Unavailable { problem, .. }) if is_screen(context.format) => {
            let url = context.client.url().as_str().trim_end_matches('/');
            output::emit(&format!("{:<10}at {url} is not ready: {}\n", "Netstead", plain(&problem.detail)))?;
            return Ok(Exit::Error);
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(age) = age.filter(|_| !is_screen(context.format)) {
        say!("as of {age} ago: the store was not asked");
    }
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&status, format)?,
        Some(format @ (Format::Csv | Format::Name)) => {
            output::list(&status.pools, Some(format), context.now())?;
        }
        format => {
            let printer = Printer::new(format.unwrap_or(Format::Table), context.now());
            style::emit(&screen(&context.client, &status, age, printer))?;
        }
    }
    Ok(match args.check {
        true => verdict(&status, age),
        false if status.state == ServerState::NotReady || age.is_some() => Exit::Error,
        false => Exit::Fine,
    })
}

/// How things are, as far as that can be learned now.
struct LatestStatus {
    status: StatusOutput,
    /// How old it is, if the store could not be asked.
    age: Option<Span>,
}

/// Asks the server for what it knows first: that it says at once, and whether the rest can be had.
async fn latest(client: &Client) -> Result<LatestStatus, ClientError> {
    let memory = client.with_stale_reads();
    let mut known = memory.status().await?;
    let age = memory.age().filter(|age| *age >= OLD).map(|age| Span::from_secs(age.as_secs()));
    if known.state == ServerState::NotReady {
        // Without an age the server knows that nothing newer can exist.
        let age = age.or_else(|| memory.age().filter(|age| !age.is_zero()).map(|_| LEAST));
        return Ok(LatestStatus { status: known, age });
    }
    match client.status().await {
        Ok(status) => Ok(LatestStatus { status, age: None }),
        Err(error @ (ClientError::Unavailable { .. } | ClientError::Slow { .. })) => {
            known.state = ServerState::NotReady;
            known.reason = Some(without_stale_hint(&error.to_string()).to_owned());
            Ok(LatestStatus { status: known, age: age.or(Some(LEAST)) })
        }
        Err(error) => Err(error),
    }
}

fn is_screen(format: Option<Format>) -> bool {
    matches!(format, None | Some(Format::Table | Format::Wide))
}

/// A pause and parked changes wait for a person; anything else that a person must do is an error.
fn verdict(status: &StatusOutput, age: Option<Span>) -> Exit {
    let guarded = |provider: &ProviderOutput| provider.parked.is_some() || !provider.paused.is_empty();
    if status.paused || status.providers.iter().any(guarded) {
        Exit::Guarded
    } else if status.state != ServerState::Ready || !status.todo.is_empty() || age.is_some() {
        Exit::Error
    } else {
        Exit::Fine
    }
}

fn screen(client: &Client, status: &StatusOutput, age: Option<Span>, mut printer: Printer) -> String {
    let mut text = String::new();
    let url = client.url().as_str().trim_end_matches('/');
    let reason = status.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let paused = if status.paused { ", paused" } else { "" };
    let lines = [
        ("Netstead", format!("{} at {} is {}{paused}{reason}", status.version, url, status.state)),
        ("Started", format!("{:.0}", status.started)),
        ("Store", status.store.clone()),
        ("DNS", nameserver(status)),
        ("Ledger", format!("{}, change {}, epoch {}", status.ledger, status.seq, status.epoch)),
    ];
    let stale = age.map(|age| ("Stale", format!("as of {age} ago: the store cannot be asked")));
    let lines = lines
        .into_iter()
        .chain(stale)
        .chain(status.cluster.as_ref().and_then(node).map(|node| ("Node", node)));
    for (name, value) in lines {
        let line = format!("{name:<10}{}", plain(&value));
        let _ = writeln!(text, "{}", style::fitted(&line, 10));
    }
    text.push('\n');
    if status.pools.is_empty() {
        text += "No pools yet. Make one: netstead pool create lan --range 10.0.3.50-10.0.3.200\n";
    } else {
        text += &table_of("Pools", &printer.table(&status.pools));
    }
    for part in names(status, &mut printer) {
        text.push('\n');
        text += &part;
    }
    text += &backends(&status.backends);
    text += &sentences("Warnings of the configuration", &status.warnings);
    text += &sentences("Without a name", &Vec::from_iter(lacking_names(status.problems)));
    text += &sentences("Waiting", &status.waiting);
    text += &sentences("To do", &status.todo);
    text
}

/// One line per server that pools draw from.
fn backends(backends: &[BackendOutput]) -> String {
    if backends.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style::title("Backends:"));
    for backend in backends {
        let told = match &backend.error {
            _ if backend.paused => "paused".to_owned(),
            Some(error) => format!("does not answer: {error}"),
            None if backend.uncompared.is_empty() => "no error".to_owned(),
            None => "refuses to be compared".to_owned(),
        };
        let lines = wrap(&plain(&format!("{}: {told}", backend.name)), 2, WIDTH);
        let _ = writeln!(text, "{}", lines.join("\n"));
    }
    text
}

/// Workloads that ask for a name and do not get it.
fn lacking_names(count: u64) -> Option<String> {
    let list = "`netstead get workloads --problems` says which, and why.";
    match count {
        0 => None,
        1 => Some(format!("1 workload asks for a name that it does not get. {list}")),
        _ => Some(format!("{count} workloads ask for a name that they do not get. {list}")),
    }
}

/// A list with a title; nothing if it is empty.
fn sentences(title: &str, sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style::title(&format!("{title}:")));
    for sentence in sentences {
        let lines = wrap(&plain(sentence), 4, WIDTH);
        let _ = writeln!(text, "  - {}", lines.join("\n").trim_start());
    }
    text
}

/// A table below its title.
fn table_of(title: &str, table: &str) -> String {
    format!("{}\n{}", style::title(&format!("{title}:")), style::states(table))
}

/// The role of the node that was asked; none for one that is alone.
fn node(cluster: &ClusterOutput) -> Option<String> {
    let leader = match (&cluster.role, &cluster.leader) {
        (ServerRole::Leading, _) => "leads".to_owned(),
        (_, Some(leader)) => {
            let name = leader.name.as_deref().unwrap_or(&leader.node);
            format!("follows {name} at {}", leader.url)
        }
        (_, None) => "follows; no node leads".to_owned(),
    };
    let alone = cluster.role == ServerRole::Leading && cluster.members.len() <= 1;
    let members: Vec<_> = cluster.members.iter().map(|member| member.name.as_str()).collect();
    let of = format!("{} members: {}", members.len(), members.join(", "));
    (!alone).then(|| format!("{} ({}) {leader}; {of}", cluster.name, cluster.node))
}

fn nameserver(status: &StatusOutput) -> String {
    if status.nameserver.is_empty() {
        return "no nameserver here".to_owned();
    }
    format!("own nameserver on {}", status.nameserver.join(", "))
}

/// Where names come from and where they go, each as a table of its own width.
fn names(status: &StatusOutput, printer: &mut Printer) -> Vec<String> {
    let mut parts = Vec::new();
    if !status.sources.is_empty() {
        parts.push(table_of("Sources", &printer.fresh().table(&status.sources)));
    }
    if !status.providers.is_empty() {
        let systems = status.providers.iter().any(|one| one.ipam);
        let title = if systems { "DNS servers and IPAM systems" } else { "DNS servers" };
        parts.push(table_of(title, &printer.fresh().table(&status.providers)));
    }
    let limited = status.providers.iter().filter_map(|one| Some((&one.name, one.budget.as_ref()?)));
    let budgets: Vec<String> =
        limited.map(|(name, budget)| format!("{name} made {}.\n", output::budget(budget))).collect();
    if !budgets.is_empty() {
        parts.push(budgets.concat());
    }
    parts
}
