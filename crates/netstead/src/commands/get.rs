//! `netstead get …`

use netstead_client::{
    AddressQuery, ClaimQuery, Paged, PlanQuery, PoolDriftQuery, PoolQuery, ProviderQuery, RecordQuery,
    ReservationQuery, SourceQuery, WorkloadQuery, ZoneQuery,
};

use super::{Context, address_drift, changes, events, token, watch};
use crate::{
    cli::{
        Format,
        get::{Addresses, Claims, Get, OfPool, OfProvider, Pools, Records, What},
    },
    failure::Failure,
    output::{self, Row},
};

pub(crate) async fn get(context: &Context, args: &Get) -> anyhow::Result<()> {
    match &args.what {
        What::Pools(filter) => show(context, pools(filter), args.watch).await,
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
        What::Workloads(filter) => {
            let query = WorkloadQuery { source: text(filter.source.as_ref()), ..WorkloadQuery::default() };
            show(context, query, args.watch).await
        }
        What::Sources => show(context, SourceQuery::default(), args.watch).await,
        What::Providers => show(context, ProviderQuery::default(), args.watch).await,
        What::Plans => show(context, PlanQuery::default(), args.watch).await,
        What::Drift(filter) if filter.addresses => {
            output::list(&address_drift::read(context).await?, context.format, context.now())
        }
        What::Drift(filter) if filter.backends => show(context, PoolDriftQuery::default(), args.watch).await,
        What::Drift(filter) => drift(context, &filter.provider, args.watch).await,
        What::Tokens => token::list(context).await,
    }
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

/// What stands in the plans.
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
