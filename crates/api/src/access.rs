//! Access: tokens, their roles and their scopes.
//!
//! A token is `nst_<id>_<secret>`. The store has the id and the SHA-256 of the secret, never the secret itself.
//! A session (`nss_…`) and a login link (`nsl_…`) stand for a token for a while.

mod digest;
mod error;
mod grant;
mod role;
mod scopes;
mod secret;
mod session;
mod session_cache;
mod token;
mod token_cache;
mod tokens;

pub use self::{
    error::{AccessError, Denied},
    grant::Grant,
    role::Role,
    scopes::Scopes,
    secret::Secret,
    session::{LINK_LIFE, LoginLink, LoginSession, SESSION_IDLE, SESSION_LONGEST},
    token::{NewToken, Token},
    token_cache::{is_token, survives_restore},
    tokens::Tokens,
};
