//! Access: tokens, their roles and their scopes.
//!
//! A token is `nst_<id>_<secret>`. The store has the id and the SHA-256 of the secret, never the secret itself.

mod digest;
mod error;
mod grant;
mod role;
mod scopes;
mod secret;
mod token;
mod token_cache;
mod tokens;

pub use self::{
    error::{AccessError, Denied},
    grant::Grant,
    role::Role,
    scopes::Scopes,
    secret::Secret,
    token::{NewToken, Token},
    token_cache::{is_token, survives_restore},
    tokens::Tokens,
};
