//! [`Denial`]: remembers refused credentials, so that they are not sent again and again.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use netstead_model::{Clock, ProviderError};

/// Refused credentials are not sent again before this time is over.
const REST: Duration = Duration::from_mins(1);

/// The newest refusal of credentials.
#[derive(Debug)]
pub(super) struct Denial {
    clock: Arc<dyn Clock>,
    newest: Mutex<Option<(Duration, ProviderError)>>,
}

impl Denial {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, newest: Mutex::new(None) }
    }

    /// Call before each request. The refusal, if it is less than a minute old.
    pub(super) fn check(&self) -> Result<(), ProviderError> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((at, error)) if self.clock.monotonic().saturating_sub(*at) < REST => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Notes a refusal.
    pub(super) fn note(&self, error: ProviderError) -> ProviderError {
        if matches!(error, ProviderError::Denied { .. }) {
            let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            *newest = Some((self.clock.monotonic(), error.clone()));
        }
        error
    }
}
