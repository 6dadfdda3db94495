//! The history of addresses and of names.

use std::{cmp::Reverse, fmt::Write as _};

use askama::Template;
use axum::{http::StatusCode, response::Response};
use jiff::Timestamp;
use netstead_client::types::{EventOutput, HistoryOutput, Page, TokenRole};
use netstead_model::Address;
use url::form_urlencoded;

use crate::{
    calls::{Target, Trouble},
    form::Form,
    parts::When,
    shell::{Section, Shell},
    visit::{Params, Visit},
};

/// One thing that happened.
#[derive(Debug)]
pub(crate) struct Happened {
    at: Timestamp,
    pub(crate) when: When,
    /// A short word for it: `claimed`, `applied`.
    pub(crate) what: String,
    pub(crate) text: String,
    pub(crate) why: String,
    pub(crate) by: String,
    /// The page of what it is about.
    pub(crate) href: String,
}

#[derive(Debug, Template)]
#[template(path = "history.html")]
struct HistoryPage {
    shell: Shell,
    /// `addresses` or `names`.
    of: &'static str,
    form: Form,
    /// The holder of the address, or the last change of the name, at the time that was asked for.
    then: String,
    items: Vec<Happened>,
    next: String,
    csv: String,
    may_roll_back: bool,
}

/// Lines of one page.
const LINES: usize = 50;
/// Calls, of 500 lines each, that are looked through for those of one actor.
const LOOKED_THROUGH: usize = 5;

/// Fields of the form.
const FIELDS: [&str; 8] = ["address", "key", "pool", "name", "provider", "by", "since", "until"];

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let of = if params.text("of") == "names" { "names" } else { "addresses" };
    let mut form = FIELDS.iter().fold(Form::default(), |form, name| form.with(name, params.text(name)));
    let asked = Asked {
        of_names: of == "names",
        since: moment(params.text("since"), visit.now),
        until: moment(params.text("until"), visit.now),
        params: &params,
    };
    let (mut items, mut next, mut then) = (Vec::new(), String::new(), String::new());
    let mut status = StatusCode::OK;
    match asked.page(&visit).await {
        Ok((found, cursor)) => {
            items = found;
            next = cursor.map(|cursor| params.query(&[("of", of), ("after", &cursor)])).unwrap_or_default();
            if !asked.until.is_empty() {
                then = asked.then(&visit).await;
            }
        }
        // What was typed is shown again, with what is wrong with it.
        Err(problem) if problem.status == 400 => {
            status = StatusCode::BAD_REQUEST;
            form = form.wrong(&problem, &FIELDS);
        }
        Err(problem) => return visit.trouble(&problem),
    }
    let list = if asked.of_names { "changes" } else { "events" };
    let times = [("of", ""), ("after", ""), ("by", ""), ("since", &*asked.since), ("until", &*asked.until)];
    let csv = format!("{}/csv/{list}?{}", visit.base(), params.query(&times));
    let page = HistoryPage {
        shell: visit.shell(Section::History, "History"),
        may_roll_back: visit.may(&TokenRole::Write) && visit.sees_all(),
        of,
        form,
        then,
        items,
        next,
        csv,
    };
    visit.page_as(status, &page)
}

/// The question to the history.
struct Asked<'p> {
    of_names: bool,
    /// As the API takes times.
    since: String,
    until: String,
    params: &'p Params,
}

