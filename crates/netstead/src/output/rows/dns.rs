//! The rows of tables about names, sources and providers.

use netstead_client::types::{
    BudgetOutput, DriftOutput, HistoryOutput, IgnoredDriftOutput, ObjectDriftOutput, PlanOutput,
    PoolDriftOutput, ProviderOutput, RecordOutput, ScopeOutput, ScopeStanding, SourceOutput, WorkloadOutput,
    ZoneOutput,
};
use netstead_model::Span;

use super::{Audience, Row, text};

type Columns = (&'static [&'static str], &'static [&'static str]);

impl Row for SourceOutput {
    const COLUMNS: Columns = (&["NAME", "TYPE", "VIEW", "AGE", "WORKLOADS"], &["STANDING", "REASON"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        let standing = match &self.suspect {
            Some(suspect) => suspect.clone(),
            None if self.detached => "detached".to_owned(),
            None => self.waiting.clone().unwrap_or_else(|| "believed".to_owned()),
        };
        let doubtful = self.suspect.is_some() || self.detached;
        vec![
            self.name.clone(),
            self.kind.to_string(),
            if doubtful {
                format!("{}, {}", self.view, if self.detached { "detached" } else { "suspect" })
            } else {
                self.view.to_string()
            },
            self.begun.map(|begun| look.since(begun)).unwrap_or_default(),
            self.workloads.to_string(),
            standing,
            text(self.reason.as_ref()),
        ]
    }

    fn parts(&self, look: Audience) -> Vec<Vec<String>> {
        self.scopes.iter().map(|scope| scope_cells(self, scope, look)).collect()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// The row of one scope below its source.
fn scope_cells(source: &SourceOutput, scope: &ScopeOutput, look: Audience) -> Vec<String> {
    let standing = match (&scope.suspect, &scope.standing) {
        (Some(suspect), _) => suspect.clone(),
        (None, ScopeStanding::Listed) if scope.reason.is_some() => "nothing is removed".to_owned(),
        (None, ScopeStanding::Listed) if scope.absent > 0 => format!("{} absent", scope.absent),
        (None, ScopeStanding::Listed) => "believed".to_owned(),
        (None, standing) => standing.to_string(),
    };
    let view = match (&scope.standing, &scope.suspect) {
        (ScopeStanding::Listed | ScopeStanding::Unassigned, None) => scope.view.to_string(),
        (ScopeStanding::Listed | ScopeStanding::Unassigned, Some(_)) => format!("{}, suspect", scope.view),
        _ => "retired".to_owned(),
    };
    vec![
        format!("{}/{}", source.name, scope.name),
        String::new(),
        view,
        scope.begun.map(|begun| look.since(begun)).unwrap_or_default(),
        scope.workloads.to_string(),
        standing,
        text(scope.reason.as_ref()),
    ]
}

impl Row for ProviderOutput {
    const COLUMNS: Columns = (
        &["NAME", "TYPE", "STATE", "OWNED", "PENDING", "PARKED", "BLOCKED", "LAST PASS"],
        &["DRIFT", "MODE", "SERVER", "ZONES", "GENERATION", "OUTCOME", "BUDGET", "ERROR"],
    );

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.name.clone(),
            self.kind.to_string(),
            state(self).to_owned(),
            self.owned.to_string(),
            self.pending.to_string(),
            self.parked.as_ref().map_or(0, |parked| parked.changes).to_string(),
            (self.blocked + self.rejected).to_string(),
            self.pass.as_ref().map(|pass| look.since(pass.at)).unwrap_or_default(),
            self.drift.to_string(),
            self.mode.to_string(),
            self.server.clone(),
            self.zones.join(" "),
            self.generation.to_string(),
            self.pass.as_ref().map(|pass| pass.outcome.clone()).unwrap_or_default(),
            self.budget.as_ref().map(budget).unwrap_or_default(),
            text(self.error.as_ref()),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// `17 of 1200 requests in 5m`
pub(crate) fn budget(budget: &BudgetOutput) -> String {
    let BudgetOutput { made, limit, window_seconds, wait_seconds } = budget;
    let wait = wait_seconds.map(|wait| format!(", waits {}", Span::from_secs(wait))).unwrap_or_default();
    format!("{made} of {limit} requests in {}{wait}", Span::from_secs(*window_seconds))
}

/// The state in one word.
fn state(provider: &ProviderOutput) -> &'static str {
    match provider {
        ProviderOutput { detached: true, .. } => "detached",
        ProviderOutput { error: Some(_), .. } => "failing",
        ProviderOutput { paused, .. } if !paused.is_empty() => "paused",
        ProviderOutput { parked: Some(_), .. } => "parked",
        ProviderOutput { rejected: 1.., .. } => "rejected",
        ProviderOutput { in_sync: true, .. } => "in sync",
        ProviderOutput { pass: None, .. } => "starting",
        _ => "pending",
    }
}

impl Row for PlanOutput {
    const COLUMNS: Columns = (
        &["PROVIDER", "GENERATION", "CHANGES", "PARKED", "BLOCKED", "KEPT", "DRIFT"],
        &["MODE", "HASH", "PARKED HASH"],
    );

    fn cells(&self, _: Audience) -> Vec<String> {
        let objects = self.objects.clone().unwrap_or_default();
        vec![
            self.provider.clone(),
            self.generation.to_string(),
            (self.changes.len() + objects.changes.len()).to_string(),
            self.parked.as_ref().map_or(0, |parked| parked.changes).to_string(),
            (self.blocked.len() + objects.blocked.len()).to_string(),
            (self.kept.len() + objects.kept.len()).to_string(),
            (self.drift.len() + objects.drift.len()).to_string(),
            self.mode.to_string(),
            self.hash.clone(),
            self.parked.as_ref().map(|parked| parked.hash.clone()).unwrap_or_default(),
        ]
    }

    fn name(&self) -> String {
        self.provider.clone()
    }
}

impl Row for RecordOutput {
    const COLUMNS: Columns = (&["NAME", "TYPE", "VALUE", "TTL", "STATE", "PROVIDER"], &["ZONE", "REASONS"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.name.clone(),
            self.kind.to_string(),
            self.value.clone(),
            self.ttl.to_string(),
            self.state.to_string(),
            self.provider.clone(),
            self.zone.clone(),
            self.reasons.join("; "),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> String {
        format!("{} {} {} {}", self.provider, self.name, self.kind, self.value)
    }
}

impl Row for ZoneOutput {
    const COLUMNS: Columns = (&["ZONE", "PROVIDER", "RECORDS", "PENDING"], &["PAUSED"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.zone.clone(),
            self.provider.clone(),
            self.records.to_string(),
            self.pending.to_string(),
            self.paused.to_string(),
        ]
    }

    fn name(&self) -> String {
        self.zone.clone()
    }

    fn identity(&self) -> String {
        format!("{} {}", self.provider, self.zone)
    }
}

impl Row for WorkloadOutput {
    const COLUMNS: Columns =
        (&["SOURCE", "NAME", "KIND", "STATE", "ADDRESSES", "NAMES"], &["ID", "SCOPE", "FACTS", "WHY NOT"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.source.clone(),
            self.name.clone(),
            self.kind.to_string(),
            self.state.clone(),
            self.addresses.join(" "),
            self.names.join(" "),
            self.id.clone(),
            text(self.scope.as_ref()),
            self.facts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
            self.why_not.join("; "),
        ]
    }

    fn name(&self) -> String {
        format!("{}/{}", self.source, self.id)
    }
}

impl Row for HistoryOutput {
    const COLUMNS: Columns =
        (&["AT", "WHAT", "PROVIDER", "NAME", "CHANGE"], &["GENERATION", "ZONE", "BY", "WHY", "REASON", "ID"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        let mut whys: Vec<&str> = self.changes.iter().map(|change| change.why.as_str()).collect();
        whys.dedup();
        vec![
            format!("{:.0}", self.at),
            self.what.to_string(),
            text(self.provider.as_ref().or(self.source.as_ref())),
            text(self.name.as_ref().or(self.zone.as_ref()).or(self.object.as_ref())),
            self.text.clone(),
            self.generation.map(|generation| generation.to_string()).unwrap_or_default(),
            text(self.zone.as_ref()),
            text(self.by.as_ref()),
            whys.join("; "),
            text(self.reason.as_ref()),
            self.id.clone(),
        ]
    }

    fn name(&self) -> String {
        self.id.clone()
    }
}

impl Row for PoolDriftOutput {
    const COLUMNS: Columns = (&["POOL", "KEY", "ADDRESS", "DRIFT", "WHY"], &["STRAY", "BACKEND KEY"]);

    fn cells(&self, _: Audience) -> Vec<String> {
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            self.pool.clone(),
            or_empty(&self.key),
            or_empty(&self.address),
            self.kind.to_string(),
            self.reason.clone(),
            self.stray.map(|stray| stray.to_string()).unwrap_or_default(),
            or_empty(&self.backend_key),
        ]
    }

    fn name(&self) -> String {
        self.key.clone().unwrap_or_else(|| self.pool.clone())
    }
}

impl Row for ObjectDriftOutput {
    const COLUMNS: Columns = (&["PROVIDER", "OBJECT", "FIELD", "FOUND", "WANTED"], &[]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.provider.clone(),
            self.object.clone(),
            text(self.field.as_ref()),
            text(self.found.as_ref()),
            text(self.wanted.as_ref()),
        ]
    }

    fn name(&self) -> String {
        self.object.clone()
    }
}

impl Row for IgnoredDriftOutput {
    const COLUMNS: Columns = (&["PROVIDER", "NAME", "TYPE", "VALUE", "REASON", "BY", "AGE"], &["DRIFT"]);

    fn cells(&self, look: Audience) -> Vec<String> {
        vec![
            self.provider.clone(),
            self.name.clone(),
            self.kind.to_string(),
            self.value.clone(),
            self.reason.clone(),
            self.by.clone(),
            look.since(self.at),
            self.drift.to_string(),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> String {
        format!("{} {} {} {}", self.provider, self.name, self.kind, self.value)
    }
}

impl Row for DriftOutput {
    const COLUMNS: Columns = (&["PROVIDER", "NAME", "TYPE", "VALUE", "DRIFT"], &[]);

    fn cells(&self, _: Audience) -> Vec<String> {
        vec![
            self.provider.clone(),
            self.name.clone(),
            self.kind.to_string(),
            self.value.clone(),
            self.drift.to_string(),
        ]
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
