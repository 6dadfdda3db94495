//! The lines that a server prints when it is ready: where things are, and what to type next.

use std::path::PathBuf;

use netstead_api::cluster::{Cluster, NodeRole};
use netstead_ledger::{Freshness, Ledger};
use tracing::info;

use crate::{
    cli::URL, config::FoundConfig, dns_service::NameserverState, docker_discovery::Discovery,
    logging::LogFormat,
};

#[derive(Debug)]
pub(crate) struct StartupBanner<'a> {
    pub(crate) url: String,
    /// Where people open the web page, if there is one.
    pub(crate) page: Option<String>,
    /// The kind of the store and its place.
    pub(crate) data: &'a str,
    /// Where the admin token is, if it could be left there.
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) found: &'a FoundConfig,
    /// How many warnings the configuration has.
    pub(crate) warnings: usize,
    pub(crate) discovery: &'a Discovery,
    pub(crate) answering: &'a NameserverState,
    pub(crate) ledger: &'a Ledger,
    /// The other nodes, where there may be some.
    pub(crate) cluster: Option<&'a Cluster>,
}

impl StartupBanner<'_> {
    /// Five lines on stderr; in JSON logs one more object.
    pub(crate) async fn print(&self, format: LogFormat) {
        let counted = self.ledger.read(Freshness::Stale, |book| {
            book.pools().fold((0_u64, 0_u64), |(pools, claims), pool| (pools + 1, claims + pool.usage.claims))
        });
        let (pools, claims) = counted.await.map_or((0, 0), |seen| seen.value);
        let paused = self.ledger.health().paused;
        if format == LogFormat::Json {
            let dns = self.answering.addresses();
            let role = self.cluster.map(role);
            info!(url = self.url, data = self.data, ?dns, pools, claims, paused, role, "Ready.");
            return;
        }
        anstream::eprint!("{}", self.lines(self.ledger.id(), pools, claims, paused));
    }

    /// Says that the configuration has warnings; the log has them.
    fn warned(&self) -> String {
        match self.warnings {
            0 => String::new(),
            1 => ", with a warning: `netstead config check` shows it".to_owned(),
            count => format!(", with {count} warnings: `netstead config check` shows them"),
        }
    }

    fn lines(&self, id: u32, pools: u64, claims: u64, paused: bool) -> String {
        let of = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let token = match &self.credentials {
            Some(path) => format!("your token is in {}", path.display()),
            None => "no token could be left for you; the log says why".to_owned(),
        };
        let config = match self.found {
            FoundConfig::File { path, .. } => format!("{}{}", path.display(), self.warned()),
            FoundConfig::Nothing { looked } => {
                let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
                let looked = looked.join(", no ");
                format!("none, the defaults apply (there is no {looked}){}", self.discovery)
            }
        };
        let dns = match self.answering {
            NameserverState::Listening(addresses) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                format!("DNS server listening on {}", addresses.join(", "))
            }
            NameserverState::NotListening { place, reason } => {
                format!("no nameserver: {place} cannot be had ({reason}); choose with --dns-listen")
            }
        };
        let url = if self.url == URL { String::new() } else { format!(" --url {}", self.url) };
        let next = match (paused, pools) {
            (true, _) => "status   # restored from a backup: look, then `netstead resume`",
            (false, 0) => "pool create lan --range 10.0.3.50-10.0.3.200",
            (false, _) => "status",
        };
        let page =
            self.page.as_ref().map(|page| format!("  web     {page}, and `netstead{url} web` opens it\n"));
        let page = page.unwrap_or_default();
        let role = self.cluster.map(|cluster| format!("  role    {}\n", role(cluster))).unwrap_or_default();
        format!(
            "\x1b[1mNetstead {} is ready.\x1b[0m\n  data    {}: ledger {id:08x}, {}, {}\n  api     {}, {token}\n{page}  dns     {dns}\n  \
             config  {config}\n{role}  next    netstead{url} {next}\n",
            env!("CARGO_PKG_VERSION"),
            self.data,
            of(pools, "pool"),
            of(claims, "claim"),
            self.url,
        )
    }
}

/// The role of this node among the others.
fn role(cluster: &Cluster) -> String {
    match (cluster.role(), cluster.leader()) {
        (NodeRole::Leading { epoch }, _) => format!("leading, in epoch {epoch}"),
        (NodeRole::Following, Some(leader)) => format!("following {}", leader.url),
        (NodeRole::Following, None) => "following; no node leads yet".to_owned(),
    }
}
