use std::time::Duration;

use netstead_client::{
    Change, Client, ClientError, Options,
    types::{BulkEntry, BulkInput, BulkResult, ClaimFrom, ClaimInput, ReleaseOutcome, TokenInput},
};

use crate::misbehaving_server::{Act, Misbehaving, problem};

fn quick() -> Options {
    Options { timeout: Duration::from_secs(5), backoff: Duration::from_millis(5), ..Options::default() }
}

fn client(server: &Misbehaving) -> Client {
    Client::new(&server.url, Some("secret-token"), quick()).unwrap()
}

pub(crate) fn claim() -> String {
    serde_json::json!({
        "pool": "lan", "key": "web-1", "state": "bound", "address": "10.0.3.50", "id": "1f0c22ab-17", "owner": "admin",
        "since": "2026-11-15T10:00:00Z", "vrf": "default", "family": "ipv4",
    })
    .to_string()
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_asked_for_again() {
    let script =
        [Act::HangUp, problem(503, "unavailable"), problem(500, "unknown"), Act::Answer(200, claim())];
    let server = Misbehaving::playing(script).await;
    let (claim, change) = client(&server).claim("lan", "web-1", &ClaimInput::default()).await.unwrap();
    assert_eq!((claim.address.as_deref(), change), (Some("10.0.3.50"), Change::Kept));
    let ids: Vec<_> = server.heads().iter().map(|head| header(head, "x-request-id")).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| *id == ids[0] && id.len() == 16), "one request, one id: {ids:?}");
}

#[tokio::test]
async fn what_could_happen_twice_is_not_repeated_but_called_unknown() {
    let server = Misbehaving::playing([Act::HangUp]).await;
    let error = client(&server).create_token(&TokenInput::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unknown { .. }), "{error:?}");
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn what_the_server_did_not_do_may_always_be_repeated() {
    let token = r#"{"id":"t1","subject":"ci","role":"claim","created":"2026-11-15T10:00:00Z"}"#;
    let server = Misbehaving::playing([problem(503, "not-ready"), Act::Answer(201, token.into())]).await;
    assert_eq!(client(&server).create_token(&TokenInput::default()).await.unwrap().id, "t1");
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_not_read() {
    let server = Misbehaving::playing([Act::Long(4 << 30), Act::Long(4 << 30)]).await;
    let told = "its answer has more than 268435456 bytes, the most that is read";
    let error = client(&server).status().await.unwrap_err();
    assert!(matches!(&error, ClientError::Foreign { reason, .. } if reason == told), "{error:?}");
    let error = client(&server).create_token(&TokenInput::default()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Unknown { reason, .. } if reason == told), "{error:?}");
}

#[tokio::test]
async fn a_token_that_the_server_echoes_is_not_shown() {
    let body =
        r#"{"type":"urn:netstead:denied","title":"no","status":403,"detail":"Bearer secret-token may not"}"#;
    let server = Misbehaving::playing([Act::Answer(403, body.into())]).await;
    let error = client(&server).status().await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("Bearer (redacted) may not") && !shown.contains("secret-token"), "{shown}");
}

#[tokio::test]
async fn repetition_ends() {
    let server = Misbehaving::playing(vec![Act::HangUp; 4]).await;
    let error = client(&server).claim("lan", "web-1", &ClaimInput::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unknown { .. }), "{error:?}");
    assert_eq!(server.heads().len(), 4);
}

#[tokio::test]
async fn the_last_reason_is_told_and_not_that_time_is_over() {
    let script = [problem(503, "no-leader"), problem(504, "too-late")];
    let server = Misbehaving::playing(script.clone()).await;
    let error = client(&server).status().await.unwrap_err();
    assert!(error.is("no-leader"), "{error:?}");
    // Of a change it may say that it goes on.
    let server = Misbehaving::playing(script).await;
    let error = client(&server).apply(None).await.unwrap_err();
    assert!(error.is("too-late"), "{error:?}");
    let server = Misbehaving::playing([problem(503, "no-leader"), Act::Silence]).await;
    let options = Options { timeout: Duration::from_millis(200), ..quick() };
    let error = Client::new(&server.url, None, options).unwrap().status().await.unwrap_err();
    assert!(error.is("no-leader"), "{error:?}");
    // A caller that never got a reason is told so.
    let server = Misbehaving::playing([problem(504, "too-late")]).await;
    let error = client(&server).status().await.unwrap_err();
    assert!(error.is("too-late"), "{error:?}");
}

