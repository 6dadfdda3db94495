//! A webhook: a program of your own behind HTTP, which keeps objects wherever it likes.
//!
//! The requests are signed as those of the DNS webhook. `docs/reference/ipam-webhook.md` describes the protocol.

mod wire;

use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc};

use async_trait::async_trait;
use netstead_model::{
    IpamCapabilities, IpamObject, IpamProvider, ObjectWrite, ProviderError, Span, UnitOutcome, WriteReply,
    standard_kinds,
};
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::http::{Http, Reply, check_url, path};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use self::wire::{Changes, Listing, Outcomes, SentUnit};
use super::IpamKind;
use crate::{
    BuildContext, Secret, SettingsError, Tls,
    dns::webhook::{SHORTEST_SECRET, signed::SignedHttp},
};

/// Units in one request.
const MOST_UNITS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(499);
/// Pages of one listing.
const MOST_PAGES: usize = 10_000;

pub const KIND: IpamKind =
    Kind::new::<Config>("webhook", "a program of your own, over HTTP", default_capabilities);

table! {
    /// `[ipam.NAME]` with `type = "webhook"`.
    pub struct Config {
        /// the address that the receiver's paths lie below
        url: String, required "\"https://hook.example.com/ipam\"";
        /// signs every request; a secret of at least 16 characters
        secret: Secret, required "{ file = \"/run/secrets/hook\" }";
        /// the kinds of objects that the receiver holds: `machine`, `interface`, `address`
        kinds: Vec<String>, unset "all";
        /// the fields that it holds, of any kind
        fields: Vec<String>, unset "all";
        /// how long one request may take
        timeout: Span, default "30s";
        tls: Tls, all;
    }
}

impl Configured<dyn IpamProvider> for Config {
    fn identity(&self) -> Identity {
        Identity::default().and_url(&self.url, "")
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        for kind in &self.kinds {
            if standard_kinds().iter().all(|one| one.kind.as_str() != kind) {
                let problem = format!("`{kind}` is no kind of object");
                return Err(
                    SettingsError::new("kinds", problem).hint("use `machine`, `interface`, `address`")
                );
            }
        }
        for field in &self.fields {
            if standard_kinds().iter().all(|one| !one.has_field(field)) {
                let known: BTreeSet<String> =
                    standard_kinds().iter().flat_map(|one| &one.fields).map(ToString::to_string).collect();
                let hint = format!("there are {}", known.into_iter().collect::<Vec<_>>().join(", "));
                return Err(SettingsError::new("fields", format!("no object has a `{field}`")).hint(hint));
            }
        }
        if self.timeout.is_zero() {
            return Err(SettingsError::new("timeout", "no request can be answered in no time"));
        }
        check_url(&self.url)?;
        self.tls.check()
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn IpamProvider>, SettingsError> {
        Ok(Arc::new(self.open(context)?))
    }
}

impl Config {
    pub fn new(url: impl Into<String>, secret: Secret) -> Self {
        Self {
            url: url.into(),
            secret,
            kinds: Vec::new(),
            fields: Vec::new(),
            timeout: Span::from_secs(30),
            tls: Tls::default(),
        }
    }

    /// Opens files and secrets; the receiver itself is asked later.
    pub fn open(&self, context: &BuildContext) -> Result<IpamWebhook, SettingsError> {
        self.check()?;
        let http = Http::open(&self.url, &self.tls, context)?.timeout(self.timeout.into());
        let secret = self.secret.reveal(context).map_err(|problem| SettingsError::new("secret", problem))?;
        if secret.expose().len() < SHORTEST_SECRET {
            let problem = format!("it has fewer than {SHORTEST_SECRET} characters");
            return Err(SettingsError::new("secret", problem));
        }
        let http = SignedHttp::new(http.redacting(&secret), &secret, context);
        Ok(IpamWebhook { http, can: self.capabilities(), writing: Mutex::default() })
    }

