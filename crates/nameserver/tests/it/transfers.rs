use std::fmt::Write;

use hickory_proto::{
    op::Message,
    rr::{RData, Record, rdata::SOA},
};
use netstead_nameserver::Options;
use netstead_store::MemoryStore;
use std::sync::Arc;

use crate::fixture::{House, options, plain_query, show};

fn records(messages: &[Message]) -> Vec<Record> {
    messages.iter().flat_map(|message| message.answers.clone()).collect()
}

fn soa(record: &Record) -> Option<&SOA> {
    match &record.data {
        RData::SOA(soa) => Some(soa),
        _ => None,
    }
}

/// The second SOA that is the same as the first ends a transfer of a whole zone.
fn whole(messages: &[Message]) -> bool {
    let records = records(messages);
    records.len() > 1
        && records.first().map(|record| &record.data) == records.last().map(|record| &record.data)
}

fn ixfr(serial: u32) -> Message {
    let mut message = plain_query("example.test.", "IXFR");
    let owner = hickory_proto::rr::Name::from_ascii("example.test.").unwrap();
    let soa = SOA::new(owner.clone(), owner.clone(), serial, 1, 1, 1, 1);
    message.add_authority(Record::from_rdata(owner, 0, RData::SOA(soa)));
    message
}

fn texts(records: &[Record]) -> Vec<String> {
    records
        .iter()
        .map(|record| match soa(record) {
            Some(soa) => format!("serial {}", soa.serial),
            None => record.to_string(),
        })
        .collect()
}

#[tokio::test]
async fn a_zone_of_ten_thousand_records_is_copied() {
    let house = House::new(&["example.test"]).await;
    let mut zone = String::new();
    for n in 0..10_000 {
        writeln!(zone, "n{n}.example.test 300 A 10.0.{}.{}", n / 256, n % 256).unwrap();
    }
    house.fill("example.test", &zone).await;
    let messages = house.exchange_tcp(&plain_query("example.test.", "AXFR"), whole).await;
    assert!(messages.len() > 5);
    // With the SOA at both ends and the NS record every zone has.
    assert_eq!(records(&messages).len(), 10_003);
}

#[tokio::test]
async fn a_secondary_gets_the_steps_it_lacks() {
    let house = House::new(&["example.test"]).await;
    house.fill("example.test", "a.example.test 300 A 192.0.2.1\nb.example.test 300 A 192.0.2.2").await;
    let first = house.server.serial(&"example.test".parse().unwrap()).unwrap();
    house.fill("example.test", "a.example.test 300 A 192.0.2.9\nb.example.test 300 A 192.0.2.2").await;
    house.fill("example.test", "a.example.test 300 A 192.0.2.9\nc.example.test 300 A 192.0.2.3").await;
    let serial = |more: u32| format!("serial {}", first + more);
    let ends = |count: usize| move |messages: &[Message]| records(messages).len() >= count;
    let steps = house.exchange_tcp(&ixfr(first), ends(10)).await;
    let a = |name: &str, address: &str| format!("{name}.example.test. 300 IN A {address}");
    assert_eq!(
        texts(&records(&steps)),
        [
            serial(2),
            serial(0),
            a("a", "192.0.2.1"),
            serial(1),
            a("a", "192.0.2.9"),
            serial(1),
            a("b", "192.0.2.2"),
            serial(2),
            a("c", "192.0.2.3"),
            serial(2),
        ]
    );
    // One that is up to date gets a single SOA; one that is far behind gets everything.
    let current = house.exchange_tcp(&ixfr(first + 2), ends(1)).await;
    assert_eq!(texts(&records(&current)), [serial(2)]);
    let all = house.exchange_tcp(&ixfr(12), whole).await;
    assert_eq!(records(&all).len(), 5);
    // Over UDP it learns that there is something.
    let short = house.exchange(&ixfr(first)).await;
    assert_eq!(texts(&short.answers), [serial(2)]);
}

#[tokio::test]
async fn only_those_who_may_copy_a_zone() {
    let options = Options { transfer_to: vec!["192.0.2.0/24".parse().unwrap()], ..options() };
    let house = House::with(&["example.test"], Arc::new(MemoryStore::new()), options).await;
    let one = |messages: &[Message]| !messages.is_empty();
    let refused = house.exchange_tcp(&plain_query("example.test.", "AXFR"), one).await;
    assert_eq!(show(&refused[0]), "Refused rd");
    let unknown = house.exchange_tcp(&plain_query("sub.example.test.", "AXFR"), one).await;
    assert_eq!(show(&unknown[0]), "NotAuth rd");
    assert_eq!(house.ask("example.test.", "IXFR").await, "Refused rd edns");
}
