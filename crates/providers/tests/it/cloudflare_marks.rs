//! Marks as comments on the records.

use std::sync::Arc;

use netstead_model::{DnsProvider, Marks, RecordSet, RecordType, SetChange, Unit, UnitOutcome, mark};
use netstead_providers::{
    Secret,
    contract::{self, Subject},
    dns::cloudflare::{Config, MarkForm},
};
use netstead_settings::Configured as _;
use netstead_testkit::FakeCloudflare as Server;
use serde_json::{Value, json};

use crate::support::{ZONE, a, context, name, request, set, zone};

const WWW: &str = "www.example.test";
const AT: &str = "_netstead-it.www.example.test";

fn config(server: &Server, marks: MarkForm) -> Config {
    Config { url: server.url(), marks, ..Config::new(Secret::new(server.token())) }
}

fn provider(server: &Server, marks: MarkForm) -> Arc<dyn DnsProvider> {
    config(server, marks).build(&context()).unwrap()
}

/// The mark of `www` when these addresses are ours.
fn marked(addresses: &[&str]) -> RecordSet {
    let values = a(WWW, addresses).values;
    RecordSet::new(name(AT), RecordType::Txt, 300, mark::render(&name(WWW), &values))
}

fn digest(address: &str) -> String {
    mark::digest_of(&name(WWW), a(WWW, &[address]).values.iter().next().unwrap())
}

fn unit(at: &str, changes: &[(Option<RecordSet>, Option<RecordSet>)]) -> Unit {
    let change = |(before, after): &(Option<RecordSet>, Option<RecordSet>)| SetChange {
        before: before.clone(),
        after: after.clone(),
    };
    Unit { name: name(at), changes: changes.iter().map(change).collect() }
}

async fn write(provider: &Arc<dyn DnsProvider>, unit: Unit) -> UnitOutcome {
    let mut reply = provider.write(&zone(), &request(1, vec![unit])).await.unwrap();
    assert_eq!((reply.outcomes.len(), &reply.stopped), (1, &None));
    reply.outcomes.remove(0)
}

/// The mark as it is read.
async fn read(provider: &Arc<dyn DnsProvider>) -> Option<RecordSet> {
    provider.read(&zone()).await.unwrap().sets.into_iter().find(|set| set.name == name(AT))
}

/// Type, value and comment of each record.
fn records(server: &Server) -> Vec<(String, String, String)> {
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    let record = |record: &Value| (text(record, "type"), text(record, "content"), text(record, "comment"));
    let mut all: Vec<_> = server.records(ZONE).iter().map(record).collect();
    all.sort();
    all
}

fn record(address: &str, comment: &str) -> (String, String, String) {
    ("A".to_owned(), address.to_owned(), comment.to_owned())
}

fn by_hand(server: &Server, address: &str, comment: &str) {
    let record = json!({ "name": WWW, "type": "A", "content": address, "ttl": 300, "comment": comment });
    server.by_hand(ZONE, record);
}

fn comment(address: &str) -> String {
    format!("netstead/1 it A:{}", digest(address))
}

#[tokio::test]
async fn comments_keep_the_contract_of_marks() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server, MarkForm::Comment);
    assert_eq!(provider.capabilities().marks, Marks::Comment);
    let wrong = Config { token: Secret::new("wrong"), ..config(&server, MarkForm::Comment) };
    contract::all(&Subject::new(provider, wrong.build(&context()).unwrap(), zone())).await;
}

#[tokio::test]
async fn a_comment_marks_each_value_that_is_ours_and_no_other() {
    let server = Server::start(&[ZONE]);
    by_hand(&server, "192.0.2.9", "of a person");
    let provider = provider(&server, MarkForm::Comment);
    let foreign = a(WWW, &["192.0.2.9"]);
    let (one, both) = (a(WWW, &["192.0.2.1", "192.0.2.9"]), a(WWW, &["192.0.2.1", "192.0.2.2", "192.0.2.9"]));
    let first = unit(WWW, &[(Some(foreign), Some(one.clone())), (None, Some(marked(&["192.0.2.1"])))]);
    assert_eq!(write(&provider, first.clone()).await, UnitOutcome::Applied);
    assert_eq!(
        records(&server),
        [record("192.0.2.1", &comment("192.0.2.1")), record("192.0.2.9", "of a person")]
    );
    let sent = server.http().requests().len();
    assert_eq!(write(&provider, first).await, UnitOutcome::Applied);
    assert_eq!(server.http().requests().len(), 1, "a repeat only reads, after {sent}");

    let ours = ["192.0.2.1", "192.0.2.2"];
    let change = [(Some(one), Some(both.clone())), (Some(marked(&ours[..1])), Some(marked(&ours)))];
    assert_eq!(write(&provider, unit(WWW, &change)).await, UnitOutcome::Applied);
    assert_eq!(read(&provider).await.unwrap().values, marked(&ours).values);

    // Adopting marks the value of the person; its text stays, also when it is given up.
    let all = ["192.0.2.1", "192.0.2.2", "192.0.2.9"];
    let adopt = unit(WWW, &[(Some(marked(&ours)), Some(marked(&all)))]);
    assert_eq!(write(&provider, adopt).await, UnitOutcome::Applied);
    assert!(
        records(&server).contains(&record("192.0.2.9", &format!("of a person {}", comment("192.0.2.9"))))
    );
    let give_up = unit(WWW, &[(Some(marked(&all)), Some(marked(&ours)))]);
    assert_eq!(write(&provider, give_up).await, UnitOutcome::Applied);
    assert!(records(&server).contains(&record("192.0.2.9", "of a person")));

    let gone = [(Some(both), Some(a(WWW, &["192.0.2.9"]))), (Some(marked(&ours)), None)];
    assert_eq!(write(&provider, unit(WWW, &gone)).await, UnitOutcome::Applied);
    assert_eq!(records(&server), [record("192.0.2.9", "of a person")]);
    assert_eq!(read(&provider).await, None);
}

