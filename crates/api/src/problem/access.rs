//! Problems with tokens.

use std::time::Duration;

use axum::http::StatusCode;
use netstead_store::StoreError;

use super::Failure;
use crate::access::{AccessError, Denied};

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", denied.to_string())
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Invalid { field, reason } => Self::impossible(field, reason),
            AccessError::NoSuchToken { .. } => Self::not_found("no-such-token", error.to_string()),
            AccessError::NoSuchSession { .. } => Self::not_found("no-such-session", error.to_string()),
            AccessError::NoSuchSubject { .. } => Self::forbidden(error.to_string()),
            AccessError::LinkUsed => {
                Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", error.to_string())
            }
            AccessError::Damaged { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", error.to_string())
            }
            AccessError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown { reason } => {
                let told = format!("it is unknown whether this was done ({reason}): look, and ask again");
                Self::new(StatusCode::GATEWAY_TIMEOUT, "unknown", told)
            }
            StoreError::Unavailable { .. } | StoreError::Locked { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string())
                    .retry_after(Duration::from_secs(1))
            }
            StoreError::Damaged { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", error.to_string())
            }
            other => Self::internal(other),
        }
    }
}
