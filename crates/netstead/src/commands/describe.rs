//! `netstead describe`

use std::fmt::Write as _;

use netstead_client::{EventQuery, WorkloadQuery};
use serde::Serialize;
use serde_json::Value;

use super::{Context, explain, get, watch::newest};
use crate::{
    cli::{
        Format,
        get::{Describe, Explain},
    },
    failure::Failure,
    output::{self, Printer, Row, plain, style},
};

/// So many events are shown with a thing.
const MOST_EVENTS: usize = 10;
/// Kinds of things, as they are typed.
const KINDS: [&str; 5] = ["pool", "claim", "provider", "source", "workload"];

pub(crate) async fn describe(context: &Context, args: &Describe) -> anyhow::Result<()> {
    let Some(name) = &args.second else { return explained(context, &args.first).await };
    // `pools` is typed as often as `pool`.
    match args.first.strip_suffix('s').unwrap_or(&args.first) {
        "pool" => {
            let pool = get::one_pool(context, name).await?;
            let query = EventQuery { pool: Some(pool.name.clone()), ..EventQuery::default() };
            shown(context, &pool, Some(query)).await
        }
        "claim" => {
            for claim in get::one_claim(context, name).await? {
                let (pool, key) = (Some(claim.pool.clone()), Some(claim.key.clone()));
                let query = EventQuery { pool, key, ..EventQuery::default() };
                shown(context, &claim, Some(query)).await?;
            }
            Ok(())
        }
        "provider" => shown(context, &get::one_provider(context, name).await?, None).await,
        "source" => shown(context, &get::one_source(context, name).await?, None).await,
        "workload" => {
            let all = context.client.all(WorkloadQuery::default()).await?;
            let called: Vec<_> = all.iter().filter(|one| one.name == *name).cloned().collect();
            if called.is_empty() {
                return shown(context, &get::only(all, "workload", name)?, None).await;
            }
            for workload in called {
                shown(context, &workload, None).await?;
            }
            Ok(())
        }
        // A name or an address has no kind before it, or one that says so.
        "address" | "addresse" | "record" | "name" => explained(context, name).await,
        other => {
            let message = format!("there is no kind `{other}` to describe");
            Err(Failure::new(message).hint(format!("write one of {}", KINDS.join(", "))).into())
        }
    }
}

async fn explained(context: &Context, of: &str) -> anyhow::Result<()> {
    let of = of.parse().map_err(|error| {
        let hint = format!("write `netstead describe KIND NAME`, with one of {}", KINDS.join(", "));
        Failure::new(format!("`{of}` is neither an address nor a name: {error}")).hint(hint)
    })?;
    explain::explain(context, &Explain { of }).await
}

async fn shown<T: Row>(context: &Context, thing: &T, events: Option<EventQuery>) -> anyhow::Result<()> {
    match context.format {
        None | Some(Format::Table | Format::Wide) => {}
        Some(format) => return output::one(thing, format, context.now()),
    }
    let mut text = described(thing)?;
    if let Some(query) = events {
        let events = newest(context, query, MOST_EVENTS).await?;
        if !events.is_empty() {
            let table = Printer::new(Format::Table, context.now()).table(&events);
            let _ = write!(text, "\n{}\n{table}", style::title("What happened last:"));
        }
    }
    style::emit(&text)
}

/// All that is known of a thing, a line for each.
fn described<T: Serialize>(thing: &T) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    fields("", &serde_json::to_value(thing)?, &mut lines);
    let wide = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default() + 2;
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:<wide$}{}", plain(&value));
    }
    Ok(text)
}

/// Adds the fields of `value`, those of inner objects with both names. What is empty is left out.
fn fields(name: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    let simple = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Null => {}
        Value::Object(inner) => {
            for (key, value) in inner {
                let key = key.replace('_', " ");
                let name = if name.is_empty() { key } else { format!("{name} {key}") };
                fields(&name, value, lines);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, item) in (1..).zip(items) {
                fields(&format!("{name} {number}"), item, lines);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(simple).collect();
            // Sentences stand below each other.
            if items.iter().any(|item| item.contains(' ')) {
                lines.extend(items.into_iter().map(|item| (name.to_owned(), item)));
            } else {
                lines.push((name.to_owned(), items.join(" ")));
            }
        }
        Value::String(text) if text.is_empty() => {}
        other => lines.push((name.to_owned(), simple(other))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_has_a_line_and_what_is_empty_has_none() {
        let thing = json!({
            "name": "lan", "ranges": ["10.0.3.50-10.0.3.99", "10.0.4.1"], "usage": {"size": "51", "free": "50"},
            "why_not": ["no default route", "it has no name"], "labels": {}, "note": null, "empty": "",
            "parts": [{"id": 1}, {"id": 2}],
        });
        insta::assert_snapshot!(described(&thing).unwrap(), @r"
        name        lan
        parts 1 id  1
        parts 2 id  2
        ranges      10.0.3.50-10.0.3.99 10.0.4.1
        usage free  50
        usage size  51
        why not     no default route
        why not     it has no name
        ");
    }
}
