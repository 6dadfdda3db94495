//! How many files this process may open, and how they are shared out.
//!
//! A connection is a file as well. So that connections never take the files which the store needs, the listeners get
//! what is left once the store and everything else have theirs.

use netstead_store::{local::MOST_OPEN_FILES, raft};
use netstead_wire::ConnectionLimits;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{debug, info, warn};

use crate::config::{ApiConfig, NameserverConfig};

/// Further files than this are never asked for: some programs that we start go through all that they could have open.
const ENOUGH: u64 = 1 << 20;
/// Sources, DNS servers, other nodes, UDP sockets, backups, the runtime.
const OTHERS: usize = 128;
/// Connections that the listeners take, however few files there are.
const FEWEST: (usize, usize) = (32, 16);

/// The connections that each listener may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionBudget {
    pub(crate) api: ConnectionLimits,
    pub(crate) nameserver: ConnectionLimits,
}

/// Raises the soft limit of open files to the hard one. Returns the limit that holds now.
pub(crate) fn raise() -> usize {
    let resource = Resource::RLIMIT_NOFILE;
    let (soft, hard) = match getrlimit(resource) {
        Ok(limits) => limits,
        Err(error) => {
            warn!(%error, "How many files may be open is not known; 1024 are assumed.");
            return 1024;
        }
    };
    let wanted = hard.min(ENOUGH).max(soft);
    let now = match setrlimit(resource, wanted, hard) {
        Ok(()) => wanted,
        Err(error) => {
            warn!(%error, soft, hard, "The limit of open files could not be raised.");
            soft
        }
    };
    debug!(from = soft, to = now, "The limit of open files is raised.");
    usize::try_from(now).unwrap_or(usize::MAX)
}

impl ConnectionBudget {
    /// Shares out what the store leaves of `files`: two thirds for the API, one for the nameserver, or less if the
    /// configuration or the defaults say so.
    pub(crate) fn new(files: usize, is_raft: bool, api: &ApiConfig, nameserver: &NameserverConfig) -> Self {
        let nodes = if is_raft { raft::CONNECTIONS } else { 0 };
        let left = files.saturating_sub(MOST_OPEN_FILES + OTHERS + nodes);
        let api = Share {
            section: "api",
            wanted: api.max_connections,
            per_peer: api.max_connections_per_peer,
            usual: netstead_api::CONNECTIONS,
            most: (left / 3 * 2).max(FEWEST.0),
        };
        let nameserver = Share {
            section: "nameserver",
            wanted: nameserver.max_connections,
            per_peer: nameserver.max_connections_per_peer,
            usual: netstead_nameserver::CONNECTIONS,
            most: (left / 3).max(FEWEST.1),
        };
        Self { api: api.limits(files), nameserver: nameserver.limits(files) }
    }
}

/// One listener's part.
struct Share {
    section: &'static str,
    wanted: Option<usize>,
    per_peer: Option<usize>,
    usual: usize,
    /// As many as there are files for.
    most: usize,
}

impl Share {
    fn limits(&self, files: usize) -> ConnectionLimits {
        let Self { section, most, .. } = *self;
        let in_all = self.wanted.unwrap_or(self.usual).min(most);
        let usual = ConnectionLimits::new(in_all);
        let limits =
            ConnectionLimits { per_peer: self.per_peer.unwrap_or(usual.per_peer).min(in_all), ..usual };
        if let Some(wanted) = self.wanted.filter(|wanted| *wanted > most) {
            warn!(
                section,
                max_connections = wanted,
                used = most,
                files,
                "There are too few files for so many connections; raise the limit of open files (`LimitNOFILE=` of \
                 systemd, `ulimit -Hn`)."
            );
        } else if in_all < self.usual && self.wanted.is_none() {
            info!(
                section,
                max_connections = in_all,
                files,
                "Few files may be open, so fewer connections are taken."
            );
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(files: usize, is_raft: bool, api: &ApiConfig) -> [(usize, usize); 2] {
        let budget = ConnectionBudget::new(files, is_raft, api, &NameserverConfig::default());
        [budget.api, budget.nameserver].map(|limits| (limits.in_all, limits.per_peer))
    }

    #[test]
    fn connections_leave_the_store_its_files() {
        let usual = &ApiConfig::default();
        assert_eq!(shared(1 << 20, true, usual), [(4096, 1024), (512, 128)]);
        for (files, is_raft) in [(1024, false), (1024, true), (4096, true)] {
            let [(api, _), (nameserver, _)] = shared(files, is_raft, usual);
            let nodes = if is_raft { raft::CONNECTIONS } else { 0 };
            assert!(
                api + nameserver + nodes + MOST_OPEN_FILES + OTHERS <= files,
                "{files} {api} {nameserver}"
            );
            assert!(api >= 200 && nameserver >= 100, "{files} {api} {nameserver}");
        }
        assert_eq!(shared(64, false, usual), [(32, 8), (16, 4)]);
    }

    #[test]
    fn what_a_person_sets_holds_as_far_as_there_are_files() {
        let api = |in_all: usize, per_peer: usize| ApiConfig {
            max_connections: Some(in_all),
            max_connections_per_peer: Some(per_peer),
            ..ApiConfig::default()
        };
        assert_eq!(shared(1 << 20, false, &api(20_000, 15_000))[0], (20_000, 15_000));
        let [(in_all, per_peer), _] = shared(1024, false, &api(20_000, 15_000));
        assert!(in_all < 1024 && per_peer == in_all, "{in_all} {per_peer}");
    }
}
