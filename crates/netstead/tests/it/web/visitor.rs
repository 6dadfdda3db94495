//! [`Visitor`]: a program that is no browser.

use reqwest::{Client, RequestBuilder, Response, Url, header::HeaderMap, redirect::Policy};

use super::site::Site;

/// A program that is no browser: it keeps one cookie by hand, and follows nothing.
pub(super) struct Visitor {
    pub(super) http: Client,
    pub(super) url: String,
    pub(super) cookie: String,
}

impl Visitor {
    pub(super) async fn logged_in(site: &Site, token: &str) -> Self {
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

    pub(super) fn stranger(site: &Site) -> Self {
        let http = Client::builder().tls_certs_only([]).redirect(Policy::none()).build().unwrap();
        Self { http, url: site.sandbox.url(), cookie: String::new() }
    }

    pub(super) fn with_cookie(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("cookie", self.cookie.split(';').next().unwrap_or_default())
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        self.with_cookie(self.http.get(format!("{}{path}", self.url))).send().await.unwrap()
    }

    pub(super) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.text().await.unwrap()
    }

    /// As a form of one of the pages sends it.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.form(path, fields).header("origin", &self.url).send().await.unwrap()
    }

    pub(super) fn form(&self, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        // A form is written like the query of an address.
        let as_query = Url::parse_with_params("http://form", fields).unwrap();
        let body = as_query.query().unwrap_or_default().to_owned();
        let request = self.http.post(format!("{}{path}", self.url)).body(body);
        self.with_cookie(request).header("content-type", "application/x-www-form-urlencoded")
    }
}

pub(super) fn cookies(headers: &HeaderMap) -> Vec<String> {
    headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

pub(super) fn token(site: &Site, role: &str) -> String {
    site.sandbox.does(&format!("token create somebody --role {role}")).trim().to_owned()
}
