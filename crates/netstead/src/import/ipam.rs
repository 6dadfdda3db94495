//! Prefixes, ranges and addresses of an IPAM system as pools and claims.
//!
//! - `ipam/networks.rs`: which networks and ranges lie in which, and what of them cannot be a pool.
//! - `ipam/pools.rs`: pools that do not overlap. `ipam/claims.rs`: their claims. `ipam/naming.rs`: names of pools and VRFs.

mod claims;
mod naming;
mod networks;
mod pools;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write as _};

use anyhow::bail;
use netstead_client::types::{BulkEntry, BulkInput, ClaimFrom, ClaimInput, PoolInput};
use netstead_model::{Address, Cidr, Ident, Key, PoolSpec, Range, default_vrf};
use netstead_providers::{
    BuildContext, NetBoxConnection, NetBoxReader, PhpIpamConnection, PhpIpamReader, PhpIpamSecurity, Secret,
    Tls,
    ipam_contents::{IpamContents, IpamRow},
};

use self::{naming::VrfNames, networks::Networks};
use crate::{
    cli::import::{IpamImport, NetBoxImport, PhpIpamImport},
    failure::Failure,
};

/// As many claims as go into one commit.
pub(crate) const TOGETHER: usize = 64;

/// A kind of IPAM system, in the words of its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct System {
    pub(crate) name: &'static str,
    /// The beginning of the key of an address without a name.
    key: &'static str,
    network: &'static str,
}

pub(crate) const NETBOX: System = System { name: "NetBox", key: "netbox", network: "prefix" };
pub(crate) const PHPIPAM: System = System { name: "phpIPAM", key: "phpipam", network: "subnet" };

/// The parts of a system that are imported, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// VRFs by name, `default` for the global table. All, if it is empty.
    pub(crate) vrfs: Vec<String>,
    /// The name of the one pool.
    pub(crate) pool: Option<Ident>,
    /// Claims have the names of their addresses as hostnames.
    pub(crate) hostnames: bool,
}

/// Everything that an import makes, and what it leaves out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportPlan {
    pub(crate) pools: Vec<ImportedPool>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Objects that have a mark of Netstead.
    pub(crate) own: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportedPool {
    pub(crate) spec: PoolSpec,
    /// `prefix 10.0.3.0/24`.
    pub(crate) from: String,
    /// In the order of addresses.
    pub(crate) claims: Vec<ImportedClaim>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ImportedClaim {
    pub(crate) key: Key,
    pub(crate) address: Address,
    /// The name is the key of another address, or cannot be a key.
    pub(crate) note: Option<String>,
    hostname: Option<String>,
    description: Option<String>,
}

/// An object that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) what: String,
    pub(crate) why: String,
    /// It is in the way of something, and a person may want to change that.
    pub(crate) refused: bool,
}

impl LeftOut {
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), refused: true }
    }

    fn by_design(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), refused: false }
    }

    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.what, self.why)
    }
}

/// Reads a NetBox and plans its import.
pub(crate) async fn of_netbox(args: &NetBoxImport) -> anyhow::Result<ImportPlan> {
    let shared = &args.shared;
    let token = secret(args.api_token.as_ref(), args.api_token_file.as_ref());
    let Some(token) = token else {
        return Err(Failure::new("there is no token of NetBox")
            .hint("set NETBOX_API_TOKEN, or name a file with --api-token-file")
            .into());
    };
    let mut connection = NetBoxConnection::new(&shared.server, token);
    (connection.key_field, connection.tls) = (args.key_field.clone(), tls(shared));
    let reader = NetBoxReader::open(&connection, &context(NETBOX)?)?;
    plan(&reader.read(&shared.within).await?, NETBOX, &shared.selection())
}

