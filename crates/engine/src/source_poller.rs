//! The loop of one source: ask for a report, put it into the inventory, wait for the next change.

mod connections;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use netstead_model::Report;
use netstead_plan::{Presence, ReportOutcome};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::connections::ScopeConnections;
use crate::{SourceSetup, background_task::BackgroundTask, engine_state::EngineState};

/// A source that does not answer for this long is taken for failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// How soon a source that has yet to read some workloads is asked again.
const REST_PAUSE: Duration = Duration::from_millis(250);

/// The running loop of one source.
#[derive(Debug, Clone)]
pub(crate) struct SourceHandle {
    pub(crate) setup: SourceSetup,
    asks: mpsc::Sender<oneshot::Sender<()>>,
    /// Workloads of its last report that it has yet to read; none before its first report since the engine started.
    reported: watch::Receiver<Option<usize>>,
    running: BackgroundTask,
}

impl SourceHandle {
    pub(crate) fn start(shared: &Arc<EngineState>, setup: SourceSetup) -> Self {
        let (asks, inbox) = mpsc::channel(64);
        let (reporting, reported) = watch::channel(None);
        let stop = shared.stop.child_token();
        let looker = SourcePoller {
            shared: shared.clone(),
            setup: setup.clone(),
            session: rand::random::<u32>().into(),
            reporting,
        };
        let running = BackgroundTask::start(stop.clone(), looker.run(inbox, stop));
        Self { setup, asks, reported, running }
    }

    /// Looks now; returns once what was seen is known, or it takes too long.
    pub(crate) async fn poll_now(&self, patience: Duration) {
        let (done, looked) = oneshot::channel();
        if self.asks.send(done).await.is_ok() {
            let _ = timeout(patience, looked).await;
        }
    }

    /// Waits until it has reported since the engine started.
    pub(crate) async fn first_report(&self) {
        let _ = self.reported.clone().wait_for(Option::is_some).await;
    }

    /// Looks again and again until it has read every workload.
    pub(crate) async fn read_the_rest(&self, patience: Duration) {
        while self.unread() > 0 {
            self.poll_now(patience).await;
            sleep(REST_PAUSE).await;
        }
    }

    pub(crate) fn has_reported(&self) -> bool {
        self.reported.borrow().is_some()
    }

    /// Workloads of its last report that it has yet to read.
    pub(crate) fn unread(&self) -> usize {
        self.reported.borrow().unwrap_or_default()
    }

    pub(crate) async fn stop_gracefully(&self) {
        self.running.stop_gracefully().await;
    }

    pub(crate) async fn stop_or_abort(&self) {
        self.running.stop_or_abort().await;
    }
}

struct SourcePoller {
    shared: Arc<EngineState>,
    setup: SourceSetup,
    session: u64,
    reporting: watch::Sender<Option<usize>>,
}

impl SourcePoller {
    async fn run(self, mut inbox: mpsc::Receiver<oneshot::Sender<()>>, stop: CancellationToken) {
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        let mut connections = ScopeConnections::default();
        self.send_known_ids();
        loop {
            let began = self.shared.now();
            let mut report = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                report = self.report() => report,
            };
            connections.note(&mut report);
            let outcome = self.shared.ingest_report(report, began, self.session).await;
            if outcome != ReportOutcome::Accepted {
                self.send_known_ids();
            }
            self.reporting.send_replace(Some(self.setup.source.unread()));
            for done in waiting.drain(..) {
                let _ = done.send(());
            }
            let source = self.setup.source.clone();
            // One timer for whichever of its graces runs out first.
            let due = self.shared.until_next_look(source.name());
            let pause = due.map_or(self.setup.interval, |due| due.min(self.setup.interval));
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                ask = inbox.recv() => match ask {
                    Some(ask) => waiting.push(ask),
                    None => break,
                },
                () = source.changed() => self.debounce().await,
                () = sleep(pause) => {}
            }
            while let Ok(ask) = inbox.try_recv() {
                waiting.push(ask);
            }
        }
    }

    /// Sends the source the ids that the inventory believes exist: it may know which of them ended while no node polled it.
    fn send_known_ids(&self) {
        let source = &self.setup.source;
        let newest = self.shared.inventory.borrow().inventory.clone();
        let entries = newest.source(source.name()).into_iter().flat_map(|state| &state.entries);
        let held =
            entries.filter(|(_, entry)| matches!(entry.presence, Presence::Present | Presence::Absent(_)));
        source.remember(held.map(|(id, _)| id.clone()).collect());
    }

    async fn report(&self) -> Report {
        let source = &self.setup.source;
        let begun = self.shared.clock.wall();
        let failed = |reason: String| Report::failed(source.name().clone(), begun, reason);
        // A bug in one source is that source's failure.
        let looked = AssertUnwindSafe(timeout(PATIENCE, source.report())).catch_unwind().await;
        let mut report = match looked {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => failed(format!("no answer within {} s", PATIENCE.as_secs())),
            Err(_) => failed("looking failed; this is a bug".into()),
        };
        report.source.clone_from(source.name());
        report
    }

    /// Waits until the source is quiet, or has been heard for long enough.
    async fn debounce(&self) {
        let options = &self.shared.options;
        let quiet = self.setup.debounce_quiet.unwrap_or(options.debounce_quiet);
        let most = self.setup.debounce_most.unwrap_or(options.debounce_most);
        let most = sleep(most);
        tokio::pin!(most);
        loop {
            tokio::select! {
                biased;
                () = &mut most => return,
                // A source that always says so must not keep a core busy.
                () = self.setup.source.changed() => sleep(quiet / 4).await,
                () = sleep(quiet) => return,
            }
        }
    }
}
