//! `netstead plan`

use std::{fmt::Write as _, io::IsTerminal as _, path::Path};

use anyhow::Context as _;
use netstead_client::{
    PlanQuery, ProviderQuery,
    types::{PlanOutput, WhatIfInput},
};
use netstead_model::Ident;
use netstead_plan::Case;
use netstead_wire::files;

use super::{Context, say};
use crate::{
    cli::{Format, Global, dns::Plan},
    failure::{AlreadyReported, Exit, Failure, print_error},
    output::{self, plain, style},
};

pub(crate) async fn plan(context: &Context, global: &Global, args: &Plan) -> anyhow::Result<Exit> {
    let typed = global.config.as_deref().filter(|_| global.config_typed);
    match (typed, &args.save) {
        (Some(_), Some(_)) => {
            let message = "--config and --save do not go together";
            Err(Failure::new(message).hint("put the file in force on a test server, and save there").into())
        }
        (Some(file), None) => what_if(context, file, args).await,
        (None, Some(file)) => save(context, file, args.provider.as_ref()).await,
        (None, None) => {
            // A person at a terminal is shown all that there is to agree to.
            let full = args.all || (context.format.is_none() && std::io::stdout().is_terminal());
            let plans = if let Some(provider) = &args.provider {
                plans_of(context, provider.as_str(), full).await?
            } else {
                let query = PlanQuery { all: full.then_some(true), ..PlanQuery::default() };
                context.client.all(query).await?
            };
            show(context, &plans)?;
            Ok(verdict(&plans))
        }
    }
}

/// The plan of a provider, or the plans of all servers of a group.
async fn plans_of(context: &Context, name: &str, full: bool) -> anyhow::Result<Vec<PlanOutput>> {
    let providers = context.client.all(ProviderQuery::default()).await?;
    let of_group = providers.iter().filter(|one| one.group.as_deref() == Some(name));
    let mut names: Vec<&str> = of_group.map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        names.push(name);
    }
    let mut plans = Vec::with_capacity(names.len());
    for name in names {
        let plan =
            if full { context.client.full_plan(name).await? } else { context.client.plan(name).await? };
        plans.push(plan);
    }
    Ok(plans)
}

/// Shows what a file would change, as the running server sees it.
async fn what_if(context: &Context, file: &Path, args: &Plan) -> anyhow::Result<Exit> {
    let config = files::read_named_text(file, files::MOST_OF_CONFIG)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let name = Some(file.display().to_string());
    let mut answer = context.client.what_if(&WhatIfInput { config, name }).await?;
    for problem in &answer.problems {
        print_error(&format!("{}: {}", problem.at, problem.message), problem.hint.as_deref());
    }
    if !answer.problems.is_empty() {
        return Err(AlreadyReported.into());
    }
    if let Some(provider) = &args.provider {
        answer.plans.retain(|plan| plan.provider == provider.as_str());
        if answer.plans.is_empty() {
            let message = format!("{} has no provider `{provider}`", file.display());
            return Err(Failure::new(message).into());
        }
    }
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&answer, format)?,
        _ => show(context, &answer.plans)?,
    }
    for note in &answer.notes {
        say!("{note}");
    }
    Ok(verdict(&answer.plans))
}

/// Writes a case for the tests of planning.
async fn save(context: &Context, file: &Path, provider: Option<&Ident>) -> anyhow::Result<Exit> {
    let provider = match provider {
        Some(provider) => provider.to_string(),
        None => only_provider(context).await?,
    };
    let case: Case = serde_json::from_value(context.client.case(&provider).await?)
        .context("the server gave a case that cannot be read; are both of one version?")?;
    let text = serde_json::to_string_pretty(&case)? + "\n";
    if file == Path::new("-") {
        output::emit(&text)?;
    } else {
        write_new(file, &text)?;
        say!("{} has what the plan of {provider} is made of; labels and tags are left out", file.display());
        output::emit(&(case.expect.join("\n") + "\n"))?;
    }
    let plan = case.plan();
    Ok(match (&plan.parked, plan.steps.is_empty()) {
        (Some(_), _) => Exit::Guarded,
        (None, false) => Exit::Pending,
        (None, true) => Exit::Fine,
    })
}

fn write_new(file: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let opened = files::private().write(true).create_new(true).open(file);
    let mut opened = opened.with_context(|| format!("cannot write {}", file.display()))?;
    opened.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))
}

fn show(context: &Context, plans: &[PlanOutput]) -> anyhow::Result<()> {
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => output::document(&plans, format),
        Some(format) => output::list(plans, Some(format), context.now()),
        None => style::emit_paged(&render_plans(plans)),
    }
}

pub(super) fn render_plans(plans: &[PlanOutput]) -> String {
    let mut text = String::new();
    for plan in plans {
        for line in plan.text.lines() {
            let line = plain(line);
            let line = if line.starts_with(' ') { line } else { style::fitted(&line, 0) };
            let _ = writeln!(text, "{}", style::plan_line(&line));
        }
    }
    if plans.is_empty() {
        text += "no provider has made a plan yet\n";
    }
    text
}

/// A server that cannot be read weighs most, because its changes are not known; then what a guard holds back; then what happens
/// by itself, or when a pause ends.
fn verdict(plans: &[PlanOutput]) -> Exit {
    if plans.iter().any(|plan| plan.error.is_some()) {
        Exit::Error
    } else if plans.iter().any(|plan| plan.parked.is_some()) {
        Exit::Guarded
    } else if plans.iter().any(|plan| !plan.changes.is_empty() || has_object_changes(plan)) {
        Exit::Pending
    } else {
        Exit::Fine
    }
}

fn has_object_changes(plan: &PlanOutput) -> bool {
    plan.objects.as_ref().is_some_and(|objects| !objects.changes.is_empty())
}

/// The one provider that has a plan.
async fn only_provider(context: &Context) -> anyhow::Result<String> {
    let plans = context.client.all(PlanQuery::default()).await?;
    if let [plan] = plans.as_slice() {
        return Ok(plan.provider.clone());
    }
    let names: Vec<_> = plans.iter().map(|plan| plan.provider.as_str()).collect();
    let hint = format!("write `netstead plan PROVIDER --save …`, with one of {}", names.join(", "));
    Err(Failure::new("a case is of one provider").hint(hint).into())
}
