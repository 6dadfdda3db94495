//! A house to knock at.

use std::sync::Arc;

use netstead_api::{
    Api, ConfigReader, DailyBackups, KindNames, ServeOptions, Server,
    access::{NewToken, Role, Tokens},
    serve,
};
use netstead_engine::{Engine, Setup};
use netstead_ledger::{Ledger, Options};
use netstead_model::{Clock, SystemClock};
use netstead_store::{MemoryStore, Store};
use reqwest::{Client, Method, RequestBuilder, header::HeaderMap};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A server over a store in memory, with an admin's token.
pub struct House {
    pub url: String,
    pub admin: String,
    pub tokens: Tokens,
    pub ledger: Ledger,
    pub store: Arc<dyn Store>,
    pub shutdown: CancellationToken,
    pub server: Server,
    pub backups: DailyBackups,
    pub http: Client,
}

impl House {
    pub async fn open() -> Self {
        Self::with(SystemClock::shared(), ServeOptions::new("127.0.0.1:0")).await
    }

    pub async fn with(clock: Arc<dyn Clock>, options: ServeOptions) -> Self {
        Self::over(Arc::new(MemoryStore::new()), clock, options).await
    }

    /// A house with the pool `lan` that keeps names, on no server yet.
    pub async fn with_names() -> Self {
        let house = Self::with_setup(|_| Setup::default()).await;
        house.pool("lan", json!({"ranges": ["10.0.3.50-10.0.3.200"], "domain": "home.test"})).await;
        house
    }

    /// A house that keeps names as it is told to.
    pub async fn with_setup(setup: impl FnOnce(&Ledger) -> Setup) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), SystemClock::shared());
        let (options, keep) = (ServeOptions::new("127.0.0.1:0"), Options::default());
        Self::build(store, clock, options, keep, async |api, store, clock, ledger| {
            let options = netstead_engine::Options {
                ledger: Some(ledger.clone()),
                ..netstead_engine::Options::default()
            };
            let engine = Engine::start(store, clock, setup(&ledger), options).await.unwrap();
            api.with_engine(engine)
        })
        .await
    }

    /// A house that keeps names, on no server, and understands configurations.
    pub async fn with_reader(reader: Arc<dyn ConfigReader>) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), SystemClock::shared());
        let (options, keep) = (ServeOptions::new("127.0.0.1:0"), Options::default());
        Self::build(store, clock, options, keep, async |api, store, clock, _| {
            let options = netstead_engine::Options::default();
            let engine = Engine::start(store, clock, Setup::default(), options).await.unwrap();
            api.with_engine(engine).with_config_reader(reader)
        })
        .await
    }

    pub async fn over(store: Arc<dyn Store>, clock: Arc<dyn Clock>, options: ServeOptions) -> Self {
        Self::build(store, clock, options, Options::default(), bare).await
    }

    /// A house whose ledger has these settings.
    pub async fn keeping(clock: Arc<dyn Clock>, keep: Options) -> Self {
        Self::build(Arc::new(MemoryStore::new()), clock, ServeOptions::new("127.0.0.1:0"), keep, bare).await
    }

    pub async fn build(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        options: ServeOptions,
        keep: Options,
        equip: impl AsyncFnOnce(Api, Arc<dyn Store>, Arc<dyn Clock>, Ledger) -> Api,
    ) -> Self {
        let ledger = Ledger::open(store.clone(), clock.clone(), keep).await.unwrap();
        let tokens = Tokens::open(store.clone(), clock.clone()).await.unwrap();
        let admin = NewToken { local_admin: true, ..NewToken::new("root", Role::Admin) };
        let (_, admin) = tokens.create(admin).await.unwrap();
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let shutdown = CancellationToken::new();
        let backups = DailyBackups::default();
        let kinds = KindNames { sources: vec!["ledger"], providers: vec!["builtin"] };
        let api = Api::new(ledger.clone(), tokens.clone(), clock.clone(), "memory")
            .with_daily_backups(&backups)
            .with_kinds(kinds);
        let api = equip(api, store.clone(), clock, ledger.clone()).await;
        let server = serve(options, api, shutdown.clone()).await.unwrap();
        let url = format!("{scheme}://{}", server.address());
        let admin = admin.expose().to_owned();
        Self { url, admin, tokens, ledger, store, shutdown, server, backups, http: client() }
    }

    /// A house with the pool `lan`, 10.0.3.50 to 10.0.3.200.
    pub async fn with_lan() -> Self {
        let house = Self::open().await;
        house
            .pool(
                "lan",
                json!({"ranges": ["10.0.3.50-10.0.3.200"], "gateway": "10.0.3.1", "domain": "home.test"}),
            )
            .await;
        house
    }

    pub async fn pool(&self, name: &str, pool: Value) {
        self.put(&format!("/pools/{name}")).json(&pool).go().await.created();
    }

    /// A token of `role` for `subject`, without scopes.
    pub async fn token(&self, subject: &str, role: Role) -> String {
        self.scoped(NewToken::new(subject, role)).await
    }

    pub async fn scoped(&self, new: NewToken) -> String {
        self.tokens.create(new).await.unwrap().1.expose().to_owned()
    }

    pub fn get(&self, path: &str) -> Ask {
        self.ask(Method::GET, path)
    }

    pub fn put(&self, path: &str) -> Ask {
        self.ask(Method::PUT, path)
    }

    pub fn post(&self, path: &str) -> Ask {
        self.ask(Method::POST, path)
    }

    pub fn delete(&self, path: &str) -> Ask {
        self.ask(Method::DELETE, path)
    }

    /// A request under `/api/v1`, by the admin unless said otherwise.
    pub fn ask(&self, method: Method, path: &str) -> Ask {
        let path = format!("/api/v1{path}");
        Ask { request: self.bare(method, &path), token: Some(self.admin.clone()) }
    }

    /// A request to any path, without a token.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// Claims without ceremony and says what was got.
    pub async fn claim(&self, pool: &str, key: &str) -> String {
        let answer = self.put(&format!("/pools/{pool}/claims/{key}")).json(&json!({})).go().await;
        answer.fine()["address"].as_str().unwrap().to_owned()
    }
}

