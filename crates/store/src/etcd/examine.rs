//! Findings about an etcd for the doctor: a file that fills up, a history that is never compacted, alarms.
//!
//! etcd does not say how it was started. Whether it compacts by itself is seen by the revisions that can no longer be read.

use netstead_wire::etcd::{
    KV_RANGE,
    messages::{Nothing, RangeRequest, StatusResponse},
};

use super::{EtcdShared, quota, snapshot::compacted};
use crate::{StoreError, StoreFinding};

pub(super) const STATUS: &str = "/etcdserverpb.Maintenance/Status";

/// The quota of an etcd that has none configured.
const DEFAULT_QUOTA: u64 = 2 << 30;

/// Fewer revisions than this say nothing: the first automatic compaction may be still to come.
const YOUNG: i64 = 10_000;

/// More revisions than this are a past that is kept for very long.
const LONG: i64 = 2_000_000;

const COMPACT: &str =
    "start etcd with `--auto-compaction-retention=1h`: it keeps every change until it is compacted";

/// One member as it describes itself.
#[derive(Debug)]
struct Member {
    url: String,
    status: StatusResponse,
    /// As said by the member, if it does say it.
    quota: Option<u64>,
}

pub(super) async fn examine(shared: &EtcdShared) -> Vec<StoreFinding> {
    let mut remarks = Vec::new();
    for (url, channel, answer) in shared.client.each::<_, StatusResponse>(STATUS, Nothing {}).await {
        match answer {
            Ok(status) => {
                let told = u64::try_from(status.db_size_quota).ok().filter(|quota| *quota > 0);
                let quota = match told {
                    Some(quota) => Some(quota),
                    None => quota::quota(&url, channel).await,
                };
                remarks.extend(of_member(&Member { url, status, quota }));
            }
            Err(status) => {
                let text = format!("the member at {url} does not answer: {}", super::describe_error(&status));
                let hint = "the store works while more than half of the members do; start it again";
                remarks.push(StoreFinding::problem(text, hint));
            }
        }
    }
    match past(shared).await {
        Ok((first, last)) => remarks.extend(of_past(first, last)),
        Err(error) => tracing::debug!(%error, "How far back etcd's past can be read is not known."),
    }
    remarks
}

fn of_member(member: &Member) -> Vec<StoreFinding> {
    let Member { url, status, quota } = member;
    let mut remarks: Vec<StoreFinding> = status
        .errors
        .iter()
        .map(|error| {
            if error.contains("NOSPACE") {
                let text =
                    format!("the member at {url} has used up its quota (NOSPACE), and etcd takes no changes");
                let hint =
                    "compact, defragment (`etcdctl defrag`), then `etcdctl alarm disarm`, which ends this";
                return StoreFinding::problem(text, hint);
            }
            let hint = "see etcd's own log; an alarm ends with `etcdctl alarm disarm`";
            StoreFinding::problem(format!("the member at {url} says: {error}"), hint)
        })
        .collect();
    let size = status.db_size.unsigned_abs();
    let in_use = status.db_size_in_use.unsigned_abs();
    let assumed = if quota.is_some() { "" } else { " that is the default; its own could not be read" };
    let quota = quota.unwrap_or(DEFAULT_QUOTA);
    let text = format!("etcd {} at {url}: {} of {}{assumed}", status.version, bytes(size), bytes(quota));
    remarks.push(if size.saturating_mul(2) < quota {
        StoreFinding::fine(text)
    } else if in_use.saturating_mul(2) < size {
        let hint = format!("only {} of it are in use: `etcdctl defrag` gives the rest back", bytes(in_use));
        StoreFinding::problem(format!("{text}: more than half of its quota"), hint)
    } else {
        let hint = "when it is used up, no change is taken: compact and defragment, or raise `--quota-backend-bytes`";
        StoreFinding::problem(format!("{text}: more than half of its quota"), hint)
    });
    remarks
}

