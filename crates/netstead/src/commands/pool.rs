//! `netstead pool create|update|delete`

use netstead_client::{
    Change,
    types::{PoolInput, PoolOutput},
};
use netstead_model::Range;

use super::{Context, say};
use crate::{
    cli::pool::{Create, Delete, Extent, Pool, Settings, Update},
    failure::Failure,
    output,
};

pub(crate) async fn pool(context: &Context, command: &Pool) -> anyhow::Result<()> {
    match command {
        Pool::Create(args) => create(context, args).await,
        Pool::Update(args) => update(context, args).await,
        Pool::Delete(args) => delete(context, args).await,
    }
}

async fn create(context: &Context, args: &Create) -> anyhow::Result<()> {
    let mut input = PoolInput { vrf: args.vrf.as_ref().map(ToString::to_string), ..PoolInput::default() };
    set_extent(&mut input, &args.extent);
    set_settings(&mut input, &args.settings);
    if input.network.is_none() && input.ranges.is_empty() {
        let hint = "give `--range 10.0.3.50-10.0.3.200`, `--network 10.0.3.0/24` or `--prefix fd00:2::/48`";
        return Err(Failure::new(format!("pool `{}` names no address", args.name)).hint(hint).into());
    }
    let (pool, change) = context.client.create_pool(args.name.as_str(), &input).await?;
    let what = if change == Change::Created { "created" } else { "is there already" };
    told(context, &pool, what)
}

async fn update(context: &Context, args: &Update) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let mut tries = 2;
    let pool = loop {
        let now = context.client.pool(name).await?;
        let etag = now.etag.ok_or_else(|| Failure::new("the server sent no version of the pool"))?;
        let input = merged(&now.value, args);
        tries -= 1;
        match context.client.replace_pool(name, &input, &etag).await {
            // Somebody changed it between our look and our change: look again, once.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 412) && tries > 0 => {}
            answer => break answer?,
        }
    };
    told(context, &pool, "updated")
}

async fn delete(context: &Context, args: &Delete) -> anyhow::Result<()> {
    let released = context.client.delete_pool(args.name.as_str(), args.force.as_deref()).await?;
    match released {
        0 => say!("pool {} deleted", args.name),
        1 => say!("pool {} deleted, 1 claim released", args.name),
        n => say!("pool {} deleted, {n} claims released", args.name),
    }
    Ok(())
}

fn told(context: &Context, pool: &PoolOutput, what: &str) -> anyhow::Result<()> {
    say!("pool {} {what}: {}", pool.name, size(pool));
    context.format.map_or(Ok(()), |format| output::one(pool, format, context.now()))
}

/// `151 addresses`, `65536 prefixes of /64`.
fn size(pool: &PoolOutput) -> String {
    let Ok(size) = pool.usage.size.parse::<u128>() else { return pool.usage.size.clone() };
    let v6 = pool.network.iter().chain(&pool.ranges).any(|text| text.contains(':'));
    let bits: u32 = if v6 { 128 } else { 32 };
    let (count, noun) = match (pool.family.as_str(), pool.length) {
        ("prefix", Some(length)) => (
            size.checked_shr(bits.saturating_sub(length.into())).unwrap_or(0),
            format!("prefixes of /{length}"),
        ),
        ("prefix", None) => (size, "addresses to cut prefixes from".to_owned()),
        (_, _) if size == 1 => (size, "address".to_owned()),
        (_, _) => (size, "addresses".to_owned()),
    };
    format!("{} {noun}", output::large(count))
}

/// The pool as it is, with what was given in its place.
fn merged(pool: &PoolOutput, args: &Update) -> PoolInput {
    let mut input = PoolInput {
        family: Some(pool.family.clone()),
        vrf: Some(pool.vrf.clone()),
        network: pool.network.clone(),
        ranges: pool.ranges.clone(),
        exclude: pool.exclude.clone(),
        gateway: pool.gateway.clone(),
        use_reserved: Some(pool.use_reserved && !args.no_use_reserved),
        length: pool.length,
        domain: pool.domain.clone(),
        order: Some(pool.order.clone()),
        cooldown: Some(pool.cooldown.clone()),
        cooldown_min: Some(pool.cooldown_min.clone()),
        sticky: Some(pool.sticky || args.sticky),
        max_per_owner: pool.max_per_owner,
        labels: pool.labels.clone(),
        description: pool.description.clone(),
    };
    set_extent(&mut input, &args.extent);
    set_settings(&mut input, &args.settings);
    // `--label env=` takes a label away.
    input.labels.retain(|_, value| !value.is_empty());
    input
}

fn set_extent(input: &mut PoolInput, extent: &Extent) {
    let texts = |ranges: &[Range]| ranges.iter().map(ToString::to_string).collect();
    if let Some(prefix) = extent.prefix {
        input.family = Some("prefix".into());
        input.network = Some(prefix.to_string());
        input.ranges = Vec::new();
    }
    if let Some(network) = extent.network {
        input.network = Some(network.to_string());
    }
    if !extent.ranges.is_empty() {
        input.ranges = texts(&extent.ranges);
    }
    if !extent.exclude.is_empty() {
        input.exclude = texts(&extent.exclude);
    }
    replace(&mut input.gateway, extent.gateway.map(|gateway| gateway.to_string()));
    replace(&mut input.length, extent.length);
    replace(&mut input.use_reserved, extent.use_reserved.then_some(true));
}

fn set_settings(input: &mut PoolInput, settings: &Settings) {
    replace(&mut input.domain, settings.domain.as_ref().map(ToString::to_string));
    replace(&mut input.order, settings.order.map(|order| order.to_string()));
    replace(&mut input.cooldown, settings.cooldown.map(|time| time.to_string()));
    replace(&mut input.cooldown_min, settings.cooldown_min.map(|time| time.to_string()));
    replace(&mut input.sticky, settings.no_sticky.then_some(false));
    replace(&mut input.max_per_owner, settings.max_per_owner);
    replace(&mut input.description, settings.description.clone());
    input.labels.extend(settings.labels.iter().cloned());
}

fn replace<T>(place: &mut Option<T>, given: Option<T>) {
    if given.is_some() {
        *place = given;
    }
}
