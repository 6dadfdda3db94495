//! [`Guest`]: everything known of one guest, and when each part is read again.

use std::{sync::Arc, time::Duration};

use netstead_model::Workload;

use super::{
    api::ApiError,
    guest_config::GuestConfig,
    types::{GuestInterface, LearnedAddress, Resource},
};

/// A configuration is read again after this time though nothing seems to have changed.
const CONFIG_LIFE: Duration = Duration::from_mins(10);
/// The first pause of an agent that does not answer; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause of an agent that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// A guest that runs for less than this may still have the name of its template.
const JUST_STARTED: u64 = 60;

/// The two kinds of guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestKind {
    Machine,
    Container,
}

impl GuestKind {
    /// The word in paths of the API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Machine => "qemu",
            Self::Container => "lxc",
        }
    }
}

/// The outcome of asking the guest itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Asked {
    #[default]
    Never,
    Answered,
    /// There is no agent to ask, or it must not say. The text is why.
    Off(String),
    /// It should answer and does not: what it said before may still be so.
    Silent(String),
}

/// One guest.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) kind: GuestKind,
    pub(super) resource: Resource,
    pub(super) config: Option<GuestConfig>,
    /// Why the configuration could not be read.
    pub(super) config_error: Option<String>,
    /// The name that the agent tells, and how often in a row it did.
    pub(super) told: Option<(String, u32)>,
    pub(super) asked: Asked,
    pub(super) interfaces: Vec<GuestInterface>,
    /// Addresses that the network learned, for a guest that says nothing itself.
    pub(super) learned: Vec<LearnedAddress>,
    pub(super) config_due: Duration,
    pub(super) addresses_due: Duration,
    /// How often in a row the agent did not answer.
    pub(super) failures: u32,
    /// A read is under way.
    pub(super) busy: bool,
    /// The workload made of all this; none if something changed since.
    pub(super) workload: Option<Arc<Workload>>,
}

/// The outcome of one read.
#[derive(Debug, Default)]
pub(super) struct GuestReading {
    pub(super) config: Option<Result<GuestConfig, ApiError>>,
    pub(super) hostname: Option<String>,
    pub(super) interfaces: Option<Result<Vec<GuestInterface>, ApiError>>,
    /// None if they were not asked for, or cannot be read now.
    pub(super) learned: Option<Vec<LearnedAddress>>,
}

impl Guest {
    pub(super) fn new(kind: GuestKind, resource: Resource) -> Self {
        Self {
            kind,
            resource,
            config: None,
            config_error: None,
            told: None,
            asked: Asked::Never,
            interfaces: Vec::new(),
            learned: Vec::new(),
            config_due: Duration::ZERO,
            addresses_due: Duration::ZERO,
            failures: 0,
            busy: false,
            workload: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.resource.status.as_deref() == Some("running")
    }

    /// Its node is offline, so the list says little of it.
    pub(super) fn is_lost(&self) -> bool {
        self.resource.status.as_deref().is_none_or(|status| status == "unknown")
    }

    /// Whether the first read of it has not ended: the next looks show more. A read that failed has ended.
    pub(super) fn is_unread(&self) -> bool {
        if self.is_lost() || self.config_error.is_some() {
            return false;
        }
        let unasked = self.is_running() && self.asked == Asked::Never;
        let unsettled = self.asked == Asked::Answered && !self.is_name_settled();
        self.config.is_none() || unasked || unsettled
    }

    /// Takes over what the list says now. Uptime grows by itself; only a smaller one is a change.
    pub(super) fn update(&mut self, mut now: Resource) {
        let old = &self.resource;
        let lost = now.status.as_deref().is_none_or(|status| status == "unknown");
        if lost {
            // The list shows neither name nor tags then: those from before stay.
            now.name = now.name.or_else(|| old.name.clone());
            now.tags = now.tags.or_else(|| old.tags.clone());
            now.pool = now.pool.or_else(|| old.pool.clone());
        }
        let restarted = now.uptime < old.uptime;
        let same = Resource { uptime: old.uptime, ..now.clone() } == *old;
        if restarted && !lost {
            self.told = None;
        }
        if !same || (restarted && !lost) {
            (self.config_due, self.addresses_due) = (Duration::ZERO, Duration::ZERO);
            self.workload = None;
        }
        self.resource = now;
    }

    /// Whether the name that the agent tells counts: a clone tells the name of its template for some seconds.
    pub(super) fn is_name_settled(&self) -> bool {
        let young = self.resource.uptime.is_some_and(|uptime| uptime < JUST_STARTED);
        self.told.as_ref().is_none_or(|(_, times)| !young || *times > 1)
    }

    /// Takes over a read that ended at `now`.
    pub(super) fn apply(&mut self, reading: GuestReading, now: Duration, every: Duration) {
        self.busy = false;
        self.workload = None;
        match reading.config {
            Some(Ok(config)) => {
                let reused = self.config.as_ref().is_some_and(|old| old.incarnation != config.incarnation);
                if reused {
                    // Another guest has the number now: nothing that was known counts for it.
                    (self.told, self.asked) = (None, Asked::Never);
                    (self.interfaces, self.learned) = (Vec::new(), Vec::new());
                }
                (self.config, self.config_error) = (Some(config), None);
                self.config_due = now.saturating_add(CONFIG_LIFE);
            }
            Some(Err(error)) => {
                self.config_error = Some(error.to_string());
                self.config_due = now.saturating_add(FIRST_PAUSE);
            }
            None => {}
        }
        if let Some(hostname) = reading.hostname {
            let times = self.told.take().filter(|(old, _)| *old == hostname).map_or(0, |(_, times)| times);
            self.told = Some((hostname, times.saturating_add(1)));
        }
        self.addresses_due = now.saturating_add(every);
        match reading.interfaces {
            Some(Ok(interfaces)) => {
                (self.asked, self.failures) = (Asked::Answered, 0);
                (self.interfaces, self.learned) = (interfaces, Vec::new());
            }
            Some(Err(error)) => {
                self.learned = reading.learned.unwrap_or_else(|| std::mem::take(&mut self.learned));
                match error {
                    ApiError::AgentOff => {
                        self.asked = Asked::Off("no guest agent is configured".into());
                        self.interfaces.clear();
                    }
                    ApiError::NotImplemented { reason } | ApiError::Other { status: 200, reason, .. } => {
                        self.asked = Asked::Off(reason);
                        self.interfaces.clear();
                    }
                    error => {
                        self.asked = Asked::Silent(error.to_string());
                        self.failures = self.failures.saturating_add(1);
                        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(5)).min(LONGEST_PAUSE);
                        self.addresses_due = now.saturating_add(pause.max(every));
                    }
                }
            }
            // Its configuration alone was read: its addresses stay.
            None => {}
        }
        if !self.is_name_settled() {
            self.addresses_due = now;
        }
    }
}
