//! One pool: its grid, its table with the gaps, and claim, reserve and release from there.

pub(crate) mod acts;
pub(crate) mod change;
pub(crate) mod many;
pub(super) mod panel;

use askama::Template;
use axum::{
    extract::Path,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use netstead_client::types::{
    AddressOutput, AddressState, BlocksOutput, ClaimOutput, Page, PoolOutput, Problem, TokenRole,
};
use netstead_model::{Address, Range};

use self::panel::{Panel, panel};
use super::{
    grid::{self, Cell, Known, Legend, Tile, Window},
    history::encoded,
    usage::{self, UsageChart},
};
use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::{Bar, When, count, extent, percent},
    same::Same,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// Rows of the table on one page.
const ROWS: &str = "100";
/// The same for the addresses of a grid, which are known at once.
const BLOCK_ROWS: usize = 128;

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
    /// Why an act was refused that has no field.
    error: String,
    /// The pool may be changed here: it is not one of the file.
    may_change: bool,
    /// Claims may be chosen in the table, and released or labelled together.
    may_many: bool,
    many: [Same; 2],
    /// The table as CSV.
    csv: String,
    sorts: Sorts,
    over_time: Option<UsageChart>,
    /// Why there is no chart.
    over_time_missing: String,
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
    /// The key of a claim that the visitor may release; empty for everything else.
    line: String,
}

/// The place in the pool that is shown, and forms that were refused.
#[derive(Debug, Default, Clone)]
struct Asked {
    at: String,
    pick: String,
    after: String,
    claim: Form,
    reserve: Form,
    /// Why an act was refused that has no field.
    error: String,
    sort: String,
    /// The time that the chart shows.
    chart: String,
}

impl Asked {
    /// After an act without fields was refused.
    fn with(pick: &str, problem: &Problem) -> Self {
        Self { pick: pick.to_owned(), error: problem.detail.clone(), ..Self::default() }
    }
}

pub(crate) async fn show(visit: Visit, Path(pool): Path<String>, params: Params) -> Response {
    let text = |name: &str| params.text(name).to_owned();
    let asked = Asked {
        at: text("at"),
        pick: text("pick"),
        after: text("after"),
        sort: text("sort"),
        chart: text("chart"),
        ..Asked::default()
    };
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
    let href = format!("{}/pools/{}", visit.base(), encoded(name));
    let (listed, blocks, over_time) =
        tokio::join!(in_block, map, usage::of_pool(visit, &href, name, &asked.chart));
    let (listed, blocks) = (listed?, blocks?);

    let known = Known::new(&listed.items);
    let cells = window.block.map(|block| grid::cells(block, &ranges, &known, picked)).unwrap_or_default();
    let panel = panel(visit, &pool, picked, &known, &ranges, asked).await;
    let mut rows = rows(visit, &listed.items, &ranges, window);
    sort(&mut rows, &asked.sort);
    let mut next = listed.next.filter(|_| window.block.is_none()).map(|next| more(&href, &asked.at, &next));
    if let Some(block) = window.block {
        let from = asked.after.parse::<usize>().unwrap_or(0);
        let left = rows.len().saturating_sub(from);
        rows = rows.into_iter().skip(from).take(BLOCK_ROWS).collect();
        let sorted =
            if asked.sort.is_empty() { String::new() } else { format!("&sort={}", encoded(&asked.sort)) };
        let after = (from + BLOCK_ROWS).to_string();
        let link = || format!("{}{sorted}#table", more(&href, &block.to_string(), &after));
        next = (left > BLOCK_ROWS).then(link);
    }
    let may_many = visit.may(&TokenRole::Claim) && rows.iter().any(|row| !row.line.is_empty());
    let waiting = waiting(visit, &pool).await;
    let step = |forward: bool| -> String {
        let Some(block) = window.block.filter(|_| window.map.is_some()) else { return String::new() };
        let next = if forward { block.last().succ() } else { block.first().pred() };
        let inside =
            |address: &Address| grid::around(&ranges).is_some_and(|around| around.contains(*address));
        next.filter(inside).map(|address| format!("{href}?at={address}#grid")).unwrap_or_default()
    };
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
        next: next.unwrap_or_default(),
        error: asked.error.clone(),
        may_change: visit.may(&TokenRole::Write) && pool.origin.as_str() != "file",
        may_many,
        many: many::same(visit, name),
        csv: format!("{}/csv/addresses?pool={}", visit.base(), encoded(name)),
        sorts: Sorts::new(&href, &asked.at, &asked.sort),
        over_time_missing: over_time.as_ref().err().map(|trouble| trouble.detail.clone()).unwrap_or_default(),
        over_time: over_time.ok(),
        waiting,
        is_prefix,
        href,
        pool,
    })
}