/// Reads a phpIPAM and plans its import.
pub(crate) async fn of_phpipam(args: &PhpIpamImport) -> anyhow::Result<ImportPlan> {
    let shared = &args.shared;
    let code = secret(args.code.as_ref(), args.code_file.as_ref());
    let connection = PhpIpamConnection {
        url: shared.server.clone(),
        app: args.app.clone(),
        security: if code.is_some() { PhpIpamSecurity::SslCode } else { PhpIpamSecurity::SslToken },
        user: args.username.clone().filter(|_| code.is_none()),
        password: secret(args.password.as_ref(), args.password_file.as_ref()).filter(|_| code.is_none()),
        code,
        tls: tls(shared),
    };
    if connection.code.is_none() && (connection.user.is_none() || connection.password.is_none()) {
        return Err(Failure::new("there is no login of phpIPAM")
            .hint(
                "give --username and --password-file (or PHPIPAM_USER_NAME and PHPIPAM_PASSWORD), or for an app with a \
                 code --code-file (or PHPIPAM_APP_CODE)",
            )
            .into());
    }
    let reader = PhpIpamReader::open(&connection, &args.key_field, &context(PHPIPAM)?)?;
    plan(&reader.read(&args.section, &shared.within).await?, PHPIPAM, &shared.selection())
}

/// A secret that is written out or in a variable, or in a file. The file counts.
fn secret(text: Option<&String>, file: Option<&std::path::PathBuf>) -> Option<Secret> {
    file.cloned().map(Secret::File).or_else(|| text.filter(|text| !text.is_empty()).map(Secret::new))
}

fn tls(shared: &IpamImport) -> Tls {
    Tls {
        ca_file: shared.cacert.clone(),
        client_cert: shared.cert.clone(),
        client_key: shared.key.clone(),
        ..Tls::default()
    }
}

fn context(system: System) -> anyhow::Result<BuildContext> {
    Ok(BuildContext::new(system.key.parse()?))
}

impl IpamImport {
    fn selection(&self) -> Selection {
        Selection { vrfs: self.vrf.clone(), pool: self.pool.clone(), hostnames: self.hostnames }
    }
}

/// Turns what a system has into pools and claims. Nothing is asked or changed.
pub(crate) fn plan(
    contents: &IpamContents,
    system: System,
    wanted: &Selection,
) -> anyhow::Result<ImportPlan> {
    let vrfs = VrfNames::new(contents);
    for name in &wanted.vrfs {
        if !vrfs.has(name) {
            bail!("{} has no VRF `{name}`; `default` is its global table", system.name);
        }
    }
    let mut plan = ImportPlan { pools: Vec::new(), left_out: Vec::new(), own: 0 };
    for (vrf, name) in vrfs.chosen(&wanted.vrfs) {
        let networks = Networks::sort(contents, vrf, system, &mut plan);
        let mut rows: BTreeMap<usize, Vec<&IpamRow>> = BTreeMap::new();
        for row in contents.addresses.iter().filter(|row| row.vrf.as_ref().map(|vrf| vrf.id) == vrf) {
            if row.ours {
                plan.own += 1;
                continue;
            }
            if let Some(part) = networks.holding(row) {
                rows.entry(part).or_default().push(row);
            } else {
                let why = format!("no {} that is imported holds it", system.network);
                plan.left_out.push(LeftOut::refused(shown(row), why));
            }
        }
        networks.pools(&name, &rows, wanted, &mut plan);
    }
    rename_the_one(&mut plan, wanted.pool.as_ref())?;
    one_of_each_name(&mut plan);
    Ok(plan)
}

fn rename_the_one(plan: &mut ImportPlan, name: Option<&Ident>) -> anyhow::Result<()> {
    match (name, plan.pools.as_mut_slice()) {
        (None, _) => Ok(()),
        (Some(name), [one]) => {
            one.spec.name = name.clone();
            Ok(())
        }
        (Some(_), others) => {
            bail!("--pool names one pool, and this makes {}: choose one with --within", others.len())
        }
    }
}

