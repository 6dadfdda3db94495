//! `--watch`: the list, then what changes in it.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use netstead_client::{Client, EventStream, Paged};
use serde::Serialize;

use super::{Context, say};
use crate::{
    cli::Format,
    failure::Failure,
    output::{self, Printer, Row},
};

/// Changes that come together are shown together.
const QUIET: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// How often things without events, such as a DNS server, are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(2);

/// Says when something happened, from a known moment on.
#[derive(Debug)]
pub(super) struct Wake {
    stream: EventStream,
    client: Client,
    /// The moment: everything up to this sequence number of this ledger is old news.
    pub(super) ledger: String,
    pub(super) seq: u64,
}

impl Wake {
    pub(super) async fn from_now(client: &Client) -> anyhow::Result<Self> {
        let status = client.status().await?;
        let stream = client.follow(Some(format!("{}:{}", status.ledger, status.seq)));
        Ok(Self { stream, client: client.clone(), ledger: status.ledger, seq: status.seq })
    }

    /// Resolves some quiet moment after something happened.
    pub(super) async fn changed(&mut self) -> anyhow::Result<()> {
        match self.stream.next().await {
            Ok(_) => {}
            Err(error) if error.is("gone") => {
                say!("the server no longer has the events in between: starting again");
                *self = Self::from_now(&self.client).await?;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let more = async { while let Ok(Ok(_)) = tokio::time::timeout(QUIET, self.stream.next()).await {} };
        let _ = tokio::time::timeout(LONGEST, more).await;
        Ok(())
    }
}

#[derive(Serialize)]
struct Changed<'a, T> {
    change: &'a str,
    object: &'a T,
}

/// Shows all of `query`, then each row that comes, changes or goes, until it is stopped.
pub(super) async fn list<Q>(context: &Context, query: &Q) -> anyhow::Result<()>
where
    Q: Paged<Item: Row + PartialEq> + Clone,
{
    let format = context.format.unwrap_or(Format::Table);
    check(format)?;
    let mut wake = Wake::from_now(&context.client).await?;
    let mut printer = Printer::new(format, context.now());
    let mut before: BTreeMap<String, Q::Item> = BTreeMap::new();
    let mut first = true;
    loop {
        let items = context.client.all(query.clone()).await?;
        let names: Vec<_> = items.iter().map(Row::identity).collect();
        let mut changes = Vec::new();
        for (name, item) in names.iter().zip(&items) {
            match before.get(name) {
                None if first => changes.push(("listed", item)),
                None => changes.push(("new", item)),
                Some(old) if old != item => changes.push(("changed", item)),
                Some(_) => {}
            }
        }
        let still: HashSet<_> = names.iter().collect();
        let gone = before.iter().filter(|(name, _)| !still.contains(name));
        changes.extend(gone.map(|(_, item)| ("gone", item)));
        printer.at(context.now());
        print(&mut printer, format, &changes, first)?;
        before = names.into_iter().zip(items).collect();
        first = false;
        if let Ok(woken) = tokio::time::timeout(LOOK, wake.changed()).await {
            woken?;
        }
    }
}

fn print<T: Row>(
    printer: &mut Printer,
    format: Format,
    changes: &[(&'static str, &T)],
    first: bool,
) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            for (change, object) in changes {
                output::emit(&(serde_json::to_string(&Changed { change, object: *object })? + "\n"))?;
            }
            Ok(())
        }
        Format::Name => {
            let text: String = changes.iter().map(|(_, item)| item.name() + "\n").collect();
            output::emit(&text)
        }
        _ => output::emit(&printer.changes(changes, first)),
    }
}

/// The newest so many, or all if that is 0; oldest first, as one reads a log.
pub(super) async fn newest<Q: Paged>(
    context: &Context,
    mut query: Q,
    most: usize,
) -> anyhow::Result<Vec<Q::Item>> {
    let mut items = Vec::new();
    loop {
        let left = if most == 0 { usize::MAX } else { most.saturating_sub(items.len()) };
        query.ask_for(u32::try_from(left.min(1000))?);
        let page = context.client.page(&query).await?;
        items.extend(page.items);
        match page.next {
            Some(next) if most == 0 || items.len() < most => query.go_on_after(next),
            _ => break,
        }
    }
    items.reverse();
    Ok(items)
}

/// Shows what came to a list that only grows.
pub(super) fn print_news<T: Row>(
    printer: &mut Printer,
    format: Format,
    items: &[T],
    first: bool,
) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            for item in items {
                output::emit(&(serde_json::to_string(item)? + "\n"))?;
            }
            Ok(())
        }
        Format::Name => output::emit(&output::names(items)),
        _ if first => output::emit(&printer.table(items)),
        _ => output::emit(&printer.more(items)),
    }
}

/// Only what can be written line by line can be watched.
pub(super) fn check(format: Format) -> anyhow::Result<()> {
    match format {
        Format::Csv | Format::Yaml => Err(Failure::new("this format cannot be watched")
            .hint("use `-o table`, `wide`, `json` or `name`")
            .into()),
        _ => Ok(()),
    }
}
