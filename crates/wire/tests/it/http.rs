//! Requests, their repetitions, their limits, and secrets that never come back.

use std::{sync::Arc, time::Duration};

use netstead_model::ProviderError;
use netstead_wire::{
    Tls,
    http::{Effect, Http, HttpError, LONGEST_RETRY_AFTER, Request, path},
};

use crate::http_server::{Answer, Calls, Seen, context, reply, secret, tcp, unix};

async fn server(answer: Answer) -> (Http, Seen, Arc<Calls>) {
    let (url, seen) = tcp(answer, None).await;
    let calls = Arc::<Calls>::default();
    let observer: Arc<Calls> = Arc::clone(&calls);
    let http = Http::open(&url, &Tls::default(), &context().with_calls(observer)).unwrap();
    (http, seen, calls)
}

/// Closes the connection twice and answers the third request.
fn third(number: usize, _: &str) -> String {
    if number < 3 { String::new() } else { reply("200 OK", "", "7") }
}

#[tokio::test]
async fn only_a_request_that_may_be_sent_twice_is_repeated() {
    type Make = fn(&Http) -> Request<'_>;
    let cases: [(Make, usize, bool); 5] = [
        (|http| http.get("/x"), 3, true),
        (|http| http.put("/x").json(&1).effect(Effect::Idempotent), 3, true),
        (|http| http.post("/x").json(&1).effect(Effect::Read), 3, true),
        (|http| http.put("/x").json(&1), 1, false),
        (|http| http.get("/x").effect(Effect::Once), 1, false),
    ];
    for (request, sent, answered) in cases {
        let (http, seen, calls) = server(third).await;
        let outcome = request(&http).read::<u32>().await;
        assert_eq!(outcome.is_ok(), answered, "{outcome:?}");
        assert!(answered || matches!(outcome, Err(HttpError::Unknown { .. })), "{outcome:?}");
        assert_eq!((seen.lock().unwrap().len(), calls.take().len()), (sent, sent));
    }
}

#[tokio::test]
async fn a_change_that_may_have_landed_stays_unknown_whatever_comes_after() {
    let (http, seen, calls) =
        server(
            |number, _| {
                if number == 1 { String::new() } else { reply("401 Unauthorized", "", "who are you") }
            },
        )
        .await;
    let error = http.put("/x").effect(Effect::Idempotent).operation("replace").done().await.unwrap_err();
    assert!(matches!(error, HttpError::Unknown { .. }), "{error:?}");
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert_eq!(calls.take(), ["replace failed", "replace refused"]);
}

