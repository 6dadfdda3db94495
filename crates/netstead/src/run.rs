//! `netstead run`: opens the store, serves until it is told to stop, and closes everything in order.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, PoisonError},
    time::Duration,
};

use netstead_api::{
    Api, Bound, DailyBackups, ExternalDns, Meter, ServeError, ServeOptions, Server, TlsFiles,
    access::Tokens,
    cluster::{Cluster, NodeRole},
};
use netstead_ledger::Ledger;
use netstead_model::SystemClock;
use netstead_store::{Health, Store};
use netstead_wire::Connections;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    admin_token,
    cli::{Global, Run},
    config::{self, ApiConfig, FoundConfig},
    credentials::Credentials,
    daily_backup::DailyBackup,
    dns_service::{DnsService, RefusedConfig, Reload, Writes},
    doctor::HostChecks,
    external_dns_listeners::ExternalDnsListeners,
    failure::Failure,
    file_limit::{self, ConnectionBudget},
    leadership::Leadership,
    loaded_config::LoadedConfig,
    local_server::follow_ledger,
    logging::{self, LogFilter, LogFormat},
    node::{self, Node, SharedWith},
    notify::Notifier,
    startup_banner::StartupBanner,
    state_dir::{credentials_dir, variable},
    store_location::StoreLocation,
};

/// How long running work may take to end.
const FAREWELL: Duration = Duration::from_secs(30);
/// How long a probe may take to end.
const PROBES: Duration = Duration::from_secs(5);
/// How long a node that has just joined a cluster waits to know which one leads.
const FIRST_LEADER: Duration = Duration::from_secs(10);
/// How long a start waits to know whether it leads.
const SETTLE: Duration = Duration::from_secs(1);
/// The time that closing everything may take after that.
const MARGIN: Duration = Duration::from_secs(10);

pub(crate) async fn run(global: &Global, args: &Run) -> anyhow::Result<()> {
    let settings = LoadedConfig::read(global.config.as_deref())?;
    let log = &settings.config.log;
    let filter = global.log_level.clone().or_else(|| log.level.clone()).unwrap_or_else(LogFilter::info);
    let format = global.log_format.or(log.format).unwrap_or_default();
    logging::start(&filter, format)?;
    match &settings.found {
        FoundConfig::File { path, .. } => info!(file = %path.display(), "Configuration read."),
        FoundConfig::Nothing { looked } => info!(?looked, "No configuration file found; the defaults apply."),
    }
    settings.config.log_warnings();
    let files = file_limit::raise();
    let mut api = settings.config.api.clone();
    api.listen = args.listen.clone().unwrap_or(api.listen);
    let place = settings.store(global).joining(args.join.as_deref())?;
    let store = place.open_to_serve().await?;
    // From here on a SIGHUP means something else than the end.
    let reload = Reload::new(global.config.clone(), &settings)?;
    let data = place.to_string();
    let is_raft = matches!(place, StoreLocation::Raft(_));
    let budget = ConnectionBudget::new(files, is_raft, &api, &settings.config.nameserver);
    let (meter, api_connections) = (Meter::default(), Connections::new(budget.api));
    let dns_connections = Connections::new(budget.nameserver);
    meter.watch_connections("api", &api_connections);
    meter.watch_connections("nameserver", &dns_connections);
    let context = RunContext {
        settings: &settings,
        args,
        api,
        data,
        refused: reload.refused(),
        shared: place.is_shared(),
        others: SharedWith::at(&place),
        node: Node::of(&place, &*store),
        backups: settings.backups(&place),
        format,
        stop: stop_on_signal()?,
        meter,
        api_connections,
        dns_connections,
        daily_backups: DailyBackups::default(),
        named: global.config.clone(),
    };
    let done = context.run_with_store(&store, reload).await;
    store.close().await;
    done
}

