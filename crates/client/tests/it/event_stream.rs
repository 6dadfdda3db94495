use std::time::Duration;

use netstead_client::{Client, ClientError, Options, StreamedEvent};

use crate::{
    misbehaving_server::{Act, Misbehaving, problem},
    repeat::header,
};

fn event(seq: u64) -> String {
    let data = format!(r#"{{"seq":{seq},"at":"2026-11-15T10:00:00Z","by":"admin","what":"claimed"}}"#);
    format!("id: 1f0c22ab:{seq}\nevent: claimed\ndata: {data}\n\n")
}

#[tokio::test]
async fn a_broken_stream_goes_on_after_the_last_event() {
    let half = event(9);
    let server = Misbehaving::playing([
        Act::Stream(format!(": hello\n\n{}{}{}", event(7), event(8), &half[..20])),
        problem(503, "not-ready"),
        Act::Stream(event(9)),
        problem(410, "gone"),
    ])
    .await;
    let options = Options { backoff: Duration::from_millis(5), ..Options::default() };
    let mut events = Client::new(&server.url, None, options).unwrap().follow(Some("1f0c22ab:6".into()));
    for seq in 7..=9 {
        let StreamedEvent::Ledger(event) = events.next().await.unwrap().event else {
            panic!("not an event of the ledger")
        };
        assert_eq!(event.seq, seq);
    }
    let gone = events.next().await.unwrap_err();
    assert!(matches!(gone, ClientError::Refused(_)) && gone.is("gone"), "{gone:?}");
    let asked: Vec<_> = server.heads().iter().map(|head| header(head, "last-event-id")).collect();
    assert_eq!(asked, ["1f0c22ab:6", "1f0c22ab:8", "1f0c22ab:8", "1f0c22ab:9"]);
}

#[tokio::test]
async fn a_server_that_stays_away_ends_the_stream() {
    let options = Options { retries: 1, backoff: Duration::from_millis(1), ..Options::default() };
    let mut events = Client::new("http://127.0.0.1:1", None, options).unwrap().follow(None);
    assert!(matches!(events.next().await, Err(ClientError::Unreachable { .. })));
}
