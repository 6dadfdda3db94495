//! `netstead adopt`, `recover`, `clean` and `rollback`

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use netstead_client::{
    ProviderQuery,
    types::{
        AdoptInput, AdoptTool, CleanInput, IgnoreDriftInput, RecordType, RecoverInput, RollbackInput,
        TakeOutput, UndoOutput,
    },
};
use netstead_wire::files;

use super::{Context, address_drift, many, say};
use crate::{
    cli::{
        Format,
        adopt_and_rollback::{Adopt, Clean, Consent, Ignore, Recover, Rollback},
    },
    failure::{Exit, Failure},
    output::{self, plain},
};

/// So many lines of one kind are told.
const MOST: usize = 20;

pub(crate) async fn adopt(context: &Context, args: &Adopt) -> anyhow::Result<Exit> {
    if args.address.is_some() || args.observed {
        return address_drift::adopt(context, args).await;
    }
    let key = |path: &PathBuf| {
        let text = files::read_named_text(path, files::MOST_OF_SECRET);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let input = AdoptInput {
        name: args.name.as_ref().map(ToString::to_string),
        kind: args.kind.map(Into::into),
        from: args.from.map(|tool| AdoptTool::from(tool.to_string().as_str())),
        id: args.id.clone(),
        txt_prefix: args.txt_prefix.clone(),
        txt_suffix: args.txt_suffix.clone(),
        txt_wildcard: args.txt_wildcard.clone(),
        txt_key: args.txt_key_file.as_ref().map(key).transpose()?,
        provider: args.provider.as_ref().map(ToString::to_string),
        zone: args.zone.as_ref().map(ToString::to_string),
        object: args.object.as_ref().map(ToString::to_string),
        keep: args.keep,
        dry_run: args.dry,
    };
    let taken = context.client.adopt(&input).await?;
    if let Some(name) = args.name.as_ref().filter(|_| taken.taken.is_empty() && taken.failed.is_empty()) {
        report_left(&taken);
        let message = format!("{name} has no record that could be taken over");
        let hint = format!("`netstead explain {name}` says what is there, and why");
        return Err(Failure::new(message).hint(hint).into());
    }
    report_takeover(context, &taken, args.dry)
}

pub(crate) async fn ignore(context: &Context, args: &Ignore) -> anyhow::Result<()> {
    let (name, provider) = (args.name.to_string(), args.provider.as_ref().map(ToString::to_string));
    let drift = if let Some(reason) = &args.reason {
        let (kind, reason) = (args.kind.map(Into::into), reason.clone());
        let input = IgnoreDriftInput { name, kind, provider, reason };
        context.client.ignore_drift(&input).await?
    } else {
        let kind = args.kind.map(|kind| kind.to_string());
        context.client.report_drift_again(&name, kind.as_deref(), provider.as_deref()).await?
    };
    if args.end && drift.is_empty() {
        say!("nothing was ignored at {}", args.name);
    }
    output::list(&drift, context.format, context.now())
}

pub(crate) async fn recover(context: &Context, args: &Recover) -> anyhow::Result<Exit> {
    let provider = args.provider.as_ref().map(ToString::to_string);
    let input = RecoverInput { owner: args.owner.to_string(), provider, dry_run: args.dry };
    let taken = context.client.recover(&input).await?;
    let exit = report_takeover(context, &taken, args.dry)?;
    // A server without marks is an error, and what was recovered from the others counts nevertheless.
    let recovered = exit == Exit::Fine || !taken.passes.is_empty();
    if !args.dry && recovered && context.format.is_none() {
        say!(
            "the owner id is {} now; the first plan is parked until a person agrees: see `netstead plan`",
            args.owner
        );
    }
    Ok(exit)
}

/// Reports the values that were taken over, or would be.
fn report_takeover(context: &Context, output: &TakeOutput, dry: bool) -> anyhow::Result<Exit> {
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        output::document(output, format)?;
    } else {
        let mut text = String::new();
        for one in &output.taken {
            let by = one.by.as_ref().map(|by| format!("  from {by}")).unwrap_or_default();
            let line = format!("{}  {} {} {}{by}", one.provider, one.name, one.kind, one.value);
            let _ = writeln!(text, "{}", plain(&line));
        }
        for one in &output.objects {
            let id = one.id.as_ref().map(|id| format!("  with the id {id}")).unwrap_or_default();
            let _ = writeln!(text, "{}", plain(&format!("{}  {}{id}", one.provider, one.object)));
            let what = if one.kept { "stays" } else { "is replaced" };
            for (field, value) in &one.fields {
                let _ = writeln!(text, "{}", plain(&format!("  {field}: {value} {what}")));
            }
        }
        output::emit(&text)?;
        report_left(output);
        if let Some(after) = &output.text {
            say!("then this would be the plan:");
            after.lines().for_each(|line| say!("{line}"));
        }
        let what = if dry { "would be taken over" } else { "taken over" };
        if output.objects.is_empty() || !output.taken.is_empty() {
            say!("{} {what}", many(output.taken.len(), "value"));
        }
        if !output.objects.is_empty() {
            say!("{} {what}", many(output.objects.len(), "object"));
        }
        for pass in &output.passes {
            say!("{}: {}", pass.provider, pass.outcome);
        }
    }
    for failed in &output.failed {
        say!("error: {}: {}", failed.provider, failed.reason);
    }
    // Something was there, and none of it could be had.
    let in_vain = output.taken.is_empty() && output.objects.is_empty() && !output.left.is_empty();
    let fine = output.failed.is_empty() && output.passes.iter().all(|pass| pass.ok) && !in_vain;
    Ok(if fine { Exit::Fine } else { Exit::Error })
}

