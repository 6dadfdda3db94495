//! Checks of all sources and providers for `netstead doctor`: each finding says what is wrong and what to do.

mod ipam;
mod provider;
mod source;

use futures::future::join_all;
pub use netstead_model::Grade;

use crate::{
    Engine, EngineStatus, dns_pass::ProviderHandle, ipam_pass::IpamHandle, source_poller::SourceHandle,
};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub grade: Grade,
    /// `source.office`, `dns.lan`, …
    pub about: String,
    /// One sentence.
    pub text: String,
    /// The next step for a person.
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
        let handles: Vec<SourceHandle> = self.shared().sources().values().cloned().collect();
        let looked = status.sources.iter().map(|one| {
            let handle = handles.iter().find(|handle| *handle.setup.source.name() == one.name);
            source::diagnose_source(one, handle)
        });
        findings.extend(join_all(looked).await.into_iter().flatten());
        let handles: Vec<ProviderHandle> = self.shared().providers().values().cloned().collect();
        let looked = handles.iter().map(|handle| provider::diagnose_provider(handle, &status));
        findings.extend(join_all(looked).await.into_iter().flatten());
        let systems: Vec<IpamHandle> = self.shared().ipam().values().cloned().collect();
        let looked = systems.iter().map(|handle| ipam::diagnose_ipam(handle, &status));
        findings.extend(join_all(looked).await.into_iter().flatten());
        findings.extend(detached_findings(&status));
        findings.extend(lacking_names(status.problems));
        findings
    }
}

/// `1 zone`, `2 zones`.
fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Workloads that ask for a name and do not get it.
fn lacking_names(count: usize) -> Option<Finding> {
    let (workloads, ask, they, do_) = match count {
        0 => return None,
        1 => ("1 workload".to_owned(), "asks", "it", "does"),
        _ => (format!("{count} workloads"), "ask", "they", "do"),
    };
    let text = format!("{workloads} {ask} for a name that {they} {do_} not get");
    Some(Finding::note(
        "names",
        text,
        "`netstead get workloads --problems` lists them, with the reasons".to_owned(),
    ))
}

fn detached_findings(status: &EngineStatus) -> impl Iterator<Item = Finding> {
    status.detached.iter().filter(|one| one.owned > 0).map(|one| {
        let (section, what) = if one.ipam { ("ipam", "object") } else { ("dns", "value") };
        let about = format!("{section}.{}", one.name);
        let text = format!(
            "it is no longer configured, and {} of ours stay on {}",
            many(one.owned, what),
            one.server
        );
        let hint = format!("configure it again, or see `netstead clean --provider {}`", one.name);
        Finding::note(&about, text, hint)
    })
}
