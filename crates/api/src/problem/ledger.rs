//! Problems of the ledger, refusals aside.

use std::time::Duration;

use axum::http::StatusCode;
use netstead_ledger::LedgerError;

use super::Failure;

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let told = error.to_string();
        match error {
            LedgerError::Refused(refusal) => refusal.into(),
            LedgerError::Unknown { .. } => Self::new(StatusCode::GATEWAY_TIMEOUT, "unknown", told),
            LedgerError::TooLate => Self::new(StatusCode::GATEWAY_TIMEOUT, "too-late", told),
            LedgerError::Unavailable { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told)
                    .retry_after(Duration::from_secs(1))
            }
            LedgerError::NotLeading => Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-leading", told)
                .retry_after(Duration::from_secs(1)),
            LedgerError::Gone { .. } => Self::new(StatusCode::GONE, "gone", told),
            LedgerError::Moved { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "moved", told),
            LedgerError::Damaged { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", told),
            _ => Self::internal(told),
        }
    }
}
