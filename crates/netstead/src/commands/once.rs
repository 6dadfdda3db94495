//! `netstead run --once`: one report of every source, one pass of every provider, and what came of it.

use std::{collections::BTreeMap, time::Duration};

use netstead_client::{
    ChangeQuery, PlanQuery, ProviderQuery, SourceQuery,
    types::{HistoryOutput, ListOrder, PlanOutput, ProviderOutput, SourceOutput, SourceView},
};
use netstead_model::{Clock as _, Ident, SystemClock};
use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::{Context, many, plan::render_plans, say};
use crate::{
    cli::{Format, Global, Run},
    dns_service::Writes,
    failure::{Exit, Failure, print_error},
    file_limit,
    loaded_config::LoadedConfig,
    logging, output,
    temporary_leader::{Running, TemporaryLeader},
};

/// How long everything may take unless said otherwise.
const PATIENCE: Duration = Duration::from_mins(5);
/// So many passes follow each other when each of them leaves something to do.
const PASSES: usize = 8;
/// How often it is seen whether names still wait.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn run(global: &Global, args: &Run) -> anyhow::Result<Exit> {
    let settings = LoadedConfig::read(global.config.as_deref())?;
    let log = &settings.config.log;
    // What was done is printed at the end, so the log has troubles only.
    let filter = global.log_level.clone().or_else(|| log.level.clone());
    let filter = filter.unwrap_or_else(logging::LogFilter::warn);
    logging::start(&filter, global.log_format.or(log.format).unwrap_or_default())?;
    reconcile(global, &settings, args.dry, args.settle).await
}

/// Brings everything in line once, as the configuration says.
pub(super) async fn reconcile(
    global: &Global,
    settings: &LoadedConfig,
    dry: bool,
    settle: bool,
) -> anyhow::Result<Exit> {
    settings.config.log_warnings();
    file_limit::raise();
    let patience = global.timeout.map_or(PATIENCE, Duration::from);
    let leader = TemporaryLeader::of(settings, global, Writes::unless_dry(dry), patience);
    let once =
        Once { begun: SystemClock.monotonic(), patience, settle, sources: settings.config.sources.len() };
    leader
        .run(async |running: Running<'_>| {
            let unseen = once.look_and_act(&running).await?;
            let outcome = Outcome::read(&running, unseen, dry).await?;
            let context =
                Context { client: running.client, clock: SystemClock::shared(), format: global.output };
            outcome.show(&context)
        })
        .await
}

/// One look and one pass, within a time.
struct Once {
    begun: Duration,
    patience: Duration,
    settle: bool,
    /// How many the file has.
    sources: usize,
}

impl Once {
    fn left(&self) -> Duration {
        self.patience.saturating_sub(SystemClock.monotonic().saturating_sub(self.begun))
    }

    /// Returns what could not be seen in time.
    async fn look_and_act(&self, running: &Running<'_>) -> anyhow::Result<Unseen> {
        say!("looking at {}", many(self.sources, "source"));
        // Some of the time is for the passes, which work without what a silent source would say.
        let unseen = Unseen::after(running, self.left() / 4 * 3).await;
        self.pass(running).await?;
        while self.settle && unseen.is_nothing() && waiting(running) > 0 && !self.left().is_zero() {
            sleep(LOOK.min(self.left())).await;
            if waiting(running) == 0 {
                self.pass(running).await?;
            }
        }
        Ok(unseen)
    }

    async fn pass(&self, running: &Running<'_>) -> anyhow::Result<()> {
        for _ in 0..PASSES {
            let Ok(done) = timeout(self.left(), running.engine.pass_everywhere()).await else {
                let hint = "what was written stays; give it more time with `--timeout`";
                return Err(Failure::new("the providers are not done in time").hint(hint).into());
            };
            if !done?.iter().any(|(_, report)| report.goes_on()) {
                break;
            }
        }
        Ok(())
    }
}

/// Workloads and whole sources that were not seen in time.
#[derive(Debug, Serialize)]
pub(super) struct Unseen {
    /// Sources that did not report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    silent: Vec<Ident>,
    /// Workloads that a source has seen and not read: nothing is known of their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    unread: BTreeMap<Ident, usize>,
}

impl Unseen {
    /// Waits for the first reports of all sources, in which all workloads are read.
    pub(super) async fn after(running: &Running<'_>, patience: Duration) -> Self {
        let silent = running.engine.first_reports(patience).await;
        Self { silent, unread: running.engine.unread() }
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.silent.is_empty() && self.unread.is_empty()
    }

    /// Whether this source did not report.
    pub(super) fn is_silent(&self, source: &str) -> bool {
        self.silent.iter().any(|silent| silent.as_str() == source)
    }

    pub(super) fn print(&self) {
        let hint = Some("give it more with `--timeout`");
        for source in &self.silent {
            print_error(&format!("source {source} did not report in time"), hint);
        }
        for (source, unread) in &self.unread {
            let workloads = many(*unread, "workload");
            print_error(&format!("source {source} did not read {workloads} in time"), hint);
        }
    }
}