/// Facts that are known before anything is opened.
struct RunContext<'a> {
    settings: &'a LoadedConfig,
    args: &'a Run,
    api: ApiConfig,
    /// The kind of the store and its place, for people.
    data: String,
    refused: RefusedConfig,
    /// Whether others may lead the same store.
    shared: bool,
    others: SharedWith,
    node: Node,
    /// Beside which directory backups are kept, and of how many days.
    backups: Option<(PathBuf, usize)>,
    format: LogFormat,
    stop: CancellationToken,
    meter: Meter,
    /// Of the API, and of the listener for probes.
    api_connections: Connections,
    /// Of the nameserver, over TCP.
    dns_connections: Connections,
    daily_backups: DailyBackups,
    /// The file, as `--config` named it.
    named: Option<PathBuf>,
}

impl RunContext<'_> {
    async fn run_with_store(&self, store: &Arc<dyn Store>, reload: Reload) -> anyhow::Result<()> {
        // Before anything else begins: an address that is taken must not leave half a server behind.
        let bound = netstead_api::bind(self.serve_options()).await.map_err(unserved)?;
        let url = node::advertised(&self.api, bound.address(), self.others);
        let bound = bound.also_called(node::host_of(&url));
        if !self.join_cluster(&**store, &bound).await? {
            return Ok(());
        }
        let cluster = self.node.join(store, url).await?;
        let ledger = follow_ledger(store, &self.settings.config.ledger, !self.shared).await?;
        // On the heap: the future is large.
        let done = Box::pin(self.run_with_ledger(store, &ledger, &cluster, bound, reload)).await;
        ledger.close().await;
        done
    }

    /// Waits until a node that keeps the store with others is in a cluster, for as long as it takes, and says meanwhile that
    /// it lives. `false` if the server is to end before that.
    async fn join_cluster(&self, store: &dyn Store, bound: &Bound) -> anyhow::Result<bool> {
        let Some(members) = store.membership().filter(|members| !members.own_members().is_in_a_cluster())
        else {
            return Ok(true);
        };
        let health = store.health_changes();
        let reason = move || match &*health.borrow() {
            Health::Failed { reason } => format!("{reason}; nothing is known here yet"),
            Health::Ready => "this node is starting; nothing is known here yet".to_owned(),
        };
        let joined = CancellationToken::new();
        let starting = bound.serve_starting(reason, joined.clone()).map_err(unserved)?;
        let joining = async {
            members.joined().await;
            // A node that came in just now knows in a moment which one leads.
            let mut health = store.health_changes();
            let ready = health.wait_for(|health| *health == Health::Ready);
            let _ = tokio::time::timeout(FIRST_LEADER, ready).await;
        };
        let in_time = self.stop.run_until_cancelled(joining).await.is_some();
        joined.cancel();
        starting.ended().await?;
        Ok(in_time)
    }

    fn serve_options(&self) -> ServeOptions {
        let api = &self.api;
        let usual = ServeOptions::new(api.listen.to_string());
        ServeOptions {
            names: api.hosts.clone(),
            tls: api.tls.as_ref().map(|tls| TlsFiles::new(&tls.cert, &tls.key)),
            grace: FAREWELL,
            max_body: api.max_body.and_then(|most| usize::try_from(most).ok()).unwrap_or(usual.max_body),
            connections: self.api_connections.clone(),
            ..usual
        }
    }

    async fn run_with_ledger(
        &self,
        store: &Arc<dyn Store>,
        ledger: &Ledger,
        cluster: &Cluster,
        bound: Bound,
        reload: Reload,
    ) -> anyhow::Result<()> {
        let Run { dns_listen, dry, .. } = self.args;
        let connections = self.dns_connections.clone();
        let config = &self.settings.config;
        let listen = Some((dns_listen.as_slice(), connections));
        let names = DnsService::start(store, ledger, config, listen, &self.meter).await?;
        #[cfg(feature = "kubernetes")]
        let operator = config.operator.as_ref().map(|config| {
            let (ledger, engine) = (ledger.clone(), names.engine_slot().clone());
            let place = crate::external_pools::LedgerPlace::Here { ledger, engine };
            crate::commands::operator::of_config(config, place)
        });
        let leadership = Leadership {
            store,
            ledger,
            names: &names,
            cluster,
            shared: self.shared,
            writes: Writes::unless_dry(*dry),
            backups: &self.daily_backups,
            stop: &self.stop,
            #[cfg(feature = "kubernetes")]
            operator: operator.as_ref(),
        };
        let done = Box::pin(self.run_tasks(&leadership, bound, reload)).await;
        names.close().await;
        done
    }

    async fn run_tasks(
        &self,
        leadership: &Leadership<'_>,
        bound: Bound,
        reload: Reload,
    ) -> anyhow::Result<()> {
        let Leadership { store, ledger, names, .. } = leadership;
        // Where no other process can lead, no request is answered before everything is in order.
        let begun = if self.shared { None } else { Some(leadership.acquire().await?) };
        let peers = node::peers(&self.api)?;
        let tables =
            ExternalDns::new(names.engine_slot(), Some((leadership.cluster, &peers)), SystemClock::shared());
        let connections = self.api_connections.clone();
        let listeners = Arc::new(ExternalDnsListeners::new(tables, connections, &self.stop));
        tokio::select! {
            done = self.serve(leadership, &listeners, bound) => done,
            done = leadership.run(begun) => done,
            done = leadership.heartbeat() => done,
            // It ends only when the server is about to.
            () = async {
                tokio::join!(
                    self.back_up_daily(&***store),
                    reload.follow(names, ledger, &listeners, &self.stop),
                    Notifier::following(ledger, store, names.in_force()).run(&self.stop),
                );
                std::future::pending::<()>().await;
            } => Ok(()),
        }
    }

    async fn back_up_daily(&self, store: &dyn Store) {
        if let Some((dir, keep)) = &self.backups {
            DailyBackup::new(store, dir, *keep, &self.daily_backups).run(&self.stop).await;
        }
    }

    async fn serve(
        &self,
        leadership: &Leadership<'_>,
        listeners: &Arc<ExternalDnsListeners>,
        bound: Bound,
    ) -> anyhow::Result<()> {
        let Leadership { store, ledger, names, cluster, .. } = *leadership;
        let tokens = Tokens::open(Arc::clone(store), SystemClock::shared()).await?;
        let mut api = Api::new(ledger.clone(), tokens.clone(), SystemClock::shared(), &self.data)
            .with_meter(&self.meter)
            .with_kinds(config::kind_names())
            .with_config_reader(Arc::new(names.reader()))
            .with_host_doctor(Arc::new(HostChecks {
                named: self.named.clone(),
                in_force: names.in_force(),
                refused: self.refused.clone(),
                nameserver: names.answering.addresses().to_vec(),
                silent: names.answering.why_not_listening(),
                external_dns: Arc::clone(listeners),
            }))
            .with_engine_slot(names.engine_slot())
            .with_external_dns(listeners.tables())
            .with_backends(names.backends())
            .with_cluster(cluster, &node::peers(&self.api)?)
            .with_nameserver(names.answering.addresses());
        let web = &self.settings.config.web;
        let page = web.enabled.then(|| web.url.clone().unwrap_or_else(|| url(&self.api, bound.address())));
        let page = page.filter(|_| cfg!(feature = "web"));
        #[cfg(feature = "web")]
        if web.enabled {
            let options = netstead_web::WebOptions {
                url: web.url.clone(),
                read_only: web.read_only,
                trusted_proxies: web.trusted_proxies.clone(),
                trust_header: web.trust_header.clone(),
                anonymous: web.anonymous,
            };
            let pages = netstead_web::Web::new(options, SystemClock::shared(), tokens.clone());
            api = api.with_pages(Arc::new(pages));
        }
        let bound = bound.also_called(web.url.as_deref().and_then(node::host_of));
        if self.backups.is_some() {
            api = api.with_daily_backups(&self.daily_backups);
        }
        // The address is ours, so no other server's token is replaced. No request is answered before the token is there.
        let credentials = Credentials::in_dir(credentials_dir(&variable));
        let kept = admin_token::ensure(&tokens, &credentials, &urls(&self.api, bound.address())).await;
        if let Err(error) = &kept {
            warn!(error = format!("{error:#}"), "The admin token could not be left for the command line.");
        }
        let server = bound.serve(&api, self.stop.clone());
        let probes = self.answer_probes(&api).await;
        let tables = names.in_force().read().unwrap_or_else(PoisonError::into_inner).external_dns.clone();
        listeners.commit(listeners.prepare(&tables).await?).await;
        if self.shared {
            self.wait_until_leading(cluster).await;
        }
        let announcement = StartupBanner {
            url: url(&self.api, server.address()),
            page,
            data: &self.data,
            credentials: kept.is_ok().then(|| credentials.path()),
            found: &self.settings.found,
            warnings: self.settings.config.warnings.len(),
            discovery: &self.settings.discovery,
            answering: &names.answering,
            ledger,
            cluster: self.shared.then_some(cluster),
        };
        announcement.print(self.format).await;
        server.ended().await?;
        if let Some(probes) = probes {
            probes.ended().await?;
        }
        listeners.ended().await;
        info!("Stopped.");
        Ok(())
    }

    /// Waits a moment until it is known whether this node leads, so that people are told so at once.
    async fn wait_until_leading(&self, cluster: &Cluster) {
        let mut stands = cluster.role_changes();
        let leads = stands.wait_for(|stand| matches!(stand, NodeRole::Leading { .. }));
        let _ = self.stop.run_until_cancelled(tokio::time::timeout(SETTLE, leads)).await;
    }

    /// Where dnsweaver's probes come, if anywhere. Names are worth more than probes: without the port all else goes on.
    async fn answer_probes(&self, api: &Api) -> Option<Server> {
        let listen = self.api.probes.as_ref()?.to_string();
        let options = ServeOptions {
            names: self.api.hosts.clone(),
            grace: PROBES,
            connections: self.api_connections.clone(),
            ..ServeOptions::new(&listen)
        };
        match netstead_api::bind(options).await {
            Ok(bound) => Some(bound.serve_probes(api, self.stop.clone())),
            Err(error) => {
                warn!(listen, error = format!("{:#}", anyhow::Error::from(error)), "No probes are answered.");
                None
            }
        }
    }
}

