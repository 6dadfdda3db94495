//! [`Session`]: one authenticated request, with its caller, its rights and its deadline.

use std::{fmt::Display, marker::PhantomData, ops::Deref, sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, HeaderName, StatusCode, request::Parts},
};
use jiff::Timestamp;
use netstead_engine::Engine;
use netstead_ledger::{Book, Caller, Command, Done, Freshness, LedgerError, ReadAnswer, Refusal};
use netstead_model::{Ident, Name};

use crate::{
    access::{Denied, Grant, Role, Scopes},
    app::AppState,
    http::{
        envelope::RequestInfo,
        name_scope::NameScope,
        pool_names::{self, PoolNames},
        zone_scope,
    },
    problem::Failure,
};

pub(crate) const TIMEOUT: HeaderName = HeaderName::from_static("netstead-timeout");
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST_TIMEOUT: Duration = Duration::from_mins(10);
/// How long a waiting claim may still be served once the server is about to end.
pub(super) const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The role a handler needs.
pub(crate) trait Needs {
    const ROLE: Role;
}

macro_rules! roles {
    ($($name:ident),*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name;
        impl Needs for $name {
            const ROLE: Role = Role::$name;
        }
    )*};
}
roles!(Read, Claim, Write, Admin);

/// A request by a caller that has at least the role `R`.
#[derive(Debug)]
pub(crate) struct Session<R>(RequestContext, PhantomData<R>);

impl<R> Deref for Session<R> {
    type Target = RequestContext;

    fn deref(&self) -> &RequestContext {
        &self.0
    }
}

/// The caller, and its deadline.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) app: AppState,
    pub(crate) grant: Grant,
    pub(crate) request: Arc<str>,
    /// On the monotonic clock.
    deadline: Duration,
}

impl<R: Needs> FromRequestParts<AppState> for Session<R> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Failure> {
        let grant = parts.extensions.get::<Grant>().cloned().ok_or(Denied::Missing)?;
        check_role(&grant, R::ROLE)?;
        let left = time_left(app, &parts.extensions, &parts.headers)?;
        let arrival = parts.extensions.get::<RequestInfo>();
        let request = arrival.map_or_else(|| Arc::from(""), |arrival| Arc::clone(&arrival.id));
        let deadline = app.clock.monotonic().saturating_add(left);
        Ok(Self(RequestContext { app: Arc::clone(app), grant, request, deadline }, PhantomData))
    }
}

fn check_role(grant: &Grant, needs: Role) -> Result<(), Failure> {
    let has = grant.role();
    if has >= needs {
        return Ok(());
    }
    let told = format!("this needs a token of role `{needs}`, and yours has `{has}`");
    Err(Failure::forbidden(told).fact("needs", needs).fact("has", has))
}

/// How much of its time a request has left.
pub(crate) fn time_left(
    app: &AppState,
    extensions: &Extensions,
    headers: &HeaderMap,
) -> Result<Duration, Failure> {
    let timeout = match headers.get(TIMEOUT) {
        None => DEFAULT_TIMEOUT,
        Some(value) => {
            let seconds = value.to_str().ok().and_then(|text| text.trim().parse::<f64>().ok());
            let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let wrong = || {
                Failure::unreadable("Netstead-Timeout", "it is a number of seconds, such as `30` or `2.5`")
            };
            seconds.ok_or_else(wrong)?.min(LONGEST_TIMEOUT)
        }
    };
    let spent =
        extensions.get::<RequestInfo>().map(|arrival| app.clock.monotonic().saturating_sub(arrival.at));
    Ok(timeout.saturating_sub(spent.unwrap_or_default()))
}

impl RequestContext {
    pub(crate) fn scopes(&self) -> &Scopes {
        self.grant.scopes()
    }

    pub(crate) fn caller(&self) -> Caller {
        self.grant.caller(&self.request)
    }

    /// The caller, claiming for `owner` if one is named, which needs the role `write`.
    pub(crate) fn caller_for(&self, owner: Option<Arc<str>>) -> Result<Caller, Failure> {
        let caller = self.caller();
        match owner {
            Some(owner) if owner == caller.subject => Ok(caller),
            Some(_) if self.grant.role() < Role::Write => {
                Err(Failure::forbidden("only a token of role `write` may name another owner").on("owner"))
            }
            behalf => Ok(Caller { behalf, ..caller }),
        }
    }

