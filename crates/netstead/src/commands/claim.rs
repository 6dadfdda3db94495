//! `netstead claim`

use netstead_client::types::{ClaimFrom, ClaimInput, ClaimOutput, Family};
use netstead_model::Ident;

use super::{Context, claim_file, say};
use crate::{
    cli::{Format, claim::Claim},
    failure::{Exit, Failure, print_warning},
    output::{self, plain},
};

/// [`Exit::Pending`]: it is in the queue and has no address yet.
pub(crate) async fn claim(context: &Context, args: &Claim) -> anyhow::Result<Exit> {
    let input = input(args);
    if let Some(file) = &args.file {
        if args.first.is_some() {
            return Err(Failure::new("with `--file` the pools and keys stand in the file").into());
        }
        return claim_file::claim(context, file, &input).await;
    }
    let claims = match from(args, input)? {
        From::One(pool, key, input) => vec![context.client.claim(pool.as_str(), &key, &input).await?.0],
        From::Several(from) => context.client.claim_from(&from).await?,
    };
    print(context, &claims, !args.any.is_empty() || args.select.is_some())
}

enum From {
    One(Ident, String, ClaimInput),
    Several(ClaimFrom),
}

fn from(args: &Claim, claim: ClaimInput) -> anyhow::Result<From> {
    let choice = !args.any.is_empty() || args.select.is_some();
    let (pools, key) = match (&args.first, &args.second) {
        (Some(first), None) if choice => (None, first.parse()?),
        (Some(first), Some(key)) if !choice => (Some(first), key.clone()),
        (Some(_), Some(_)) => {
            let message = "with `--any` and `--select` only the key stands alone";
            return Err(Failure::new(message).hint("netstead claim --any lan,lan2 web-1").into());
        }
        (Some(_), None) => {
            let message = "the key is missing: what shall the claim be called?";
            return Err(Failure::new(message).hint("netstead claim lan web-1").into());
        }
        (None, _) => {
            let message = if choice { "the key is missing" } else { "the pool and the key are missing" };
            return Err(Failure::new(message).hint("netstead claim lan web-1").into());
        }
    };
    let each: Vec<Ident> = pools.map(|pools| pool_list(pools)).transpose()?.unwrap_or_default();
    let mut each = each.into_iter();
    Ok(match (each.next(), each.len()) {
        (Some(pool), 0) => From::One(pool, key.to_string(), claim),
        (first, _) => From::Several(ClaimFrom {
            key: key.to_string(),
            any: args.any.iter().map(ToString::to_string).collect(),
            each: first.into_iter().chain(each).map(|pool| pool.to_string()).collect(),
            select: args.select.as_ref().map(ToString::to_string),
            claim,
        }),
    })
}

fn pool_list(text: &str) -> anyhow::Result<Vec<Ident>> {
    let parse =
        |name: &str| name.trim().parse().map_err(|error| Failure::new(format!("pool: {error}")).into());
    text.split(',').map(parse).collect()
}

fn input(args: &Claim) -> ClaimInput {
    ClaimInput {
        address: args.address.as_ref().map(|address| address.0.clone()),
        prefer: args.prefer.as_ref().map(|address| address.0.clone()),
        length: args.length,
        ttl: args.ttl.map(|ttl| ttl.to_string()),
        labels: (!args.labels.is_empty()).then(|| args.labels.iter().cloned().collect()),
        hostnames: (!args.hostnames.is_empty())
            .then(|| args.hostnames.iter().map(ToString::to_string).collect()),
        description: args.description.clone(),
        owner: args.owner.clone(),
        adopt: args.adopt,
        force: args.force,
        wait: args.wait.map(|wait| wait.to_string()),
        keep: args.keep,
    }
}

/// Why a claim may not be called as its owner thinks.
pub(super) fn doubt_about_name(claim: &ClaimOutput) -> Option<String> {
    let ClaimOutput { key, pool, names, names_reason, domain, address, family, .. } = claim;
    if let Some(name) = names.iter().find(|name| !name.contains('.')) {
        return Some(format!(
            "`{name}` is a name of one label, which is a top-level domain; write the full name, such as {name}.home.example.com"
        ));
    }
    // A key with a path is made by a program, for something that has its name from elsewhere.
    let lacks = names.is_empty() && domain.is_some() && address.is_some() && !key.contains('/');
    let named = matches!(family, Family::Ipv4 | Family::Ipv6);
    (lacks && named).then(|| {
        format!("`{key}` in pool `{pool}` has no name: {names_reason}; give it one with `--hostname`")
    })
}

/// The bare addresses, unless a format was asked for. Says who has none yet.
pub(super) fn print(context: &Context, claims: &[ClaimOutput], chosen: bool) -> anyhow::Result<Exit> {
    let waiting: Vec<&ClaimOutput> = claims.iter().filter(|claim| claim.address.is_none()).collect();
    for ClaimOutput { key, pool, why, .. } in &waiting {
        if let Some(why) = why {
            say!("`{key}` waits for the backend of pool `{pool}`: {why}");
            continue;
        }
        say!("`{key}` waits in pool `{pool}`: ask again with the same key, or see `netstead get claims`");
    }
    for warning in claims.iter().filter_map(doubt_about_name) {
        print_warning(&plain(&warning), None);
    }
    match (context.format, claims) {
        (None, _) => {
            if let (true, [claim]) = (chosen, claims) {
                say!("from pool `{}`", claim.pool);
            }
            let addresses = claims.iter().filter_map(|claim| claim.address.as_deref());
            output::emit(&addresses.map(|address| address.to_owned() + "\n").collect::<String>())
        }
        (Some(format @ (Format::Json | Format::Yaml)), [claim]) => output::one(claim, format, context.now()),
        (format, claims) => output::list(claims, format, context.now()),
    }?;
    Ok(if waiting.is_empty() { Exit::Fine } else { Exit::Pending })
}
