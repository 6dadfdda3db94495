//! `netstead get changes`

use netstead_client::{ChangeQuery, types::ListOrder};
use tokio::time::sleep;

use super::{
    Context,
    watch::{LOOK, check, newest, print_news},
};
use crate::{
    cli::{
        Format,
        get::{Changes, Moment},
    },
    output::{self, Printer},
};

pub(crate) async fn get(context: &Context, args: &Changes, watched: bool) -> anyhow::Result<()> {
    let resolve = |moment: Moment| moment.resolve(&*context.clock);
    let query = ChangeQuery {
        provider: args.of_provider.provider.as_ref().map(ToString::to_string),
        zone: args.at.zone.as_ref().map(ToString::to_string),
        name: args.at.name.as_ref().map(ToString::to_string),
        what: args.what.clone(),
        since: args.newest.period.since.map(resolve),
        until: args.newest.period.until.map(resolve),
        ..ChangeQuery::default()
    };
    if watched {
        return watch(context, query, args.newest.limit).await;
    }
    let changes = newest(context, query, args.newest.limit).await?;
    output::list(&changes, context.format, context.now())
}

async fn watch(context: &Context, query: ChangeQuery, most: usize) -> anyhow::Result<()> {
    let format = context.format.unwrap_or(Format::Table);
    check(format)?;
    let ledger = context.client.status().await?.ledger;
    let mut printer = Printer::new(format, context.now());
    let listed = newest(context, query.clone(), most).await?;
    print_news(&mut printer, format, &listed, true)?;
    let mut last = listed.last().map(|change| change.id.clone());
    loop {
        sleep(LOOK).await;
        let after = last.as_ref().map(|id| format!("{ledger}:{id}"));
        let news = ChangeQuery { after, order: Some(ListOrder::Oldest), ..query.clone() };
        let changes = context.client.all(news).await?;
        last = changes.last().map(|change| change.id.clone()).or(last);
        print_news(&mut printer, format, &changes, false)?;
    }
}
