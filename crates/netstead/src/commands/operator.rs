//! `netstead operator` and `netstead crds`.

use std::{
    net::{Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use netstead_model::{NoopObserver, SystemClock};
use netstead_operator::{Operator, OperatorOptions, WebhookOptions, definition};
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
    let own = args.leader_elect_namespace.clone().unwrap_or_else(|| own_namespace(Path::new(NAMESPACE_FILE)));
    let not_empty = |text: &String| !text.is_empty();
    let namespace = args.namespace.clone().or_else(|| file?.namespace.clone());
    let watch_filter = args.watch_filter.clone().or_else(|| file?.watch_filter.clone());
    let port = args.webhook_port.or_else(|| file?.webhook_port).filter(|port| *port != 0);
    if port.is_none() && (args.webhook_cert_dir.is_some() || args.webhook_url.is_some()) {
        return Err(Failure::new("the webhooks have no port").hint("add `--webhook-port 9443`").into());
    }
    Ok(OperatorOptions {
        access,
        kinds,
        // An empty one means all, as for other controllers of Cluster API.
        namespace: namespace.filter(not_empty),
        watch_filter: watch_filter.filter(not_empty),
        lease_namespace: args.leader_elect.then(|| own.clone()),
        concurrency: args.concurrency.map(usize::from).or(file.map(|file| file.concurrency)).unwrap_or(20),
        metrics: args.metrics_bind_address.or_else(|| file?.metrics),
        health: args.health_probe_bind_address,
        webhook: webhook(
            port,
            args.webhook_cert_dir.clone().or_else(|| file?.webhook_cert_dir.clone()),
            args.webhook_url.clone().or_else(|| file?.webhook_url.clone()),
            own,
        ),
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
        webhook: webhook(
            config.webhook_port,
            config.webhook_cert_dir.clone(),
            config.webhook_url.clone(),
            own_namespace(Path::new(NAMESPACE_FILE)),
        ),
    };
    let systems = PoolSystems::new(ledger);
    Operator::new(options, Arc::new(systems), Arc::new(NoopObserver), SystemClock::shared())
}

/// The webhooks on every address of the machine; none without a port. `namespace` has their Service and their Secret.
fn webhook(
    port: Option<u16>,
    cert_dir: Option<PathBuf>,
    url: Option<String>,
    namespace: String,
) -> Option<WebhookOptions> {
    let listen = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port?));
    Some(WebhookOptions { cert_dir, url, ..WebhookOptions::new(listen, namespace) })
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
