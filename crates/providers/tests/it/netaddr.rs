//! The keyspace of terraform-provider-netaddr in a real etcd, with clients of both kinds on it at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use netstead_ledger::contract::{self, Subject};
use netstead_model::{BackendClaim, PoolBackend, Want};
use netstead_providers::{
    BuildContext,
    netaddr::{Freed, Listed, Netaddr, NetaddrError, NetaddrOptions, NewRange, RangeType, RawAddress},
    pool::netaddr::Config,
};
use netstead_testkit::{Etcd, NetaddrClient, netaddr_ipv4};
use netstead_wire::etcd::EtcdConnection;
use tokio::time::sleep;

pub(crate) const LAN: &str = "/ranges/lan/";

pub(crate) struct Bench {
    pub(crate) etcd: Etcd,
    pub(crate) ours: Netaddr,
}

impl Bench {
    pub(crate) fn start() -> Option<Self> {
        let etcd = Etcd::start(1)?;
        let ours = client(&etcd);
        Some(Self { etcd, ours })
    }

    pub(crate) fn original(&self) -> NetaddrClient {
        NetaddrClient::connect(&self.etcd.endpoints()[0]).unwrap()
    }

    /// Transactions and reads that etcd has answered.
    fn requests(&self) -> u64 {
        let address = self.etcd.endpoints()[0].trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).unwrap();
        let handled = metrics.lines().filter(|line| {
            line.starts_with("grpc_server_handled_total{grpc_code=\"OK\"")
                && (line.contains("grpc_method=\"Txn\"") || line.contains("grpc_method=\"Range\""))
        });
        handled.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    pub(crate) async fn range(&self, prefix: &str, first: &str, last: &str) {
        let range = NewRange::parse(prefix, RangeType::Ipv4, first, last).unwrap();
        self.ours.create_range(&range).await.unwrap();
    }

    pub(crate) async fn claim(&self, name: &str) -> String {
        let claimed = self.ours.claim(&[LAN.to_owned()], Some(RangeType::Ipv4), name).await.unwrap();
        claimed.address.text(RangeType::Ipv4)
    }

    pub(crate) async fn claim_fixed(&self, name: &str, address: &str) -> Result<String, NetaddrError> {
        let ranges = [LAN.to_owned()];
        let claimed = self.ours.claim_fixed(&ranges, RangeType::Ipv4, name, &v4(address)).await?;
        Ok(claimed.address.text(RangeType::Ipv4))
    }

    pub(crate) async fn release(&self, name: &str, address: &str) -> Freed {
        self.ours.release(LAN, name, &v4(address), None).await.unwrap()
    }

    /// No address has two names, and every address of the range is held, free in front of the pointer, or given back behind it.
    pub(crate) async fn is_sound(&self, range: &str) {
        let usage = self.ours.usage(range).await.unwrap();
        let names = self.ours.all_names(range).await.unwrap();
        let held: BTreeSet<_> = names.iter().map(|held| held.address.clone()).collect();
        assert_eq!(held.len(), names.len(), "an address has two names: {names:?}");
        let [generated, hardcoded, deleted] = {
            let mut lists = Vec::new();
            for list in [Listed::Generated, Listed::Hardcoded, Listed::Deleted] {
                lists.push(self.ours.list(range, list).await.unwrap());
            }
            [lists[0].clone(), lists[1].clone(), lists[2].clone()]
        };
        let by_list: BTreeMap<_, _> =
            generated.iter().chain(&hardcoded).map(|one| (one.address.clone(), one.name.clone())).collect();
        let by_name: BTreeMap<_, _> =
            names.iter().map(|one| (one.address.clone(), one.name.clone())).collect();
        assert_eq!(by_list, by_name);
        let free: BTreeSet<_> = deleted.iter().map(|one| one.address.clone()).collect();
        assert!(free.is_disjoint(&held), "{free:?} {held:?}");
        let mut address = usage.info.first.clone();
        while address < usage.next && address <= usage.info.last {
            assert!(held.contains(&address) || free.contains(&address), "{address:?} is lost");
            address = address.next();
        }
    }
}