#[tokio::test]
async fn a_short_wait_is_waited_for_and_a_long_one_is_the_callers() {
    fn short(number: usize, _: &str) -> String {
        if number == 1 { reply("429 No", "retry-after: 0\r\n", "") } else { reply("200 OK", "", "7") }
    }
    let (http, _, calls) = server(short).await;
    assert_eq!(http.get("/x").read::<u32>().await, Ok(7));
    assert_eq!(calls.take(), ["GET refused", "GET answered"]);
    // A change is not repeated, however short the wait.
    let (http, _, _) = server(short).await;
    let retry_after = Some(Duration::ZERO);
    let busy = HttpError::Busy { server: http.server().to_owned(), retry_after };
    assert_eq!(http.post("/x").done().await, Err(busy));
    let (http, seen, _) = server(|_, _| reply("503 No", "retry-after: 31536000\r\n", "")).await;
    let error = http.get("/x").done().await.unwrap_err();
    let (server, retry_after) = (http.server().to_owned(), Some(LONGEST_RETRY_AFTER));
    assert_eq!(ProviderError::from(error), ProviderError::Busy { server, retry_after });
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_status_is_judged_by_the_caller_or_refused() {
    let (http, _, _) = server(|_, _| reply("404 Not Found", "x-more: yes\r\n", "no such thing")).await;
    let refused = HttpError::Refused {
        server: http.server().to_owned(),
        status: 404,
        reason: "no such thing".to_owned(),
    };
    assert_eq!(http.get("/x").read::<u32>().await, Err(refused.clone()));
    assert_eq!(http.delete("/x").done().await, Err(refused));
    assert_eq!(http.get("/x").find::<u32>().await, Ok(None));
    let reply = http.get("/x").send().await.unwrap();
    assert_eq!((reply.status.as_u16(), reply.header("x-more")), (404, Some("yes")));
}

#[tokio::test]
async fn an_answer_that_is_not_of_the_api_leaves_a_change_unknown() {
    let (http, _, _) = server(|_, _| reply("200 OK", "", "<html>login</html>")).await;
    let read = http.get("/x").read::<u32>().await.unwrap_err();
    assert!(matches!(read, HttpError::Malformed { .. }), "{read:?}");
    let written = http.post("/x").read::<u32>().await.unwrap_err();
    assert!(matches!(written, HttpError::Unknown { .. }), "{written:?}");
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit_and_awaited_up_to_its_timeout() {
    let (http, _, _) = server(|_, _| reply("200 OK", "", "1234567890")).await;
    assert_eq!(http.get("/x").limit(10).read::<u64>().await, Ok(1_234_567_890));
    let error = http.limit(9).get("/x").read::<u64>().await.unwrap_err();
    assert!(
        error.to_string().ends_with("its answer has more than 9 bytes, the most that is read"),
        "{error}"
    );
    let (http, seen, calls) = server(|_, _| "silence".to_owned()).await;
    let error = http.post("/x").timeout(Duration::from_millis(50)).done().await.unwrap_err();
    assert!(matches!(&error, HttpError::Unknown { reason, .. } if reason.starts_with("no answer in time")));
    assert_eq!((seen.lock().unwrap().len(), calls.take()), (1, vec!["POST failed".to_owned()]));
}

#[tokio::test]
async fn a_server_behind_a_socket_is_asked_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api.sock");
    let seen = unix(&path, |_, _| reply("200 OK", "", "7"));
    let http = Http::open(&format!("unix://{}", path.display()), &Tls::default(), &context()).unwrap();
    assert_eq!(http.get("/a b").query(&[("q", "1&2")]).read::<u32>().await, Ok(7));
    let seen = seen.lock().unwrap().concat();
    assert!(seen.starts_with("GET /a%20b?q=1%262 HTTP/1.1\r\n"), "{seen}");
    std::fs::remove_file(&path).unwrap();
    let error = http.get("/").done().await.unwrap_err();
    assert!(matches!(error, HttpError::Unreachable { .. }), "{error:?}");
}

/// Says everything it was told.
fn echo(_: usize, request: &str) -> String {
    reply("422 No", "", request)
}

#[tokio::test]
async fn secrets_are_sent_and_never_shown() {
    let (plain, seen, _) = server(echo).await;
    let hunter = secret("hunter2");
    let all = [
        plain.clone().secret_header("x-api-key", "api_key", &hunter).unwrap(),
        plain.clone().bearer("token", &hunter).unwrap(),
        plain.clone().authorization("PVEAPIToken=root@pam!id=", "token", &hunter).unwrap(),
        plain.clone().basic_auth("admin", &hunter).unwrap(),
        plain.clone().redacting(&hunter),
    ];
    for http in all {
        let form = http.post("/x").form(&[("user", "admin"), ("token", "hunter2")]);
        let form = form.secret_header("x-session", "session-1");
        let shown = format!("{http:?} {form:?}");
        let error = form.done().await.unwrap_err();
        let shown = format!("{shown} {error} {error:?}");
        for secret in ["hunter2", "YWRtaW46aHVudGVyMg==", "session-1"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("(redacted)"), "{shown}");
    }
    let seen = seen.lock().unwrap();
    for (number, header) in [
        "x-api-key: hunter2",
        "authorization: Bearer hunter2",
        "authorization: PVEAPIToken=root@pam!id=hunter2",
        "authorization: Basic YWRtaW46aHVudGVyMg==",
        "content-type: application/x-www-form-urlencoded",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(seen[number].contains(header) && seen[number].contains("x-session: session-1"));
        assert!(seen[number].ends_with("\r\n\r\nuser=admin&token=hunter2"), "{}", seen[number]);
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_made_is_not_sent() {
    let (http, seen, _) = server(echo).await;
    let error = http.get("/x").header("x-odd", "two\nlines").done().await.unwrap_err();
    assert!(error.to_string().ends_with("the header x-odd has characters that none may have"), "{error}");
    let error = http.delete(&path(&["zones", ".."])).done().await.unwrap_err();
    assert!(error.to_string().ends_with("`/zones/..` has `.` or `..` for a name"), "{error}");
    assert!(seen.lock().unwrap().is_empty());
    let error = http.secret_header("x-api-key", "api_key", &secret("two\nlines")).unwrap_err();
    assert_eq!(error.to_string(), "api_key: it has characters that cannot stand in a header");
}
