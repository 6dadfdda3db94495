//! `netstead status`

use std::fmt::Write as _;

use netstead_client::{
    Client,
    types::{ClusterOutput, StatusOutput},
};
use netstead_plan::wrap;

use super::Context;
use crate::{
    cli::{Format, Status},
    failure::Exit,
    output::{self, Printer, WIDTH, plain},
};

pub(crate) async fn status(context: &Context, args: &Status) -> anyhow::Result<Exit> {
    if args.ready {
        context.client.ready().await?;
        return Ok(Exit::Fine);
    }
    let status = context.client.status().await?;
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&status, format)?,
        Some(format @ (Format::Csv | Format::Name)) => {
            output::list(&status.pools, Some(format), context.now())?;
        }
        format => {
            let printer = Printer::new(format.unwrap_or(Format::Table), context.now());
            output::emit(&screen(&context.client, &status, printer))?;
        }
    }
    Ok(if args.check { verdict(&status) } else { Exit::Fine })
}

/// Paused is what a guard does; anything else that a person must do is an error.
fn verdict(status: &StatusOutput) -> Exit {
    let parked = status.providers.iter().any(|provider| provider.parked.is_some());
    if status.paused || parked {
        Exit::Guarded
    } else if status.state != "ready" || !status.todo.is_empty() {
        Exit::Error
    } else {
        Exit::Fine
    }
}

fn screen(client: &Client, status: &StatusOutput, mut printer: Printer) -> String {
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
    let lines = lines.into_iter().chain(status.cluster.as_ref().and_then(node).map(|node| ("Node", node)));
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<10}{}", plain(&value));
    }
    text.push('\n');
    if status.pools.is_empty() {
        text += "No pools yet. Make one: netstead pool create lan --range 10.0.3.50-10.0.3.200\n";
    } else {
        text += &printer.table(&status.pools);
    }
    for part in names(status, &mut printer) {
        text.push('\n');
        text += &part;
    }
    text += &sentences("Waiting", &status.waiting);
    text += &sentences("To do", &status.todo);
    text
}

/// A list with a title; nothing if it is empty.
fn sentences(title: &str, sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}:\n");
    for sentence in sentences {
        let lines = wrap(&plain(sentence), 4, WIDTH);
        let _ = writeln!(text, "  - {}", lines.join("\n").trim_start());
    }
    text
}

/// What the node does that was asked; nothing is said of one that is alone.
fn node(cluster: &ClusterOutput) -> Option<String> {
    let leader = match (cluster.role.as_str(), &cluster.leader) {
        ("leading", _) => "leads".to_owned(),
        (_, Some(leader)) => {
            let name = leader.name.as_deref().unwrap_or(&leader.node);
            format!("follows {name} at {}", leader.url)
        }
        (_, None) => "follows; nobody leads".to_owned(),
    };
    let alone = cluster.role == "leading" && cluster.members.len() <= 1;
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
        parts.push(printer.fresh().table(&status.sources));
    }
    if !status.providers.is_empty() {
        parts.push(printer.fresh().table(&status.providers));
    }
    parts
}
