//! Receivers of webhooks, each with records of its own: [`WebhookReceiver`] speaks Netstead's protocol,
//! [`DnsweaverReceiver`] that of dnsweaver.

mod dnsweaver;
mod netstead;
pub(crate) mod signature;

pub use self::{dnsweaver::DnsweaverReceiver, netstead::WebhookReceiver};
use crate::fake_http::{FakeHttp, HttpFault};

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

/// Plans faults for the next changes, in this order.
pub(crate) fn plan(http: &FakeHttp, faults: &[WebhookFault]) {
    let mut passing = 0;
    for fault in faults {
        let fault = match fault {
            WebhookFault::None => {
                passing += 1;
                continue;
            }
            WebhookFault::Busy(seconds) => HttpFault::status(429, Some(*seconds)),
            WebhookFault::Broken => HttpFault::status(500, None),
            WebhookFault::LostAnswer => HttpFault::Lost,
            WebhookFault::HalfAnswer => HttpFault::Half,
        };
        http.fail(passing, 1, fault, |request| request.method != "GET");
    }
}
