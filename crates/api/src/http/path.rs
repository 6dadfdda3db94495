//! Names in paths, parsed, with errors that name them.

use std::{fmt::Display, str::FromStr};

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use netstead_model::{Ident, Key, Name, RecordType};

use crate::{app::AppState, problem::Failure};

/// `{pool}`.
#[derive(Debug)]
pub(crate) struct PoolPath(pub(crate) Ident);

/// `{pool}` and `{key}`.
#[derive(Debug)]
pub(crate) struct KeyPath {
    pub(crate) pool: Ident,
    pub(crate) key: Key,
}

/// `{source}`.
#[derive(Debug)]
pub(crate) struct SourcePath(pub(crate) Ident);

/// `{provider}`.
#[derive(Debug)]
pub(crate) struct ProviderPath(pub(crate) Ident);

/// `{name}`.
#[derive(Debug)]
pub(crate) struct NamePath(pub(crate) Name);

/// `{name}` and `{type}`.
#[derive(Debug)]
pub(crate) struct RecordPath {
    pub(crate) name: Name,
    pub(crate) kind: RecordType,
}

/// Any one other parameter, as text.
#[derive(Debug)]
pub(crate) struct TextPath(pub(crate) String);

async fn params(parts: &mut Parts, app: &AppState) -> Result<RawPathParams, Failure> {
    RawPathParams::from_request_parts(parts, app)
        .await
        .map_err(|error| Failure::unreadable("path", format!("it cannot be read: {error}")))
}

fn named<T: FromStr<Err: Display>>(params: &RawPathParams, name: &'static str) -> Result<T, Failure> {
    let text = params.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| text);
    text.parse().map_err(|error| Failure::unreadable(name, error))
}

impl FromRequestParts<AppState> for PoolPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        named(&params(parts, app).await?, "pool").map(Self)
    }
}

impl FromRequestParts<AppState> for KeyPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let params = params(parts, app).await?;
        Ok(Self { pool: named(&params, "pool")?, key: named(&params, "key")? })
    }
}

impl FromRequestParts<AppState> for SourcePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        named(&params(parts, app).await?, "source").map(Self)
    }
}

impl FromRequestParts<AppState> for ProviderPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        named(&params(parts, app).await?, "provider").map(Self)
    }
}

impl FromRequestParts<AppState> for NamePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        named(&params(parts, app).await?, "name").map(Self)
    }
}

impl FromRequestParts<AppState> for RecordPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let params = params(parts, app).await?;
        Ok(Self { name: named(&params, "name")?, kind: named(&params, "type")? })
    }
}

impl FromRequestParts<AppState> for TextPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let params = params(parts, app).await?;
        Ok(Self(params.iter().next().map(|(_, text)| text.to_owned()).unwrap_or_default()))
    }
}
