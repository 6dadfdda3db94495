//! Answers: JSON with the sequence number it was computed at.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use netstead_ledger::{Freshness, ReadAnswer};
use serde::Serialize;

use crate::{http::envelope::SEQ, problem::Failure};

const AGE: HeaderName = HeaderName::from_static("netstead-age");

/// The answer of a handler.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    status: StatusCode,
    body: T,
    seq: Option<u64>,
    age: Option<Duration>,
    tag: Option<String>,
}

impl<T> Answer<T> {
    pub(crate) fn ok(body: T) -> Self {
        Self { status: StatusCode::OK, body, seq: None, age: None, tag: None }
    }

    /// An answer from a read, with its age if it was not promised to be fresh.
    pub(crate) fn from_read(seen: ReadAnswer<T>, freshness: Freshness) -> Self {
        let age = matches!(freshness, Freshness::Stale).then_some(seen.age);
        Self { age, ..Self::ok(seen.value).at(seen.seq) }
    }

    pub(crate) fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn at(mut self, seq: u64) -> Self {
        self.seq = Some(seq);
        self
    }

    pub(crate) fn tagged(mut self, tag: String) -> Self {
        self.tag = Some(tag);
        self
    }
}

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let body = match serde_json::to_vec(&self.body) {
            Ok(body) => body,
            Err(error) => return Failure::internal(error).into_response(),
        };
        let mut response = (self.status, Body::from(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seq) = self.seq {
            headers.insert(SEQ, seq.into());
        }
        if let Some(age) = self.age {
            headers.extend(
                HeaderValue::try_from(format!("{:.3}", age.as_secs_f64())).ok().map(|age| (AGE, age)),
            );
        }
        if let Some(tag) = self.tag {
            headers.extend(HeaderValue::try_from(tag).ok().map(|tag| (header::ETAG, tag)));
        }
        response
    }
}
