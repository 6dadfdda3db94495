//! The leadership loop of a node: waits for the lead, leads, and follows again when another node takes over.
//!
//! 1. `wait_for_lead`: waits until the store grants the lead, which raises the epoch. Meanwhile polls the sources on standby.
//! 2. The format of the store is checked, then the ledger takes over in this epoch.
//! 3. `start_services`: publishes this node as the leader, brings the file's pools into the ledger, and starts the engine.
//! 4. `lead_until_deposed`: follows dynamic targets, sends notifications, raises the format, prunes members, and records the
//!    usage of pools, until the ledger says that a later epoch leads.
//! 5. The node stops answering as a leader first, then the engine stops. Back to 1.
//!
//! This loop does not decide who leads. Each commit of the ledger and the engine is conditional on the epoch or the head, so a
//! node that is wrong about the leader can change nothing.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use netstead_api::{
    DailyBackups, UsageRecorder,
    cluster::{Cluster, ClusterError},
};
use netstead_engine::{Engine, EngineError};
use netstead_ledger::{Caller, Command, Freshness, Ledger, LedgerError, Reply, Role};
use netstead_model::{Ident, PoolSpec};
#[cfg(feature = "kubernetes")]
use netstead_operator::Operator;
use netstead_store::{Store, StoreError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::{
    dns_service::{DnsService, Writes},
    node,
    notify::Notifier,
    pool_backends::{self, LeaderOfBackends},
};

/// Pauses after an error that may pass.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The pause after the operator could not begin.
#[cfg(feature = "kubernetes")]
const OPERATOR_PAUSE: Duration = Duration::from_secs(10);
/// How often a node registers itself.
const REGISTER_INTERVAL: Duration = Duration::from_mins(1);
/// How often a node confirms with the store that it is up to date, so that it can say how old its answers are.
const CONFIRM: Duration = Duration::from_secs(5);

/// The parts that a node follows and leads with.
#[derive(Debug)]
pub(crate) struct Leadership<'a> {
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) ledger: &'a Ledger,
    pub(crate) names: &'a DnsService,
    pub(crate) cluster: &'a Cluster,
    /// Whether others may lead the same store.
    pub(crate) shared: bool,
    /// The changes that are written to servers.
    pub(crate) writes: Writes,
    /// How the daily backups stand.
    pub(crate) backups: &'a DailyBackups,
    pub(crate) stop: &'a CancellationToken,
    /// Serves pools of Cluster API while this node leads.
    #[cfg(feature = "kubernetes")]
    pub(crate) operator: Option<&'a Operator>,
}

