//! Tokens.

use netstead_client::types::{TokenInput, TokenOutput, TokenRole};
use netstead_model::Span;

use super::{each, maybe, parse};
use crate::{
    access::{NewToken, Role, Scopes, Secret, Token},
    problem::Failure,
};

/// How long a token is valid that says nothing about it.
const LIFETIME: Span = Span::from_secs(90 * 24 * 3600);

pub(crate) fn new(input: TokenInput) -> Result<NewToken, Failure> {
    Ok(NewToken {
        role: parse("role", input.role.as_str())?,
        scopes: Scopes {
            vrfs: each("vrfs", &input.vrfs)?,
            pools: each("pools", &input.pools)?,
            zones: each("zones", &input.zones)?,
        },
        lifetime: Some(maybe("expires_in", input.expires_in.as_ref())?.unwrap_or(LIFETIME)),
        subject: input.subject,
        description: input.description,
        local_admin: false,
    })
}

pub(super) fn role(role: Role) -> TokenRole {
    match role {
        Role::Read => TokenRole::Read,
        Role::Claim => TokenRole::Claim,
        Role::Write => TokenRole::Write,
        Role::Admin => TokenRole::Admin,
    }
}

pub(crate) fn output(token: &Token, secret: Option<&Secret>) -> TokenOutput {
    let texts = |names: &[netstead_model::Ident]| names.iter().map(ToString::to_string).collect();
    TokenOutput {
        id: token.id.clone(),
        subject: token.subject.to_string(),
        role: role(token.role),
        vrfs: texts(&token.scopes.vrfs),
        pools: texts(&token.scopes.pools),
        zones: token.scopes.zones.iter().map(ToString::to_string).collect(),
        created: token.created,
        expires: token.expires,
        description: token.description.clone(),
        secret: secret.map(|secret| secret.expose().to_owned()),
    }
}
