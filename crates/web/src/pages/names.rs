//! All names: what is wanted, what is on the servers, and whose it is.

use askama::Template;
use axum::response::Response;
use netstead_client::types::{Page, ProviderOutput, RecordOutput, RecordState, ZoneOutput};

use super::history::encoded;
use crate::{
    calls::Target,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

const ROWS: &str = "100";

#[derive(Debug, Template)]
#[template(path = "names.html")]
struct NamesPage {
    shell: Shell,
    zones: Vec<String>,
    providers: Vec<String>,
    zone: String,
    provider: String,
    state: String,
    text: String,
    csv: String,
    /// The page of the name that was typed, if it was a whole one: a record can be set there.
    typed: String,
    states: Vec<String>,
    error: String,
    records: Vec<RecordLine>,
    next: String,
}

/// A value at a name on a server.
#[derive(Debug)]
pub(crate) struct RecordLine {
    pub(crate) name: String,
    pub(crate) href: String,
    pub(crate) kind: String,
    pub(crate) value: String,
    pub(crate) ttl: u32,
    pub(crate) provider: String,
    /// A class: `good`, `wait`, `bad`, `foreign`.
    pub(crate) mood: &'static str,
    pub(crate) state: String,
    pub(crate) why: String,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let (zone, provider, state) = (params.text("zone"), params.text("provider"), params.text("state"));
    let target = Target::of(["records"])
        .with("zone", zone)
        .with("provider", provider)
        .with("state", state)
        .with("text", params.text("text"))
        .with("limit", ROWS)
        .with("after", params.text("after"));
    let (records, zones, providers) = tokio::join!(
        visit.calls.get::<Page<RecordOutput>>(target),
        visit.calls.get::<Page<ZoneOutput>>(Target::of(["zones"]).with("limit", "1000")),
        visit.calls.get::<Page<ProviderOutput>>(Target::of(["providers"]).with("limit", "1000"))
    );
    let mut page = NamesPage {
        shell: visit.shell(Section::Names, "Names"),
        zones: zones.map(|page| page.items.into_iter().map(|zone| zone.zone).collect()).unwrap_or_default(),
        providers: providers
            .map(|page| page.items.into_iter().map(|one| one.name).collect())
            .unwrap_or_default(),
        zone: zone.to_owned(),
        provider: provider.to_owned(),
        state: state.to_owned(),
        text: params.text("text").to_owned(),
        csv: format!("{}/csv/records?{}", visit.base(), params.query(&[("after", "")])),
        typed: params
            .text("text")
            .parse::<netstead_model::Name>()
            .ok()
            .filter(|_| params.text("text").contains('.'))
            .map(|name| format!("{}/names/{}", visit.base(), encoded(name.as_ref())))
            .unwrap_or_default(),
        states: RecordState::KNOWN.iter().map(ToString::to_string).collect(),
        error: String::new(),
        records: Vec::new(),
        next: String::new(),
    };
    page.zones.sort_unstable();
    page.zones.dedup();
    match records {
        Ok(records) => {
            page.records = records.items.iter().map(|record| record_line(record, visit.base())).collect();
            page.next = records
                .next
                .map(|next| format!("?{}", params.query(&[("after", &next)])))
                .unwrap_or_default();
        }
        Err(problem) if problem.status == 400 => page.error = problem.detail,
        Err(problem) => return visit.trouble(&problem),
    }
    visit.page(&page)
}

pub(crate) fn record_line(record: &RecordOutput, base: &str) -> RecordLine {
    let mood = match record.state {
        RecordState::Ok => "good",
        RecordState::Foreign => "foreign",
        RecordState::Blocked | RecordState::Drift => "bad",
        _ => "wait",
    };
    let state = match record.state {
        RecordState::Ok => "as wanted",
        RecordState::Foreign => "of others",
        RecordState::Pending => "wanted, not there yet",
        RecordState::Parked => "waits for approval",
        RecordState::Blocked => "blocked by others",
        RecordState::Drift => "changed by others",
        _ => record.state.as_str(),
    };
    RecordLine {
        name: record.name.clone(),
        href: format!("{base}/names/{}", encoded(&record.name)),
        kind: record.kind.to_string(),
        value: record.value.clone(),
        ttl: record.ttl,
        provider: record.provider.clone(),
        mood,
        state: state.to_owned(),
        why: record.reasons.join("; "),
    }
}
