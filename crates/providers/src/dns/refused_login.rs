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
pub(super) struct RefusedLogin {
    clock: Arc<dyn Clock>,
    refused: Mutex<Option<(Duration, ProviderError)>>,
}

impl RefusedLogin {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, refused: Mutex::default() }
    }

    /// The refusal that still counts. Call before credentials are sent.
    pub(super) fn check(&self) -> Result<(), ProviderError> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &*refused {
            Some((at, error)) if self.clock.monotonic().saturating_sub(*at) < PAUSE => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Remembers a refusal, and passes the outcome on.
    pub(super) fn note<T, E: Into<ProviderError>>(&self, outcome: Result<T, E>) -> Result<T, ProviderError> {
        let outcome = outcome.map_err(Into::into);
        if let Err(error @ ProviderError::Denied { .. }) = &outcome {
            self.pause(error.clone());
        }
        outcome
    }

    /// Lets no login happen for a minute, because of `error`.
    pub(super) fn pause(&self, error: ProviderError) {
        let refused = Some((self.clock.monotonic(), error));
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }
}
