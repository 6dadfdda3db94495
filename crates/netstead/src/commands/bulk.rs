//! `netstead claim --file`: many claims, 64 to a commit, each of which may be repeated.

use std::{io::Read as _, path::Path};

use anyhow::Context as _;
use netstead_client::types::{BulkEntry, BulkInput, BulkResult, ClaimFrom, ClaimInput, ClaimOutput};
use netstead_model::{Ident, Key};

use super::{Context, claim::print, say};
use crate::{cli::claim::Held, failure::Failure, progress::Progress};

/// As many as go into one commit: all of them or none.
const TOGETHER: usize = 64;

pub(super) async fn claim(context: &Context, file: &Path, common: &ClaimInput) -> anyhow::Result<()> {
    let wanted = parse(&read(file)?, common).map_err(|(line, reason)| {
        Failure::new(format!("{}:{line}: {reason}", file.display()))
            .hint("write `pool,key[,address]` or JSON lines")
    })?;
    let progress = Progress::counted("claimed", wanted.len());
    let mut claims: Vec<ClaimOutput> = Vec::new();
    let mut done = 0;
    for some in wanted.chunks(TOGETHER) {
        let entries = some.iter().cloned().map(BulkEntry::Claim).collect();
        let results = context.client.bulk(&BulkInput { entries }).await;
        let results = results.with_context(|| undone(done, wanted.len()))?.results;
        for result in results {
            match result {
                BulkResult::Claimed(some) => claims.extend(some),
                BulkResult::Failed(problem) => {
                    progress.clear();
                    print(context, &claims, false)?;
                    let message = format!("{}: {}", undone(done, wanted.len()), problem.detail);
                    return Err(Failure::new(message).hint("mend that and do the same again").into());
                }
                _ => {}
            }
        }
        done += some.len();
        progress.at(done);
    }
    progress.clear();
    print(context, &claims, false)?;
    say!("{} claims", claims.len());
    Ok(())
}

fn undone(done: usize, all: usize) -> String {
    format!("{done} of {all} entries are claimed, and the next {TOGETHER} are not")
}

fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// The claims of all lines, or the number of the first wrong one and what is wrong with it.
fn parse(text: &str, common: &ClaimInput) -> Result<Vec<ClaimFrom>, (usize, String)> {
    let mut claims = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        let header = place == 0 && line.to_lowercase().starts_with("pool,key");
        if line.is_empty() || line.starts_with('#') || header {
            continue;
        }
        let claim = if line.starts_with('{') { json(line) } else { csv(line, common) };
        claims.push(claim.map_err(|reason| (place + 1, reason))?);
    }
    Ok(claims)
}

fn json(line: &str) -> Result<ClaimFrom, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

fn csv(line: &str, common: &ClaimInput) -> Result<ClaimFrom, String> {
    let fields: Vec<_> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
    let (pool, key, address) = match fields.as_slice() {
        [pool, key] | [pool, key, ""] => (pool, key, None),
        [pool, key, address] => (pool, key, Some(address)),
        _ => return Err(format!("it has {} fields", fields.len())),
    };
    let pool: Ident = pool.parse().map_err(|error| format!("pool: {error}"))?;
    let key: Key = key.parse().map_err(|error| format!("key: {error}"))?;
    let address: Option<Held> =
        address.map(|text| text.parse()).transpose().map_err(|error| format!("address: {error}"))?;
    let claim = ClaimInput { address: address.map(|address| address.0), ..common.clone() };
    Ok(ClaimFrom { key: key.to_string(), each: vec![pool.to_string()], claim, ..ClaimFrom::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_csv_or_json() {
        let text = "pool,key,address\n# a comment\nlan,web-1\nlan, db ,10.0.3.60\n\n{\"key\":\"x\",\"any\":[\"lan\"]}\n";
        let claims = parse(text, &ClaimInput::default()).unwrap();
        let keys: Vec<_> = claims.iter().map(|claim| claim.key.as_str()).collect();
        assert_eq!(keys, ["web-1", "db", "x"]);
        assert_eq!(claims[1].claim.address.as_deref(), Some("10.0.3.60"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let wrong = |text: &str| parse(text, &ClaimInput::default()).unwrap_err();
        assert_eq!(wrong("lan,a\nlan\n"), (2, "it has 1 fields".into()));
        assert_eq!(wrong("LAN,a").0, 1);
        assert!(wrong("lan,a,10.0.3.999").1.starts_with("address: "));
        assert!(wrong("{\"key\":\"x\",\"poool\":1}").1.contains("unknown field `poool`"));
    }
}
