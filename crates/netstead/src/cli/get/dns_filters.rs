//! Filters of `netstead get` for lists about names.

use clap::{Args, ValueEnum};
use netstead_client::types::{self, ChangeKind};
use netstead_model::{Ident, Name};

use super::Newest;

#[derive(Debug, Default, Args)]
pub(crate) struct Records {
    #[command(flatten)]
    pub(crate) at: AtName,
    #[command(flatten)]
    pub(crate) of_provider: OfProvider,
    /// Only those in this state
    #[arg(long)]
    pub(crate) state: Option<RecordState>,
}

/// How a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordState {
    /// As it should be
    Ok,
    /// About to change
    Pending,
    /// Held back by a guard
    Parked,
    /// A record that is not ours is in the way
    Blocked,
    /// Not as we left it
    Drift,
    /// Not ours
    Foreign,
    /// The server cannot be read now
    Unknown,
}

impl From<RecordState> for types::RecordState {
    fn from(state: RecordState) -> Self {
        match state {
            RecordState::Ok => Self::Ok,
            RecordState::Pending => Self::Pending,
            RecordState::Parked => Self::Parked,
            RecordState::Blocked => Self::Blocked,
            RecordState::Drift => Self::Drift,
            RecordState::Foreign => Self::Foreign,
            RecordState::Unknown => Self::Unread,
        }
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    pub(crate) of_provider: OfProvider,
    #[command(flatten)]
    pub(crate) at: AtName,
    /// Only this: applied, changed, rejected, unknown, parked, late, paused, …
    #[arg(long)]
    pub(crate) what: Option<ChangeKind>,
    #[command(flatten)]
    pub(crate) newest: Newest,
}

/// A list of which each thing is at one name.
#[derive(Debug, Default, Args)]
pub(crate) struct AtName {
    /// Only those of this zone
    #[arg(long)]
    pub(crate) zone: Option<Name>,
    /// Only those at this name
    #[arg(long)]
    pub(crate) name: Option<Name>,
}

/// A list of which each thing is of one provider.
#[derive(Debug, Default, Args)]
pub(crate) struct OfProvider {
    /// Only those of this provider
    #[arg(long)]
    pub(crate) provider: Option<Ident>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Workloads {
    /// Only those of this source
    #[arg(long)]
    pub(crate) source: Option<Ident>,
    /// Only those that ask for a name and do not get it, with the reasons
    #[arg(long)]
    pub(crate) problems: bool,
}
