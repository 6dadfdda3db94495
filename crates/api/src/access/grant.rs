//! [`Grant`]: what a verified token allows.

use std::sync::Arc;

use netstead_ledger::Caller;

use super::{Role, Scopes, Token};

/// The holder of a token, let in.
#[derive(Debug, Clone)]
pub struct Grant {
    token: Arc<Token>,
}

impl Grant {
    pub(super) fn new(token: Arc<Token>) -> Self {
        Self { token }
    }

    /// The id of the token, which is no secret.
    pub fn id(&self) -> &str {
        &self.token.id
    }

    pub fn subject(&self) -> &Arc<str> {
        &self.token.subject
    }

    pub fn role(&self) -> Role {
        self.token.role
    }

    pub fn scopes(&self) -> &Scopes {
        &self.token.scopes
    }

    /// The caller as the ledger gets it.
    pub fn caller(&self, request: &Arc<str>) -> Caller {
        Caller {
            subject: Arc::clone(&self.token.subject),
            behalf: None,
            manager: self.token.role >= Role::Write,
            request: Some(Arc::clone(request)),
        }
    }
}
