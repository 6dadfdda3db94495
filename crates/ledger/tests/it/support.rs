//! A ledger to try things on, and answers as short sentences.

use std::{sync::Arc, time::Duration};

use netstead_ledger::{
    Caller, Command, EventQuery, Freshness, Ledger, LedgerError, Options, Outcome, Reply, Report, Sighting,
};
use netstead_model::{
    Claim, ClaimId, ClaimRef, ClaimRequest, Event, Family, Ident, Key, ManualClock, PoolSpec, PoolStatus,
    Released, Span,
};
use netstead_store::Store;

use crate::store_under_test;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct House {
    pub store: Arc<dyn Store>,
    pub clock: ManualClock,
    pub ledger: Ledger,
    options: Options,
}

impl House {
    pub async fn new() -> Self {
        Self::on(store_under_test::store().await, Options::default()).await
    }

    pub async fn on(store: Arc<dyn Store>, options: Options) -> Self {
        let clock = ManualClock::default();
        let ledger = Ledger::open(store.clone(), clock.shared(), options.clone()).await.unwrap();
        Self { store, clock, ledger, options }
    }

    /// With one pool, `lan`: 10.0.3.50 to 10.0.3.59.
    pub async fn with_lan() -> Self {
        let house = Self::new().await;
        house.make("lan", "10.0.3.50-10.0.3.59").await;
        house
    }

    /// Another process takes over: its clock begins anew.
    pub async fn successor(&self) -> Self {
        Self::on(self.store.clone(), self.options.clone()).await
    }

    /// Another process on the same store, which does not lead.
    pub async fn follower(&self) -> Self {
        let clock = ManualClock::default();
        let (store, options) = (self.store.clone(), self.options.clone());
        let ledger = Ledger::follow(store.clone(), clock.shared(), options.clone()).await.unwrap();
        Self { store, clock, ledger, options }
    }

    pub async fn restart(self) -> Self {
        self.ledger.close().await;
        self.successor().await
    }

    pub async fn ask(&self, who: &str, command: Command) -> Result<Reply, LedgerError> {
        self.ledger.submit(caller(who), command, PATIENCE).await.map(|done| done.reply)
    }

    /// The answer as a sentence.
    pub async fn say(&self, who: &str, command: Command) -> String {
        said(&self.ask(who, command).await)
    }

    pub async fn make(&self, name: &str, range: &str) {
        self.make_so(name, range, |_| {}).await;
    }

    pub async fn make_so(&self, name: &str, range: &str, change: impl FnOnce(&mut PoolSpec)) {
        self.ask("admin", create(name, range, change)).await.unwrap();
    }

    /// Claims any address and returns it.
    pub async fn claim(&self, who: &str, pool: &str, key: &str) -> String {
        self.claimed(who, pool, key).await.held()
    }

    pub async fn claimed(&self, who: &str, pool: &str, key: &str) -> Claim {
        match self.ask(who, any(pool, key)).await.unwrap() {
            Reply::Claimed { claim, .. } => Arc::unwrap_or_clone(claim),
            other => panic!("{other:?}"),
        }
    }

    pub async fn release(&self, who: &str, pool: &str, key: &str) {
        let reply = self.ask(who, Command::Release(target(pool, key, None))).await.unwrap();
        assert!(matches!(reply, Reply::Released(Released::Done(_))), "{reply:?}");
    }

    /// Time goes by, and the ledger notices.
    pub async fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.ask("admin", Command::Resume).await.unwrap();
    }

    pub async fn pool(&self, name: &str) -> PoolStatus {
        let name: Ident = name.parse().unwrap();
        self.ledger.read(Freshness::Fresh, |book| book.pool(&name)).await.unwrap().value.unwrap()
    }

    pub async fn holder(&self, pool: &str, key_of: &str) -> Option<Claim> {
        let (pool, key) = (pool.parse().unwrap(), key(key_of));
        let seen = self.ledger.read(Freshness::Fresh, |book| book.claim(&pool, &key)).await.unwrap();
        seen.value.map(|view| Claim::clone(&view.claim))
    }

    pub async fn events(&self) -> Vec<Arc<Event>> {
        self.find(EventQuery { limit: 10_000, ..EventQuery::default() }).await
    }

    pub async fn find(&self, query: EventQuery) -> Vec<Arc<Event>> {
        let limit = if query.limit == 0 { 10_000 } else { query.limit };
        self.ledger.events(&EventQuery { limit, ..query }).await.unwrap().events
    }

    /// Events, one word each.
    pub async fn log(&self) -> Vec<&'static str> {
        self.events().await.iter().map(|event| event.what.as_str()).collect()
    }
}

