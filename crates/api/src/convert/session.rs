//! Sessions.

use netstead_client::types::SessionOutput;

use super::token::role;
use crate::access::{LoginSession, Secret, Token};

pub(crate) fn output(session: &LoginSession, token: &Token, secret: Option<&Secret>) -> SessionOutput {
    let texts = |names: &[netstead_model::Ident]| names.iter().map(ToString::to_string).collect();
    let until = session.until();
    SessionOutput {
        id: session.id.clone(),
        token: token.id.clone(),
        subject: token.subject.to_string(),
        role: role(token.role),
        vrfs: texts(&token.scopes.vrfs),
        pools: texts(&token.scopes.pools),
        zones: token.scopes.zones.iter().map(ToString::to_string).collect(),
        created: session.created,
        seen: session.seen,
        until: token.expires.map_or(until, |expires| expires.min(until)),
        agent: session.agent.clone(),
        current: false,
        secret: secret.map(|secret| secret.expose().to_owned()),
    }
}