/// Leaves out a pool whose name another one has.
fn one_of_each_name(plan: &mut ImportPlan) {
    let mut names = std::collections::BTreeSet::new();
    let (kept, lost): (Vec<_>, Vec<_>) =
        std::mem::take(&mut plan.pools).into_iter().partition(|pool| names.insert(pool.spec.name.clone()));
    plan.pools = kept;
    plan.left_out.extend(lost.into_iter().map(|pool| {
        let why = format!(
            "another one would be the pool `{}`: import it alone, with --within and --pool",
            pool.spec.name
        );
        LeftOut::refused(pool.from, why)
    }));
}

/// An address for people: `10.0.3.7 (web.lab.test)`.
fn shown(row: &IpamRow) -> String {
    match row.name.as_deref().or(Some(row.description.as_str())).filter(|name| !name.is_empty()) {
        Some(name) => format!("{} ({name})", row.address),
        None => format!("{} (id {})", row.address, row.id),
    }
}

impl ImportPlan {
    /// Pools and claims of an import, and what it leaves out, for people.
    pub(crate) fn preview(&self) -> String {
        let mut text: String = self.pools.iter().map(ImportedPool::preview).collect();
        if !self.left_out.is_empty() {
            text.push_str("left out:\n");
        }
        for one in &self.left_out {
            let _ = writeln!(text, "  {}", one.line());
        }
        text
    }

    pub(crate) fn claims(&self) -> usize {
        self.pools.iter().map(|pool| pool.claims.len()).sum()
    }
}

impl ImportedPool {
    fn preview(&self) -> String {
        let PoolSpec { name, vrf, network, ranges, exclude, gateway, .. } = &self.spec;
        let list = |ranges: &[Range]| ranges.iter().map(Range::to_string).collect::<Vec<_>>().join(", ");
        let addresses = match network.filter(|_| ranges.is_empty()) {
            Some(network) => network.to_string(),
            None => list(ranges),
        };
        let mut text = format!("pool {name}: {addresses}");
        if *vrf != default_vrf() {
            let _ = write!(text, " of VRF {vrf}");
        }
        if let Some(gateway) = gateway {
            let _ = write!(text, ", gateway {gateway}");
        }
        if !exclude.is_empty() {
            let _ = write!(text, ", without {}", list(exclude));
        }
        let _ = writeln!(text, ", from {}", self.from);
        for ImportedClaim { key, address, note, .. } in &self.claims {
            let note = note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
            let _ = writeln!(text, "  {address}  {key}{note}");
        }
        text
    }

    pub(crate) fn pool_input(&self) -> PoolInput {
        let PoolSpec { vrf, network, ranges, exclude, gateway, use_reserved, description, .. } = &self.spec;
        let texts = |ranges: &[Range]| ranges.iter().map(Range::to_string).collect();
        PoolInput {
            vrf: Some(vrf.to_string()).filter(|_| *vrf != default_vrf()),
            network: network.as_ref().map(Cidr::to_string),
            ranges: texts(ranges),
            exclude: texts(exclude),
            gateway: gateway.as_ref().map(Address::to_string),
            use_reserved: Some(true).filter(|_| *use_reserved),
            description: description.clone(),
            ..PoolInput::default()
        }
    }

    /// A request for these claims. It may be sent again.
    pub(crate) fn bulk(&self, claims: &[&ImportedClaim]) -> BulkInput {
        let entries = claims.iter().map(|one| {
            BulkEntry::Claim(ClaimFrom {
                key: one.key.to_string(),
                any: vec![self.spec.name.to_string()],
                claim: ClaimInput {
                    address: Some(one.address.to_string()),
                    hostnames: one.hostname.clone().map(|name| vec![name]),
                    description: one.description.clone(),
                    ..ClaimInput::default()
                },
                ..ClaimFrom::default()
            })
        });
        BulkInput { entries: entries.collect() }
    }
}
