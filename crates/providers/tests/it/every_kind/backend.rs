//! [`Backend`]: a server of one kind, with the switches that the stories need.

mod builtin;
mod fakes;
mod files;
mod real;

use std::{sync::Arc, time::Duration};

use netstead_model::DnsProvider;
use netstead_providers::BuildContext;
use netstead_testkit::{FakeHttp, HttpFault, HttpRequest};

pub use self::{
    builtin::OwnNameserver,
    fakes::{AdGuard, Cloudflare, ExternalDns, PiHole, Technitium, Webhook, WebhookForDnsweaver},
    files::{Dnsmasq, PiHoleFiles},
    real::{Bind, Knot, PowerDns, RealAdGuard},
};
use crate::support;

/// A busy server asks for this pause, which some clients measure with the clock of the machine.
pub const BUSY: Duration = Duration::from_secs(1);

/// How one change fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The server asks to come back later, and nothing is done.
    Busy,
    /// It answers with an error of its own, and nothing is done.
    Broken,
    /// The connection ends before anything is done.
    Dropped,
    /// It is done, and the answer is lost.
    Lost,
    /// It is done, and half of the answer comes.
    Half,
}

impl Failure {
    pub const ALL: [Self; 5] = [Self::Busy, Self::Broken, Self::Dropped, Self::Lost, Self::Half];

    fn of_http(self) -> HttpFault {
        match self {
            Self::Busy => HttpFault::status(429, Some(BUSY.as_secs())),
            Self::Broken => HttpFault::status(500, None),
            Self::Dropped => HttpFault::Dropped,
            Self::Lost => HttpFault::Lost,
            Self::Half => HttpFault::Half,
        }
    }
}

/// A server, empty when it starts. What is spoken to by HTTP says so with [`Backend::http`], and needs no switches of its own
/// but for its credentials.
pub trait Backend: Sized + 'static {
    /// Its name in the list of kinds.
    const KIND: &'static str;
    /// There are credentials that it can refuse.
    const HAS_CREDENTIALS: bool = true;
    /// How a change can fail between Netstead and the server.
    const FAILURES: &'static [Failure] = &Failure::ALL;

    /// Starts it; `None`, and the test is skipped, where that cannot be done.
    fn start() -> Option<Self>;

    /// As [`Backend::start`], with credentials that can be revoked and a connection that can end.
    fn start_with_access() -> Option<Self> {
        Self::start()
    }

    /// A new connection, as an installation of Netstead makes it.
    fn open(&self, context: &BuildContext) -> Arc<dyn DnsProvider>;

    /// A look from beside, for what others see and do.
    fn look(&self) -> Arc<dyn DnsProvider> {
        self.open(&support::context())
    }

    /// The server itself or a proxy before it, if it speaks HTTP.
    fn http(&self) -> Option<&FakeHttp> {
        None
    }

    /// Whether the request asks what the server holds.
    fn lists(request: &HttpRequest) -> bool {
        request.method == "GET"
    }

    /// Whether the request changes what the server holds.
    fn changes(request: &HttpRequest) -> bool {
        request.method != "GET"
    }

    /// Refuses the credentials that it took so far, or takes them again.
    fn revoke(&mut self, revoked: bool);

    /// Is not there any more.
    fn stop(&mut self) {
        self.http().unwrap().stop();
    }

    /// Is there again, with what it held.
    fn restart(&mut self) {
        self.http().unwrap().restart();
    }

    /// From now on each listing breaks off half way.
    fn cut_listings(&mut self) {
        self.http().unwrap().fail(0, usize::MAX, HttpFault::Half, Self::lists);
    }

    /// Lets the change after `passing` others fail, in one of the ways of [`Backend::FAILURES`].
    fn fail_change(&mut self, passing: usize, failure: Failure) {
        self.http().unwrap().fail(passing, 1, failure.of_http(), Self::changes);
    }

    /// From now on it hears requests that list, or those that change something, and says nothing. False where it does not speak HTTP.
    fn fall_silent(&mut self, changes: bool) -> bool {
        let Some(http) = self.http() else { return false };
        let heard = if changes { Self::changes } else { Self::lists };
        http.fail(0, usize::MAX, HttpFault::Silent, heard);
        true
    }

    /// How many requests failed as they were told to.
    fn failed(&self) -> usize {
        self.http().unwrap().failed()
    }

    /// Nothing fails any more.
    fn heal(&mut self) {
        self.http().unwrap().heal();
    }
}
