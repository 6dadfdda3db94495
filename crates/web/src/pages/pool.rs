//! One pool: its grid, its table with the gaps, and claim, reserve and release from there.

use askama::Template;
use axum::{
    extract::Path,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use netstead_client::types::{
    AddressOutput, AddressState, BlocksOutput, ClaimInput, ClaimOutput, Page, PoolOutput, Problem,
    ReservationInput, ReservationOutput, TokenRole,
};
use netstead_model::{Address, Range};

use super::{
    grid::{self, Cell, Known, Legend, Tile, Window},
    history::encoded,
};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::{Bar, When, count, extent, percent},
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// Rows of the table on one page.
const ROWS: &str = "100";

#[derive(Debug, Template)]
#[template(path = "pool.html")]
struct PoolPage {
    shell: Shell,
    pool: PoolOutput,
    href: String,
    extent: String,
    bar: Bar,
    percent: String,
    facts: Vec<(&'static str, String)>,
    cells: Vec<Cell>,
    block: String,
    legend: Vec<Legend>,
    map: String,
    tiles: Vec<Tile>,
    out: String,
    before: String,
    after: String,
    panel: Panel,
    rows: Vec<Row>,
    next: String,
    waiting: Vec<ClaimOutput>,
    is_prefix: bool,
}

/// Forms for the address that was chosen, or for the pool.
#[allow(clippy::struct_excessive_bools, reason = "each is a question that a template asks")]
#[derive(Debug, Default)]
struct Panel {
    /// The address that was chosen, if one was.
    address: String,
    state: String,
    key: String,
    owner: String,
    id: String,
    names: Vec<String>,
    until: Option<When>,
    note: String,
    /// The claim form: shown for the pool, for a free address, and for one that rests or was seen.
    claim: Form,
    reserve: Form,
    may_claim: bool,
    may_reserve: bool,
    may_release: bool,
    may_unreserve: bool,
    /// An exact claim has to adopt or force it.
    needs: &'static str,
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    address: String,
    href: String,
    /// `held`, `free`, …: a class and a word.
    state: &'static str,
    word: String,
    key: String,
    owner: String,
    since: Option<When>,
    until: Option<When>,
    note: String,
}

/// The place in the pool that is shown, and forms that were refused.
#[derive(Debug, Default, Clone)]
struct Asked {
    at: String,
    pick: String,
    after: String,
    claim: Form,
    reserve: Form,
}

pub(crate) async fn show(visit: Visit, Path(pool): Path<String>, params: Params) -> Response {
    let text = |name: &str| params.text(name).to_owned();
    let asked = Asked { at: text("at"), pick: text("pick"), after: text("after"), ..Asked::default() };
    render(&visit, &pool, &asked, StatusCode::OK).await
}

async fn render(visit: &Visit, pool: &str, asked: &Asked, status: StatusCode) -> Response {
    match page(visit, pool, asked).await {
        Ok(page) => visit.page_as(status, &page),
        Err(trouble) => visit.trouble(&trouble),
    }
}

async fn page(visit: &Visit, name: &str, asked: &Asked) -> Result<PoolPage, Trouble> {
    let pool: PoolOutput = visit.calls.look(Target::of(["pools", name])).await?;
    let ranges = grid::ranges(&pool);
    let is_prefix = pool.family.as_str() == "prefix";
    let picked: Option<Address> = asked.pick.parse().ok().filter(|_| !is_prefix);
    let at = if asked.at.is_empty() { &asked.pick } else { &asked.at };
    let window = if is_prefix { Window { block: None, map: None } } else { Window::of(&ranges, at) };

    let list = || Target::of(["addresses"]).with("pool", name);
    let within = window.block.or(window.map).map(|block| block.to_string()).unwrap_or_default();
    let in_block = async {
        if window.block.is_some() {
            let target = list().with("within", &within).with("limit", "1000");
            visit.calls.look::<Page<AddressOutput>>(target).await
        } else {
            let target = list().with("within", &within).with("limit", ROWS).with("after", &asked.after);
            visit.calls.look::<Page<AddressOutput>>(target).await
        }
    };
    let map = async {
        let Some(map) = window.map else { return Ok(None) };
        let target = Target::of(["pools", name, "blocks"]).with("within", map.to_string());
        visit.calls.look::<BlocksOutput>(target).await.map(Some)
    };
    let (listed, blocks) = tokio::join!(in_block, map);
    let (listed, blocks) = (listed?, blocks?);

    let known = Known::new(&listed.items);
    let cells = window.block.map(|block| grid::cells(block, &ranges, &known, picked)).unwrap_or_default();
    let href = format!("{}/pools/{}", visit.base(), encoded(name));
    let panel = panel(visit, &pool, picked, &known, &ranges, asked).await;
    let rows = rows(visit, &listed.items, &ranges, window);
    let waiting = waiting(visit, &pool).await;
    let step = |forward: bool| -> String {
        let Some(block) = window.block.filter(|_| window.map.is_some()) else { return String::new() };
        let next = if forward { block.last().succ() } else { block.first().pred() };
        let inside =
            |address: &Address| grid::around(&ranges).is_some_and(|around| around.contains(*address));
        next.filter(inside).map(|address| format!("{href}?at={address}#grid")).unwrap_or_default()
    };
    let next = listed.next.filter(|_| window.block.is_none());
    Ok(PoolPage {
        shell: visit.shell(Section::Addresses, format!("Pool {name}")),
        extent: extent(&pool),
        bar: Bar::new(&pool.usage),
        percent: percent(&pool.usage),
        facts: facts(&pool),
        legend: grid::legend(&cells),
        cells,
        block: window.block.map(|block| block.to_string()).unwrap_or_default(),
        map: window.map.map(|map| map.to_string()).unwrap_or_default(),
        tiles: blocks
            .map(|blocks| grid::tiles(&blocks, visit.base(), name, window.block))
            .unwrap_or_default(),
        out: window
            .out(&ranges)
            .map(|out| format!("{href}?at={}", encoded(&out.to_string())))
            .unwrap_or_default(),
        before: step(false),
        after: step(true),
        panel,
        rows,
        next: next.map(|next| format!("{href}?after={}", encoded(&next))).unwrap_or_default(),
        waiting,
        is_prefix,
        href,
        pool,
    })
}

/// Claims in the queue. They are listed behind the bound ones, so only a pool that has some is asked.
async fn waiting(visit: &Visit, pool: &PoolOutput) -> Vec<ClaimOutput> {
    if pool.usage.waiting == 0 {
        return Vec::new();
    }
    let target =
        Target::of(["claims"]).with("pool", &pool.name).with("after", "waiting:0").with("limit", "50");
    visit.calls.look::<Page<ClaimOutput>>(target).await.map(|page| page.items).unwrap_or_default()
}

fn facts(pool: &PoolOutput) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &'static str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
    };
    add("Gateway", pool.gateway.clone());
    add("Domain", pool.domain.clone());
    add("VRF", Some(pool.vrf.clone()).filter(|vrf| vrf != "default"));
    add("Ranges", Some(pool.ranges.join(", ")));
    add("Never handed out", Some(pool.exclude.join(", ")));
    add("Order", Some(pool.order.to_string()));
    add("Rest after release", Some(pool.cooldown.clone()));
    add("Length of a prefix", pool.length.map(|length| format!("/{length}")));
    add("Inside", pool.within.clone());
    add("Backend", pool.backend.clone());
    add(
        "Made by",
        Some(if pool.origin.as_str() == "file" { "the configuration file" } else { "the API" }.to_owned()),
    );
    facts
}

