//! Receivers of webhooks, each with records of its own: [`WebhookReceiver`] speaks Netstead's protocol,
//! [`DnsweaverReceiver`] that of dnsweaver.

mod dnsweaver;
mod netstead;
mod signature;

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

pub use self::{dnsweaver::DnsweaverReceiver, netstead::WebhookReceiver};
use crate::http_fake::{HttpAnswer, HttpRequest, Sent};

/// A fault for one of the next changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookFault {
    /// Everything works.
    None,
    /// 429, with `Retry-After` in seconds.
    Busy(u64),
    /// 500, and nothing is done.
    Broken,
    /// The change is made, and the connection closes without an answer.
    LostAnswer,
    /// The change is made, and the answer breaks off.
    HalfAnswer,
}

/// Faults in the order in which changes meet them.
#[derive(Debug, Default)]
struct Faults(Mutex<VecDeque<WebhookFault>>);

impl Faults {
    fn plan(&self, faults: &[WebhookFault]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
    }

    /// Answers a change, with the next fault if there is one.
    fn around(&self, request: &HttpRequest, answer: impl FnOnce(&HttpRequest) -> HttpAnswer) -> HttpAnswer {
        let fault = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match fault.unwrap_or(WebhookFault::None) {
            WebhookFault::None => answer(request),
            WebhookFault::Busy(seconds) => {
                HttpAnswer { headers: vec![("retry-after", seconds.to_string())], ..HttpAnswer::empty(429) }
            }
            WebhookFault::Broken => HttpAnswer::empty(500),
            WebhookFault::LostAnswer => HttpAnswer { sent: Sent::Nothing, ..answer(request) },
            WebhookFault::HalfAnswer => HttpAnswer { sent: Sent::Half, ..answer(request) },
        }
    }
}
