//! Problems with the registry of nodes.

use std::time::Duration;

use axum::http::StatusCode;

use super::Failure;
use crate::cluster::ClusterError;

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        let told = error.to_string();
        match error {
            ClusterError::NoSuchMember { .. } => Self::not_found("no-such-member", told),
            ClusterError::Ambiguous { .. } => Self::new(StatusCode::CONFLICT, "ambiguous", told),
            ClusterError::InUse { .. } => Self::new(StatusCode::CONFLICT, "member-in-use", told),
            ClusterError::NotLeading => Self::new(StatusCode::SERVICE_UNAVAILABLE, "not-leading", told)
                .retry_after(Duration::from_secs(1)),
            ClusterError::Store(error) => error.into(),
            ClusterError::TooOld { .. } | ClusterError::Damaged { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", told)
            }
        }
    }
}
