//! The IPAM webhook against a receiver that keeps its rules.

use std::sync::Arc;

use netstead_model::{
    Fence, FieldValue, Fields, IpamObject, IpamProvider, ObjectChange, ObjectKey, ObjectUnit, ObjectWrite,
    ProviderError, UnitOutcome,
};
use netstead_providers::{
    Secret,
    contract::ipam::{self, IpamSubjectUnderTest},
    ipam::webhook::Config,
};
use netstead_testkit::{IpamReceiver, WebhookFault};
use serde_json::json;

use crate::support::context;

const SECRET: &str = "a secret of the tests";

fn open(receiver: &IpamReceiver, secret: &str) -> Arc<dyn IpamProvider> {
    Arc::new(Config::new(receiver.url(), Secret::new(secret)).open(&context()).unwrap())
}

fn address(id: &str) -> ObjectUnit {
    let key: ObjectKey = format!("address:pve:{id}@v1").parse().unwrap();
    let fields = Fields::from([("address".to_owned(), FieldValue::Text(id.to_owned()))]);
    ObjectUnit { key, change: ObjectChange::Create { fields }, needs: Vec::new() }
}

fn request(units: Vec<ObjectUnit>) -> ObjectWrite {
    ObjectWrite::new(units, Fence { owner: "blue".into(), epoch: 1, generation: 1 })
}

#[tokio::test]
async fn a_receiver_of_objects_keeps_the_contract() {
    let receiver = Arc::new(IpamReceiver::start(SECRET));
    let hand = Arc::clone(&receiver);
    let by_hand =
        move |object: &IpamObject, field: &str, value: &str| hand.set(&object.id, field, &json!(value));
    let stranger = Some(open(&receiver, "a secret of another"));
    ipam::all(&IpamSubjectUnderTest::new(open(&receiver, SECRET), stranger, by_hand)).await;
}

#[tokio::test]
async fn a_change_whose_answer_is_lost_is_made_once_and_a_busy_receiver_is_left_alone() {
    let receiver = IpamReceiver::start(SECRET);
    let provider = open(&receiver, SECRET);
    receiver.fail(&[WebhookFault::LostAnswer, WebhookFault::Broken]);
    let done = provider.write(&request(vec![address("10.0.0.1")])).await;
    assert_eq!(done, Ok(vec![UnitOutcome::Applied].into()));
    assert_eq!(receiver.changes(), (1, 1), "carried out once, recognised once");
    receiver.fail(&[WebhookFault::LostAnswer; 3]);
    let lost = provider.write(&request(vec![address("10.0.0.2")])).await.unwrap();
    assert_eq!(lost.outcomes, [UnitOutcome::Unknown]);
    assert_eq!(provider.read().await.unwrap().len(), 2);
    receiver.fail(&[WebhookFault::Busy(60)]);
    let busy = provider.write(&request(vec![address("10.0.0.3")])).await;
    assert!(matches!(busy, Err(ProviderError::Busy { .. })), "{busy:?}");
}

#[tokio::test]
async fn values_of_any_form_are_read_and_a_listing_that_lies_is_refused() {
    let receiver = IpamReceiver::start(SECRET);
    let provider = open(&receiver, SECRET);
    let fields =
        json!({ "name": "web", "cpus": 2, "tags": ["a"], "rack": { "u": 7 }, "up": true, "note": "" });
    receiver.put("machine", &fields);
    receiver.put("rack", &json!({}));
    let objects = provider.read().await.unwrap();
    assert_eq!(objects.len(), 1, "a kind that is not held is left out");
    let text = |text: &str| FieldValue::Text(text.into());
    let wanted = Fields::from([
        ("cpus".to_owned(), FieldValue::Number(2)),
        ("name".to_owned(), text("web")),
        ("rack".to_owned(), text("{\"u\":7}")),
        ("tags".to_owned(), FieldValue::Set(["a".to_owned()].into())),
        ("up".to_owned(), text("true")),
    ]);
    assert_eq!(objects[0].fields, wanted);
    let liar = netstead_testkit::FakeHttp::start(|_| {
        netstead_testkit::HttpResponse::value(200, &json!({ "objects": [], "next": "again" }))
    });
    let config = Config::new(liar.url(), Secret::new(SECRET));
    let refused = config.open(&context()).unwrap().read().await;
    assert!(matches!(refused, Err(ProviderError::Malformed { .. })), "{refused:?}");
}

/// All checks but the one that changes a field by hand: no other program reaches the objects of this receiver.
#[tokio::test]
async fn the_receiver_of_the_guide_keeps_the_contract() {
    if !netstead_testkit::has_command("python3") {
        return netstead_testkit::skip("`python3` is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret"), SECRET).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/ipam-receiver.py");
    let mut command = std::process::Command::new("python3");
    command.arg(script).args(["--listen", "127.0.0.1:0", "--secret-file", "secret"]).current_dir(dir.path());
    let mut receiver = netstead_testkit::Process::start("ipam-receiver.py", &mut command).unwrap();
    let line = receiver.wait_for_line("listening on ", std::time::Duration::from_secs(30)).unwrap();
    let url = format!("http://{}", line.rsplit(' ').next().unwrap().trim());
    let open = |secret: &str| -> Arc<dyn IpamProvider> {
        Arc::new(Config::new(url.clone(), Secret::new(secret)).open(&context()).unwrap())
    };
    let subject = IpamSubjectUnderTest::new(open(SECRET), Some(open("a secret of another")), |_, _, _| {});
    ipam::objects_come_back_as_they_were_wanted(&subject).await;
    ipam::a_repeated_write_changes_nothing(&subject).await;
    ipam::fields_change_and_can_be_emptied(&subject).await;
    ipam::only_marked_objects_are_deleted(&subject).await;
    ipam::one_bad_unit_does_not_stop_the_others(&subject).await;
    ipam::nothing_is_sent_without_consent(&subject).await;
    ipam::strangers_are_refused_and_lose_nothing(&subject).await;
    ipam::many_objects_are_listed_completely(&subject).await;
}
