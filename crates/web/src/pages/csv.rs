//! Lists as CSV, all pages of them.

use std::collections::VecDeque;

use axum::{
    body::{Body, Bytes},
    extract::Path,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use futures::stream;
use netstead_client::types::{
    AddressOutput, ClaimOutput, EventOutput, HistoryOutput, Page, PoolOutput, RecordOutput, WorkloadOutput,
};
use serde::de::DeserializeOwned;

use crate::{
    calls::{Calls, Target, Trouble},
    visit::{Params, Visit},
};

/// Lines of one call.
const LINES: &str = "1000";
/// Most lines of one file.
const MOST: usize = 1_000_000;
/// Parameters of lists that are passed on.
const KNOWN: [&str; 15] = [
    "pool", "vrf", "within", "state", "zone", "provider", "name", "source", "problems", "text", "address",
    "key", "since", "until", "owner",
];

pub(crate) async fn download(visit: Visit, Path(list): Path<String>, params: Params) -> Response {
    let target = Target::of([list.as_str()]);
    let target = KNOWN.iter().fold(target, |target, name| target.with(name, params.text(name)));
    let csv = match list.as_str() {
        "pools" => file::<PoolOutput>(&visit, target).await,
        "claims" => file::<ClaimOutput>(&visit, target).await,
        "addresses" => file::<AddressOutput>(&visit, target).await,
        "records" => file::<RecordOutput>(&visit, target).await,
        "workloads" => file::<WorkloadOutput>(&visit, target).await,
        "events" => file::<EventOutput>(&visit, target).await,
        "changes" => file::<HistoryOutput>(&visit, target).await,
        _ => Err(unknown(&list)),
    };
    match csv {
        Ok(body) => {
            let mut response = body.into_response();
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
            let name = format!("attachment; filename=\"netstead-{list}.csv\"");
            if let Ok(name) = HeaderValue::try_from(name) {
                headers.insert(header::CONTENT_DISPOSITION, name);
            }
            response
        }
        Err(trouble) => visit.trouble(&trouble),
    }
}

/// A thing in a list, as a line of a file.
trait Listed: DeserializeOwned + Send + 'static {
    const HEAD: &'static [&'static str];

    fn fields(self) -> Vec<String>;
}

impl Listed for PoolOutput {
    const HEAD: &'static [&'static str] =
        &["name", "family", "vrf", "network", "ranges", "size", "held", "free", "domain", "description"];

    fn fields(self) -> Vec<String> {
        vec![
            self.name,
            self.family.to_string(),
            self.vrf,
            self.network.unwrap_or_default(),
            self.ranges.join(" "),
            self.usage.size,
            self.usage.held,
            self.usage.free,
            self.domain.unwrap_or_default(),
            self.description.unwrap_or_default(),
        ]
    }
}

impl Listed for ClaimOutput {
    const HEAD: &'static [&'static str] =
        &["pool", "key", "address", "owner", "state", "since", "names", "labels", "description"];

    fn fields(self) -> Vec<String> {
        let labels: Vec<_> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![
            self.pool,
            self.key,
            self.address.unwrap_or_default(),
            self.owner,
            self.state.to_string(),
            format!("{:.0}", self.since),
            self.names.join(" "),
            labels.join(" "),
            self.description.unwrap_or_default(),
        ]
    }
}

impl Listed for AddressOutput {
    const HEAD: &'static [&'static str] =
        &["pool", "address", "state", "key", "owner", "since", "until", "note"];

    fn fields(self) -> Vec<String> {
        let time = |at: Option<jiff::Timestamp>| at.map(|at| format!("{at:.0}")).unwrap_or_default();
        vec![
            self.pool.unwrap_or_default(),
            self.address,
            self.state.to_string(),
            self.key.unwrap_or_default(),
            self.owner.unwrap_or_default(),
            time(self.since),
            time(self.until),
            self.note.unwrap_or_default(),
        ]
    }
}

impl Listed for RecordOutput {
    const HEAD: &'static [&'static str] = &["name", "type", "value", "provider", "state", "why"];

    fn fields(self) -> Vec<String> {
        vec![
            self.name,
            self.kind.to_string(),
            self.value,
            self.provider,
            self.state.to_string(),
            self.reasons.join("; "),
        ]
    }
}