async fn panel(
    visit: &Visit,
    pool: &PoolOutput,
    picked: Option<Address>,
    known: &Known<'_>,
    ranges: &[Range],
    asked: &Asked,
) -> Panel {
    let (claims, writes) = (visit.may(&TokenRole::Claim), visit.may(&TokenRole::Write));
    let mut panel = Panel {
        claim: asked.claim.clone(),
        reserve: asked.reserve.clone(),
        may_claim: claims && !pool.closing,
        may_reserve: writes && !pool.closing,
        ..Panel::default()
    };
    let Some(address) = picked else { return panel };
    panel.address = address.to_string();
    let inside = ranges.iter().any(|range| range.contains(address));
    let Some(entry) = known.at(address) else {
        if inside { "free" } else { "outside" }.clone_into(&mut panel.state);
        panel.may_claim &= inside;
        panel.may_reserve &= inside;
        return panel;
    };
    panel.state = entry.state.to_string();
    panel.key = entry.key.clone().unwrap_or_default();
    panel.owner = entry.owner.clone().unwrap_or_default();
    panel.note = entry.note.clone().unwrap_or_default();
    panel.until = entry.until.map(|until| When::new(until, visit.now));
    match entry.state {
        AddressState::Held => {
            panel.may_claim = false;
            panel.may_reserve = false;
            let target = Target::of(["pools", &pool.name, "claims", &panel.key]);
            if let Ok(claim) = visit.calls.look::<ClaimOutput>(target).await {
                panel.id = claim.id.unwrap_or_default();
                panel.names = claim.names;
            }
            panel.may_release = claims && (writes || panel.owner == visit.session.subject);
        }
        AddressState::Observed => panel.needs = "adopt",
        AddressState::Resting => {
            panel.needs = "force";
            panel.may_reserve = false;
        }
        AddressState::Reserved => {
            panel.may_claim = false;
            panel.may_reserve = false;
            panel.may_unreserve = writes;
        }
        _ => {
            panel.may_claim = false;
            panel.may_reserve = false;
        }
    }
    panel
}

