//! `netstead operator` and `crds`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args};
use netstead_operator::PoolKind;

/// Give claims of Cluster API their addresses, out of pools in the cluster
///
/// The pools are those of Cluster API's in-cluster provider, with the state in the cluster's own objects: no server and no store of
/// Netstead is needed. Those of the kind `NetsteadIPPool` are pools of a server, which is found by `--url` and `--token` as for every
/// other command. What a flag does not say is taken from `[operator]` of the configuration file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead operator --kinds InClusterIPPool,GlobalInClusterIPPool --leader-elect
  netstead operator --kinds InClusterIPPool --kubeconfig ~/.kube/config --namespace prod

It ends with SIGTERM or SIGINT, after the steps that are under way.")]
pub(crate) struct Operator {
    /// The kinds of pools whose claims are served; may be given more than once, or with commas between
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kinds: Vec<PoolKind>,
    /// The kubeconfig of the cluster [default: the service account of the pod]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    pub(crate) context: Option<String>,
    /// Look at objects of this namespace only [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Touch only objects whose label cluster.x-k8s.io/watch-filter has this value [default: all]
    #[arg(long, value_name = "VALUE")]
    pub(crate) watch_filter: Option<String>,
    /// Let one of several replicas work: the one that holds the Lease `netstead-operator`
    #[arg(
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        default_value = "false",
        default_missing_value = "true",
        require_equals = true,
        value_name = "BOOL"
    )]
    pub(crate) leader_elect: bool,
    /// The namespace of the Lease, and of the webhooks' Service and Secret [default: that of the pod, else `default`]
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_elect_namespace: Option<String>,
    /// Where metrics are answered, over plain HTTP at /metrics: `:8080`, `127.0.0.1:8080` [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", visible_alias = "diagnostics-address", value_parser = listen)]
    pub(crate) metrics_bind_address: Option<SocketAddr>,
    /// Where /healthz and /readyz are answered: `:9440` [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    pub(crate) health_probe_bind_address: Option<SocketAddr>,
    /// The port of the webhooks, over HTTPS: admission of pools and the conversion of old ones; 0 for none [default: none]
    #[arg(long, value_name = "PORT")]
    pub(crate) webhook_port: Option<u16>,
    /// Take the certificate of the webhooks from tls.crt, tls.key and ca.crt of this directory [default: one of its own, kept in
    /// the Secret `netstead-operator-webhook`]
    #[arg(long, value_name = "DIR")]
    pub(crate) webhook_cert_dir: Option<PathBuf>,
    /// Where the API server reaches the webhooks, such as `https://192.0.2.7:9443` [default: the Service `netstead-operator-webhook`]
    #[arg(long, value_name = "URL", value_parser = webhook_url)]
    pub(crate) webhook_url: Option<String>,
    /// How many objects are worked on at once [default: 20]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) concurrency: Option<u16>,
}

/// Print the definitions of Netstead's own Kubernetes kinds
///
/// The kinds of Cluster API's in-cluster provider are printed only when they are named: where that provider is installed, its
/// own definitions must stay.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  netstead crds | kubectl apply -f -
  netstead crds --kinds InClusterIPPool,GlobalInClusterIPPool | kubectl create -f -")]
pub(crate) struct Crds {
    /// Print these kinds of pools instead
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) kinds: Vec<PoolKind>,
}

/// Reads an address with a port; without an address it is every one of the machine.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    full.parse()
        .map_err(|_| "write an address and a port: `127.0.0.1:8080`, `[::1]:8080` or `:8080`".to_owned())
}

/// Reads the address of the webhooks: the API server takes nothing but HTTPS, without a query.
fn webhook_url(text: &str) -> Result<String, String> {
    netstead_operator::check_webhook_url(text).map(|()| text.to_owned())
}