    /// Refuses those with less than this role.
    pub(crate) fn check_role(&self, needs: Role) -> Result<(), Failure> {
        check_role(&self.grant, needs)
    }

    /// The engine.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        let told = if self.app.cluster.is_some() {
            "what keeps names is not running yet: ask again in a moment"
        } else {
            "names are kept by a server that runs: start `netstead run`"
        };
        let missing = || Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", told);
        self.app.engine_slot.engine().ok_or_else(missing)
    }

    /// The names that the token covers: as fresh as the change that depends on it, or as what is looked at.
    pub(crate) async fn name_scope(&self, freshness: Freshness) -> Result<NameScope, Failure> {
        let scopes = self.scopes();
        if !NameScope::depends_on_pools(scopes) {
            return Ok(NameScope::new(scopes, []));
        }
        let look = |book: &Book| NameScope::new(scopes, book.pools().map(|status| status.pool.spec));
        Ok(self.read(freshness, look).await?.value)
    }

    /// Refuses a name that the token does not cover.
    pub(crate) async fn check_name(&self, name: &Name) -> Result<(), Failure> {
        self.name_scope(Freshness::Fresh).await?.check(name)
    }

    /// The time of day at which the Book stood where it stands: what it says is left counts from then, and so what ends
    /// does so at the same time whenever one asks.
    pub(crate) fn time_of(&self, book: &Book) -> Timestamp {
        self.app.ledger.wall_at(book.now())
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_sub(self.app.clock.monotonic())
    }

    pub(crate) async fn submit(&self, command: Command) -> Result<Done, Failure> {
        self.submit_as(self.caller(), command).await
    }

    pub(crate) async fn submit_as(&self, caller: Caller, command: Command) -> Result<Done, Failure> {
        let scopes = self.scopes();
        if !scopes.zones.is_empty() {
            // Here, where every change of the ledger comes by, so that none is forgotten.
            let look = |book: &Book| zone_scope::check_command(book, scopes, &command);
            self.read(Freshness::Fresh, look).await?.value?;
        } else if NameScope::depends_on_pools(scopes) && pool_names::concerns(&command) {
            let look = |book: &Book| PoolNames::of(book, scopes).check(book, &command);
            self.read(Freshness::Fresh, look).await?.value?;
        }
        Ok(self.app.ledger.submit(caller, command, self.time_left()).await?)
    }

    /// As `submit_as`, for a claim that may wait: the wait ends when the server stops.
    pub(crate) async fn submit_waiting(&self, caller: Caller, command: Command) -> Result<Done, Failure> {
        let stopping = async {
            self.app.stopping.cancelled().await;
            tokio::time::sleep(LAST_MOMENT).await;
        };
        tokio::select! {
            biased;
            done = self.submit_as(caller, command) => done,
            () = stopping => Err(LedgerError::Unknown { reason: "the server is about to end".into() }.into()),
        }
    }

    pub(crate) async fn read<T>(
        &self,
        freshness: Freshness,
        look: impl FnMut(&Book) -> T + Send,
    ) -> Result<ReadAnswer<T>, Failure> {
        let reading = self.app.ledger.read(freshness, look);
        match tokio::time::timeout(self.time_left(), reading).await {
            Ok(Err(LedgerError::Unavailable { reason })) if freshness != Freshness::Stale => {
                Err(self.not_reached(freshness).unwrap_or_else(|| Failure::unfresh(&reason)))
            }
            Ok(seen) => Ok(seen?),
            Err(_) => Err(self.out_of_time(freshness)),
        }
    }

    /// The time for a look is over. If the store is known not to answer, that says more: with more time it would have
    /// been the same.
    fn out_of_time(&self, freshness: Freshness) -> Failure {
        match self.app.ledger.health().reason {
            Some(reason) if freshness != Freshness::Stale => Failure::unfresh(&reason),
            _ => self.not_reached(freshness).unwrap_or_else(|| LedgerError::TooLate.into()),
        }
    }

    /// The caller waited for a change that has not happened. None if something else is wrong.
    fn not_reached(&self, freshness: Freshness) -> Option<Failure> {
        let health = self.app.ledger.health();
        let Freshness::AtLeast(number) = freshness else { return None };
        if health.reason.is_some() || health.seq >= number {
            return None;
        }
        let told = format!("change {number} has not happened yet: the newest is {}", health.seq);
        Some(Failure::new(StatusCode::GATEWAY_TIMEOUT, "too-late", told).expected())
    }

    /// Refuses what is not in the token's scope: before a command, whose own check knows nothing of tokens.
    pub(crate) async fn check_pool(&self, pool: &Ident) -> Result<(), Failure> {
        let scopes = self.scopes();
        check_pool_name(scopes, pool)?;
        if scopes.vrfs.is_empty() {
            return Ok(());
        }
        self.read(Freshness::Fresh, |book| check_pool_scope(book, scopes, pool)).await?.value
    }

    pub(crate) fn check_vrf(&self, vrf: &Ident) -> Result<(), Failure> {
        check_vrf(self.scopes(), vrf)
    }

    /// Refuses a token with scopes: the request is about everything.
    pub(crate) fn check_unscoped(&self) -> Result<(), Failure> {
        if self.scopes().is_all() {
            return Ok(());
        }
        Err(Failure::forbidden("this concerns everything, and your token is limited by scopes")
            .fact("scope", "all"))
    }
}