fn rows(visit: &Visit, listed: &[AddressOutput], ranges: &[Range], window: Window) -> Vec<Row> {
    let mut rows: Vec<(Option<Address>, Row)> = listed
        .iter()
        .map(|entry| {
            let state = grid::state_name(&entry.state);
            let row = Row {
                href: format!("{}/addresses/{}", visit.base(), encoded(&entry.address)),
                address: entry.address.clone(),
                state,
                word: entry.state.to_string(),
                key: entry.key.clone().unwrap_or_default(),
                owner: entry.owner.clone().unwrap_or_default(),
                since: entry.since.map(|since| When::new(since, visit.now)),
                until: entry.until.map(|until| When::new(until, visit.now)),
                note: entry.note.clone().unwrap_or_default(),
            };
            let row = if entry.address.contains('-') { Row { href: String::new(), ..row } } else { row };
            (grid::range_of(entry).map(|range| range.first()), row)
        })
        .collect();
    if let Some(block) = window.block {
        rows.extend(grid::gaps(ranges, listed, block.into()).into_iter().map(|gap| {
            let size = gap.first.distance(gap.last).unwrap_or_default().saturating_add(1);
            let address = if gap.first == gap.last {
                gap.first.to_string()
            } else {
                format!("{}-{}", gap.first, gap.last)
            };
            let row = Row {
                address,
                href: String::new(),
                state: "free",
                word: "free".to_owned(),
                key: String::new(),
                owner: String::new(),
                since: None,
                until: None,
                note: format!("{} free", count(&size.to_string())),
            };
            (Some(gap.first), row)
        }));
        rows.sort_by_key(|(first, _)| *first);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

pub(crate) async fn claim(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Claim) {
        return refused;
    }
    let length = form.maybe("length").map(|text| text.trim_start_matches('/').to_owned());
    let input = ClaimInput {
        address: form.maybe("address"),
        length: length.as_deref().and_then(|text| text.parse().ok()),
        hostnames: Some(form.words("hostnames")).filter(|names| !names.is_empty()),
        description: form.maybe("description"),
        ttl: form.maybe("ttl"),
        adopt: form.is_set("adopt"),
        force: form.is_set("force"),
        ..ClaimInput::default()
    };
    let key = form.text("key").to_owned();
    let claimed: Result<ClaimOutput, Trouble> = if key.is_empty() {
        Err(missing("key", "give the claim a key: the name of what gets the address"))
    } else {
        visit.calls.put(Target::of(["pools", &pool, "claims", &key]), &input).await
    };
    match claimed {
        Ok(claim) => {
            let address = claim.address.clone().unwrap_or_else(|| "a place in the queue".to_owned());
            let place = match claim.address.as_deref().filter(|address| !address.contains('/')) {
                Some(address) => format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(address)),
                None => format!("/pools/{}", encoded(&pool)),
            };
            visit.done(&place, &format!("{} has {address}", claim.key))
        }
        Err(problem) => {
            let known = ["key", "address", "hostnames", "description", "ttl", "length"];
            let pick = form.text("address").to_owned();
            let asked = Asked { pick, claim: form.wrong(&problem, &known), ..Asked::default() };
            again(&visit, &pool, &asked, &problem).await
        }
    }
}