pub(crate) fn client(etcd: &Etcd) -> Netaddr {
    Netaddr::new(NetaddrOptions::new(EtcdConnection::new(etcd.endpoints()))).unwrap()
}

pub(crate) fn v4(text: &str) -> RawAddress {
    RawAddress::parse(RangeType::Ipv4, text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn netaddr_keeps_the_contract_of_pool_backends() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.52").await;
    let macs = ("02:00:00:00:00:01", "02:00:00:00:00:05");
    let range = NewRange::parse("/ranges/mac/", RangeType::Mac, macs.0, macs.1).unwrap();
    bench.ours.create_range(&range).await.unwrap();
    let context = BuildContext::new("etcd".parse().unwrap());
    let backend: Arc<dyn PoolBackend> =
        Arc::new(Config::plain(bench.etcd.endpoints()).open(&context).unwrap());
    for (pool, size, outside) in [(LAN, 3, "10.0.9.1"), ("/ranges/mac/", 5, "02:00:00:00:00:06")] {
        let outside = outside.parse().unwrap();
        // Once before there is a mirror, and once with it.
        for _ in 0..2 {
            let (backend, pool) = (Arc::clone(&backend), pool.to_owned());
            contract::pools(&Subject { backend, pool, size, outside }).await;
            sleep(Duration::from_millis(300)).await;
        }
        assert!(bench.original().dump(&format!("{pool}data/name/")).unwrap().is_empty());
        bench.is_sound(pool).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_those_of_the_original_byte_for_byte() {
    let Some(bench) = Bench::start() else { return };
    let mut original = bench.original();
    bench.range("/a/", "10.0.3.50", "10.0.3.60").await;
    let (first, last) = (netaddr_ipv4([10, 0, 3, 50]), netaddr_ipv4([10, 0, 3, 60]));
    assert!(original.create_range("/b/", "ipv4", &first, &last).unwrap());
    let at = |prefix: &str| [prefix.to_owned()];
    let (ours, kind) = (&bench.ours, RangeType::Ipv4);
    ours.claim_fixed(&at("/a/"), kind, "fix", &v4("10.0.3.51")).await.unwrap();
    ours.claim_fixed(&at("/a/"), kind, "far", &v4("10.0.3.59")).await.unwrap();
    assert!(original.create_hardcoded("/b/", "fix", &netaddr_ipv4([10, 0, 3, 51])).unwrap());
    assert!(original.create_hardcoded("/b/", "far", &netaddr_ipv4([10, 0, 3, 59])).unwrap());
    for name in ["web", "db", "old", "new"] {
        let claimed = ours.claim(&at("/a/"), Some(kind), name).await.unwrap();
        let theirs = original.create_generated(&["/b/"], name).unwrap().unwrap();
        assert_eq!(claimed.address.bytes(), theirs);
    }
    ours.release("/a/", "old", &v4("10.0.3.53"), None).await.unwrap();
    assert!(original.delete_generated("/b/", "old", &netaddr_ipv4([10, 0, 3, 53])).unwrap());
    ours.release("/a/", "fix", &v4("10.0.3.51"), None).await.unwrap();
    assert!(original.delete_hardcoded("/b/", "fix", &netaddr_ipv4([10, 0, 3, 51])).unwrap());
    ours.release("/a/", "far", &v4("10.0.3.59"), None).await.unwrap();
    assert!(original.delete_hardcoded("/b/", "far", &netaddr_ipv4([10, 0, 3, 59])).unwrap());
    // Freed addresses go first, the lowest before the others.
    let claimed = ours.claim(&at("/a/"), Some(kind), "again").await.unwrap();
    let theirs = original.create_generated(&["/b/"], "again").unwrap().unwrap();
    assert_eq!(claimed.address.bytes(), theirs);
    let bare = |prefix: &str, dump: BTreeMap<Vec<u8>, Vec<u8>>| -> BTreeMap<Vec<u8>, Vec<u8>> {
        dump.into_iter().map(|(key, value)| (key[prefix.len()..].to_vec(), value)).collect()
    };
    assert_eq!(bare("/a/", original.dump("/a/").unwrap()), bare("/b/", original.dump("/b/").unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_takes_two_round_trips_however_full_the_range_is() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.0.0", "10.0.255.255").await;
    let mut original = bench.original();
    // 3,000 fixed addresses right behind the pointer.
    for number in 0..3000_u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let fixed = netaddr_ipv4([10, 0, high, low]);
        let put = |original: &mut NetaddrClient, path: &str, value: &[u8]| {
            let key = [LAN.as_bytes(), path.as_bytes(), &fixed].concat();
            original.put(&key, value).unwrap();
        };
        put(&mut original, "data/address/hardcoded/", format!("f{number}").as_bytes());
        original.put(format!("{LAN}data/name/f{number}").as_bytes(), &fixed).unwrap();
    }
    let before = bench.requests();
    for (name, expected) in [("first", "10.0.11.184"), ("second", "10.0.11.185"), ("third", "10.0.11.186")] {
        assert_eq!(bench.claim(name).await, expected);
    }
    assert_eq!(bench.requests() - before, 6, "two each");
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_both_kinds_share_a_range_and_no_address_has_two_names() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.0.0", "10.0.1.143").await;
    let mut workers = Vec::new();
    for worker in 0..4_u32 {
        let mut original = bench.original();
        workers.push(tokio::task::spawn_blocking(move || {
            for number in 0..40 {
                let name = format!("theirs-{worker}-{number}");
                let address = original.create_generated(&[LAN], &name).unwrap();
                if let (Some(address), 0) = (address, number % 3) {
                    original.delete_generated(LAN, &name, &address).unwrap();
                }
            }
        }));
    }
    let mut ours = Vec::new();
    // Two clients of their own, as two applies would be, with ten callers each.
    for session in 0..2 {
        let client = client(&bench.etcd);
        for caller in 0..10 {
            let client = client.clone();
            ours.push(tokio::spawn(async move {
                for number in 0..8 {
                    let name = format!("ours-{session}-{caller}-{number}");
                    let claimed = client.claim(&[LAN.to_owned()], None, &name).await.unwrap();
                    assert!(claimed.made);
                    if number % 4 == 0 {
                        client.release(LAN, &name, &claimed.address, None).await.unwrap();
                    }
                    if number % 4 == 1 {
                        // What the original can release, ours can claim again, and the other way round.
                        let again = client.claim(&[LAN.to_owned()], None, &name).await.unwrap();
                        assert_eq!((again.address, again.made), (claimed.address, false));
                    }
                }
            }));
        }
    }
    for worker in ours {
        worker.await.unwrap();
    }
    for worker in workers {
        worker.await.unwrap();
    }
    bench.is_sound(LAN).await;
    let names = bench.ours.all_names(LAN).await.unwrap();
    assert_eq!(names.iter().filter(|held| held.name.starts_with("ours-")).count(), 120);
    // What one wrote the other reads and releases.
    let mut original = bench.original();
    for held in names {
        if held.name.starts_with("ours-") {
            assert_eq!(original.look_up(LAN, &held.name).unwrap().unwrap(), held.address.bytes());
            assert!(original.delete_generated(LAN, &held.name, held.address.bytes()).unwrap());
        } else {
            let freed = bench.ours.release(LAN, &held.name, &held.address, None).await.unwrap();
            assert_eq!(freed, Freed::Done);
        }
    }
    bench.is_sound(LAN).await;
    assert_eq!(bench.ours.usage(LAN).await.unwrap().used, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_fixed_while_it_is_given_back_is_not_given_twice() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    let mut original = bench.original();
    let address = netaddr_ipv4([10, 0, 3, 50]);
    assert_eq!(bench.claim("web").await, "10.0.3.50");
    // The original looks, another client gives the address back, the original writes: the address stays in the free list.
    let creation = original.begin_hardcoded(LAN, "fixed", &address).unwrap();
    assert_eq!(bench.release("web", "10.0.3.50").await, Freed::Done);
    assert!(original.finish_hardcoded(&creation).unwrap());
    assert_eq!(bench.ours.list(LAN, Listed::Deleted).await.unwrap().len(), 1);
    // Ours takes it out, and gives another.
    assert_eq!(bench.claim("db").await, "10.0.3.51");
    assert!(bench.ours.list(LAN, Listed::Deleted).await.unwrap().is_empty());
    bench.is_sound(LAN).await;

    // The same race with ours on both sides, many times.
    for _ in 0..200 {
        let held = bench.claim("racing").await;
        let (fixed, freed, third) = tokio::join!(
            bench.claim_fixed("taker", &held),
            bench.release("racing", &held),
            bench.claim("third"),
        );
        assert_eq!(freed, Freed::Done);
        if let Ok(fixed) = fixed {
            assert_ne!(fixed, third);
            bench.release("taker", &fixed).await;
        }
        bench.release("third", &third).await;
    }
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_address_that_is_given_back_in_front_of_the_pointer_is_never_lost() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.200").await;
    for round in 0..40 {
        let next = bench.ours.usage(LAN).await.unwrap().next.text(RangeType::Ipv4);
        bench.claim_fixed("fixed", &next).await.unwrap();
        let name = format!("n{round}");
        tokio::join!(bench.claim(&name), bench.release("fixed", &next));
        bench.is_sound(LAN).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_mac_address_there_is_can_be_given_and_then_the_range_is_full() {
    let Some(bench) = Bench::start() else { return };
    let (kind, prefix) = (RangeType::Mac, "/macs/".to_owned());
    let range = NewRange::parse(&prefix, kind, "ff:ff:ff:ff:ff:fe", "ff:ff:ff:ff:ff:ff").unwrap();
    bench.ours.create_range(&range).await.unwrap();
    let claim = async |name: &str| bench.ours.claim(std::slice::from_ref(&prefix), Some(kind), name).await;
    assert_eq!(claim("a").await.unwrap().address.text(kind), "ff:ff:ff:ff:ff:fe");
    assert_eq!(claim("b").await.unwrap().address.text(kind), "ff:ff:ff:ff:ff:ff");
    let full = Err(NetaddrError::Full { ranges: vec![prefix.clone()] });
    assert_eq!(claim("c").await, full);
    let mut original = bench.original();
    assert_eq!(
        original.create_generated(&["/macs/"], "d").unwrap(),
        None,
        "the original sees it as full too"
    );
    // The original leaves an empty pointer there.
    original.put(b"/macs/data/nextaddr", b"").unwrap();
    assert_eq!(claim("c").await, full);
    let last = RawAddress::parse(kind, "ff:ff:ff:ff:ff:ff").unwrap();
    bench.ours.release("/macs/", "b", &last, None).await.unwrap();
    assert_eq!(claim("c").await.unwrap().address, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_in_all_ranges_it_chooses_from_and_the_first_range_is_filled_first() {
    let Some(bench) = Bench::start() else { return };
    bench.range("/r/1/", "10.0.1.1", "10.0.1.2").await;
    bench.range("/r/2/", "10.0.2.1", "10.0.2.9").await;
    let both = ["/r/1/".to_owned(), "/r/2/".to_owned()];
    let claim = async |name: &str| {
        let claimed = bench.ours.claim(&both, None, name).await.unwrap();
        (claimed.range, claimed.address.text(claimed.kind))
    };
    for (name, range, address) in
        [("a", "/r/1/", "10.0.1.1"), ("b", "/r/1/", "10.0.1.2"), ("c", "/r/2/", "10.0.2.1")]
    {
        assert_eq!(claim(name).await, (range.to_owned(), address.to_owned()));
    }
    let fixed = bench.ours.claim_fixed(&both, RangeType::Ipv4, "a", &v4("10.0.2.5")).await.unwrap();
    assert_eq!((fixed.range.as_str(), fixed.made), ("/r/1/", false), "the name has an address already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_keeps_its_fixed_address_and_nothing_is_lost_by_it() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    let ranges = [LAN.to_owned()];
    let (kind, wanted) = (RangeType::Ipv4, v4("10.0.3.50"));
    assert_eq!(bench.ours.foresee(&ranges, kind, "dns", Some(&wanted)).await.unwrap(), None);
    assert_eq!(bench.claim("web").await, "10.0.3.51", "a generated address goes round it");
    assert_eq!(bench.claim_fixed("dns", "10.0.3.50").await.unwrap(), "10.0.3.50");
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_mirror_claims_with_one_transaction_and_packs_what_waits() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.0.0", "10.0.255.255").await;
    let context = BuildContext::new("etcd".parse().unwrap());
    let backend = Arc::new(Config::plain(bench.etcd.endpoints()).open(&context).unwrap());
    let ask = |key: String| BackendClaim {
        pool: LAN.into(),
        key,
        want: Want::Any,
        length: None,
        note: String::new(),
    };
    backend.claim(&ask("warm".into())).await.unwrap();
    sleep(Duration::from_millis(500)).await;
    let revision = || {
        let status = bench.etcd.ctl(&["get", "nothing", "-w", "json"]).unwrap();
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["header"]["revision"].as_i64().unwrap()
    };
    let before = revision();
    let claims = (0..84).map(|number| {
        let (backend, claim) = (Arc::clone(&backend), ask(format!("k{number}")));
        tokio::spawn(async move { backend.claim(&claim).await.unwrap().address })
    });
    let mut addresses = BTreeSet::new();
    for claim in claims.collect::<Vec<_>>() {
        assert!(addresses.insert(claim.await.unwrap()));
    }
    // A transaction is one revision. The first may have been sent before the others waited.
    assert!(revision() - before <= 12, "{} transactions for 84 claims", revision() - before);
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_goes_away_and_comes_back_loses_and_doubles_nothing() {
    let Some(mut bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.0.0", "10.0.255.255").await;
    let mut options = NetaddrOptions::new(EtcdConnection::new(bench.etcd.endpoints()));
    options.retries = 40;
    let ours = Netaddr::new(options).unwrap();
    let claims = (0..10).map(|caller| {
        let ours = ours.clone();
        tokio::spawn(async move {
            let mut names = Vec::new();
            for number in 0..30 {
                let name = format!("n-{caller}-{number}");
                let claimed = ours.claim(&[LAN.to_owned()], None, &name).await;
                assert!(claimed.as_ref().is_ok_and(|claimed| claimed.made), "{name}: {claimed:?}");
                names.push(name);
            }
            names
        })
    });
    let claims: Vec<_> = claims.collect();
    sleep(Duration::from_millis(300)).await;
    bench.etcd.restart(0).unwrap();
    for claim in claims {
        claim.await.unwrap();
    }
    assert_eq!(bench.ours.usage(LAN).await.unwrap().used, 300);
    bench.is_sound(LAN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said() {
    let Some(bench) = Bench::start() else { return };
    bench.range(LAN, "10.0.3.50", "10.0.3.60").await;
    let said = |error: Result<_, NetaddrError>| error.err().map(|error| error.to_string());
    let nowhere = bench.ours.claim(&["/nowhere/".into()], None, "a").await.map(drop);
    assert_eq!(said(nowhere).unwrap(), "there is no range `/nowhere/`");
    let other = bench.ours.claim(&[LAN.into()], Some(RangeType::Mac), "a").await.map(drop);
    assert_eq!(said(other).unwrap(), "the range `/ranges/lan/` is of the type `ipv4`, not `mac`");
    let outside = bench.claim_fixed("a", "10.0.4.1").await.map(drop);
    assert_eq!(said(outside).unwrap(), "10.0.4.1 is in none of the ranges `/ranges/lan/`");
    bench.claim_fixed("a", "10.0.3.51").await.unwrap();
    let taken = bench.claim_fixed("b", "10.0.3.51").await.map(drop);
    assert_eq!(said(taken).unwrap(), "10.0.3.51 belongs to `a` in the range `/ranges/lan/`");
    let away = Netaddr::new(NetaddrOptions::new(EtcdConnection::new(["http://127.0.0.1:1"]))).unwrap();
    let down = said(away.range(LAN).await.map(drop)).unwrap();
    assert!(down.starts_with("etcd at http://127.0.0.1:1: "), "{down}");
}
