//! `netstead get …`

use std::fmt::Write as _;

use netstead_client::{
    AddressQuery, ClaimQuery, IgnoredDriftQuery, Paged, PlanQuery, PoolDriftQuery, PoolQuery, ProviderQuery,
    RecordQuery, ReservationQuery, SourceQuery, WorkloadQuery, ZoneQuery,
    types::{ClaimOutput, PoolOutput, ProviderOutput, SourceOutput, WorkloadOutput},
};
use netstead_model::Ident;
use netstead_plan::wrap;

use super::{Context, address_drift, changes, events, token, watch};
use crate::{
    cli::{
        Format,
        get::{Addresses, Claims, Get, OfPool, OfProvider, OneOf, Pools, Records, What, Workloads},
    },
    failure::Failure,
    output::{self, Row, WIDTH, plain},
};

/// So many names are listed in an error.
const MOST_NAMED: usize = 10;

pub(crate) async fn get(context: &Context, args: &Get) -> anyhow::Result<()> {
    match &args.what {
        What::Pools(Pools { name: Some(name), usage: true, .. }) => {
            refuse_watch(args.watch)?;
            pool_usage(context, name.as_str()).await
        }
        What::Pools(Pools { name: Some(name), .. }) => {
            refuse_watch(args.watch)?;
            one(context, &one_pool(context, name.as_str()).await?)
        }
        What::Pools(filter) => show(context, pools(filter), args.watch).await,
        What::Claims(Claims { name: Some(name), .. }) => {
            refuse_watch(args.watch)?;
            match one_claim(context, name.as_str()).await?.as_slice() {
                [claim] => one(context, claim),
                claims => output::list(claims, context.format, context.now()),
            }
        }
        What::Claims(filter) => show(context, claims(filter), args.watch).await,
        What::Addresses(filter) => show(context, addresses(filter), args.watch).await,
        What::Reservations(filter) => show(context, reservations(filter), args.watch).await,
        What::Events(filter) => events::get(context, filter, args.watch).await,
        What::Changes(filter) => changes::get(context, filter, args.watch).await,
        What::Records(filter) => show(context, records(filter), args.watch).await,
        What::Zones(filter) => {
            let query = ZoneQuery { provider: text(filter.provider.as_ref()), ..ZoneQuery::default() };
            show(context, query, args.watch).await
        }
        What::Workloads(filter) => workloads(context, filter, args.watch).await,
        What::Sources(OneOf { name: Some(name) }) => {
            refuse_watch(args.watch)?;
            one(context, &one_source(context, name).await?)
        }
        What::Sources(_) => show(context, SourceQuery::default(), args.watch).await,
        What::Providers(OneOf { name: Some(name) }) => {
            refuse_watch(args.watch)?;
            one(context, &one_provider(context, name).await?)
        }
        What::Providers(_) => show(context, ProviderQuery::default(), args.watch).await,
        What::Plans => show(context, PlanQuery::default(), args.watch).await,
        What::Drift(filter) if filter.ignored => {
            show(context, IgnoredDriftQuery::default(), args.watch).await
        }
        What::Drift(filter) if filter.addresses => {
            output::list(&address_drift::read(context).await?, context.format, context.now())
        }
        What::Drift(filter) if filter.backends => show(context, PoolDriftQuery::default(), args.watch).await,
        What::Drift(filter) => drift(context, &filter.provider, args.watch).await,
        What::Tokens => token::list(context).await,
    }
}

fn refuse_watch(watched: bool) -> anyhow::Result<()> {
    if !watched {
        return Ok(());
    }
    Err(Failure::new("a single thing cannot be watched").hint("watch the list").into())
}

/// One thing: a row of a table, or an object.
fn one<T: Row>(context: &Context, item: &T) -> anyhow::Result<()> {
    output::one(item, context.format.unwrap_or(Format::Table), context.now())
}

pub(super) async fn one_pool(context: &Context, name: &str) -> anyhow::Result<PoolOutput> {
    Ok(context.client.pool(name).await?.value)
}

/// How full a pool was: a line for each day, or everything as a document.
async fn pool_usage(context: &Context, name: &str) -> anyhow::Result<()> {
    let history = context.client.pool_history(name).await?;
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) => return output::document(&history, format),
        Some(Format::Csv | Format::Name) => {}
        None | Some(Format::Table | Format::Wide) => {
            let forecast = history.forecast.as_ref();
            let said = forecast.map(|forecast| format!("{name} grows: {}", forecast.sentence()));
            output::list(&history.days, context.format, context.now())?;
            return said.map_or(Ok(()), |said| output::emit(&format!("\n{said}\n")));
        }
    }
    output::list(&history.days, context.format, context.now())
}

/// The claim `POOL/KEY`, or all claims of a key.
pub(super) async fn one_claim(context: &Context, name: &str) -> anyhow::Result<Vec<ClaimOutput>> {
    // A key may have a `/` in it too: what is before the first is a pool, or it is not.
    if let Some((pool, key)) = name.split_once('/')
        && pool.parse::<Ident>().is_ok()
        && let Some(claim) = context.client.look_up(pool, key).await?
    {
        return Ok(vec![claim]);
    }
    let query = ClaimQuery { key: Some(name.to_owned()), ..ClaimQuery::default() };
    let claims = context.client.all(query).await?;
    if claims.is_empty() {
        let message = format!("there is no claim `{name}`");
        let hint = "write POOL/KEY; `netstead get claims` lists all, and `netstead history` those that ended";
        return Err(Failure::new(message).hint(hint).into());
    }
    Ok(claims)
}