/// Nothing but the ledger.
async fn bare(api: Api, _: Arc<dyn Store>, _: Arc<dyn Clock>, _: Ledger) -> Api {
    api
}

/// A client without certificates to trust, which take time to load.
pub fn client() -> Client {
    Client::builder().tls_certs_only([]).build().unwrap()
}

/// A request in the making.
pub struct Ask {
    request: RequestBuilder,
    token: Option<String>,
}

impl Ask {
    pub fn by(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    pub fn by_nobody(mut self) -> Self {
        self.token = None;
        self
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.request = self.request.json(body);
        self
    }

    pub fn body(mut self, kind: &str, body: impl Into<reqwest::Body>) -> Self {
        self.request = self.request.header("content-type", kind).body(body);
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub fn into_request(self) -> RequestBuilder {
        match self.token {
            Some(token) => self.request.bearer_auth(token),
            None => self.request,
        }
    }

    pub async fn go(self) -> Answer {
        Answer::of(self.into_request()).await
    }
}

/// The whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

impl Answer {
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Self { status, headers, body, text }
    }

    pub fn fine(&self) -> &Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        &self.body
    }

    pub fn created(&self) -> &Value {
        assert_eq!(self.status, 201, "{self:?}");
        &self.body
    }

    /// Asserts a problem of this status and kind, and gives its detail.
    pub fn problem(&self, status: u16, slug: &str) -> String {
        let told = (self.status, self.body["type"].as_str().unwrap_or_default());
        assert_eq!(told, (status, &*format!("urn:netstead:{slug}")), "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["request"], self.header("x-request-id"), "{self:?}");
        self.body["detail"].as_str().unwrap().to_owned()
    }

    /// As [`Answer::problem`], and the field it names.
    pub fn invalid(&self, status: u16) -> (String, String) {
        let detail = self.problem(status, "invalid");
        (self.body["field"].as_str().unwrap_or_default().to_owned(), detail)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}
