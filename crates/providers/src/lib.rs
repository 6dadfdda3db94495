//! The servers Netstead keeps in line, each behind the trait of its kind.

pub mod contract;
pub mod dns;
mod http;
mod observe;
mod secret;
mod settings;

pub use self::{
    http::Tls,
    observe::{Call, CallObserver, NoopObserver, Outcome},
    secret::Secret,
    settings::SettingsError,
};