fn unserved(error: ServeError) -> anyhow::Error {
    if !matches!(error, ServeError::Bind { .. }) {
        return error.into();
    }
    let hint = "another server may be there already: see `netstead status`, or choose with `--listen`";
    anyhow::Error::from(error).context(Failure::new("the API cannot be served").hint(hint))
}

/// Where a client on this machine finds the server.
fn url(api: &ApiConfig, address: SocketAddr) -> String {
    let scheme = if api.tls.is_some() { "https" } else { "http" };
    let port = address.port();
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("{scheme}://{host}:{port}")
}

/// All URLs under which the command line may ask for it.
fn urls(api: &ApiConfig, address: SocketAddr) -> Vec<String> {
    let scheme = if api.tls.is_some() { "https" } else { "http" };
    let mut urls = vec![url(api, address)];
    urls.extend(api.hosts.iter().map(|host| format!("{scheme}://{host}:{}", address.port())));
    urls
}

/// A token that is cancelled by SIGTERM or SIGINT. The second such signal ends the process at once.
pub(crate) fn stop_on_signal() -> anyhow::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            }
        };
        let name = next().await;
        info!(signal = name, "Stopping: running work ends first.");
        stopping.cancel();
        let reason =
            tokio::time::timeout(FAREWELL + MARGIN, next()).await.unwrap_or("what runs does not end");
        warn!(reason, "Stopped at once.");
        std::process::exit(1);
    });
    Ok(stop)
}