fn report_left(output: &TakeOutput) {
    for left in output.left.iter().take(MOST) {
        let value = [left.kind.as_ref().map(RecordType::as_str), left.value.as_deref()].into_iter().flatten();
        let value: Vec<&str> = value.collect();
        say!("left on {}: {} {}: {}", left.provider, left.name, value.join(" "), left.why);
    }
    if output.left.len() > MOST {
        say!("and {} more left", output.left.len() - MOST);
    }
}

pub(crate) async fn clean(context: &Context, args: &Clean) -> anyhow::Result<Exit> {
    if args.all {
        return clean_all(context, args.consent).await;
    }
    let input = CleanInput {
        source: args.source.as_ref().map(ToString::to_string),
        scope: args.scope.as_ref().map(ToString::to_string),
        provider: args.provider.as_ref().map(ToString::to_string),
        forget: args.forget,
        dry_run: true,
        expect: None,
    };
    let seen = context.client.clean(&input).await?;
    let question = match (&args.source, &args.provider) {
        (Some(source), _) if args.scope.is_some() => {
            let scope = args.scope.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("remove what scope {scope} of {source} brought?")
        }
        (Some(source), _) => format!("remove what {source} brought?"),
        (None, provider) => {
            let provider = provider.as_ref().map(ToString::to_string).unwrap_or_default();
            let what = if args.forget { "forget what is" } else { "remove everything that is" };
            format!("{what} ours on {provider}?")
        }
    };
    if !agreed(context, &seen, args.consent, &question)? {
        return Ok(Exit::Fine);
    }
    let expect = (!args.forget).then_some(seen.hash);
    let done = context.client.clean(&CleanInput { dry_run: false, expect, ..input }).await?;
    finished(context, &done)
}

/// Removes everything that is ours from every provider, after one question about all of it.
async fn clean_all(context: &Context, consent: Consent) -> anyhow::Result<Exit> {
    let mut providers = context.client.all(ProviderQuery::default()).await?;
    let detached: Vec<_> = providers.extract_if(.., |provider| provider.detached).collect();
    for one in &detached {
        say!("{} is no longer configured and is left: see `netstead clean --help`", one.name);
    }
    let (mut found, mut all_of_it) = (Vec::new(), UndoOutput::default());
    for provider in providers {
        let input = CleanInput { provider: Some(provider.name), dry_run: true, ..CleanInput::default() };
        // One that cannot be read now is shown by what it says, and the others are cleaned.
        match context.client.clean(&input).await {
            Ok(seen) if seen.changes.is_empty() && seen.objects.is_empty() => {
                all_of_it.notes.extend(seen.notes);
            }
            Ok(seen) => {
                found.push(CleanInput { dry_run: false, expect: Some(seen.hash.clone()), ..input });
                add_undone(&mut all_of_it, seen);
            }
            Err(error) => all_of_it.notes.push(error.to_string()),
        }
    }
    let unread = !all_of_it.notes.is_empty();
    if found.is_empty() {
        report_notes(&all_of_it);
        say!("nothing of ours is on any provider");
        return Ok(if unread { Exit::Error } else { Exit::Fine });
    }
    if !agreed(context, &all_of_it, consent, "remove everything that is ours on all of them?")? {
        return Ok(if unread { Exit::Error } else { Exit::Fine });
    }
    let mut done = UndoOutput::default();
    for input in found {
        match context.client.clean(&input).await {
            Ok(one) => add_undone(&mut done, one),
            Err(error) => done.notes.push(error.to_string()),
        }
    }
    let exit = finished(context, &done)?;
    Ok(if unread { Exit::Error } else { exit })
}

