//! One scope of a source over time: its newest view, its clocks, and whether it is suspect or retired.

use jiff::Timestamp;
use netstead_model::{Span, View};
use serde::{Deserialize, Serialize};

use super::{Absence, Suspicion};
use crate::{Digest, Now};

/// The newest view of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeState {
    pub view: View,
    /// When what it shows was seen, for people.
    pub begun: Timestamp,
    /// The same in engine time.
    pub began: u64,
    /// Engine time up to which its newest report speaks.
    pub last: u64,
    /// Engine time of the newest Complete report…
    pub last_complete: Option<u64>,
    /// …and when that was begun, for people.
    pub complete_at: Option<Timestamp>,
    pub session: u64,
    /// The source's number of what it showed last.
    pub version: u64,
    /// It was shown in full since the last reconnect, so changes to `version` can be applied.
    pub based: bool,
    /// The source's configuration when the scope was last in the roster.
    pub config: Digest,
    /// It gave a Complete report to the present leader.
    pub fresh: bool,
    pub suspect: Option<Suspicion>,
    /// How long, and in how many reports, the scope was Complete under the present leader.
    pub clock: Clock,
    /// The clock at the last reconnect: no absence began to count before.
    pub restarted: Clock,
    pub standing: Standing,
    /// A person ended it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cleaned: bool,
    #[serde(skip)]
    pub(super) counts: Counts,
}

/// The two clocks of a scope. They stand still while the scope is not Complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Milliseconds.
    pub time: u64,
    pub reports: u64,
}

/// Whether a source still looks after a scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The scope is in the roster.
    #[default]
    Listed,
    /// The scope is missing from the roster since this engine time.
    Retired { since: u64, by: RetiredBy },
    /// The scope of workloads that came without one, of a source that has others: each belongs here until a scope shows it.
    Unassigned,
}

/// Why a scope is missing from the roster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetiredBy {
    /// The source is configured otherwise: a person agrees before anything is removed.
    Configuration,
    /// The platform says that it is gone: its workloads are absent.
    Platform,
}

/// The workloads of one scope by what is known of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) entries: usize,
    pub(super) present: usize,
    /// Absent, and never said again while the source was suspect.
    pub(super) missing: usize,
}

impl Default for ScopeState {
    fn default() -> Self {
        Self {
            view: View::Failed { reason: "no report yet".into() },
            begun: Timestamp::MIN,
            began: 0,
            last: 0,
            last_complete: None,
            complete_at: None,
            session: 0,
            version: 0,
            based: false,
            config: Digest::of([""]),
            fresh: false,
            suspect: None,
            clock: Clock::default(),
            restarted: Clock::default(),
            standing: Standing::Listed,
            cleaned: false,
            counts: Counts::default(),
        }
    }
}

impl ScopeState {
    /// How many of its workloads are there.
    pub fn present(&self) -> usize {
        self.counts.present
    }

    /// How many workloads belong to it, there or not.
    pub fn workloads(&self) -> usize {
        self.counts.entries
    }

    /// How long an absence has lasted, counting only while the scope was Complete.
    pub fn waited(&self, absence: &Absence) -> Span {
        let from = absence.from.time.max(self.restarted.time);
        Span::from_millis(self.clock.time.saturating_sub(from))
    }

    /// How many Complete reports lacked it.
    pub fn reports(&self, absence: &Absence) -> u64 {
        self.clock.reports.saturating_sub(absence.from.reports.max(self.restarted.reports))
    }

    /// Whether it was absent for long enough and often enough.
    pub fn passed(&self, absence: &Absence, grace: Span) -> bool {
        self.waited(absence) >= grace && self.reports(absence) >= 2
    }

    /// An absence that begins now. One that begins with a Complete report has been missed once.
    pub(super) fn absence(&self, now: Now, counts: bool) -> Absence {
        let reports = self.clock.reports.saturating_sub(u64::from(counts));
        let from = Clock { time: self.clock.time, reports };
        Absence { since: now.millis, from, confirmed: false, waited: Span::ZERO, reports: 0 }
    }

    /// The connection is new: what was absent may be there again.
    pub(super) fn restart(&mut self, now: Now) {
        self.restarted = self.clock;
        self.based = false;
        if let Some(suspect) = &mut self.suspect {
            suspect.restart(now);
        }
    }

    /// Whether its own view may be believed now.
    pub(super) fn settled(&self) -> bool {
        self.fresh && self.suspect.is_none() && self.view.is_complete()
    }

    /// Whether the roster has it.
    pub fn is_listed(&self) -> bool {
        self.standing == Standing::Listed
    }

    /// Whether it is missing from the roster because of the configuration.
    pub(super) fn left_the_configuration(&self) -> bool {
        matches!(self.standing, Standing::Retired { by: RetiredBy::Configuration, .. })
    }
}
