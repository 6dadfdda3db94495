//! The history of addresses and of names.

use std::{cmp::Reverse, fmt::Write as _};

use askama::Template;
use axum::response::Response;
use jiff::Timestamp;
use netstead_client::types::{EventOutput, HistoryOutput, Page};
use url::form_urlencoded;

use crate::{
    calls::Target,
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
    address: String,
    key: String,
    pool: String,
    name: String,
    provider: String,
    until: String,
    error: String,
    items: Vec<Happened>,
    next: String,
}

pub(crate) async fn list(visit: Visit, params: Params) -> Response {
    let of_names = params.text("of") == "names";
    let text = |name: &str| params.text(name).to_owned();
    let mut page = HistoryPage {
        shell: visit.shell(Section::History, "History"),
        of: if of_names { "names" } else { "addresses" },
        address: text("address"),
        key: text("key"),
        pool: text("pool"),
        name: text("name"),
        provider: text("provider"),
        until: text("until"),
        error: String::new(),
        items: Vec::new(),
        next: String::new(),
    };
    let common = |target: Target| {
        target
            .with("order", "newest")
            .with("limit", "50")
            .with("until", params.text("until"))
            .with("after", params.text("after"))
    };
    let listed = if of_names {
        let target =
            common(Target::of(["changes"])).with("name", &page.name).with("provider", &page.provider);
        let listed = visit.calls.get::<Page<HistoryOutput>>(target).await;
        listed.map(|listed| {
            (listed.items.iter().map(|change| of_change(change, visit.now)).collect(), listed.next)
        })
    } else {
        let target = common(Target::of(["events"]))
            .with("address", &page.address)
            .with("key", &page.key)
            .with("pool", &page.pool);
        let listed = visit.calls.look::<Page<EventOutput>>(target).await;
        listed.map(|listed| {
            (listed.items.iter().map(|event| of_event(event, visit.now)).collect(), listed.next)
        })
    };
    match listed {
        Ok((items, next)) => {
            page.items = items;
            page.next = next.map(|next| page.link_after(&next)).unwrap_or_default();
        }
        // What was typed is shown again, with what is wrong with it.
        Err(problem) if problem.status == 400 => page.error = problem.detail,
        Err(problem) => return visit.trouble(&problem),
    }
    visit.page(&page)
}

impl HistoryPage {
    fn link_after(&self, cursor: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("of", self.of);
        for (name, value) in [
            ("address", &self.address),
            ("key", &self.key),
            ("pool", &self.pool),
            ("name", &self.name),
            ("provider", &self.provider),
            ("until", &self.until),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.append_pair("after", cursor);
        query.finish()
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
