//! [`RefusedLogin`]: credentials that a server refused are not sent again for a minute.
//!
//! Servers count failed logins and lock the address out, also for people: AdGuard Home for a quarter of an hour after five.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::{Clock, ProviderError};

/// A little more than the minute over which servers count.
const PAUSE: Duration = Duration::from_secs(65);

/// The newest refusal, and the time of it.
#[derive(Debug)]
pub(crate) struct RefusedLogin {
    clock: Arc<dyn Clock>,
    refused: Mutex<Option<(Duration, ProviderError)>>,
}

impl RefusedLogin {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, refused: Mutex::default() }
    }

    /// The refusal that still counts. Call before credentials are sent.
    pub(crate) fn check(&self) -> Result<(), ProviderError> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &*refused {
            Some((at, error)) if self.clock.monotonic().saturating_sub(*at) < PAUSE => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Remembers a refusal, and passes the outcome on.
    pub(crate) fn note<T, E: Into<ProviderError>>(&self, outcome: Result<T, E>) -> Result<T, ProviderError> {
        outcome.map_err(|error| self.remember(error.into()))
    }

    /// Remembers an error if it is a refusal, and passes it on.
    pub(crate) fn remember(&self, error: ProviderError) -> ProviderError {
        if let ProviderError::Denied { .. } = &error {
            self.pause(error.clone());
        }
        error
    }

    /// Lets no login happen for a minute, because of `error`.
    pub(crate) fn pause(&self, error: ProviderError) {
        let refused = Some((self.clock.monotonic(), error));
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn refused_credentials_are_tried_again_after_more_than_a_minute() {
        let clock = ManualClock::default();
        let refused = RefusedLogin::new(clock.shared());
        let refusal = ProviderError::Denied { server: "here".into(), reason: "no".into() };
        assert_eq!(refused.check(), Ok(()));
        assert_eq!(refused.note::<(), _>(Err(refusal.clone())), Err(refusal.clone()));
        clock.advance(Duration::from_secs(64));
        assert_eq!(refused.check(), Err(refusal.clone()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(refused.check(), Ok(()));
        let lost = ProviderError::Unreachable { server: "here".into(), reason: "gone".into() };
        assert_eq!(refused.remember(lost.clone()), lost);
        assert_eq!(refused.check(), Ok(()));
    }
}