/// Refuses a pool that is out of scope, or that is not there.
pub(crate) fn check_pool_scope(book: &Book, scopes: &Scopes, pool: &Ident) -> Result<(), Failure> {
    check_pool_name(scopes, pool)?;
    if scopes.vrfs.is_empty() {
        return Ok(());
    }
    let status = book.pool(pool).ok_or_else(|| Refusal::NoSuchPool { pool: pool.clone() })?;
    check_vrf(scopes, &status.pool.spec.vrf)
}

/// Refuses a list that is asked for of a pool or a VRF that is out of scope, or that is not there.
pub(crate) fn check_list_scope(
    book: &Book,
    scopes: &Scopes,
    pool: Option<&Ident>,
    vrf: Option<&Ident>,
) -> Result<(), Failure> {
    if let Some(pool) = pool {
        check_pool_scope(book, scopes, pool)?;
        if book.vrf_of(pool).is_none() {
            return Err(Refusal::NoSuchPool { pool: pool.clone() }.into());
        }
    }
    let Some(vrf) = vrf else { return Ok(()) };
    check_vrf(scopes, vrf)?;
    if book.pools().any(|status| status.pool.spec.vrf == *vrf) {
        return Ok(());
    }
    Err(Failure::not_found("no-such-vrf", format!("there is no pool in VRF `{vrf}`")).fact("vrf", vrf))
}

/// The refusal for an address that is in no pool of the token, whether or not it is in another.
pub(crate) fn address_out_of_scope(scopes: &Scopes, address: &dyn Display) -> Failure {
    out_of_pools(scopes, &format!("and {address} is in none of them"))
}

/// Refusal of something that the pools or VRFs of a token do not give it; `told` says why.
pub(crate) fn out_of_pools(scopes: &Scopes, told: &str) -> Failure {
    let (what, scope) = if scopes.pools.is_empty() { ("VRF", &scopes.vrfs) } else { ("pool", &scopes.pools) };
    refused_scope(format!("your token is for the {what}s {}, {told}", quoted(scope)), what, scope)
}

pub(crate) fn check_vrf(scopes: &Scopes, vrf: &Ident) -> Result<(), Failure> {
    if scopes.allows_vrf(vrf) { Ok(()) } else { Err(out_of_scope("VRF", &scopes.vrfs, vrf)) }
}

pub(crate) fn check_pool_name(scopes: &Scopes, pool: &Ident) -> Result<(), Failure> {
    if scopes.allows_pool_name(pool) { Ok(()) } else { Err(out_of_scope("pool", &scopes.pools, pool)) }
}

fn out_of_scope(what: &str, scope: &[Ident], asked: &Ident) -> Failure {
    refused_scope(
        format!("your token is for the {what}s {} and not for `{asked}`", quoted(scope)),
        what,
        scope,
    )
}

pub(crate) fn quoted<T: Display>(scope: &[T]) -> String {
    scope.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn refused_scope(told: String, what: &str, scope: &[Ident]) -> Failure {
    let list = scope.iter().map(Ident::as_str).collect::<Vec<_>>().join(",");
    Failure::new(StatusCode::FORBIDDEN, "forbidden", told)
        .fact("scope", format!("{what}s={list}").to_lowercase())
}