/// Adds what one provider had to that of others. There is no hash over all of them.
fn add_undone(all: &mut UndoOutput, one: UndoOutput) {
    all.changes.extend(one.changes);
    all.objects.extend(one.objects);
    all.passes.extend(one.passes);
    all.paused.extend(one.paused);
    all.notes.extend(one.notes);
    all.forgotten += one.forgotten;
    all.text += &one.text;
}

pub(crate) async fn rollback(context: &Context, args: &Rollback) -> anyhow::Result<Exit> {
    let provider = args.provider.as_ref().map(ToString::to_string);
    let input = RollbackInput { to: args.to, provider, dry_run: true, expect: None };
    let seen = context.client.rollback(&input).await?;
    if !agreed(context, &seen, args.consent, &format!("go back to generation {}?", args.to))? {
        return Ok(Exit::Fine);
    }
    let done =
        context.client.rollback(&RollbackInput { dry_run: false, expect: Some(seen.hash), ..input }).await?;
    finished(context, &done)
}

/// Shows what is to be done, and whether a person wants it.
fn agreed(context: &Context, seen: &UndoOutput, consent: Consent, question: &str) -> anyhow::Result<bool> {
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) if consent.dry => output::document(seen, format)?,
        Some(Format::Json | Format::Yaml) => {}
        _ => output::emit(&shown(seen))?,
    }
    report_notes(seen);
    if consent.dry {
        return Ok(false);
    }
    if consent.yes {
        return Ok(true);
    }
    let mut terminal = std::io::stderr();
    if !std::io::stdin().is_terminal() || !terminal.is_terminal() {
        let hint = "see it with `--dry-run`, then say `--yes`";
        return Err(Failure::new("this needs a person to agree").hint(hint).into());
    }
    write!(terminal, "{} type `yes`: ", plain(question))?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let agrees = answer.trim().eq_ignore_ascii_case("yes");
    if !agrees {
        say!("nothing was done");
    }
    Ok(agrees)
}

fn shown(seen: &UndoOutput) -> String {
    let mut text = String::new();
    for line in seen.text.lines() {
        let _ = writeln!(text, "{}", plain(line));
    }
    if seen.forgotten > 0 {
        let _ = writeln!(text, "{} would be forgotten; the records stay", many_of(seen.forgotten));
    }
    if text.is_empty() {
        text += "nothing of it is on any server\n";
    }
    text
}

fn finished(context: &Context, done: &UndoOutput) -> anyhow::Result<Exit> {
    if let Some(format @ (Format::Json | Format::Yaml)) = context.format {
        output::document(done, format)?;
    } else {
        for pass in &done.passes {
            say!("{}: {}", pass.provider, pass.outcome);
        }
        if done.forgotten > 0 {
            say!("{} forgotten", many_of(done.forgotten));
        }
        for provider in &done.paused {
            say!(
                "{provider} is paused: nothing is written to it until `netstead resume --provider {provider}`"
            );
        }
        report_notes(done);
    }
    let fine = done.notes.is_empty() && done.passes.iter().all(|pass| pass.ok);
    Ok(if fine { Exit::Fine } else { Exit::Error })
}

fn report_notes(output: &UndoOutput) {
    output.notes.iter().for_each(|note| say!("{note}"));
}

fn many_of(values: u64) -> String {
    many(usize::try_from(values).unwrap_or(usize::MAX), "value")
}
