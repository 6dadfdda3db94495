//! Problems of the engine.

use std::time::Duration;

use axum::http::StatusCode;
use netstead_engine::EngineError;

use super::Failure;

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        let told = error.to_string();
        match error {
            EngineError::NoSuchProvider { .. } => Self::not_found("no-such-provider", told),
            EngineError::NoSuchPlan { .. } => Self::not_found("no-such-plan", told),
            EngineError::Unread { .. } => Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", told),
            EngineError::NoSuchSource { .. } => Self::not_found("no-such-source", told),
            EngineError::NoSuchGeneration { .. } => Self::not_found("no-such-generation", told),
            EngineError::Attached { .. } => Self::new(StatusCode::CONFLICT, "attached", told),
            EngineError::Detached { .. } => Self::new(StatusCode::CONFLICT, "detached", told),
            EngineError::NotAsShown => Self::new(StatusCode::CONFLICT, "not-as-shown", told),
            EngineError::Server { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "server-unavailable", told)
                    .retry_after(Duration::from_secs(5))
            }
            EngineError::Invalid { field, reason } => Self::impossible(field, reason),
            EngineError::Closed | EngineError::Deposed => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", told)
                    .retry_after(Duration::from_secs(1))
            }
            EngineError::Damaged { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", told),
            EngineError::Store(error) => error.into(),
            _ => Self::internal(told),
        }
    }
}
