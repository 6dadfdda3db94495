//! Checks of all sources and providers for `netstead doctor`: each finding says what is wrong and what to do.

mod provider;

use futures::future::join_all;
use netstead_model::View;

use crate::{Engine, EngineStatus, SourceStatus, provider::ProviderHandle};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Fine,
    /// It may be meant so.
    Note,
    /// A person must act.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub grade: Grade,
    /// `source.office`, `dns.lan`, …
    pub about: String,
    /// One sentence.
    pub text: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Finding {
    fn fine(about: &str, text: String) -> Self {
        Self { grade: Grade::Fine, about: about.to_owned(), text, hint: None }
    }

    fn note(about: &str, text: String, hint: String) -> Self {
        Self { grade: Grade::Note, hint: Some(hint), ..Self::fine(about, text) }
    }

    fn problem(about: &str, text: String, hint: String) -> Self {
        Self { grade: Grade::Problem, hint: Some(hint), ..Self::fine(about, text) }
    }
}

impl Engine {
    /// Looks at everything that has to do with names. Servers are asked, and nothing is changed.
    pub async fn diagnose(&self) -> Vec<Finding> {
        let status = self.status();
        let mut findings = Vec::new();
        if status.deposed {
            let text = "another process leads this store: nothing is written here".to_owned();
            findings.push(Finding::problem("engine", text, "stop one of the two".to_owned()));
        }
        if status.dry_run {
            let text = "it was started with --dry-run and writes to no server".to_owned();
            findings.push(Finding::note("engine", text, "start it without --dry-run".to_owned()));
        }
        findings.extend(status.sources.iter().map(source_finding));
        let handles: Vec<ProviderHandle> = self.shared().providers().values().cloned().collect();
        let looked = handles.iter().map(|handle| provider::diagnose_provider(handle, &status));
        findings.extend(join_all(looked).await.into_iter().flatten());
        findings.extend(detached_findings(&status));
        findings
    }
}

fn source_finding(source: &SourceStatus) -> Finding {
    let (name, about) = (&source.name, format!("source.{}", source.name));
    if source.detached {
        let text = format!(
            "it is no longer configured, and {} of it still known",
            many(source.workloads + source.absent, "workload")
        );
        let hint = format!("configure it again, or `netstead clean --source {name}` takes its names away");
        return Finding::note(&about, text, hint);
    }
    if source.begun.is_none() {
        let text = "it has not reported yet".to_owned();
        return Finding::note(&about, text, "look again in a moment".to_owned());
    }
    if let Some(suspect) = source.suspect {
        let text = format!("{} of {} workloads vanished at once", suspect.missing, suspect.of);
        let hint = format!(
            "`netstead get workloads --source {name}` shows them; if they are really gone, wait: it is believed once it says so again"
        );
        return Finding::problem(&about, text, hint);
    }
    match &source.view {
        View::Complete => {
            Finding::fine(&about, format!("it sees everything: {}", many(source.workloads, "workload")))
        }
        View::Partial { reason } => Finding::problem(
            &about,
            format!("it does not see everything: {reason}"),
            "until it does, no name of it goes".to_owned(),
        ),
        View::Failed { reason } => Finding::problem(
            &about,
            format!("it sees nothing: {reason}"),
            format!(
                "correct what `[source.{name}]` says, or what it looks at; until then, no name of it goes"
            ),
        ),
    }
}

/// `1 zone`, `2 zones`.
fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn detached_findings(status: &EngineStatus) -> impl Iterator<Item = Finding> {
    status.detached.iter().filter(|one| one.owned > 0).map(|one| {
        let about = format!("dns.{}", one.name);
        let text = format!(
            "it is no longer configured, and {} of ours stay on {}",
            many(one.owned, "value"),
            one.server
        );
        let hint = format!("configure it again, or see `netstead clean --provider {}`", one.name);
        Finding::note(&about, text, hint)
    })
}
