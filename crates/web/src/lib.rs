//! The web page: what the API answers, to be looked at, and its most frequent acts as forms.
//!
//! ```text
//!  browser ─► headers ─► Visit ─► page ─► Calls ─► the API's own routes
//!             CSP, gzip  cookie   askama  in process, with the session of the visitor
//! ```
//!
//! - [`Web`]: the pages, which the binary puts around the API (`netstead_api::Pages`).
//! - `calls.rs`: the only way to data. A page asks the API's routes as any client does, with the visitor's session as the
//!   credential; so roles, scopes, forwarding to the leader and events are those of the API.
//! - `visit.rs`: one request of a visitor that is logged in. `login.rs`: becoming one.
//! - `guard.rs`: the headers of every page, and where writes may come from.
//! - `pages/`: one file per page, with its template in `templates/`.
//! - `assets.rs`: the style and the script, below paths with a hash of their content.
//!
//! Every page works without the script, which adds live updates, keys for the grid and copy buttons.

mod assets;
mod calls;
mod chart;
mod form;
mod guard;
mod login;
mod options;
mod pages;
mod parts;
mod same;
mod shell;
mod visit;
mod web;

pub use self::{options::WebOptions, web::Web};
