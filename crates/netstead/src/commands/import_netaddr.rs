//! `netstead import netaddr`

use anyhow::Context as _;

use super::{Context, many, say};
use crate::{
    cli::import::NetaddrImport,
    failure::Failure,
    import::netaddr::{self, Imported},
    output,
};

/// Shows what an import would make.
pub(crate) async fn preview(args: &NetaddrImport) -> anyhow::Result<()> {
    let found = netaddr::read(&netaddr::open(args)?, args).await?;
    let text: String = found.iter().map(Imported::preview).collect();
    output::emit(&text)?;
    say!(
        "{} in {}; nothing was changed. To import them: the same with --yes",
        claims(&found),
        many(found.len(), "pool")
    );
    Ok(())
}

/// Makes pools and claims. All of it may be done again.
pub(crate) async fn import(context: &Context, args: &NetaddrImport) -> anyhow::Result<()> {
    let etcd = netaddr::open(args)?;
    let found = netaddr::read(&etcd, args).await?;
    for imported in &found {
        let pool = imported.pool.as_str();
        let made = context.client.create_pool(pool, &imported.pool_input()).await;
        made.with_context(|| format!("the pool `{pool}` of {} cannot be made", imported.prefix))?;
        for bulk in imported.bulks() {
            let answer = context.client.bulk(&bulk).await?;
            if let Some((place, problem)) = answer.at_fault() {
                let claim = imported.claims.get(place);
                let key = claim.map(|claim| claim.key.to_string()).unwrap_or_default();
                let message = format!("`{key}` of pool `{pool}` cannot be imported: {}", problem.detail);
                let hint = "mend that and do the same again; what is imported stays as it is";
                return Err(Failure::new(message).hint(hint).into());
            }
        }
    }
    // A client of the etcd that wrote meanwhile would be forgotten.
    if netaddr::read(&etcd, args).await? != found {
        let message = "the keyspace changed during the import";
        return Err(Failure::new(message).hint("stop what writes to it, and do the same again").into());
    }
    say!("{} imported into {}; etcd was not changed", claims(&found), many(found.len(), "pool"));
    Ok(())
}

fn claims(found: &[Imported]) -> String {
    many(found.iter().map(|imported| imported.claims.len()).sum(), "claim")
}
