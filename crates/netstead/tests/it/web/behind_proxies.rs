//! Proxies that are trusted: the client of a login, users that a proxy has verified, and visitors without a login.

use reqwest::{RequestBuilder, Response};

use super::{
    site::Site,
    visitor::{Visitor, cookies, token},
};

const TRUSTED: &str = "[web]\ntrusted_proxies = [\"127.0.0.0/8\"]\ntrust_header = \"Remote-User\"\n";

async fn through_proxy(visitor: &Visitor, path: &str, header: (&str, &str)) -> Response {
    let request = visitor.http.get(format!("{}{path}", visitor.url)).header(header.0, header.1);
    visitor.with_cookie(request).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_that_a_trusted_proxy_has_verified_is_let_in_with_the_rights_of_its_token() {
    let site = Site::with(TRUSTED);
    site.fill();
    token(&site, "read");
    let mut visitor = Visitor::stranger(&site);
    let ann = ("remote-user", "somebody");
    let answer = through_proxy(&visitor, "/pools/lan", ann).await;
    assert_eq!(answer.headers()["location"], "/login?next=%2Fpools%2Flan");
    let answer = through_proxy(&visitor, "/login?next=%2Fpools%2Flan", ann).await;
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["location"].to_str().unwrap()),
        (303, "/pools/lan")
    );
    visitor.cookie = cookies(answer.headers()).remove(0);
    let answer = through_proxy(&visitor, "/pools/lan", ann).await;
    assert_eq!(answer.status(), 200);
    let page = answer.text().await.unwrap();
    assert!(page.contains("somebody") && page.contains("Your role is read"), "{page}");
    // The session is of this user: the proxy names another one, who has no token.
    let answer = through_proxy(&visitor, "/pools/lan", ("remote-user", "bob")).await;
    assert_eq!(answer.status(), 303);
    let answer = through_proxy(&visitor, "/login", ("remote-user", "bob")).await;
    assert_eq!(answer.status(), 403);
    assert!(answer.text().await.unwrap().contains("netstead token create bob"));
    // Without the header a token still works.
    let admin = Visitor::logged_in(&site, &site.sandbox.token()).await;
    assert_eq!(admin.get("/access").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_of_a_client_that_is_no_trusted_proxy_is_nothing() {
    let site = Site::with("[web]\ntrusted_proxies = [\"192.0.2.1\"]\ntrust_header = \"Remote-User\"\n");
    token(&site, "admin");
    let visitor = Visitor::stranger(&site);
    let answer = through_proxy(&visitor, "/login", ("remote-user", "somebody")).await;
    assert_eq!(answer.status(), 200, "the page with the form");
    assert!(cookies(answer.headers()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_behind_a_trusted_proxy_are_limited_one_by_one() {
    let site = Site::with(TRUSTED);
    let visitor = Visitor::stranger(&site);
    let wrong = |client: &'static str| -> RequestBuilder {
        visitor
            .form("/login", &[("token", "nst_wrong_wrong")])
            .header("origin", &visitor.url)
            .header("x-forwarded-for", client)
    };
    for _ in 0..10 {
        assert_eq!(wrong("192.0.2.7").send().await.unwrap().status(), 401);
    }
    assert_eq!(wrong("192.0.2.7").send().await.unwrap().status(), 429);
    assert_eq!(
        wrong("198.51.100.1, 192.0.2.7").send().await.unwrap().status(),
        429,
        "its own word is nothing"
    );
    assert_eq!(wrong("192.0.2.8").send().await.unwrap().status(), 401, "another client");
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_without_a_login_look_where_that_is_allowed_and_change_nothing() {
    let site = Site::with("[web]\nanonymous = \"read\"\n");
    site.fill();
    let visitor = Visitor::stranger(&site);
    for path in ["/", "/pools/lan?pick=10.0.3.77", "/names", "/plan", "/workloads", "/doctor"] {
        let page = visitor.page(path).await;
        assert!(page.contains("Log in") && !page.contains("Log out"), "{path}: {page}");
        assert!(!page.contains("href=\"/access\""), "{path}: sessions are none of its business");
        assert!(!page.contains("<form method=\"post\" action=\"/pools"), "{path}: {page}");
    }
    for (path, fields) in [
        ("/pools/lan/claim", &[("key", "k")][..]),
        ("/plan/apply", &[]),
        ("/access/end", &[("id", "x")]),
        ("/servers/pause", &[("provider", "own")]),
    ] {
        assert_eq!(visitor.post(path, fields).await.status(), 403, "{path}");
    }
    assert_eq!(visitor.get("/access").await.status(), 403);
    // All of them share one session, of a token that can be seen and revoked.
    let listed = site.sandbox.does("token list -o csv");
    assert_eq!(listed.matches("anonymous").count(), 1, "{listed}");
    let id =
        listed.lines().find(|line| line.contains("anonymous")).unwrap().split(',').next().unwrap().to_owned();
    site.sandbox.does(&format!("token revoke {id}"));
    assert_eq!(visitor.get("/").await.status(), 200, "the setting makes another one");
    // The API asks for a token as before, and a login gives rights.
    assert_eq!(visitor.get("/api/v1/pools").await.status(), 401);
    let admin = Visitor::logged_in(&site, &site.sandbox.token()).await;
    assert!(admin.page("/pools/lan?pick=10.0.3.77").await.contains("/pools/lan/claim"));
}

#[test]
fn settings_of_proxies_are_checked() {
    let sandbox = crate::sandbox::Sandbox::empty();
    for (more, told) in [
        ("trust_header = \"Remote-User\"", "without `trusted_proxies`"),
        ("trusted_proxies = [\"::1\"]\ntrust_header = \"Remote User\"", "no name of a header"),
        ("trusted_proxies = [\"proxy.test\"]", "proxy.test"),
        ("anonymous = \"write\"", "`read`"),
    ] {
        std::fs::write(sandbox.path().join("netstead.toml"), format!("[web]\n{more}\n")).unwrap();
        let said = sandbox.netstead(["config", "check"]);
        assert!(said.code != 0 && format!("{}{}", said.out, said.err).contains(told), "{more}: {said:?}");
    }
}
