//! Guards a write: this node still leads, and the time of a pass is not over.

use std::time::Duration;

use netstead_model::{ProviderError, WriteGuard};
use netstead_store::Commit;
use tokio::time::sleep;

use super::{Pass, Worker};
use crate::{engine_state::EngineState, keys};

/// How long a write may take. Without an answer by then, it is unknown whether it took effect.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);
/// How long one pass may write. What is left is planned anew, so that pauses, approvals and newer wishes never wait behind a
/// slow server.
pub(crate) const WRITING: Duration = Duration::from_secs(30);
/// How often storing a report of a late write is tried.
const DOUBT_TRIES: u32 = 6;

impl<P: Pass> Worker<P> {
    /// Asked before every request: the time of the pass is not over, and where the server keeps no fence, the store says that
    /// this node still leads. `late` is the error if it does not; none where the server keeps a fence.
    pub(crate) fn write_guard(
        &self,
        server: &str,
        late: Option<ProviderError>,
        until: Duration,
    ) -> WriteGuard {
        let (shared, server) = (self.shared.clone(), server.to_owned());
        WriteGuard::new(move || {
            let (shared, server, late) = (shared.clone(), server.clone(), late.clone());
            async move {
                if let Some(late) = late {
                    check_leadership(&shared, &server, late).await?;
                }
                // Last, because a unit that is half done goes on when only the time is over.
                if shared.clock.monotonic() >= until {
                    Err(ProviderError::OutOfTime { server })
                } else {
                    Ok(())
                }
            }
        })
    }

    /// Stores that this node wrote to `place` after it lost the lead, so that the new leader reads it again.
    pub(crate) async fn report_late_write(&self, place: &str) {
        let key = format!("{}{}/{place}", keys::DOUBT, self.name());
        let at = self.shared.clock.wall();
        self.shared.count_late(self.name());
        tracing::warn!(provider = %self.name(), zone = place, "The write finished after leadership was lost; the new leader was asked to read the zone again.");
        // Without the epoch as a condition: this node no longer leads.
        for trial in 0..DOUBT_TRIES {
            let told = self.shared.store.commit(Commit::new().put(key.clone(), keys::encode(&at))).await;
            let Err(error) = told else { return };
            if trial + 1 == DOUBT_TRIES {
                tracing::error!(%error, zone = place, "A late write could not be told to the new leader.");
            }
            sleep(Duration::from_millis(100 << trial)).await;
        }
    }
}

/// Asks the store whether this node still leads; `late` is the error if not.
pub(crate) async fn check_leadership(
    shared: &EngineState,
    server: &str,
    late: ProviderError,
) -> Result<(), ProviderError> {
    match shared.lead.still_leads(&*shared.store).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(late),
        Err(error) => {
            let reason = format!("the store does not say who leads: {error}");
            Err(ProviderError::Unreachable { server: server.to_owned(), reason })
        }
    }
}
