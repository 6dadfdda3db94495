//! An answer that is lost on its way is asked for again, and comes as if nothing had happened.

use std::{sync::Arc, time::Duration};

use insta::assert_snapshot;
use netstead_ledger::{Command, LedgerError, Options, Reply};
use netstead_model::Span;
use netstead_store::{FaultyStore, faults::Fault};

use crate::{
    store_under_test::{self, let_time_pass},
    support::{House, PATIENCE, any, caller, claim, create, exact, key, living, observe, said, spec, target},
};

/// The same house twice; in the second, answers can be lost.
struct Twins {
    sound: House,
    shaky: House,
    store: Arc<FaultyStore>,
    shown: Vec<String>,
}

impl Twins {
    async fn new() -> Self {
        let store = store_under_test::faulty().await;
        let options = Options { learn_timeout: Duration::ZERO, ..Options::default() };
        let shaky = House::on(store.clone(), options.clone()).await;
        let sound = House::on(store_under_test::store().await, options).await;
        Self { sound, shaky, store, shown: Vec::new() }
    }

    async fn both(&self, who: &str, command: Command) {
        self.sound.ask(who, command.clone()).await.unwrap();
        self.shaky.ask(who, command).await.unwrap();
    }

    /// In one house the command is answered; in the other its commit lands and the answer is lost, so it is sent again.
    async fn lose(&mut self, who: &str, command: impl Fn(&House) -> Command) {
        let first = self.sound.ask(who, command(&self.sound)).await;
        let cut_off = self.store.clone();
        self.store.decide(move |_, _| {
            cut_off.set_outage(Some("the line is dead"));
            Fault::LandUnknown
        });
        let command = command(&self.shaky);
        let lost = self.shaky.ask(who, command.clone()).await;
        assert!(matches!(lost, Err(LedgerError::Unknown { .. })), "{lost:?}");
        self.store.decide(|_, _| Fault::Pass);
        self.store.set_outage(None);
        let again = self.insist(who, command.clone()).await;
        let twice = self.insist(who, command).await;
        assert_eq!(again, twice, "it is the same however often it is asked");
        self.shown.push(format!("{} | {}", said(&first), said(&again)));
    }

