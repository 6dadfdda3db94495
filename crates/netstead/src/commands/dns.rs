//! `netstead apply`, `record`, `pause`, `resume` and `export`

use std::fmt::Write as _;

use netstead_client::{
    RecordQuery,
    types::{ApplyOutput, PauseInput, RecordInput, RecordOutput, RecordState, ResumeInput},
};

use super::{Context, say};
use crate::{
    cli::{
        Format,
        dns::{Apply, Export, Pause, Record, Resume, Scope},
    },
    failure::{Exit, Failure, print_warning},
    output::{self, plain},
};

pub(crate) async fn apply(context: &Context, args: &Apply) -> anyhow::Result<Exit> {
    let done = match &args.hash {
        Some(hash) => context.client.approve(hash).await?,
        None => context.client.apply(args.provider.as_ref().map(ToString::to_string)).await?,
    };
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&done, format)?,
        _ => report(&done),
    }
    Ok(if done.passes.iter().any(|pass| !pass.ok) {
        Exit::Error
    } else if done.passes.iter().any(|pass| pass.paused) {
        Exit::Guarded
    } else {
        Exit::Fine
    })
}

fn report(done: &ApplyOutput) {
    for pass in &done.passes {
        say!("{}: {}", pass.provider, pass.outcome);
    }
}

pub(crate) async fn record(context: &Context, args: &Record) -> anyhow::Result<()> {
    match args {
        Record::Set(args) => {
            let record = RecordInput { values: args.values.clone(), ttl: args.ttl };
            let set = context.client.set_record(args.name.as_str(), args.kind.as_str(), &record).await?;
            match context.format {
                Some(format @ (Format::Json | Format::Yaml)) => output::document(&set, format)?,
                _ => say!("{} {} is {}", set.name, set.kind, set.values.join(", ")),
            }
            for warning in &set.warnings {
                print_warning(&plain(warning), None);
            }
        }
        Record::Delete(args) => {
            let kind = args.kind.map(netstead_model::RecordType::as_str);
            if context.client.delete_record(args.name.as_str(), kind).await? {
                say!("{} is deleted", args.name);
            } else {
                let what = kind.map(|kind| format!(" {kind}")).unwrap_or_default();
                let message = format!("no{what} record was set by hand at {}", args.name);
                let hint = format!("`netstead explain {}` says what is there, and why", args.name);
                return Err(Failure::new(message).hint(hint).into());
            }
        }
    }
    Ok(())
}

pub(crate) async fn pause(context: &Context, args: &Pause) -> anyhow::Result<()> {
    let pause = PauseInput {
        all: args.scope.provider.is_none() && args.scope.backend.is_none(),
        backend: args.scope.backend.as_ref().map(ToString::to_string),
        provider: args.scope.provider.as_ref().map(ToString::to_string),
        zone: args.scope.zone.as_ref().map(ToString::to_string),
        span: args.span.map(|span| span.to_string()),
        reason: args.reason.clone(),
    };
    context.client.pause(&pause).await?;
    if let Some(backend) = &args.scope.backend {
        say!(
            "nothing is asked of backend {backend} until `netstead resume --backend {backend}`; claims in its pools wait"
        );
        return Ok(());
    }
    let what = if args.scope.provider.is_none() { "any DNS server".to_owned() } else { named(&args.scope) };
    match args.span {
        Some(span) => say!("nothing is written to {what} for {span}, unless `netstead resume` comes first"),
        None => say!("nothing is written to {what} until `netstead resume`"),
    }
    Ok(())
}

pub(crate) async fn resume(context: &Context, args: &Resume) -> anyhow::Result<()> {
    let resume = ResumeInput {
        provider: args.scope.provider.as_ref().map(ToString::to_string),
        zone: args.scope.zone.as_ref().map(ToString::to_string),
        backend: args.scope.backend.as_ref().map(ToString::to_string),
    };
    context.client.resume(&resume).await?;
    if let Some(backend) = &args.scope.backend {
        say!("backend {backend} is asked again");
        return Ok(());
    }
    if args.scope.provider.is_none() {
        say!("the ledger hands out addresses, and {} is kept in line again", named(&args.scope));
    } else {
        say!("{} is kept in line again", named(&args.scope));
    }
    Ok(())
}

fn named(scope: &Scope) -> String {
    match (&scope.provider, &scope.zone) {
        (Some(provider), Some(zone)) => format!("{zone} on {provider}"),
        (Some(provider), None) => provider.to_string(),
        (None, _) => "every DNS server".to_owned(),
    }
}

pub(crate) async fn export(context: &Context, args: &Export) -> anyhow::Result<()> {
    let query = RecordQuery {
        zone: args.zone.as_ref().map(ToString::to_string),
        provider: args.provider.as_ref().map(ToString::to_string),
        ..RecordQuery::default()
    };
    let mut records = context.client.all(query).await?;
    records.retain(|record| !matches!(record.state, RecordState::Foreign | RecordState::Blocked));
    records.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    output::emit(&zonefile(&records))
}

fn sort_key(record: &RecordOutput) -> (&str, &str, &str, &str, &str) {
    (&record.provider, &record.zone, &record.name, record.kind.as_str(), &record.value)
}

/// SOA and NS are the server's own and not among them.
fn zonefile(records: &[RecordOutput]) -> String {
    let mut text = String::new();
    let mut last = None;
    for record in records {
        let zone = (&record.provider, &record.zone);
        if last != Some(zone) {
            let _ = writeln!(text, "; zone {} on {}", plain(&record.zone), plain(&record.provider));
            last = Some(zone);
        }
        let RecordOutput { name, ttl, kind, value, .. } = record;
        let _ = writeln!(text, "{}", plain(&format!("{name}. {ttl} IN {kind} {value}")));
    }
    text
}
