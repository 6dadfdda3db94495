//! Ranges of terraform-provider-netaddr as pools and claims.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use netstead_client::types::{BulkEntry, BulkInput, ClaimFrom, ClaimInput, PoolInput, PoolOrder};
use netstead_model::{Ident, Key, Range};
use netstead_providers::{
    Tls,
    netaddr::{Listed, Netaddr, NetaddrOptions, endpoint_url, pool_name},
};
use netstead_wire::etcd::EtcdConnection;

use crate::{cli::import::NetaddrImport, failure::Failure};

/// As many claims as go into one commit.
const TOGETHER: usize = 64;

/// A range as a pool with its claims.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) pool: Ident,
    pub(crate) prefix: String,
    pub(crate) range: Range,
    pub(crate) claims: Vec<ImportedClaim>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportedClaim {
    pub(crate) key: Key,
    pub(crate) address: String,
    /// The address was asked for.
    pub(crate) fixed: bool,
}

/// Connects as the flags say; etcd is asked later.
pub(crate) fn open(args: &NetaddrImport) -> anyhow::Result<Netaddr> {
    let tls = Tls {
        ca_file: args.cacert.clone(),
        client_cert: args.cert.clone(),
        client_key: args.key.clone(),
        ..Tls::default()
    };
    let user = args.username.clone().map(|user| (user, args.password.clone().unwrap_or_default()));
    let urls = args.endpoints.iter().map(|url| endpoint_url(url));
    let connection = EtcdConnection { user, tls, ..EtcdConnection::new(urls) };
    Netaddr::new(NetaddrOptions::new(connection)).context("etcd cannot be used")
}

/// Reads all ranges. Nothing is changed.
pub(crate) async fn read(netaddr: &Netaddr, args: &NetaddrImport) -> anyhow::Result<Vec<Imported>> {
    if args.pool.is_some() && args.range.len() != 1 {
        bail!("--pool names one pool, and there are {} ranges", args.range.len());
    }
    let mut found: Vec<Imported> = Vec::new();
    for prefix in &args.range {
        let imported = read_range(netaddr, prefix, args.pool.as_ref()).await?;
        if let Some(other) = found.iter().find(|other| other.pool == imported.pool) {
            bail!(
                "`{}` and `{prefix}` would both be the pool `{}`: import them one by one, with --pool",
                other.prefix,
                other.pool
            );
        }
        found.push(imported);
    }
    Ok(found)
}

async fn read_range(netaddr: &Netaddr, prefix: &str, pool: Option<&Ident>) -> anyhow::Result<Imported> {
    let usage = netaddr.usage(prefix).await?;
    let kind = usage.info.kind;
    let ends = usage.info.first.address(kind).zip(usage.info.last.address(kind));
    let Some((first, last)) = ends else { bail!("the addresses of `{prefix}` are not 6 bytes long") };
    let range = Range::new(first, last).with_context(|| format!("the range `{prefix}`"))?;
    let pool = match (pool, pool_name(prefix)) {
        (Some(pool), _) => pool.clone(),
        (None, Some(name)) => {
            name.parse().with_context(|| format!("no pool can be called after `{prefix}`: use --pool"))?
        }
        (None, None) => bail!("no pool can be called after `{prefix}`: use --pool"),
    };
    let fixed = netaddr.list(prefix, Listed::Hardcoded).await?;
    let mut claims = Vec::new();
    for held in netaddr.all_names(prefix).await? {
        let key = held.name.parse::<Key>();
        let key = key.map_err(|error| {
            Failure::new(format!("the name `{}` of `{prefix}` is no key: {error}", held.name))
                .hint("give its address another name first; nothing was imported")
        })?;
        let fixed = fixed.iter().any(|one| one.address == held.address && one.name == held.name);
        claims.push(ImportedClaim { key, address: held.address.text(kind), fixed });
    }
    Ok(Imported { pool, prefix: prefix.to_owned(), range, claims })
}

impl Imported {
    /// Pool and claims of an import, for people.
    pub(crate) fn preview(&self) -> String {
        let mut text = format!("pool {}: {}, from {}\n", self.pool, self.range, self.prefix);
        for ImportedClaim { key, address, fixed } in &self.claims {
            let fixed = if *fixed { "  fixed" } else { "" };
            let _ = writeln!(text, "  {address}  {key}{fixed}");
        }
        text
    }

    /// The pool: as the original hands out, with the lowest address that was given back first and no rest.
    pub(crate) fn pool_input(&self) -> PoolInput {
        PoolInput {
            ranges: vec![self.range.to_string()],
            use_reserved: Some(true),
            order: Some(PoolOrder::FreedFirst),
            cooldown: Some("0s".into()),
            description: Some(format!("imported from {}", self.prefix)),
            ..PoolInput::default()
        }
    }

    /// The claims, as many as go together. Each may be sent again.
    pub(crate) fn bulks(&self) -> impl Iterator<Item = BulkInput> + '_ {
        self.claims.chunks(TOGETHER).map(|some| {
            let entries = some.iter().map(|one| {
                BulkEntry::Claim(ClaimFrom {
                    key: one.key.to_string(),
                    any: vec![self.pool.to_string()],
                    claim: ClaimInput { address: Some(one.address.clone()), ..ClaimInput::default() },
                    ..ClaimFrom::default()
                })
            });
            BulkInput { entries: entries.collect() }
        })
    }
}