    async fn insist(&self, who: &str, command: Command) -> Result<Reply, LedgerError> {
        loop {
            match self.shaky.ledger.submit(caller(who), command.clone(), PATIENCE).await {
                Err(LedgerError::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
                answer => return answer.map(|done| done.reply),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
pub(crate) async fn every_kind_of_request_may_be_repeated() {
    let_time_pass();
    let mut twins = Twins::new().await;
    twins.lose("admin", |_| create("lan", "10.0.3.50-10.0.3.59", |_| {})).await;
    let mut wider = spec("lan", "10.0.3.50-10.0.3.69");
    wider.description = Some("wider".into());
    let widen = |version| Command::UpdatePool { spec: wider.clone().into(), if_version: Some(version) };
    twins.lose("admin", |house| widen(version(house, "lan"))).await;
    twins.lose("ann", |_| any("lan", "web")).await;
    twins.lose("ann", |_| claim("lan", "exact", exact("10.0.3.57"))).await;
    twins.lose("ann", |_| claim("lan", "web", living(60))).await;
    twins.lose("bob!", |_| claim("lan", "web", |request| request.adopt = true)).await;
    let longer = Some(Span::from_secs(90));
    let at = |house: &House, name| target("lan", name, id(house, name));
    twins.lose("bob", |house| Command::Renew { target: at(house, "web"), ttl: longer }).await;
    // The one who moves it names the claim by its id, so that a repeat finds it where it went.
    let (sound, shaky) = (at(&twins.sound, "web"), at(&twins.shaky, "web"));
    let (first, second) = (twins.sound.ledger.id(), sound.clone());
    let to = |house: &House| if house.ledger.id() == first { second.clone() } else { shaky.clone() };
    twins.lose("bob", |house| Command::Move { target: to(house), key: key("db"), owner: None }).await;
    let to = |house: &House| if house.ledger.id() == first { sound.id } else { shaky.id };
    twins.lose("bob", |house| Command::Release(target("lan", "db", to(house)))).await;
    let (pool, range) = ("lan".parse().unwrap(), "10.0.3.65-10.0.3.66".parse().unwrap());
    let reserve = Command::Reserve { pool, key: key("spare"), range, description: None };
    twins.lose("ann", |_| reserve.clone()).await;
    let unreserve = Command::Unreserve { pool: "lan".parse().unwrap(), key: key("spare") };
    twins.lose("ann", |_| unreserve.clone()).await;
    twins.lose("ann", |_| Command::Bulk(vec![any("lan", "b1"), any("lan", "b2"), any("lan", "b1")])).await;
    twins.lose("proxmox", |_| observe("pve", true, &["10.0.3.60", "10.0.3.61"])).await;
    twins.both("admin", create("one", "10.0.4.1", |_| {})).await;
    twins.both("ann", any("one", "holder")).await;
    let wait =
        |name: &str| claim("one", name, |request| (request.wait, request.keep) = (Some(Span::ZERO), true));
    twins.lose("bob", |_| wait("queued")).await;
    let abandon = Command::Abandon { pool: "one".parse().unwrap(), key: key("queued") };
    twins.lose("bob", |_| abandon.clone()).await;
    twins.lose("admin", |_| Command::SyncFilePools(vec![spec("file", "10.0.5.0/24")])).await;
    let delete = |version| Command::DeletePool {
        name: "lan".parse().unwrap(),
        force: Some("it goes".into()),
        if_version: Some(version),
    };
    let versions = (version(&twins.sound, "lan"), version(&twins.shaky, "lan"));
    twins
        .lose("admin", |house| delete(if house.ledger.id() == first { versions.0 } else { versions.1 }))
        .await;
    let shown = twins.shown.join("\n");
    assert_snapshot!(shown, @r"
    pool lan as of 2 | pool lan as of 2
    pool lan as of 3 | pool lan as of 4
    10.0.3.50 for web of ann, new | 10.0.3.50 for web of ann, again
    10.0.3.57 for exact of ann, new | 10.0.3.57 for exact of ann, again
    10.0.3.50 for web of ann, changed | 10.0.3.50 for web of ann, again
    10.0.3.50 for web of bob, changed | 10.0.3.50 for web of bob, again
    10.0.3.50 renewed for Some(90s) | 10.0.3.50 renewed for Some(90s)
    10.0.3.50 is now db of bob | 10.0.3.50 is now db of bob
    10.0.3.50 released | already gone
    10.0.3.65-10.0.3.66 reserved for spare | 10.0.3.65-10.0.3.66 reserved for spare
    Gone(true) | Gone(false)
    10.0.3.51 for b1 of ann, new; 10.0.3.52 for b2 of ann, new; 10.0.3.51 for b1 of ann, again | 10.0.3.51 for b1 of ann, again; 10.0.3.52 for b2 of ann, again; 10.0.3.51 for b1 of ann, again
    Observed { begun: 2, ended: 0, more: false } | Observed { begun: 0, ended: 0, more: false }
    queued waits | queued waits
    Gone(true) | Gone(false)
    Synced { created: [Ident(file)], updated: [], detached: [], more: false } | Synced { created: [], updated: [], detached: [], more: false }
    PoolDeleted { released: 3, left: 0, owed: 0 } | PoolDeleted { released: 0, left: 0, owed: 0 }
    ");
}

fn version(house: &House, pool: &str) -> u64 {
    read_book(house, |book| book.pool(&pool.parse().unwrap()).unwrap().pool.version)
}

fn id(house: &House, name: &str) -> Option<netstead_model::ClaimId> {
    read_book(house, |book| book.claim(&"lan".parse().unwrap(), &key(name)).map(|view| view.claim.id))
}

/// Reads the Book, without asking its store.
fn read_book<T>(house: &House, look: impl FnMut(&netstead_ledger::Book) -> T) -> T {
    let read = house.ledger.read(netstead_ledger::Freshness::Stale, look);
    futures::executor::block_on(read).unwrap().value
}
