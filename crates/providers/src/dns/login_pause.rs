//! [`LoginPause`]: keeps from trying refused credentials over and over.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::{Clock, ProviderError};

/// After a refusal no login is tried for this long: servers lock out addresses that try often.
const PAUSE: Duration = Duration::from_mins(1);

/// Remembers the last refusal of credentials.
#[derive(Debug)]
pub(super) struct LoginPause {
    clock: Arc<dyn Clock>,
    refused: Mutex<Option<(Duration, ProviderError)>>,
}

impl LoginPause {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, refused: Mutex::default() }
    }

    /// The last refusal, if it is too early to try again.
    pub(super) fn check(&self) -> Result<(), ProviderError> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &*refused {
            Some((at, error)) if self.clock.monotonic().saturating_sub(*at) < PAUSE => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Notes how a login ended.
    pub(super) fn note<T>(&self, outcome: Result<T, ProviderError>) -> Result<T, ProviderError> {
        let refused = match &outcome {
            Err(error @ ProviderError::Denied { .. }) => Some((self.clock.monotonic(), error.clone())),
            _ => None,
        };
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use netstead_model::ManualClock;

    use super::*;

    #[test]
    fn refused_credentials_are_tried_again_after_a_minute() {
        let clock = ManualClock::default();
        let pause = LoginPause::new(clock.shared());
        let refusal = ProviderError::Denied { server: "here".into(), reason: "no".into() };
        assert_eq!(pause.check(), Ok(()));
        assert_eq!(pause.note::<()>(Err(refusal.clone())), Err(refusal.clone()));
        clock.advance(Duration::from_secs(59));
        assert_eq!(pause.check(), Err(refusal.clone()));
        clock.advance(Duration::from_secs(1));
        assert_eq!(pause.check(), Ok(()));
        assert_eq!(pause.note(Ok(1)), Ok(1));
        assert_eq!(pause.check(), Ok(()));
    }
}