    fn capabilities(&self) -> IpamCapabilities {
        let mut can = default_capabilities();
        can.kinds
            .retain(|one| self.kinds.is_empty() || self.kinds.iter().any(|kind| one.kind.as_str() == kind));
        for kind in can.kinds.iter_mut().filter(|_| !self.fields.is_empty()) {
            // Without its unique fields an object cannot be recognised.
            let needed = |field: &str| kind.unique.contains(&field);
            kind.fields.retain(|field| needed(field) || self.fields.iter().any(|one| one == field));
        }
        can
    }
}

fn default_capabilities() -> IpamCapabilities {
    IpamCapabilities { kinds: standard_kinds(), most_units: Some(MOST_UNITS) }
}

/// One receiver.
#[derive(Debug)]
pub struct IpamWebhook {
    http: SignedHttp,
    can: IpamCapabilities,
    writing: Mutex<()>,
}

impl IpamWebhook {
    fn json<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ProviderError> {
        reply.json().map_err(|error| self.http.malformed(&format!("not its JSON: {error}")))
    }

    fn odd(&self, reply: &Reply) -> ProviderError {
        self.http.malformed(&format!("it answers {}: {}", reply.status, reply.text()))
    }

    /// Sends some units and gives the outcome of each.
    async fn send(
        &self,
        request: &ObjectWrite,
        units: &[netstead_model::ObjectUnit],
    ) -> Result<Vec<UnitOutcome>, ProviderError> {
        request.guard.permit().await?;
        let changes = Changes {
            owner: &request.fence.owner,
            epoch: request.fence.epoch,
            generation: request.fence.generation,
            units: units.iter().map(SentUnit::new).collect(),
        };
        let body = serde_json::to_vec(&changes).map_err(|error| self.http.malformed(&error.to_string()))?;
        let reply = self.http.post(&path(&["v1", "changes"]), body).await?;
        if !reply.is_success() {
            return Err(self.odd(&reply));
        }
        let outcomes = self.json::<Outcomes>(&reply)?.outcomes;
        if outcomes.len() != units.len() {
            let reason = format!("{} outcomes for {} units", outcomes.len(), units.len());
            return Err(self.http.malformed(&reason));
        }
        Ok(outcomes.into_iter().map(UnitOutcome::from).collect())
    }
}

#[async_trait]
impl IpamProvider for IpamWebhook {
    fn kind(&self) -> &'static str {
        KIND.name
    }

    fn server(&self) -> String {
        self.http.server().to_owned()
    }

    fn capabilities(&self) -> IpamCapabilities {
        self.can.clone()
    }

    async fn read(&self) -> Result<Vec<IpamObject>, ProviderError> {
        let (mut objects, mut seen) = (Vec::new(), BTreeSet::new());
        let (mut after, mut pages): (Option<String>, _) = (None, BTreeSet::new());
        loop {
            let at = match &after {
                Some(after) => path(&["v1", "objects", "after", after]),
                None => path(&["v1", "objects"]),
            };
            let reply = self.http.get(&at).await?;
            if !reply.is_success() {
                return Err(self.odd(&reply));
            }
            let page: Listing = self.json(&reply)?;
            for object in page.objects {
                let object = object.read().map_err(|reason| self.http.malformed(&reason))?;
                if !seen.insert((object.kind.clone(), object.id.clone())) {
                    let reason = format!("{} {} is listed twice", object.kind, object.id);
                    return Err(self.http.malformed(&reason));
                }
                if self.can.kinds.iter().any(|one| one.kind == object.kind) {
                    objects.push(object);
                }
            }
            let Some(next) = page.next else { return Ok(objects) };
            if pages.len() >= MOST_PAGES || !pages.insert(next.clone()) {
                return Err(self.http.malformed("its pages never end"));
            }
            after = Some(next);
        }
    }

    async fn write(&self, request: &ObjectWrite) -> Result<WriteReply, ProviderError> {
        let _alone = self.writing.lock().await;
        let mut outcomes = Vec::with_capacity(request.units.len());
        for units in request.units.chunks(MOST_UNITS.get()) {
            match self.send(request, units).await {
                Ok(done) => outcomes.extend(done),
                Err(error) if outcomes.is_empty() && !error.may_have_acted() => return Err(error),
                Err(error) => {
                    outcomes.extend(WriteReply::failed(units.len(), error.clone()).outcomes);
                    outcomes.resize(request.units.len(), UnitOutcome::NotTried);
                    return Ok(WriteReply { outcomes, stopped: Some(error) });
                }
            }
        }
        Ok(outcomes.into())
    }
}