#[tokio::test]
async fn what_has_no_time_left_is_not_repeated() {
    let server = Misbehaving::playing([Act::Late(Duration::from_millis(80), 503, "no-leader")]).await;
    let options = Options { timeout: Duration::from_millis(50), ..quick() };
    let error = Client::new(&server.url, None, options).unwrap().status().await.unwrap_err();
    assert!(error.is("no-leader"), "{error:?}");
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn what_may_have_been_done_is_not_called_undone_by_a_repetition() {
    let cut_off = Act::Answer(
        503,
        r#"{"type":"urn:netstead:unavailable","title":"","status":503,"detail":"the ledger cannot answer now: no quorum; nothing was changed"}"#.into(),
    );
    for first in [Act::HangUp, problem(504, "unknown")] {
        for last in [cut_off.clone(), problem(504, "too-late"), problem(401, "unauthenticated")] {
            let script = [vec![first.clone()], vec![last.clone(); 3]].concat();
            let server = Misbehaving::playing(script).await;
            let error = client(&server).claim("lan", "web-1", &ClaimInput::default()).await.unwrap_err();
            assert!(matches!(error, ClientError::Unknown { .. }), "{first:?}, {last:?}: {error:?}");
            assert!(!error.to_string().contains("nothing was changed"), "{error}");
        }
        // A decision is the last word, whatever became of the first.
        let server = Misbehaving::playing([first, cut_off.clone(), problem(409, "exhausted")]).await;
        let error = client(&server).claim("lan", "web-1", &ClaimInput::default()).await.unwrap_err();
        assert!(error.is("exhausted"), "{error:?}");
    }
    // What was never begun was not done.
    let server = Misbehaving::playing(vec![cut_off; 4]).await;
    let error = client(&server).claim("lan", "web-1", &ClaimInput::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn what_may_have_been_done_of_a_bulk_is_not_called_undone() {
    let failed = |status, slug| match problem(status, slug) {
        Act::Answer(_, body) => format!(r#"{{"failed":{body}}}"#),
        _ => String::new(),
    };
    let results = format!(r#"{{"results":[{},{}]}}"#, failed(503, "unavailable"), failed(409, "exhausted"));
    let server = Misbehaving::playing([Act::HangUp, Act::Answer(200, results.clone())]).await;
    let entries =
        ["a", "b"].map(|key| BulkEntry::Claim(ClaimFrom { key: key.into(), ..ClaimFrom::default() }));
    let bulk = BulkInput { entries: entries.into() };
    let slugs = async |server: &Misbehaving| {
        let output = client(server).bulk(&bulk).await.unwrap();
        let slug = |result: BulkResult| match result {
            BulkResult::Failed(problem) => problem.slug().to_owned(),
            other => format!("{other:?}"),
        };
        output.results.into_iter().map(slug).collect::<Vec<_>>()
    };
    assert_eq!(slugs(&server).await, ["unknown", "exhausted"]);
    let server = Misbehaving::playing([Act::Answer(200, results)]).await;
    assert_eq!(slugs(&server).await, ["unavailable", "exhausted"]);
}

#[tokio::test]
async fn silence_is_unknown_for_a_write_and_slow_for_a_read() {
    let server = Misbehaving::playing(vec![Act::Silence; 2]).await;
    let options = Options { timeout: Duration::from_millis(50), retries: 0, ..quick() };
    let client = Client::new(&server.url, None, options).unwrap();
    let resume = netstead_client::types::ResumeInput::default();
    let (read, write) = tokio::join!(client.status(), client.resume(&resume));
    assert!(matches!(read, Err(ClientError::Slow { .. })), "{read:?}");
    assert!(matches!(write, Err(ClientError::Unknown { .. })), "{write:?}");
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_names_the_url() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = Client::new(&format!("http://127.0.0.1:{port}"), None, quick()).unwrap();
    let error = client.status().await.unwrap_err();
    assert_eq!(error.to_string(), format!("nothing answers at http://127.0.0.1:{port}"));
    assert!(matches!(error, ClientError::Unreachable { .. }));
}

#[tokio::test]
async fn refusals_are_told_apart_by_what_to_do_next() {
    let server = Misbehaving::playing([
        problem(401, "unauthenticated"),
        problem(403, "forbidden"),
        problem(409, "address-held"),
        Act::Answer(404, "<html>nginx</html>".into()),
        Act::Answer(200, "[]".into()),
    ])
    .await;
    let client = client(&server);
    assert!(matches!(client.status().await, Err(ClientError::Denied { .. })));
    assert!(matches!(client.status().await, Err(ClientError::Denied { .. })));
    let held = client.claim("lan", "x", &ClaimInput::default()).await.unwrap_err();
    assert!(matches!(held, ClientError::Refused(_)) && held.is("address-held"));
    assert!(matches!(client.status().await, Err(ClientError::Foreign { .. })));
    assert!(matches!(client.status().await, Err(ClientError::Foreign { .. })));
}

#[tokio::test]
async fn every_request_carries_token_deadline_and_id() {
    let server = Misbehaving::playing([problem(404, "no-such-claim")]).await;
    assert_eq!(client(&server).look_up("lan", "ns/web 1%2F?#").await.unwrap(), None);
    let head = &server.heads()[0];
    assert_eq!(head.lines().next().unwrap(), "GET /api/v1/pools/lan/claims/ns%2Fweb%201%252F%3F%23 HTTP/1.1");
    assert_eq!(header(head, "authorization"), "Bearer secret-token");
    assert_eq!(header(head, "netstead-timeout"), "5");
}

#[tokio::test]
async fn a_release_names_the_claim() {
    let server = Misbehaving::playing([Act::Answer(200, r#"{"outcome":"already gone"}"#.into())]).await;
    client(&server).release("lan", "web-1", "1f0c22ab-17").await.unwrap();
    assert_eq!(server.first_lines(), ["DELETE /api/v1/pools/lan/claims/web-1?id=1f0c22ab-17 HTTP/1.1"]);
}

#[test]
fn what_is_no_url_or_name_is_refused_before_anything_is_sent() {
    for url in ["", "localhost:5301", "ftp://x", "http://", "http://u:p@h/", "http://h/?x=1"] {
        let error = Client::new(url, None, Options::default()).unwrap_err();
        assert!(matches!(error, ClientError::Unusable { .. }), "{url}: {error:?}");
    }
    let wrong_token = Client::new("http://h", Some("a\nb"), Options::default()).unwrap_err().to_string();
    assert!(!wrong_token.contains("a\nb"), "{wrong_token}");
}

#[tokio::test]
async fn a_name_that_is_no_path_segment_is_refused() {
    let client = Client::new("http://127.0.0.1:1", None, Options::default()).unwrap();
    for key in ["", ".", ".."] {
        let claimed = client.claim("lan", key, &ClaimInput::default()).await;
        assert!(matches!(claimed, Err(ClientError::Unusable { .. })), "{key}");
    }
}

#[test]
fn a_token_is_never_printed() {
    let client = Client::new("http://h", Some("hunter2"), Options::default()).unwrap();
    assert!(!format!("{client:?}").contains("hunter2"));
}

pub(crate) fn header(head: &str, name: &str) -> String {
    let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in {head}")).split_once(": ").unwrap().1.to_owned()
}

#[tokio::test]
async fn what_has_a_key_that_no_path_can_hold_is_found_and_released_all_the_same() {
    let found = format!("{{\"items\": [{}], \"seq\": 1}}", claim().replace("web-1", ".."));
    let released = r#"{"results": [{"released": {"outcome": "released"}}]}"#;
    let refused = r#"{"results": [{"failed": {"type": "urn:netstead:not-yours", "title": "", "status": 403, "detail": "no"}}]}"#;
    let script = [found.as_str(), released, refused].map(|body| Act::Answer(200, body.into()));
    let server = Misbehaving::playing(script).await;
    let client = client(&server);
    let claim = client.look_up("lan", "..").await.unwrap().unwrap();
    assert_eq!((claim.key.as_str(), claim.id.as_deref()), ("..", Some("1f0c22ab-17")));
    assert_eq!(client.release("lan", "..", "1f0c22ab-17").await.unwrap().outcome, ReleaseOutcome::Released);
    assert!(client.leave_queue("lan", ".").await.unwrap_err().is("not-yours"));
    let heads = server.heads();
    let lines: Vec<&str> = heads.iter().map(|head| head.lines().next().unwrap()).collect();
    let asked = ["GET /api/v1/claims?key=..&pool=lan HTTP/1.1", "POST /api/v1/bulk HTTP/1.1"];
    assert_eq!(lines, [asked[0], asked[1], asked[1]]);
}
