//! Headers, cookies and refusals, which a browser does not show.

use reqwest::{Client, RequestBuilder, Response, Url, header::HeaderMap, redirect::Policy};

use super::site::Site;

/// A program that is no browser: it keeps one cookie by hand, and follows nothing.
struct Visitor {
    http: Client,
    url: String,
    cookie: String,
}

impl Visitor {
    async fn logged_in(site: &Site, token: &str) -> Self {
        let mut visitor = Self::stranger(site);
        let answer = visitor.post("/login", &[("token", token), ("next", "/pools/lan")]).await;
        assert_eq!(answer.status(), 303);
        assert_eq!(answer.headers()["location"], "/pools/lan");
        visitor.cookie = cookies(answer.headers())
            .into_iter()
            .find(|cookie| cookie.starts_with("netstead_session="))
            .unwrap();
        visitor
    }

    fn stranger(site: &Site) -> Self {
        let http = Client::builder().tls_certs_only([]).redirect(Policy::none()).build().unwrap();
        Self { http, url: site.sandbox.url(), cookie: String::new() }
    }

    fn with_cookie(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("cookie", self.cookie.split(';').next().unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Response {
        self.with_cookie(self.http.get(format!("{}{path}", self.url))).send().await.unwrap()
    }

    async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    }

    /// As a form of one of the pages sends it.
    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.form(path, fields).header("origin", &self.url).send().await.unwrap()
    }

    fn form(&self, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        // A form is written like the query of an address.
        let as_query = Url::parse_with_params("http://form", fields).unwrap();
        let body = as_query.query().unwrap_or_default().to_owned();
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        self.with_cookie(request).header("content-type", "application/x-www-form-urlencoded")
    }
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

fn token(site: &Site, role: &str) -> String {
    site.sandbox.does(&format!("token create somebody --role {role}")).trim().to_owned()
}

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
}
