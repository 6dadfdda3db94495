//! `netstead operator` and `netstead crds`.

use std::{path::Path, sync::Arc};

use netstead_model::{NoopObserver, SystemClock};
use netstead_operator::{Operator, OperatorOptions, definition};
use netstead_wire::kubernetes::KubernetesAccess;
use tracing::info;

use crate::{
    cli::{Global, operator as cli},
    config::{FoundConfig, OperatorConfig},
    external_pools::{LedgerPlace, PoolSystems},
    failure::Failure,
    loaded_config::LoadedConfig,
    logging::{self, LogFilter},
    output,
    run::stop_on_signal,
};

/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

pub(crate) async fn operator(global: &Global, args: &cli::Operator) -> anyhow::Result<()> {
    let settings = LoadedConfig::read(global.config.as_deref())?;
    let log = &settings.config.log;
    let filter = global.log_level.clone().or_else(|| log.level.clone()).unwrap_or_else(LogFilter::info);
    logging::start(&filter, global.log_format.or(log.format).unwrap_or_default())?;
    if let FoundConfig::File { path, .. } = &settings.found {
        info!(file = %path.display(), "Configuration read.");
    }
    let options = options(args, settings.config.operator.as_ref())?;
    let stop = stop_on_signal()?;
    let systems = PoolSystems::new(LedgerPlace::There(Box::new(global.clone())));
    let operator = Operator::new(options, Arc::new(systems), Arc::new(NoopObserver), SystemClock::shared());
    operator.run(&stop).await?;
    Ok(())
}

/// The flags, and what the file says where there are none.
fn options(args: &cli::Operator, file: Option<&OperatorConfig>) -> anyhow::Result<OperatorOptions> {
    let mut kinds = args.kinds.clone();
    if kinds.is_empty() {
        kinds = file.map(|file| file.kinds.clone()).unwrap_or_default();
    }
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        let hint =
            "name them with `--kinds InClusterIPPool,GlobalInClusterIPPool`, or with `kinds` of `[operator]`";
        return Err(Failure::new("no kind of pool is switched on").hint(hint).into());
    }
    let access = match &args.kubeconfig {
        Some(_) => KubernetesAccess { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() },
        None => file.map(|file| file.access.clone()).unwrap_or_default(),
    };
    let lease =
        || args.leader_elect_namespace.clone().unwrap_or_else(|| own_namespace(Path::new(NAMESPACE_FILE)));
    let not_empty = |text: &String| !text.is_empty();
    let namespace = args.namespace.clone().or_else(|| file?.namespace.clone());
    let watch_filter = args.watch_filter.clone().or_else(|| file?.watch_filter.clone());
    Ok(OperatorOptions {
        access,
        kinds,
        // An empty one means all, as for other controllers of Cluster API.
        namespace: namespace.filter(not_empty),
        watch_filter: watch_filter.filter(not_empty),
        lease_namespace: args.leader_elect.then(lease),
        concurrency: args.concurrency.map(usize::from).or(file.map(|file| file.concurrency)).unwrap_or(20),
        metrics: args.metrics_bind_address.or_else(|| file?.metrics),
        health: args.health_probe_bind_address,
    })
}

/// The operator of `run`: the node that leads works.
pub(crate) fn of_config(config: &OperatorConfig, ledger: LedgerPlace) -> Operator {
    let options = OperatorOptions {
        access: config.access.clone(),
        kinds: config.kinds.clone(),
        namespace: config.namespace.clone(),
        watch_filter: config.watch_filter.clone(),
        lease_namespace: None,
        concurrency: config.concurrency,
        metrics: config.metrics,
        health: None,
    };
    let systems = PoolSystems::new(ledger);
    Operator::new(options, Arc::new(systems), Arc::new(NoopObserver), SystemClock::shared())
}

fn own_namespace(file: &Path) -> String {
    let read = netstead_wire::files::read_named_text(file, 1024).unwrap_or_default();
    let name = read.trim();
    if name.is_empty() { "default".to_owned() } else { name.to_owned() }
}

pub(crate) fn crds(args: &cli::Crds) -> anyhow::Result<()> {
    if args.kinds.is_empty() {
        return output::emit(netstead_sources::kubernetes::DEFINITIONS);
    }
    let mut text = String::new();
    for kind in &args.kinds {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&serde_saphyr::to_string(&definition(*kind))?);
    }
    output::emit(&text)
}
