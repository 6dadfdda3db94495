//! The checks of one IPAM system: can it be read, and is it in line.

use std::time::Duration;

use netstead_model::{Diagnosis, ProviderError};
use tokio::time::timeout;

use super::{Finding, Grade, many, provider::pass_findings};
use crate::{EngineStatus, ipam_pass::IpamHandle};

/// A system that is asked by hand has this long: everything on it is read.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn diagnose_ipam(handle: &IpamHandle, status: &EngineStatus) -> Vec<Finding> {
    let (name, provider) = (handle.setup.name(), &handle.setup.provider);
    let about = format!("ipam.{name}");
    let mut findings = Vec::new();
    let late = |_| {
        let reason = format!("no answer within {} s", PATIENCE.as_secs());
        Err(ProviderError::Unreachable { server: provider.server(), reason })
    };
    let read = timeout(PATIENCE, provider.read()).await.unwrap_or_else(late);
    if let Err(error) = &read {
        let hint = match error {
            ProviderError::Denied { .. } => format!("correct the secret in `[ipam.{name}]`"),
            ProviderError::Unreachable { .. } => {
                format!("is it running, and is its address in `[ipam.{name}]` right?")
            }
            _ => "it is asked again; see its own log".to_owned(),
        };
        findings.push(Finding::problem(&about, error.to_string(), hint));
    }
    if read.is_ok() {
        let late = |_| vec![Diagnosis::problem("its checks gave no answer in time", "ask again")];
        let found = timeout(PATIENCE, provider.diagnose()).await.unwrap_or_else(late);
        let finding = |one: Diagnosis| Finding {
            grade: one.grade,
            about: about.clone(),
            text: one.text,
            hint: one.hint,
        };
        findings.extend(found.into_iter().map(finding));
    }
    let Some(one) = status.providers.iter().find(|one| one.name == *name) else { return findings };
    findings.extend(pass_findings(&about, one, read.is_ok()));
    if !findings.iter().any(|finding| finding.grade == Grade::Problem) {
        let state = if one.in_sync { "all is in line" } else { "it answers" };
        let text = format!("{state}: {} of ours on {}", many(one.owned, "object"), one.server);
        findings.insert(0, Finding::fine(&about, text));
    }
    findings
}