impl Leadership<'_> {
    /// Runs the loop above. Ends only with an error that an operator must fix. `begun` is a lead that was taken already.
    pub(crate) async fn run(&self, begun: Option<(u64, Engine)>) -> anyhow::Result<()> {
        let mut begun = begun;
        loop {
            let (epoch, engine) = match begun.take() {
                Some(begun) => begun,
                None => self.acquire().await?,
            };
            info!(epoch, "This node leads.");
            Box::pin(self.lead_until_deposed(epoch, &engine)).await;
            // First of all: requests are no longer answered as by a leader.
            self.cluster.stop_leading();
            warn!(epoch, "Another node leads now; this one follows.");
            self.names.stop_leading().await;
        }
    }

    /// Waits for the lead and starts the services of a leader. Tries again after errors that may pass.
    pub(crate) async fn acquire(&self) -> anyhow::Result<(u64, Engine)> {
        let (mut told, mut pause) = (String::new(), FIRST_PAUSE);
        loop {
            let begun = async {
                let epoch = self.wait_for_lead().await?;
                let ready = self.start_services(epoch).await;
                anyhow::Ok((epoch, ready?))
            };
            let error = match begun.await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            self.cluster.stop_leading();
            self.names.stop_leading().await;
            if self.stop.is_cancelled() {
                // The server ends by itself.
                std::future::pending::<()>().await;
            }
            let leads = matches!(*self.ledger.role().borrow(), Role::Leading { .. });
            if !self.shared || (leads && !is_transient(&error)) || needs_operator(&error) {
                return Err(error);
            }
            let said = format!("{error:#}");
            if said == told {
                debug!(error = said, "The lead cannot be taken yet.");
            } else {
                warn!(error = said, retry_in = ?pause, "The lead cannot be taken yet.");
                told = said;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until the ledger leads. Meanwhile polls the sources on standby.
    async fn wait_for_lead(&self) -> anyhow::Result<u64> {
        if let Role::Leading { epoch } = *self.ledger.role().borrow() {
            return Ok(epoch);
        }
        if !self.shared {
            // No other process can lead this store, and the engine starts at once.
            return Ok(self.ledger.lead().await?.0);
        }
        tokio::select! {
            led = self.lead_the_ledger() => led,
            () = async {
                self.names.poll_sources_on_standby(self.stop).await;
                std::future::pending::<()>().await;
            } => Err(anyhow::anyhow!("the server is about to end")),
        }
    }

    async fn lead_the_ledger(&self) -> anyhow::Result<u64> {
        let epoch = self.store.lead().await.map_err(LedgerError::from)?;
        // While this node waited, another leader may have raised the format above what this node understands. Now that it
        // leads, that can no longer happen, and it has written nothing yet.
        self.cluster.check_format().await.map_err(node::advised)?;
        self.ledger.lead_in(epoch).await?;
        Ok(epoch.0)
    }

    /// Publishes this node as the leader, brings the file's pools into the ledger, and starts the engine.
    async fn start_services(&self, epoch: u64) -> anyhow::Result<Engine> {
        // From here on requests about addresses are answered; requests about names wait for the engine.
        self.cluster.lead(epoch).await.map_err(node::advised)?;
        let pools = self.names.pools();
        sync_pools(self.ledger, &pools).await?;
        self.names.start_leading(self.ledger, epoch, self.writes).await
    }

    /// Runs the tasks of a leader, until another node leads.
    pub(crate) async fn lead_until_deposed(&self, epoch: u64, engine: &Engine) {
        let notifier =
            Notifier::leading(engine, self.ledger, self.store, self.names.in_force(), self.backups);
        let ending = self.stop.child_token();
        let backends = LeaderOfBackends {
            store: self.store,
            ledger: self.ledger,
            cluster: self.cluster,
            backends: self.names.backends(),
            engine,
            epoch,
            dry_run: self.writes != Writes::All,
        };
        let usage = UsageRecorder::new(self.ledger, Some(engine), self.names.backends(), epoch);
        let work = async {
            tokio::join!(
                self.names.follow_targets(&ending),
                notifier.run(&ending),
                self.cluster.run_format_upgrades(epoch),
                self.cluster.run_member_pruning(),
                backends.run(|| self.names.pools(), &ending),
                self.run_operator(&ending),
                usage.run(&ending),
            );
            std::future::pending::<()>().await;
        };
        let mut role = self.ledger.role();
        let deposed = async {
            let _ = role.wait_for(|role| *role != Role::Leading { epoch }).await;
        };
        tokio::select! {
            () = deposed => {}
            () = work => {}
        }
    }

    /// Serves pools of Cluster API. Without an address for its metrics it works all the same.
    #[cfg(feature = "kubernetes")]
    async fn run_operator(&self, stop: &CancellationToken) {
        let Some(operator) = self.operator.filter(|_| self.writes == Writes::All) else { return };
        while let Err(error) = operator.run(stop).await {
            let error = format!("{:#}", anyhow::Error::from(error));
            warn!(error, "The operator cannot run; it is tried again.");
            sleep(OPERATOR_PAUSE).await;
        }
    }

    #[cfg(not(feature = "kubernetes"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits")]
    async fn run_operator(&self, _: &CancellationToken) {}

    /// Registers this node regularly, and confirms how old its own answers are. Ends only with an error that an operator must
    /// fix.
    pub(crate) async fn heartbeat(&self) -> anyhow::Result<()> {
        let telling = async {
            loop {
                match self.cluster.register().await {
                    Err(error @ ClusterError::TooOld { .. }) => return Err(node::refused(error)),
                    Err(error) => debug!(%error, "The others could not be told that this node is here."),
                    Ok(()) => {}
                }
                sleep(REGISTER_INTERVAL).await;
            }
        };
        let confirming = async {
            loop {
                sleep(CONFIRM).await;
                if let Err(error) = self.ledger.read(Freshness::Fresh, |_| ()).await {
                    debug!(%error, "It is not known whether anything changed.");
                }
            }
        };
        if !self.shared {
            // No other node uses this store: once is enough.
            if let Err(error) = self.cluster.register().await {
                return Err(node::refused(error));
            }
            std::future::pending::<()>().await;
        }
        tokio::select! {
            ended = telling => ended,
            error = self.cluster.wait_for_newer_format() => Err(node::refused(error)),
            () = confirming => Ok(()),
        }
    }
}

/// Whether the error may pass without an operator.
fn is_transient(error: &anyhow::Error) -> bool {
    let of_store = |error: &StoreError| {
        matches!(
            error,
            StoreError::Unavailable { .. } | StoreError::Unknown { .. } | StoreError::Refused { .. }
        )
    };
    error.chain().any(|cause| {
        let ledger = cause.downcast_ref::<LedgerError>().is_some_and(|error| {
            matches!(
                error,
                LedgerError::Unavailable { .. }
                    | LedgerError::Unknown { .. }
                    | LedgerError::TooLate
                    | LedgerError::NotLeading
            )
        });
        let engine = cause.downcast_ref::<EngineError>().is_some_and(|error| match error {
            EngineError::Store(error) => of_store(error),
            error => matches!(error, EngineError::Deposed | EngineError::Closed),
        });
        let cluster = cause.downcast_ref::<ClusterError>().is_some_and(|error| match error {
            ClusterError::Store(error) => of_store(error),
            error => matches!(error, ClusterError::NotLeading),
        });
        ledger || engine || cluster || cause.downcast_ref::<StoreError>().is_some_and(of_store)
    })
}

/// Whether only an operator can fix it, on any node.
fn needs_operator(error: &anyhow::Error) -> bool {
    let of_ledger = |error: &LedgerError| {
        matches!(
            error,
            LedgerError::Moved { .. } | LedgerError::Unfinished { .. } | LedgerError::Damaged { .. }
        )
    };
    error.chain().any(|cause| {
        let too_old = matches!(cause.downcast_ref(), Some(ClusterError::TooOld { .. }));
        too_old || cause.downcast_ref::<LedgerError>().is_some_and(of_ledger)
    })
}

/// Brings the pools of the file into the ledger. Those whose backend has not described them yet come later.
pub(crate) async fn sync_pools(ledger: &Ledger, pools: &[PoolSpec]) -> anyhow::Result<()> {
    sync_completed_pools(ledger, pool_backends::complete_pools(ledger, pools).await?).await
}

/// Brings pools into the ledger that say everything.
pub(crate) async fn sync_completed_pools(ledger: &Ledger, pools: Vec<PoolSpec>) -> anyhow::Result<()> {
    let command = Command::SyncFilePools(pools);
    let done = ledger.submit(Caller::new("netstead").manager(), command, Duration::from_mins(1)).await;
    let reply = done.context("the pools of the configuration cannot be taken over")?.reply;
    if let Reply::Synced { created, updated, detached, .. } = reply {
        let names = |pools: &[Ident]| pools.iter().map(ToString::to_string).collect::<Vec<_>>();
        if !created.is_empty() || !updated.is_empty() {
            info!(created = ?names(&created), updated = ?names(&updated), "Pools of the configuration taken over.");
        }
        if !detached.is_empty() {
            warn!(pools = ?names(&detached), "Pools are no longer in the configuration; they stay and can be changed.");
        }
    }
    Ok(())
}