#[tokio::test]
async fn a_record_that_a_person_changes_is_not_covered_by_its_comment() {
    let server = Server::start(&[ZONE]);
    by_hand(&server, "192.0.2.7", &comment("192.0.2.1"));
    let provider = provider(&server, MarkForm::Comment);
    let seen = read(&provider).await.unwrap();
    assert_eq!(seen.values, marked(&["192.0.2.1"]).values, "it still says what it marked");
    // The value comes again beside it, and only that one is marked.
    let both = a(WWW, &["192.0.2.1", "192.0.2.7"]);
    let again = unit(WWW, &[(Some(a(WWW, &["192.0.2.7"])), Some(both))]);
    assert_eq!(write(&provider, again).await, UnitOutcome::Applied);
    assert_eq!(records(&server), [record("192.0.2.1", &comment("192.0.2.1")), record("192.0.2.7", "")]);
    // Without it, another change at the name is no less possible.
    let server = Server::start(&[ZONE]);
    by_hand(&server, "192.0.2.7", &comment("192.0.2.1"));
    let text = set(WWW, RecordType::Txt, &["\"x\""]);
    let provider = self::provider(&server, MarkForm::Comment);
    assert_eq!(write(&provider, unit(WWW, &[(None, Some(text))])).await, UnitOutcome::Applied);
}

#[tokio::test]
async fn a_mark_of_a_value_that_is_not_there_is_refused() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server, MarkForm::Comment);
    let wrong = unit(WWW, &[(None, Some(a(WWW, &["192.0.2.1"]))), (None, Some(marked(&["192.0.2.2"])))]);
    let reason = "a mark is for A records that are not there".to_owned();
    assert_eq!(write(&provider, wrong).await, UnitOutcome::Rejected { reason });
    assert_eq!(records(&server), []);
}

#[tokio::test]
async fn marks_move_from_txt_to_comments_and_back() {
    let server = Server::start(&[ZONE]);
    let (txt, comments) = (provider(&server, MarkForm::Txt), provider(&server, MarkForm::Comment));
    let (value, usual) = (a(WWW, &["192.0.2.1"]), marked(&["192.0.2.1"]));
    let new = unit(WWW, &[(None, Some(value.clone())), (None, Some(usual.clone()))]);
    assert_eq!(write(&txt, new).await, UnitOutcome::Applied);
    assert_eq!(records(&server).len(), 2);
    for (to, here) in [
        (
            &comments,
            vec![record("192.0.2.1", &format!("made by Netstead it, provider it {}", comment("192.0.2.1")))],
        ),
        (
            &txt,
            vec![
                record("192.0.2.1", "made by Netstead it, provider it"),
                (
                    "TXT".to_owned(),
                    usual.values.iter().next().unwrap().to_string(),
                    "made by Netstead it, provider it".to_owned(),
                ),
            ],
        ),
    ] {
        let seen = read(to).await.unwrap();
        assert_ne!(seen.values, usual.values, "the other form is one that the next plan puts right");
        let says = |set: &RecordSet| {
            set.values
                .iter()
                .filter_map(mark::Mark::parse)
                .any(|mark| value.values.iter().all(|value| mark.covers(&name(WWW), value)))
        };
        assert!(says(&seen), "and it counts for a recovery");
        let moved = unit(WWW, &[(Some(seen), Some(usual.clone()))]);
        assert_eq!(write(to, moved).await, UnitOutcome::Applied);
        assert_eq!(read(to).await.unwrap().values, usual.values);
        assert_eq!(records(&server), here);
    }
}

#[tokio::test]
async fn marks_of_another_id_are_removed_by_their_own_name() {
    let server = Server::start(&[ZONE]);
    by_hand(&server, "192.0.2.1", &comment("192.0.2.1"));
    by_hand(&server, "192.0.2.2", "netstead/1 other A:000000000000");
    let provider = provider(&server, MarkForm::Comment);
    let seen = read(&provider).await.unwrap();
    assert_eq!(write(&provider, unit(AT, &[(Some(seen), None)])).await, UnitOutcome::Applied);
    assert_eq!(
        records(&server),
        [record("192.0.2.1", ""), record("192.0.2.2", "netstead/1 other A:000000000000")]
    );
}

#[tokio::test]
async fn a_delegation_has_its_mark_apart() {
    let server = Server::start(&[ZONE]);
    let provider = provider(&server, MarkForm::Comment);
    let servers = set("sub.example.test", RecordType::Ns, &["ns.example.net."]);
    let owner = "it".parse().unwrap();
    let at = name(&mark::mark_name(&owner, &servers.name, &zone(), true));
    let proof =
        RecordSet::new(at.clone(), RecordType::Txt, 300, mark::render(&servers.name, &servers.values));
    let new = unit("sub.example.test", &[(None, Some(servers)), (None, Some(proof.clone()))]);
    assert_eq!(write(&provider, new).await, UnitOutcome::Applied);
    let sets = provider.read(&zone()).await.unwrap().sets;
    assert_eq!(sets.iter().find(|set| set.name == at).map(|set| &set.values), Some(&proof.values));
    assert_eq!(server.records(ZONE).len(), 1);
}