/// Workloads that are no longer seen and whose names are kept for a while.
fn waiting(running: &Running<'_>) -> usize {
    let waiting = running.engine.status().sources.into_iter().filter(|source| source.kind.is_some());
    waiting.filter_map(|source| source.waiting).map(|waiting| waiting.workloads).sum()
}

/// All that a run did and left, for programs.
#[derive(Debug, Serialize)]
struct Outcome {
    result: &'static str,
    #[serde(skip)]
    exit: Exit,
    dry_run: bool,
    #[serde(flatten)]
    unseen: Unseen,
    sources: Vec<SourceOutput>,
    providers: Vec<ProviderOutput>,
    /// Changes that were made, name by name.
    changes: Vec<HistoryOutput>,
    /// Plans with something left to do.
    plans: Vec<PlanOutput>,
    #[serde(skip)]
    waiting: usize,
}

impl Outcome {
    async fn read(running: &Running<'_>, unseen: Unseen, dry: bool) -> anyhow::Result<Self> {
        let client = &running.client;
        let mut sources = client.all(SourceQuery::default()).await?;
        sources.retain(|source| !source.detached);
        let mut providers = client.all(ProviderQuery::default()).await?;
        providers.retain(|provider| !provider.detached);
        let news = ChangeQuery {
            since: Some(running.since),
            order: Some(ListOrder::Oldest),
            ..ChangeQuery::default()
        };
        let changes = client.all(news).await?;
        let mut plans = client.all(PlanQuery::default()).await?;
        let left = |plan: &PlanOutput| {
            let provider = providers.iter().find(|provider| provider.name == plan.provider);
            provider.is_some_and(|provider| provider.pending > 0 || provider.parked.is_some())
        };
        plans.retain(left);
        let exit = verdict(&unseen, &sources, &providers);
        let result = match exit {
            Exit::Fine => "fine",
            Exit::Error => "error",
            Exit::Pending => "pending",
            Exit::Guarded => "guarded",
        };
        let waiting = waiting(running);
        Ok(Self { result, exit, dry_run: dry, unseen, sources, providers, changes, plans, waiting })
    }

    fn show(&self, context: &Context) -> anyhow::Result<Exit> {
        match context.format {
            Some(format @ (Format::Json | Format::Yaml)) => output::document(self, format)?,
            Some(format @ (Format::Csv | Format::Name)) => {
                output::list(&self.changes, Some(format), context.now())?;
            }
            format => {
                if !self.changes.is_empty() {
                    output::list(&self.changes, format, context.now())?;
                }
                if !self.plans.is_empty() {
                    output::style::emit(&render_plans(&self.plans))?;
                }
            }
        }
        self.say();
        Ok(self.exit)
    }

    /// One line for each source and provider.
    fn say(&self) {
        self.unseen.print();
        // The ledger and what is set by hand are always seen.
        let own = |source: &&SourceOutput| ["ledger", "manual"].contains(&source.name.as_str());
        let said = |source: &&SourceOutput| !own(source) || source.reason.is_some();
        for source in self.sources.iter().filter(said).filter(|source| !self.unseen.is_silent(&source.name)) {
            let reason = source.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            let workloads = many(usize::try_from(source.workloads).unwrap_or(usize::MAX), "workload");
            say!("{}: {}, {workloads}{reason}", source.name, source.view);
        }
        for provider in &self.providers {
            say!("{}: {}", provider.name, self.told(provider));
        }
        if self.waiting > 0 {
            say!(
                "{} no longer seen: names are kept for a while; with `--settle` this command stays until they may go",
                many(self.waiting, "workload")
            );
        }
    }

    /// The outcome of one provider, in a few words.
    fn told(&self, provider: &ProviderOutput) -> String {
        if let Some(error) = &provider.error {
            return format!("failed: {error}");
        }
        let own = self.changes.iter().filter(|change| change.provider.as_ref() == Some(&provider.name));
        let applied = own.filter(|change| change.what.as_str() == "applied").count();
        let parked = provider.parked.as_ref().map_or(0, |parked| parked.changes);
        let counts = [
            (u64::try_from(applied).unwrap_or(u64::MAX), "applied"),
            (provider.pending, "pending"),
            (parked, "held back by a guard"),
            (provider.rejected, "rejected"),
            (provider.blocked, "blocked"),
        ];
        let mut said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !provider.paused.is_empty() {
            said.push("paused".into());
        }
        if said.is_empty() { "in line".into() } else { said.join(", ") }
    }
}

/// An error weighs more than a guard, and a guard more than what is pending.
fn verdict(unseen: &Unseen, sources: &[SourceOutput], providers: &[ProviderOutput]) -> Exit {
    let incomplete = sources.iter().any(|source| source.view != SourceView::Complete);
    let failed = |provider: &ProviderOutput| provider.error.is_some() || provider.rejected > 0;
    let paused = |provider: &ProviderOutput| provider.pending > 0 && !provider.paused.is_empty();
    if !unseen.is_nothing() || incomplete || providers.iter().any(failed) {
        Exit::Error
    } else if providers.iter().any(|provider| provider.parked.is_some() || paused(provider)) {
        Exit::Guarded
    } else if providers.iter().any(|provider| provider.pending > 0) {
        Exit::Pending
    } else {
        Exit::Fine
    }
}
