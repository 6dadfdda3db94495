//! `netstead get events`, `netstead history`, `netstead events watch` and `netstead events export`

use std::io::{BufWriter, Write as _};

use anyhow::Context as _;
use netstead_client::{EventQuery, StreamedEvent, types::ListOrder};
use netstead_model::{Address, Cidr};

use super::{
    Context, say,
    watch::{Wake, check, newest, print_news},
};
use crate::{
    cli::{
        Format,
        admin::Export,
        get::{Events, History, Period},
    },
    output::{self, Printer},
    progress::Progress,
};

pub(crate) async fn get(context: &Context, args: &Events, watched: bool) -> anyhow::Result<()> {
    let query = EventQuery {
        address: args.address.as_ref().map(|address| address.0.clone()),
        key: args.of_key.key.as_ref().map(ToString::to_string),
        pool: args.of_pool.pool.as_ref().map(ToString::to_string),
        what: args.what.clone(),
        ..within(context, &args.newest.period)
    };
    if watched {
        return watch(context, query, args.newest.limit).await;
    }
    let events = newest(context, query, args.newest.limit).await?;
    output::list(&events, context.format, context.now())
}

pub(crate) async fn history(context: &Context, args: &History) -> anyhow::Result<()> {
    let prefix = args.of.parse::<Cidr>().map(|prefix| prefix.to_string()).ok();
    let address = args.of.parse::<Address>().map(|address| address.to_string()).ok();
    let address = prefix.or(address).filter(|_| !args.key);
    let query = EventQuery {
        key: address.is_none().then(|| args.of.clone()),
        address,
        pool: args.pool.as_ref().map(ToString::to_string),
        ..within(context, &args.period)
    };
    let events = newest(context, query, args.limit).await?;
    if events.is_empty() && context.format.is_none() {
        say!("nothing is known to have happened to {}", args.of);
        return Ok(());
    }
    output::list(&events, context.format, context.now())
}

fn within(context: &Context, period: &Period) -> EventQuery {
    let resolve = |moment: crate::cli::get::Moment| moment.resolve(&*context.clock);
    EventQuery { since: period.since.map(resolve), until: period.until.map(resolve), ..EventQuery::default() }
}

async fn watch(context: &Context, query: EventQuery, most: usize) -> anyhow::Result<()> {
    let format = context.format.unwrap_or(Format::Table);
    check(format)?;
    let mut wake = Wake::from_now(&context.client).await?;
    let mut printer = Printer::new(format, context.now());
    let listed = newest(context, query.clone(), most).await?;
    let mut seen = listed.last().map_or(0, |event| event.seq).max(wake.seq);
    print_news(&mut printer, format, &listed, true)?;
    loop {
        wake.changed().await?;
        // The server filters; the stream only says when to ask.
        let after = Some(format!("{}:{seen}", wake.ledger));
        let news = EventQuery { after, order: Some(ListOrder::Oldest), since: None, ..query.clone() };
        let events = context.client.all(news).await?;
        seen = events.last().map_or(seen, |event| event.seq);
        print_news(&mut printer, format, &events, false)?;
    }
}

/// Events of the ledger and of the engine, as they happen.
pub(crate) async fn stream(context: &Context) -> anyhow::Result<()> {
    let format = context.format.unwrap_or(Format::Table);
    check(format)?;
    let status = context.client.status().await?;
    let after = Some(format!("{}:{}", status.ledger, status.seq));
    let mut stream = context.client.follow(after).with_engine();
    let mut printer = Printer::new(format, context.now());
    print_news::<StreamedEvent>(&mut printer, format, &[], true)?;
    loop {
        let event = stream.next().await?.event;
        printer.at(context.now());
        print_news(&mut printer, format, &[event], false)?;
    }
}

/// All events as JSON lines; ends by telling the cursor from which the next export goes on.
pub(crate) async fn export(context: &Context, args: &Export) -> anyhow::Result<()> {
    let mut query = EventQuery {
        pool: args.pool.as_ref().map(ToString::to_string),
        after: args.after.clone(),
        order: Some(ListOrder::Oldest),
        limit: Some(1000),
        ..within(context, &args.period)
    };
    let ledger = context.client.status().await?.ledger;
    let progress = Progress::things("exported");
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (mut count, mut last) = (0, None);
    loop {
        let page = context.client.page(&query).await?;
        for event in &page.items {
            serde_json::to_writer(&mut out, event)
                .map_err(std::io::Error::from)
                .context("cannot write to stdout")?;
            out.write_all(b"\n").context("cannot write to stdout")?;
            last = Some(event.seq);
        }
        count += page.items.len();
        progress.at(count);
        if page.next.is_none() {
            break;
        }
        query.after = page.next;
    }
    out.flush().context("cannot write to stdout")?;
    progress.clear();
    match last {
        Some(seq) => say!("{count} events; go on later with --after {ledger}:{seq}"),
        None => say!("no events"),
    }
    Ok(())
}
