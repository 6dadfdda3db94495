//! The layers around every handler: request ids, host check, authentication, forwarding, bodies, queries, answers.

pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod cursor;
pub(crate) mod envelope;
pub(crate) mod etag;
pub(crate) mod failed_requests;
pub(crate) mod forward;
pub(crate) mod host_check;
pub(crate) mod name_scope;
pub(crate) mod path;
pub(crate) mod pool_names;
pub(crate) mod query;
pub(crate) mod session;
pub(crate) mod zone_scope;
