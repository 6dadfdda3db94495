//! Headers, cookies and refusals, which a browser does not show.

use reqwest::RequestBuilder;

use super::{
    site::Site,
    visitor::{Visitor, cookies, token},
};

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_a_strict_policy_and_cookies_are_kept_from_scripts_and_other_sites() {
    let site = Site::start();
    let visitor = Visitor::stranger(&site);
    let answer = visitor.get("/pools/lan?at=1").await;
    assert_eq!(answer.status(), 303, "a stranger is asked to log in");
    assert_eq!(answer.headers()["location"], "/login?next=%2Fpools%2Flan%3Fat%3D1");
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let cookie = &visitor.cookie;
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.contains("; Path=/;"), "{cookie}");
    assert!(!cookie.contains("Secure"), "there is no TLS here: {cookie}");
    let answer = visitor
        .with_cookie(visitor.http.get(&visitor.url))
        .header("accept-encoding", "gzip")
        .send()
        .await
        .unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(
        (header("content-encoding"), header("cache-control"), header("x-content-type-options")),
        ("gzip".to_owned(), "no-store".to_owned(), "nosniff".to_owned())
    );
    // Files are kept for ever, below a path that changes with them.
    let page = visitor.page("/").await;
    assert!(!page.contains(" style=") && !page.contains("onclick"), "nothing inline");
    let style = page.split('"').find(|part| part.ends_with("style.css")).unwrap().to_owned();
    let answer = visitor.get(&style).await;
    assert!(answer.headers()["cache-control"].to_str().unwrap().contains("immutable"), "{style}");
    assert_eq!(visitor.get("/assets/0123456789ab/style.css").await.status(), 404);
    // The API is where it was.
    assert_eq!(visitor.get("/api/").await.status(), 200);
    assert_eq!(visitor.get("/healthz").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_from_other_sites_are_refused_whatever_the_cookie() {
    let site = Site::start();
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let claim = || visitor.form("/pools/lan/claim", &[("key", "csrf")]);
    assert_eq!(claim().send().await.unwrap().status(), 403, "it does not say where it comes from");
    let answer = claim().header("origin", "http://evil.example").send().await.unwrap();
    assert_eq!(answer.status(), 403);
    for elsewhere in ["cross-site", "same-site", "none"] {
        let answer =
            claim().header("origin", &visitor.url).header("sec-fetch-site", elsewhere).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{elsewhere}");
    }
    let answer = visitor.http.get(&visitor.url).header("host", "evil.example").send().await.unwrap();
    assert_eq!(answer.status(), 421, "a name that is not ours");
    assert!(!site.sandbox.does("get claims -o csv").contains("csrf"));
    assert_eq!(visitor.post("/pools/lan/claim", &[("key", "csrf")]).await.status(), 303);
    assert!(site.sandbox.does("get claims -o csv").contains("csrf"));
    let events = site.sandbox.does("get events -o json");
    assert!(events.contains(" in session "), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_role_may_not_do_is_not_offered_and_is_refused_if_tried() {
    let site = Site::start();
    site.fill();
    let reader = Visitor::logged_in(&site, &token(&site, "read")).await;
    let page = reader.page("/pools/lan?pick=10.0.3.77").await;
    assert!(!page.contains("/pools/lan/claim") && !page.contains("/pools/lan/reserve"), "{page}");
    assert!(!reader.page("/plan").await.contains("Apply now"));
    assert!(!reader.page("/access").await.contains("New token"));
    for (path, fields) in [
        ("/pools/lan/claim", &[("key", "k")][..]),
        ("/pools/lan/release", &[("key", "web-1")]),
        ("/pools/lan/reserve", &[("reserve_key", "k"), ("range", "10.0.3.99")]),
        ("/pools/new", &[("name", "mine"), ("network", "10.9.0.0/24")]),
        ("/names/x.home.test/set", &[("type", "A"), ("values", "10.0.3.9")]),
        ("/plan/apply", &[]),
        ("/servers/pause", &[("provider", "own"), ("reason", "x")]),
        ("/access", &[("subject", "me"), ("role", "admin")]),
        ("/access/revoke", &[("id", "x")]),
        ("/pools/lan/edit", &[("domain", "x.test")]),
        ("/pools/lan/delete", &[("name", "lan")]),
        ("/pools/lan/many", &[("line", "web-1"), ("act", "release")]),
        ("/pools/lan/unreserve", &[("key", "phones")]),
        ("/names/x.home.test/delete", &[("type", "A")]),
        ("/plan/approve", &[("hash", "x")]),
        ("/drift/adopt", &[("name", "x.home.test")]),
        ("/drift/adopt-many", &[("line", "own\tx.home.test\tA")]),
        ("/drift/ignore", &[("name", "x.home.test"), ("reason", "x")]),
        ("/drift/report-again", &[("name", "x.home.test")]),
        ("/drift/restore", &[("pool", "lan"), ("key", "web-1")]),
        ("/drift/give-back", &[("stray", "1")]),
        ("/servers/resume", &[("provider", "own")]),
        ("/rollback", &[("provider", "own"), ("to", "0"), ("hash", "x")]),
    ] {
        assert_eq!(reader.post(path, fields).await.status(), 403, "{path}");
    }
    let claimer = Visitor::logged_in(&site, &token(&site, "claim")).await;
    let page = claimer.page("/pools/lan?pick=10.0.3.77").await;
    assert!(page.contains("/pools/lan/claim") && !page.contains("/pools/lan/reserve"), "{page}");
    assert!(!claimer.page("/pools/lan?pick=10.0.3.50").await.contains("Release it"), "it is not its own");
    assert_eq!(claimer.post("/pools/lan/release", &[("key", "web-1")]).await.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_are_limited_and_say_why_they_failed() {
    let site = Site::start();
    let visitor = Visitor::stranger(&site);
    for _ in 0..10 {
        let answer = visitor.post("/login", &[("token", "nst_wrong_wrong")]).await;
        assert_eq!(answer.status(), 401);
        assert!(answer.text().await.unwrap().contains("not known here"));
    }
    let answer = visitor.post("/login", &[("token", &site.sandbox.token())]).await;
    assert_eq!(answer.status(), 429);
    assert!(cookies(answer.headers()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_pages_change_nothing_and_pages_can_be_off() {
    let site = Site::with("[web]\nread_only = true\n");
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let page = visitor.page("/pools/lan?pick=10.0.3.77").await;
    assert!(page.contains("read-only") && !page.contains("/pools/lan/claim"), "{page}");
    assert_eq!(visitor.post("/pools/lan/claim", &[("key", "k")]).await.status(), 403);
    assert_eq!(visitor.post("/logout", &[]).await.status(), 303);
    assert_eq!(visitor.get("/").await.status(), 303, "logged out");

    let site = Site::with("[web]\nenabled = false\n");
    let visitor = Visitor::stranger(&site);
    assert_eq!(visitor.get("/").await.headers()["location"], "/api/");
    assert_eq!(visitor.get("/login").await.status(), 404);
    let said = site.sandbox.fails("web --print");
    assert!(said.err.contains("`[web] enabled` is false"), "{}", said.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_may_show_the_pages_below_a_path() {
    let site = Site::with("[web]\nurl = \"https://net.test/ipam\"\n");
    let link = site.sandbox.does("web --print");
    assert!(link.starts_with("https://net.test/ipam/login/nsl_"), "{link}");
    let visitor = Visitor::stranger(&site);
    let path = link.trim().strip_prefix("https://net.test").unwrap();
    let ask =
        |request: RequestBuilder| request.header("host", "net.test").header("origin", "https://net.test");
    let answer = ask(visitor.form(path, &[])).send().await.unwrap();
    assert_eq!(answer.status(), 303);
    let cookie = cookies(answer.headers()).remove(0);
    assert!(cookie.contains("; Path=/ipam;") && cookie.ends_with("; Secure"), "{cookie}");
    assert_eq!(answer.headers()["location"], "/ipam/");
    // The proxy may leave the path or take it away.
    for path in ["/ipam/", "/"] {
        let request = visitor.http.get(format!("{}{path}", visitor.url)).header("host", "net.test");
        let answer = request.header("cookie", cookie.split(';').next().unwrap()).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let page = answer.text().await.unwrap();
        assert!(page.contains("href=\"/ipam/addresses\"") && page.contains("\"/ipam/assets/"), "{page}");
    }
    // The API too, with all that its page loads.
    for path in ["/ipam/api/", "/ipam/api/v1/openapi.json", "/api/", "/ipam/healthz"] {
        let request = visitor.http.get(format!("{}{path}", visitor.url)).header("host", "net.test");
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_page_says_so_in_a_page() {
    let site = Site::start();
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    for (path, status) in [("/nowhere", 404), ("/pools/lan/claim", 405), ("/plan/apply", 405)] {
        let answer = visitor.with_cookie(visitor.http.get(format!("{}{path}", visitor.url)));
        let answer = answer.header("accept", "text/html").send().await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        let page = answer.text().await.unwrap();
        assert!(page.contains("<!doctype html>") && page.contains("To the overview"), "{path}: {page}");
    }
    // What cannot be shown is not an act that was not done.
    let answer = visitor.get("/pools/none").await;
    assert_eq!(answer.status(), 404);
    let page = answer.text().await.unwrap();
    assert!(page.contains("<h1>Not found</h1>") && !page.contains("Nothing was changed"), "{page}");
    // Programs get what they always got.
    let answer = visitor.http.get(format!("{}/nowhere", visitor.url)).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_logins_at_once_are_ten_tries() {
    let site = Site::start();
    let visitor = Visitor::stranger(&site);
    let tries = (0..20).map(|_| visitor.post("/login", &[("token", "nst_wrong_wrong")]));
    let answers = futures::future::join_all(tries).await;
    let refused = answers.iter().filter(|answer| answer.status() == 401).count();
    let limited = answers.iter().filter(|answer| answer.status() == 429).count();
    assert_eq!((refused, limited), (10, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_pages_say_why_nothing_can_be_changed() {
    let site = Site::with("[web]\nread_only = true\n");
    site.fill();
    let visitor = Visitor::logged_in(&site, &site.sandbox.token()).await;
    let page = visitor.page("/pools/lan").await;
    assert!(page.contains("These pages are read-only"), "{page}");
    assert!(!page.contains("Your role is admin"), "the role is not what is in the way: {page}");
}