pub(crate) async fn reserve(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let key = form.text("reserve_key").to_owned();
    let input = ReservationInput {
        range: form.text("range").to_owned(),
        description: form.maybe("reserve_description"),
    };
    let reserved: Result<ReservationOutput, Trouble> = if key.is_empty() {
        Err(missing("reserve_key", "give the reservation a key: what it is for"))
    } else {
        visit.calls.put(Target::of(["pools", &pool, "reservations", &key]), &input).await
    };
    match reserved {
        Ok(made) => {
            let place = format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(&first_of(&made.range)));
            visit.done(&place, &format!("{} is reserved for {}", made.range, made.key))
        }
        Err(problem) => {
            let pick = first_of(form.text("range"));
            let known = ["range", "reserve_key"];
            let asked = Asked { pick, reserve: form.wrong(&problem, &known), ..Asked::default() };
            again(&visit, &pool, &asked, &problem).await
        }
    }
}

pub(crate) async fn release(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Claim) {
        return refused;
    }
    let (key, id) = (form.text("key"), form.text("id"));
    let target = Target::of(["pools", &pool, "claims", key]).with("id", id);
    let address = form.text("address");
    match visit.calls.delete(target).await {
        Ok(()) => {
            let place = format!("/pools/{}?pick={}#grid", encoded(&pool), encoded(address));
            visit.back(form.text("back"), &place, &format!("{key} has released {address}"))
        }
        Err(problem) => visit.trouble(&problem),
    }
}

pub(crate) async fn unreserve(visit: Visit, Path(pool): Path<String>, form: Form) -> Response {
    if let Some(refused) = visit.refusal(&TokenRole::Write) {
        return refused;
    }
    let key = form.text("key");
    let target = Target::of(["pools", &pool, "reservations", key]);
    match visit.calls.delete(target).await {
        Ok(()) => {
            visit.done(&format!("/pools/{}", encoded(&pool)), &format!("the reservation for {key} has ended"))
        }
        Err(problem) => visit.trouble(&problem),
    }
}

/// The page again, with what was typed and what is wrong with it.
async fn again(visit: &Visit, pool: &str, asked: &Asked, problem: &Problem) -> Response {
    if problem.status == 401 {
        return visit.trouble(&Box::new(problem.clone()));
    }
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    render(visit, pool, asked, status).await.into_response()
}

fn first_of(range: &str) -> String {
    let parsed = range.parse::<Range>().ok();
    parsed.map_or_else(|| range.to_owned(), |range| range.first().to_string())
}

pub(super) fn missing(field: &str, told: &str) -> Trouble {
    Box::new(Problem {
        status: 422,
        detail: told.to_owned(),
        field: Some(field.to_owned()),
        ..Problem::default()
    })
}
