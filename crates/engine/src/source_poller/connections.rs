//! Follows how the scopes of a source fail and come back.

use std::collections::BTreeMap;

use netstead_model::{Report, Roster, Scope, View};

/// The last state of each scope.
#[derive(Debug, Default)]
pub(super) struct ScopeConnections(BTreeMap<Scope, Connection>);

#[derive(Debug, Default)]
struct Connection {
    failed: bool,
    incomplete: bool,
    /// How often it came back after it had failed.
    returns: u64,
}

impl ScopeConnections {
    /// Logs what changed, and counts a scope that comes back as connected anew: it may know less than it did, so every
    /// grace of it starts again.
    pub(super) fn note(&mut self, report: &mut Report) {
        let source = &report.source;
        if let Roster::Partial { reason } = &report.roster {
            for (scope, known) in &mut self.0 {
                if !report.scopes.contains_key(scope) {
                    known.failed = true;
                }
            }
            if report.scopes.is_empty() {
                self.0.entry(Scope::WHOLE).or_default().log(source, &Scope::WHOLE, &failed(reason));
            }
        }
        for (scope, seen) in &mut report.scopes {
            let known = self.0.entry(scope.clone()).or_default();
            let fails = seen.view.is_failed();
            known.returns += u64::from(known.failed && !fails);
            seen.session = seen.session.wrapping_add(known.returns);
            known.log(source, scope, &seen.view);
        }
    }
}

impl Connection {
    fn log(&mut self, source: &netstead_model::Ident, scope: &Scope, view: &View) {
        let fails = view.is_failed();
        match view {
            View::Failed { reason } if !self.failed => {
                tracing::warn!(%source, %scope, reason, "A source shows nothing.");
            }
            View::Partial { reason } if !self.incomplete || self.failed => {
                tracing::warn!(%source, %scope, reason, "A source does not show everything.");
            }
            View::Complete if self.incomplete => {
                tracing::info!(%source, %scope, "A source shows everything again.");
            }
            _ => {}
        }
        (self.failed, self.incomplete) = (fails, !view.is_complete());
    }
}

fn failed(reason: &str) -> View {
    View::Failed { reason: reason.to_owned() }
}