impl Asked<'_> {
    fn target(&self, limit: usize) -> Target {
        let target = Target::of([if self.of_names { "changes" } else { "events" }])
            .with("order", "newest")
            .with("limit", limit.to_string())
            .with("since", &self.since)
            .with("until", &self.until);
        let own: &[&str] = if self.of_names { &["name", "provider"] } else { &["address", "key", "pool"] };
        own.iter().fold(target, |target, name| target.with(name, self.params.text(name)))
    }

    async fn call(&self, visit: &Visit, target: Target) -> Result<(Vec<Happened>, Option<String>), Trouble> {
        if self.of_names {
            let listed = visit.calls.get::<Page<HistoryOutput>>(target).await?;
            Ok((listed.items.iter().map(|change| of_change(change, visit.now)).collect(), listed.next))
        } else {
            let listed = visit.calls.look::<Page<EventOutput>>(target).await?;
            Ok((listed.items.iter().map(|event| of_event(event, visit.now)).collect(), listed.next))
        }
    }

    /// One page, perhaps of one actor only. The lines of others are left out here, so at most some thousand are looked
    /// through for one page.
    async fn page(&self, visit: &Visit) -> Result<(Vec<Happened>, Option<String>), Trouble> {
        let by = self.params.text("by").to_lowercase();
        if by.is_empty() {
            return self.call(visit, self.target(LINES).with("after", self.params.text("after"))).await;
        }
        let mut after = self.params.text("after").to_owned();
        let mut found = Vec::new();
        for _ in 0..LOOKED_THROUGH {
            let (items, next) = self.call(visit, self.target(500).with("after", &after)).await?;
            found.extend(items.into_iter().filter(|item| item.by.to_lowercase().contains(&by)));
            let Some(next) = next else { return Ok((found, None)) };
            after = next;
            if found.len() >= LINES {
                break;
            }
        }
        Ok((found, Some(after)))
    }

    /// The state of one address or one name at the time that was asked for, as a sentence.
    async fn then(&self, visit: &Visit) -> String {
        let target = Target::of([if self.of_names { "changes" } else { "events" }])
            .with("order", "newest")
            .with("limit", "1")
            .with("until", &self.until);
        if self.of_names {
            let name = self.params.text("name");
            let target = target.with("name", name).with("provider", self.params.text("provider"));
            let changes = visit.calls.aside::<Page<HistoryOutput>>(target).await;
            return match changes.map(|page| page.items.into_iter().next()) {
                Ok(Some(change)) if !name.is_empty() => {
                    format!("The last change of {name} before then: {}, {:.0}.", change.text, change.at)
                }
                Ok(None) if !name.is_empty() => format!("No change of {name} is known from before then."),
                _ => String::new(),
            };
        }
        let address = self.params.text("address");
        if address.parse::<Address>().is_err() {
            return String::new();
        }
        let events = visit.calls.look::<Page<EventOutput>>(target.with("address", address)).await;
        match events.map(|page| page.items.into_iter().next()) {
            Ok(Some(event)) => holder(address, &event),
            Ok(None) => format!("Nothing is known of {address} from before then."),
            Err(_) => String::new(),
        }
    }
}

/// The holder of an address after an event of it.
fn holder(address: &str, event: &EventOutput) -> String {
    let since = format!("{:.0}", event.at);
    match (&event.after, &event.key, &event.owner) {
        (Some(_), Some(key), Some(owner)) => {
            format!("At that time {key} of {owner} had {address}, since {since} or before.")
        }
        _ => format!("At that time nothing had {address}: {} {since}.", event.what),
    }
}

