//! `netstead pool create|update|delete`

use netstead_client::{
    Change, ClientError, DeletedPool,
    types::{Family, PoolInput, PoolOutput},
};
use netstead_model::{Range, readable_count};

use super::{Context, many, say};
use crate::{
    cli::pool::{Create, Delete, Extent, Given, Pool, Settings, Update},
    failure::Failure,
    output,
};

pub(crate) async fn pool(context: &Context, command: &Pool) -> anyhow::Result<()> {
    match command {
        Pool::Create(args) => create(context, args).await,
        Pool::Update(args) => update(context, args).await,
        Pool::Delete(args) => delete(context, args).await,
        Pool::Restore(args) => {
            context.client.restore_drift(args.pool.as_str(), args.key.as_str()).await?;
            say!("the backend of pool {} holds the address of `{}` again", args.pool, args.key);
            Ok(())
        }
        Pool::GiveBack(args) => {
            context.client.release_drift(args.stray).await?;
            say!("stray object {} is given back", args.stray);
            Ok(())
        }
    }
}

async fn create(context: &Context, args: &Create) -> anyhow::Result<()> {
    if let Some(flag) = args.empty_flag() {
        return Err(Failure::new(format!("{flag}: it is empty")).hint("leave it out for none").into());
    }
    let mut input = PoolInput { vrf: args.vrf.as_ref().map(ToString::to_string), ..PoolInput::default() };
    set_extent(&mut input, &args.extent);
    set_settings(&mut input, &args.settings);
    input.backend = args.backend.as_ref().map(ToString::to_string);
    input.backend_pool.clone_from(&args.backend_pool);
    if input.network.is_none() && input.ranges.is_empty() && input.backend.is_none() {
        let hint = "give `--range 10.0.3.50-10.0.3.200`, `--network 10.0.3.0/24` or `--prefix fd00:2::/48`";
        return Err(Failure::new(format!("pool `{}` names no address", args.name)).hint(hint).into());
    }
    let (pool, change) = context.client.create_pool(args.name.as_str(), &input).await?;
    let what = if change == Change::Created { "created" } else { "is there already" };
    report_pool(context, &pool, what)
}

async fn update(context: &Context, args: &Update) -> anyhow::Result<()> {
    let name = args.name.as_str();
    let mut tries = 2;
    let pool = loop {
        let now = context.client.pool(name).await?;
        let etag = etag(now.etag)?;
        let input = merged(&now.value, args);
        tries -= 1;
        match context.client.replace_pool(name, &input, &etag).await {
            Err(error) if is_changed(&error) && tries > 0 => {}
            answer => break answer?,
        }
    };
    report_pool(context, &pool, "updated")
}

async fn delete(context: &Context, args: &Delete) -> anyhow::Result<()> {
    let (name, force) = (args.name.as_str(), args.force.as_deref());
    let mut tries = 2;
    let deleted = loop {
        let etag = etag(context.client.pool(name).await?.etag)?;
        tries -= 1;
        match context.client.delete_pool(name, force, args.abandon.as_deref(), &etag).await {
            Err(error) if is_changed(&error) && tries > 0 => {}
            answer => break answer?,
        }
    };
    let DeletedPool { released, owed } = deleted;
    if owed > 0 {
        let addresses = many(usize::try_from(owed).unwrap_or(usize::MAX), "address");
        say!("pool {name} is closing: it goes when its backend has {addresses} back");
        return Ok(());
    }
    match released {
        0 => say!("pool {name} deleted"),
        n => {
            let claims = many(usize::try_from(n).unwrap_or(usize::MAX), "claim");
            say!("pool {name} deleted, {claims} released");
        }
    }
    Ok(())
}

/// The version that a change is made from, so that it may be sent again when its answer is lost.
fn etag(etag: Option<String>) -> Result<String, Failure> {
    etag.ok_or_else(|| Failure::new("the server sent no version of the pool"))
}

/// The pool changed between our read and our change: read again, once.
fn is_changed(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| problem.status == 412)
}

fn report_pool(context: &Context, pool: &PoolOutput, what: &str) -> anyhow::Result<()> {
    say!("pool {} {what}: {}", pool.name, size(pool));
    context.format.map_or(Ok(()), |format| output::one(pool, format, context.now()))
}

/// `151 addresses`, `65536 prefixes of /64`.
fn size(pool: &PoolOutput) -> String {
    let Ok(size) = pool.usage.size.parse::<u128>() else { return pool.usage.size.clone() };
    let v6 = pool.network.iter().chain(&pool.ranges).any(|text| text.contains(':'));
    let bits: u32 = if v6 { 128 } else { 32 };
    let (count, noun) = match (&pool.family, pool.length) {
        (Family::Prefix, Some(length)) => (
            size.checked_shr(bits.saturating_sub(length.into())).unwrap_or(0),
            format!("prefixes of /{length}"),
        ),
        (Family::Prefix, None) => (size, "addresses to cut prefixes from".to_owned()),
        (_, _) if size == 1 => (size, "address".to_owned()),
        (_, _) => (size, "addresses".to_owned()),
    };
    format!("{} {noun}", readable_count(count))
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
        backend: pool.backend.clone(),
        backend_pool: pool.backend_pool.clone(),
    };
    if input.backend.is_some() {
        // What the backend says is not ours to say.
        (input.family, input.network, input.gateway) = (None, None, None);
        (input.use_reserved, input.order, input.ranges, input.exclude) = (None, None, Vec::new(), Vec::new());
    }
    set_extent(&mut input, &args.extent);
    set_settings(&mut input, &args.settings);
    // `--label env=` takes that label away; others may be empty for all we know.
    for (name, _) in args.settings.labels.iter().filter(|(_, value)| value.is_empty()) {
        input.labels.remove(name);
    }
    input.description = input.description.filter(|text| !text.is_empty());
    input
}

fn set_extent(input: &mut PoolInput, extent: &Extent) {
    if let Some(prefix) = extent.prefix {
        input.family = Some(Family::Prefix);
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
    set(&mut input.gateway, extent.gateway.as_ref(), ToString::to_string);
    set(&mut input.length, extent.length.as_ref(), |length| *length);
    replace(&mut input.use_reserved, extent.use_reserved.then_some(true));
}

fn set_settings(input: &mut PoolInput, settings: &Settings) {
    set(&mut input.domain, settings.domain.as_ref(), ToString::to_string);
    replace(&mut input.order, settings.order.map(Into::into));
    replace(&mut input.cooldown, settings.cooldown.map(|time| time.to_string()));
    replace(&mut input.cooldown_min, settings.cooldown_min.map(|time| time.to_string()));
    replace(&mut input.sticky, settings.no_sticky.then_some(false));
    set(&mut input.max_per_owner, settings.max_per_owner.as_ref(), |most| most.get());
    replace(&mut input.description, settings.description.clone());
    input.labels.extend(settings.labels.iter().cloned());
}

fn texts(ranges: &[Given<Range>]) -> Vec<String> {
    ranges.iter().filter_map(|given| given.0.as_ref()).map(ToString::to_string).collect()
}

/// Replaces a value if one was given, also by nothing.
fn set<T, U>(place: &mut Option<U>, given: Option<&Given<T>>, shown: impl Fn(&T) -> U) {
    if let Some(Given(value)) = given {
        *place = value.as_ref().map(shown);
    }
}

fn replace<T>(place: &mut Option<T>, given: Option<T>) {
    if given.is_some() {
        *place = given;
    }
}