/// The address of the next page of the table, at the same place of the pool.
fn more(href: &str, at: &str, next: &str) -> String {
    let at = if at.is_empty() { String::new() } else { format!("at={}&", encoded(at)) };
    format!("{href}?{at}after={}", encoded(next))
}

/// Links that sort the table by a column.
#[derive(Debug)]
struct Sorts {
    by: String,
    link: String,
}

impl Sorts {
    fn new(href: &str, at: &str, by: &str) -> Self {
        let at = if at.is_empty() { String::new() } else { format!("at={}&", encoded(at)) };
        Self { by: by.to_owned(), link: format!("{href}?{at}sort=") }
    }

    /// The column's link: a second press turns the order round.
    fn link(&self, column: &str) -> String {
        let turned = if self.by == column { "-" } else { "" };
        format!("{}{turned}{column}#table", self.link)
    }

    /// As `aria-sort` has it.
    fn state(&self, column: &str) -> &'static str {
        match self.by.strip_prefix('-') {
            Some(by) if by == column => "descending",
            None if self.by == column || (self.by.is_empty() && column == "address") => "ascending",
            _ => "none",
        }
    }
}

/// Sorts the lines of the table that are on the page. Addresses are in order as they come.
fn sort(rows: &mut [Row], by: &str) {
    let (column, turned) = by.strip_prefix('-').map_or((by, false), |column| (column, true));
    match column {
        "state" => rows.sort_by_key(|row| row.state),
        "key" => rows.sort_by(|a, b| (a.key.is_empty(), &a.key).cmp(&(b.key.is_empty(), &b.key))),
        "owner" => rows.sort_by(|a, b| (a.owner.is_empty(), &a.owner).cmp(&(b.owner.is_empty(), &b.owner))),
        "since" => rows.sort_by_key(|row| row.since.map(When::at)),
        _ => {}
    }
    if turned {
        rows.reverse();
    }
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

fn rows(visit: &Visit, listed: &[AddressOutput], ranges: &[Range], window: Window) -> Vec<Row> {
    let (writes, own) = (visit.may(&TokenRole::Write), &visit.session.subject);
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
                line: match (&entry.state, &entry.key) {
                    (AddressState::Held, Some(key)) if writes || entry.owner.as_ref() == Some(own) => {
                        key.clone()
                    }
                    _ => String::new(),
                },
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
                line: String::new(),
            };
            (Some(gap.first), row)
        }));
        rows.sort_by_key(|(first, _)| *first);
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The page again, with what was typed and what is wrong with it.
async fn again(visit: &Visit, pool: &str, asked: &Asked, problem: &Problem) -> Response {
    if matches!(problem.status, 401 | 403 | 502..=504) {
        return visit.trouble(&Box::new(problem.clone()));
    }
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
    let pick = if asked.pick.is_empty() { String::new() } else { format!("?pick={}", encoded(&asked.pick)) };
    let visit = visit.at(format!("/pools/{}{pick}", encoded(pool)));
    render(&visit, pool, asked, status).await.into_response()
}

pub(super) fn missing(field: &str, told: &str) -> Trouble {
    Box::new(Problem {
        status: 422,
        detail: told.to_owned(),
        field: Some(field.to_owned()),
        ..Problem::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_of_the_table_is_of_the_same_place() {
        assert_eq!(
            more("/pools/big", "10.0.0.0/8", "big/10.9.0.1"),
            "/pools/big?at=10.0.0.0%2F8&after=big%2F10.9.0.1"
        );
        assert_eq!(more("/pools/big", "", "x"), "/pools/big?after=x");
    }

    #[test]
    fn a_column_sorts_both_ways() {
        let sorts = Sorts::new("/pools/lan", "10.0.3.0/24", "key");
        assert_eq!(sorts.link("key"), "/pools/lan?at=10.0.3.0%2F24&sort=-key#table");
        assert_eq!(sorts.link("owner"), "/pools/lan?at=10.0.3.0%2F24&sort=owner#table");
        assert_eq!((sorts.state("key"), sorts.state("owner")), ("ascending", "none"));
        assert_eq!(Sorts::new("", "", "-key").state("key"), "descending");
        assert_eq!(Sorts::new("", "", "").state("address"), "ascending");
    }
}