impl Listed for WorkloadOutput {
    const HEAD: &'static [&'static str] =
        &["source", "id", "name", "kind", "state", "addresses", "names", "why_not"];

    fn fields(self) -> Vec<String> {
        vec![
            self.source,
            self.id,
            self.name,
            self.kind.to_string(),
            self.state,
            self.addresses.join(" "),
            self.names.join(" "),
            self.why_not.join("; "),
        ]
    }
}

impl Listed for EventOutput {
    const HEAD: &'static [&'static str] = &["at", "what", "pool", "key", "address", "owner", "by", "reason"];

    fn fields(self) -> Vec<String> {
        vec![
            format!("{:.0}", self.at),
            self.what.to_string(),
            self.pool.unwrap_or_default(),
            self.key.unwrap_or_default(),
            self.address.unwrap_or_default(),
            self.owner.unwrap_or_default(),
            self.by,
            self.reason.unwrap_or_default(),
        ]
    }
}

impl Listed for HistoryOutput {
    const HEAD: &'static [&'static str] = &["at", "what", "provider", "name", "text", "by", "reason"];

    fn fields(self) -> Vec<String> {
        vec![
            format!("{:.0}", self.at),
            self.what.to_string(),
            self.provider.unwrap_or_default(),
            self.name.unwrap_or_default(),
            self.text,
            self.by.unwrap_or_default(),
            self.reason.unwrap_or_default(),
        ]
    }
}

fn unknown(list: &str) -> Trouble {
    let detail = format!("there is no list `{list}`");
    Box::new(netstead_client::types::Problem { status: 404, detail, ..Default::default() })
}

/// One list on its way: the pages are asked for as the reader takes them.
struct Download<T> {
    calls: Calls,
    target: Target,
    next: Option<String>,
    ready: VecDeque<T>,
    left: usize,
}

/// The file. Its first page is asked for at once, so that a refusal is one.
async fn file<T: Listed>(visit: &Visit, target: Target) -> Result<Body, Trouble> {
    let target = target.with("limit", LINES);
    let first: Page<T> = visit.calls.get(target.clone()).await?;
    let head = line(T::HEAD.iter().map(|name| (*name).to_owned()));
    let calls = visit.calls.clone();
    let download = Download { calls, target, next: first.next, ready: first.items.into(), left: MOST };
    let chunks = stream::unfold((Some(head), download), |(head, mut download)| async move {
        if let Some(head) = head {
            return Some((Ok(Bytes::from(head)), (None, download)));
        }
        let chunk = download.chunk().await?;
        Some((chunk, (None, download)))
    });
    Ok(Body::from_stream(chunks))
}

impl<T: Listed> Download<T> {
    /// The lines of the next page; none at the end.
    async fn chunk(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if self.ready.is_empty() {
            let after = self.next.take().filter(|_| self.left > 0)?;
            match self.calls.get::<Page<T>>(self.target.clone().with("after", after)).await {
                Ok(page) => (self.ready, self.next) = (page.items.into(), page.next),
                // The file breaks off, which its reader sees: half a file is none.
                Err(trouble) => return Some(Err(std::io::Error::other(trouble.detail))),
            }
        }
        self.left = self.left.saturating_sub(self.ready.len());
        let lines: String = self.ready.drain(..).map(|item| line(item.fields())).collect();
        Some(Ok(Bytes::from(lines)))
    }
}

/// A line of fields (RFC 4180). What a spreadsheet would take for a formula is made a text.
fn line(fields: impl IntoIterator<Item = String>) -> String {
    let field = |field: String| {
        let text =
            if field.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{field}") } else { field };
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    let fields: Vec<String> = fields.into_iter().map(field).collect();
    fields.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stays_one_field_and_is_no_formula() {
        let said = |fields: &[&str]| line(fields.iter().map(|field| (*field).to_owned()));
        assert_eq!(said(&["lan", "web-1", ""]), "lan,web-1,\r\n");
        assert_eq!(
            said(&["a,b", "say \"hi\"", "two\nlines"]),
            "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\"\r\n"
        );
        assert_eq!(said(&["=HYPERLINK(\"x\")", "@a", "-1"]), "\"'=HYPERLINK(\"\"x\"\")\",'@a,'-1\r\n");
    }
}
