//! `ETag`, `If-Match` and `If-None-Match` of pools.

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use netstead_model::Ident;

use crate::problem::Failure;

/// The version of a pool that a change expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    /// `If-None-Match: *`.
    IsNew,
    /// `If-Match: *`.
    Exists,
    Version(u64),
}

/// The tag of a version, which says of which ledger it is: another one counts anew.
pub(crate) fn tag(ledger: u32, version: u64) -> String {
    format!("\"{ledger:08x}-{version}\"")
}

/// Reads the condition of a request for `pool`.
pub(crate) fn condition(headers: &HeaderMap, ledger: u32, pool: &Ident) -> Result<Condition, Failure> {
    let matching = single(headers, &header::IF_MATCH)?;
    let unless = single(headers, &header::IF_NONE_MATCH)?;
    match (matching, unless) {
        (None, None) => Ok(Condition::Always),
        (Some(_), Some(_)) => {
            Err(Failure::unreadable("If-Match", "it cannot be combined with `If-None-Match`"))
        }
        (None, Some("*")) => Ok(Condition::IsNew),
        (None, Some(_)) => {
            Err(Failure::unreadable("If-None-Match", "only `*` is taken here: make it if it is new"))
        }
        (Some("*"), None) => Ok(Condition::Exists),
        (Some(tag), None) => version(tag, ledger, pool).map(Condition::Version),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if values.next().is_some() || text.contains(',') {
        return Err(Failure::unreadable(name.as_str(), "give one tag, not several"));
    }
    Ok(Some(text))
}

fn version(tag: &str, ledger: u32, pool: &Ident) -> Result<u64, Failure> {
    let wrong = || Failure::unreadable("If-Match", "give the `ETag` of the pool, such as `\"1f0c22ab-17\"`");
    let inner = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    let (of, version) = inner.ok_or_else(wrong)?.split_once('-').ok_or_else(wrong)?;
    let (Ok(of), Ok(version)) = (u32::from_str_radix(of, 16), version.parse()) else { return Err(wrong()) };
    if of != ledger || tag.starts_with("W/") {
        return Err(mismatch(pool, &format!("that tag is not of this ledger, {ledger:08x}")));
    }
    Ok(version)
}

pub(crate) fn mismatch(pool: &Ident, reason: &str) -> Failure {
    Failure::new(
        StatusCode::PRECONDITION_FAILED,
        "version-mismatch",
        format!("pool `{pool}`: {reason}; look at it again"),
    )
    .fact("pool", pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(HeaderName, &'static str)]) -> Result<Condition, u16> {
        let headers = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        condition(&headers, 7, &"lan".parse().unwrap()).map_err(|failure| failure.status().as_u16())
    }

    #[test]
    fn conditions_are_read() {
        assert_eq!(ask(&[]), Ok(Condition::Always));
        assert_eq!(ask(&[(header::IF_NONE_MATCH, "*")]), Ok(Condition::IsNew));
        assert_eq!(ask(&[(header::IF_MATCH, "*")]), Ok(Condition::Exists));
        assert_eq!(ask(&[(header::IF_MATCH, "\"00000007-12\"")]), Ok(Condition::Version(12)));
    }

    #[test]
    fn tags_of_another_ledger_never_match_and_garbage_is_refused() {
        assert_eq!(ask(&[(header::IF_MATCH, "\"00000008-12\"")]), Err(412));
        assert_eq!(ask(&[(header::IF_MATCH, "W/\"00000007-12\"")]), Err(412));
        for garbage in ["12", "\"12\"", "\"x-12\"", "\"00000007-12\", \"00000007-13\""] {
            assert_eq!(ask(&[(header::IF_MATCH, garbage)]), Err(400), "{garbage}");
        }
        assert_eq!(ask(&[(header::IF_NONE_MATCH, "\"00000007-12\"")]), Err(400));
        assert_eq!(ask(&[(header::IF_NONE_MATCH, "*"), (header::IF_MATCH, "*")]), Err(400));
    }
}
