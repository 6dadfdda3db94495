//! [`Grant`]: what a verified token allows.

use std::sync::Arc;

use netstead_ledger::Caller;

use super::{LoginLink, LoginSession, Role, Scopes, Token};

/// The holder of a token, let in.
#[derive(Debug, Clone)]
pub struct Grant {
    token: Arc<Token>,
    session: Option<Arc<LoginSession>>,
    link: Option<Arc<LoginLink>>,
}

impl Grant {
    pub(super) fn new(token: Arc<Token>) -> Self {
        Self { token, session: None, link: None }
    }

    pub(super) fn of_session(self, session: Arc<LoginSession>) -> Self {
        Self { session: Some(session), ..self }
    }

    pub(super) fn of_link(self, link: Arc<LoginLink>) -> Self {
        Self { link: Some(link), ..self }
    }

    pub(crate) fn token(&self) -> &Arc<Token> {
        &self.token
    }

    /// The session in which this is asked, if it is one.
    pub fn session(&self) -> Option<&LoginSession> {
        self.session.as_deref()
    }

    /// The login link with which this is asked.
    pub(super) fn link(&self) -> Option<&LoginLink> {
        self.link.as_deref()
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

    /// The author of an act as the history of names records it: the subject, and the session if it is one.
    pub fn by(&self) -> String {
        match &self.session {
            Some(session) => format!("{} in session {}", self.token.subject, session.id),
            None => self.token.subject.to_string(),
        }
    }

    /// The caller as the ledger records it. The request of a session names the session.
    pub fn caller(&self, request: &Arc<str>) -> Caller {
        let request = match &self.session {
            Some(session) => format!("{request} in session {}", session.id).into(),
            None => Arc::clone(request),
        };
        Caller {
            subject: Arc::clone(&self.token.subject),
            behalf: None,
            manager: self.token.role >= Role::Write,
            request: Some(request),
        }
    }
}