/// `ann` is an ordinary caller, and `ann!` may write.
pub(crate) fn caller(who: &str) -> Caller {
    match who.strip_suffix('!') {
        Some(who) => Caller::new(who).manager(),
        None => Caller::new(who),
    }
}

pub(crate) fn key(text: &str) -> Key {
    text.parse().unwrap()
}

pub(crate) fn target(pool: &str, key_of: &str, id: Option<ClaimId>) -> ClaimRef {
    ClaimRef { pool: pool.parse().unwrap(), key: key(key_of), id }
}

pub(crate) fn spec(name: &str, range: &str) -> PoolSpec {
    let range: netstead_model::Range = range.parse().unwrap();
    let family = match range.kind() {
        netstead_model::Kind::V4 => Family::Ipv4,
        netstead_model::Kind::V6 => Family::Ipv6,
        netstead_model::Kind::Mac => Family::Mac,
    };
    let mut spec = PoolSpec::new(name.parse().unwrap(), family);
    spec.ranges = vec![range];
    spec
}

pub(crate) fn create(name: &str, range: &str, change: impl FnOnce(&mut PoolSpec)) -> Command {
    let mut spec = spec(name, range);
    change(&mut spec);
    Command::CreatePool(spec.into())
}

/// Hands out prefixes of `length`.
pub(crate) fn prefixes(length: u8) -> impl FnOnce(&mut PoolSpec) {
    move |spec| (spec.family, spec.length) = (Family::Prefix, Some(length))
}

/// Nothing rests.
pub(crate) fn restless(spec: &mut PoolSpec) {
    spec.cooldown = Span::ZERO;
}

pub(crate) fn any(pool: &str, key: &str) -> Command {
    claim(pool, key, |_| {})
}

pub(crate) fn claim(pool: &str, key_of: &str, change: impl FnOnce(&mut ClaimRequest)) -> Command {
    let mut request = ClaimRequest::any(pool.parse().unwrap(), key(key_of));
    change(&mut request);
    Command::Claim(request.into())
}

pub(crate) fn exact(address: &str) -> impl FnOnce(&mut ClaimRequest) {
    let address = address.parse().unwrap();
    move |request| request.want = netstead_model::Want::Exact(address)
}

pub(crate) fn living(seconds: u64) -> impl FnOnce(&mut ClaimRequest) {
    move |request| request.ttl = Some(Span::from_secs(seconds))
}

pub(crate) fn observe(source: &str, complete: bool, addresses: &[&str]) -> Command {
    let sighting = |text: &&str| Sighting { address: text.parse().unwrap(), note: None };
    Command::Observe(Report {
        source: source.parse().unwrap(),
        vrf: Ident::default_vrf(),
        complete,
        seen: addresses.iter().map(sighting).collect(),
        grace: Span::from_secs(300),
        ttl: None,
    })
}

/// The part of an answer that a person would read.
pub(crate) fn said(answer: &Result<Reply, LedgerError>) -> String {
    match answer {
        Ok(reply) => said_reply(reply),
        Err(LedgerError::Refused(refusal)) => format!("refused: {refusal}"),
        Err(error) => format!("error: {error}"),
    }
}

fn said_reply(reply: &Reply) -> String {
    match reply {
        Reply::Claimed { claim, outcome } => {
            let how = match outcome {
                Outcome::Created => "new",
                Outcome::Repeated => "again",
                Outcome::Updated => "changed",
            };
            format!("{} for {} of {}, {how}", claim.held(), claim.key, claim.owner)
        }
        Reply::Queued(waiting) => format!("{} waits", waiting.key),
        Reply::Released(Released::Done(claim)) => format!("{} released", claim.held()),
        Reply::Released(Released::AlreadyGone) => "already gone".into(),
        Reply::Renewed { claim, left } => format!("{} renewed for {left:?}", claim.held()),
        Reply::Moved(claim) => format!("{} is now {} of {}", claim.held(), claim.key, claim.owner),
        Reply::Bulk(replies) => replies.iter().map(said_reply).collect::<Vec<_>>().join("; "),
        Reply::Reserved(reserved) => format!("{} reserved for {}", reserved.range, reserved.key),
        Reply::Pool(pool) => format!("pool {} as of {}", pool.name(), pool.version),
        other => format!("{other:?}"),
    }
}