/// A time as people type it, as the API takes it: `14:03` is today's, `2026-11-19 14:03` is in UTC; everything else stays.
fn moment(text: &str, now: Timestamp) -> String {
    let day = format!("{now:.0}").chars().take(10).collect::<String>();
    let is_clock = |text: &str| {
        let digits: Vec<&str> = text.split(':').collect();
        (2..=3).contains(&digits.len())
            && digits.iter().all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let full = |day: &str, clock: &str| {
        let seconds = if clock.len() == 5 { ":00" } else { "" };
        format!("{day}T{clock}{seconds}Z")
    };
    if is_clock(text) {
        return full(&day, text);
    }
    match text.split_once([' ', 'T']) {
        Some((day, clock)) if is_clock(clock) => full(day, clock),
        None if text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok() => full(text, "00:00"),
        _ => text.to_owned(),
    }
}

/// The newest of both, newest first.
pub(crate) fn merged(
    events: &[EventOutput],
    changes: &[HistoryOutput],
    now: Timestamp,
    most: usize,
) -> Vec<Happened> {
    let events = events.iter().map(|event| of_event(event, now));
    let mut all: Vec<_> = events.chain(changes.iter().map(|change| of_change(change, now))).collect();
    all.sort_by_key(|happened| Reverse(happened.at));
    all.truncate(most);
    all
}

pub(crate) fn of_event(event: &EventOutput, now: Timestamp) -> Happened {
    let quoted = |text: &Option<String>| text.as_ref().map(|text| format!("“{text}”")).unwrap_or_default();
    let address = event.address.clone().unwrap_or_default();
    let mut text = match (address.is_empty(), &event.key) {
        (false, Some(_)) => format!("{address} for {}", quoted(&event.key)),
        (false, None) => address.clone(),
        (true, Some(_)) => quoted(&event.key),
        (true, None) => String::new(),
    };
    if let Some(owner) = event.owner.as_ref().filter(|owner| **owner != event.by) {
        let _ = write!(text, " of {owner}");
    }
    if let Some(pool) = &event.pool {
        let joint = if text.is_empty() { "pool" } else { " in" };
        let _ = write!(text, "{joint} {pool}");
    }
    let href = match (&event.address, &event.pool) {
        (Some(address), _) if !address.contains('-') => format!("/addresses/{}", encoded(address)),
        (_, Some(pool)) => format!("/pools/{}", encoded(pool)),
        _ => String::new(),
    };
    Happened {
        at: event.at,
        when: When::new(event.at, now),
        what: event.what.to_string(),
        text,
        why: event.reason.clone().unwrap_or_default(),
        by: event.by.clone(),
        href,
    }
}

pub(crate) fn of_change(change: &HistoryOutput, now: Timestamp) -> Happened {
    let mut why: Vec<&str> = Vec::new();
    for each in &change.changes {
        if !why.contains(&each.why.as_str()) {
            why.push(&each.why);
        }
    }
    let why = change.reason.clone().unwrap_or_else(|| why.join("; "));
    let place = change.provider.as_ref().or(change.source.as_ref());
    let parts = [place.map(|place| format!("{place}:")), change.name.clone(), Some(change.text.clone())];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Happened {
        at: change.at,
        when: When::new(change.at, now),
        what: change.what.to_string(),
        text,
        why,
        by: change.by.clone().unwrap_or_default(),
        href: change.name.as_ref().map(|name| format!("/names/{}", encoded(name))).unwrap_or_default(),
    }
}

/// A part of a path.
pub(crate) fn encoded(part: &str) -> String {
    form_urlencoded::byte_serialize(part.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_typed_as_people_say_it() {
        let now: Timestamp = "2026-11-19T18:00:00Z".parse().unwrap();
        for (typed, meant) in [
            ("14:03", "2026-11-19T14:03:00Z"),
            ("2026-11-01 14:03", "2026-11-01T14:03:00Z"),
            ("2026-11-01T14:03:09", "2026-11-01T14:03:09Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T14:03:00+01:00", "2026-11-01T14:03:00+01:00"),
            ("2h", "2h"),
            ("", ""),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(moment(typed, now), meant);
        }
    }

    #[test]
    fn the_event_before_a_time_says_what_was_then() {
        let event = |what: &str, after: serde_json::Value| -> EventOutput {
            serde_json::from_value(serde_json::json!({
                "seq": 1, "at": "2026-11-19T14:00:00Z", "by": "ann", "what": what, "key": "web-1", "owner": "ann",
                "address": "10.0.3.50", "after": after,
            }))
            .unwrap()
        };
        let claimed = holder("10.0.3.50", &event("claimed", serde_json::json!({"key": "web-1"})));
        assert_eq!(claimed, "At that time web-1 of ann had 10.0.3.50, since 2026-11-19T14:00:00Z or before.");
        let released = holder("10.0.3.50", &event("released", serde_json::Value::Null));
        assert_eq!(released, "At that time nothing had 10.0.3.50: released 2026-11-19T14:00:00Z.");
    }
}