pub(super) async fn one_source(context: &Context, name: &str) -> anyhow::Result<SourceOutput> {
    only(context.client.all(SourceQuery::default()).await?, "source", name)
}

pub(super) async fn one_provider(context: &Context, name: &str) -> anyhow::Result<ProviderOutput> {
    only(context.client.all(ProviderQuery::default()).await?, "provider", name)
}

/// The one of this name; an error lists the others.
pub(super) fn only<T: Row>(items: Vec<T>, what: &str, name: &str) -> anyhow::Result<T> {
    let names: Vec<String> = items.iter().take(MOST_NAMED).map(Row::name).collect();
    items.into_iter().find(|item| item.name() == name).ok_or_else(|| {
        let message = format!("there is no {what} `{name}`");
        let hint = match names.as_slice() {
            [] => format!("there is none yet; `netstead get {what}s` lists them"),
            names => format!("there is {}", names.join(", ")),
        };
        Failure::new(message).hint(hint).into()
    })
}

async fn show<Q>(context: &Context, query: Q, watched: bool) -> anyhow::Result<()>
where
    Q: Paged<Item: Row + PartialEq> + Clone,
{
    if watched {
        return watch::list(context, &query).await;
    }
    output::list(&context.client.all(query).await?, context.format, context.now())
}

/// Workloads; those with problems as a table of sentences, where people read it.
async fn workloads(context: &Context, filter: &Workloads, watched: bool) -> anyhow::Result<()> {
    let query = WorkloadQuery {
        source: text(filter.source.as_ref()),
        problems: filter.problems.then_some(true),
        ..WorkloadQuery::default()
    };
    let table = matches!(context.format, None | Some(Format::Table | Format::Wide));
    if !filter.problems || watched || !table {
        return show(context, query, watched).await;
    }
    output::emit(&render_problems(&context.client.all(query).await?))
}

fn render_problems(workloads: &[WorkloadOutput]) -> String {
    if workloads.is_empty() {
        return "everything that asks for a name has it\n".to_owned();
    }
    let mut text = String::new();
    for WorkloadOutput { source, id, name, problems, .. } in workloads {
        let _ = writeln!(text, "{}", plain(&format!("{source}/{id}  {name}")));
        for problem in problems {
            let lines = wrap(&plain(&format!("{problem}.")), 4, WIDTH).join("\n");
            let _ = writeln!(text, "  - {}", lines.trim_start());
        }
    }
    text
}

/// Drift as the plans have it.
async fn drift(context: &Context, filter: &OfProvider, watched: bool) -> anyhow::Result<()> {
    if watched {
        return Err(Failure::new("drift cannot be watched")
            .hint("watch `netstead get records --state drift`")
            .into());
    }
    let plans = match &filter.provider {
        Some(provider) => vec![context.client.plan(provider.as_str()).await?],
        None => context.client.all(PlanQuery::default()).await?,
    };
    let objects: Vec<_> =
        plans.iter().filter_map(|plan| plan.objects.clone()).flat_map(|plan| plan.drift).collect();
    let drift: Vec<_> = plans.into_iter().flat_map(|plan| plan.drift).collect();
    // Addresses are of no provider.
    let addresses =
        if filter.provider.is_none() { address_drift::read_if_allowed(context).await? } else { Vec::new() };
    match context.format {
        Some(format @ (Format::Json | Format::Yaml)) if !objects.is_empty() || !addresses.is_empty() => {
            let all: Result<Vec<_>, _> = (drift.iter().map(serde_json::to_value))
                .chain(objects.iter().map(serde_json::to_value))
                .chain(addresses.iter().map(serde_json::to_value))
                .collect();
            output::document(&all?, format)
        }
        format => {
            if !drift.is_empty() || (objects.is_empty() && addresses.is_empty()) {
                output::list(&drift, format, context.now())?;
            }
            if !addresses.is_empty() {
                output::list(&addresses, format, context.now())?;
            }
            if !objects.is_empty() {
                output::list(&objects, format, context.now())?;
            }
            Ok(())
        }
    }
}

fn text<T: ToString>(value: Option<&T>) -> Option<String> {
    value.map(ToString::to_string)
}

fn pools(filter: &Pools) -> PoolQuery {
    PoolQuery {
        selector: text(filter.labelled.selector.as_ref()),
        vrf: text(filter.of_vrf.vrf.as_ref()),
        ..PoolQuery::default()
    }
}

fn claims(filter: &Claims) -> ClaimQuery {
    ClaimQuery {
        pool: text(filter.of_pool.pool.as_ref()),
        owner: filter.owner.clone(),
        key: text(filter.of_key.key.as_ref()),
        selector: text(filter.labelled.selector.as_ref()),
        vrf: text(filter.of_vrf.vrf.as_ref()),
        ..ClaimQuery::default()
    }
}

fn addresses(filter: &Addresses) -> AddressQuery {
    AddressQuery {
        pool: text(filter.of_pool.pool.as_ref()),
        vrf: text(filter.of_vrf.vrf.as_ref()),
        state: filter.state.clone(),
        within: text(filter.within.as_ref()),
        ..AddressQuery::default()
    }
}

fn reservations(filter: &OfPool) -> ReservationQuery {
    ReservationQuery { pool: text(filter.pool.as_ref()), ..ReservationQuery::default() }
}

fn records(filter: &Records) -> RecordQuery {
    RecordQuery {
        zone: text(filter.at.zone.as_ref()),
        name: text(filter.at.name.as_ref()),
        provider: text(filter.of_provider.provider.as_ref()),
        state: filter.state.map(Into::into),
        ..RecordQuery::default()
    }
}