/// A finding about compaction, from the oldest revision that can be read and the newest.
fn of_past(first: i64, last: i64) -> Option<StoreFinding> {
    let kept = last.saturating_sub(first);
    if first <= 1 && kept >= YOUNG {
        let text = format!("etcd has never been compacted: all of its {kept} revisions are still there");
        return Some(StoreFinding::problem(text, COMPACT));
    }
    if kept >= LONG {
        let text = format!("etcd keeps the last {kept} revisions: compaction is rare, or off");
        return Some(StoreFinding::note(text, COMPACT));
    }
    // Too young to tell: silence is more honest than praise.
    (first > 1).then(|| StoreFinding::fine(format!("etcd is compacted: {kept} revisions are kept")))
}

/// The oldest revision that can be read, and the newest.
async fn past(shared: &EtcdShared) -> Result<(i64, i64), StoreError> {
    let last = shared.revision().await?;
    if readable(shared, 1).await? {
        return Ok((1, last));
    }
    // The first cannot be read, the last can: look between them.
    let (mut gone, mut there) = (1, last);
    while there - gone > 1 {
        let middle = gone + (there - gone) / 2;
        if readable(shared, middle).await? {
            there = middle;
        } else {
            gone = middle;
        }
    }
    Ok((there, last))
}

async fn readable(shared: &EtcdShared, revision: i64) -> Result<bool, StoreError> {
    let key = shared.leader.clone();
    let question = RangeRequest { key, revision, keys_only: true, ..RangeRequest::default() };
    match shared.client.read::<_, super::RangeResponse>(KV_RANGE, question).await {
        Ok(_) => Ok(true),
        Err(status) if compacted(&status) => Ok(false),
        Err(status) => Err(shared.unavailable(&status)),
    }
}

/// `1.5 GiB`, for people.
fn bytes(count: u64) -> String {
    const MIB: u64 = 1 << 20;
    let tenths = |unit: u64| format!("{}.{}", count / unit, (count % unit) * 10 / unit);
    if count >= 1 << 30 { format!("{} GiB", tenths(1 << 30)) } else { format!("{} MiB", tenths(MIB)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreFindingGrade;

    fn member(size: i64, in_use: i64, quota: Option<u64>) -> Vec<StoreFinding> {
        let status = StatusResponse {
            version: "3.6.0".into(),
            db_size: size << 20,
            db_size_in_use: in_use << 20,
            ..StatusResponse::default()
        };
        of_member(&Member { url: "http://a".into(), status, quota: quota.map(|quota| quota << 20) })
    }

    #[test]
    fn half_of_the_quota_is_the_limit() {
        let grades = |size, in_use, quota| member(size, in_use, quota)[0].grade;
        assert_eq!(grades(99, 99, Some(200)), StoreFindingGrade::Fine);
        assert_eq!(grades(100, 99, Some(200)), StoreFindingGrade::Problem);
        assert_eq!(grades(1023, 9, None), StoreFindingGrade::Fine);
        assert!(member(1024, 9, None)[0].hint.as_deref().unwrap().contains("defrag"));
        assert_eq!(
            member(10, 9, None)[0].text,
            "etcd 3.6.0 at http://a: 10.0 MiB of 2.0 GiB that is the default; its own could not be read"
        );
    }

    #[test]
    fn an_alarm_is_told_in_words() {
        let errors = vec!["memberID:10501334649042878790 alarm:NOSPACE ".to_owned()];
        let status = StatusResponse { errors, ..StatusResponse::default() };
        let told = of_member(&Member { url: "http://a".into(), status, quota: None });
        assert_eq!(told[0].grade, StoreFindingGrade::Problem);
        assert_eq!(
            told[0].text,
            "the member at http://a has used up its quota (NOSPACE), and etcd takes no changes"
        );
    }

    #[test]
    fn a_past_that_is_never_thrown_away_is_told() {
        assert_eq!(of_past(1, 500), None, "too young to tell");
        assert_eq!(of_past(1, 20_000).unwrap().grade, StoreFindingGrade::Problem);
        assert_eq!(of_past(19_000, 20_000).unwrap().grade, StoreFindingGrade::Fine);
        assert_eq!(of_past(2, 3_000_000).unwrap().grade, StoreFindingGrade::Note);
    }
}
