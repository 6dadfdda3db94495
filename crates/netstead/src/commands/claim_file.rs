//! `netstead claim --file`: many claims, 64 to a commit, each of which may be repeated.

use std::path::Path;

use anyhow::Context as _;
use netstead_client::{
    ClientError,
    types::{BulkEntry, BulkInput, BulkResult, ClaimFrom, ClaimInput, ClaimOutput, Problem},
};
use netstead_model::{Ident, Key};
use netstead_wire::files;

use super::{Context, claim::print, many, say};
use crate::{
    cli::claim::Held,
    failure::{Exit, Failure},
    progress::Progress,
};

/// As many as go into one commit: all of them or none.
const TOGETHER: usize = 64;

/// The most bytes of a file: some millions of claims.
const MOST_BYTES: u64 = 256 << 20;

/// A claim with the number of the line that asks for it.
type Line = (usize, ClaimFrom);

pub(super) async fn claim(context: &Context, file: &Path, common: &ClaimInput) -> anyhow::Result<Exit> {
    let wanted = parse(&read(file)?, common).map_err(|(line, reason)| {
        Failure::new(format!("{}:{line}: {reason}", file.display()))
            .hint("write `pool,key[,address]` or JSON lines")
    })?;
    let progress = Progress::counted("claimed", wanted.len());
    let mut claims: Vec<ClaimOutput> = Vec::new();
    let mut done = 0;
    for some in wanted.chunks(TOGETHER) {
        let undone =
            || format!("{done} of {} entries are claimed, and the next {} are not", wanted.len(), some.len());
        let entries = some.iter().map(|(_, claim)| BulkEntry::Claim(claim.clone())).collect();
        let refused = match context.client.bulk(&BulkInput { entries }).await {
            Ok(answer) => {
                let refused = answer.at_fault().map(|(place, problem)| refusal(some, place, problem));
                if refused.is_none() {
                    claims.extend(answer.results.into_iter().flat_map(claimed));
                }
                refused
            }
            Err(ClientError::Refused(problem) | ClientError::Denied { problem, .. })
                if problem.entry().is_some() =>
            {
                Some(refusal(some, problem.entry().unwrap_or_default(), &problem))
            }
            Err(error) => {
                progress.clear();
                print(context, &claims, false)?;
                return Err(error).with_context(undone);
            }
        };
        if let Some((line, reason)) = refused {
            progress.clear();
            print(context, &claims, false)?;
            let message = format!("{}:{line}: {reason}", file.display());
            let hint = format!("{}; mend that and do the same again", undone());
            return Err(Failure::new(message).hint(hint).into());
        }
        done += some.len();
        progress.at(done);
    }
    progress.clear();
    let exit = print(context, &claims, false)?;
    say!("{}", many(claims.len(), "claim"));
    Ok(exit)
}

fn claimed(result: BulkResult) -> Vec<ClaimOutput> {
    match result {
        BulkResult::Claimed(claims) => claims,
        _ => Vec::new(),
    }
}

/// The line of the entry at fault, and the problem in the words of that line.
fn refusal(lines: &[Line], place: usize, problem: &Problem) -> (usize, String) {
    let line = lines.get(place).or(lines.first()).map_or(0, |(line, _)| *line);
    let reason = problem.detail.replace(&format!("entries[{place}].claim."), "");
    (line, reason)
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        return files::read_text_from(std::io::stdin(), MOST_BYTES).context("cannot read stdin");
    }
    files::read_named_text(file, MOST_BYTES).with_context(|| format!("cannot read {}", file.display()))
}

/// The claims of all lines, or the number of the first wrong one and what is wrong with it.
fn parse(text: &str, common: &ClaimInput) -> Result<Vec<Line>, (usize, String)> {
    let mut claims = Vec::new();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        let header = place == 0 && line.to_lowercase().starts_with("pool,key");
        if line.is_empty() || line.starts_with('#') || header {
            continue;
        }
        let claim = if line.starts_with('{') { json(line, common) } else { csv(line, common) };
        claims.push((place + 1, claim.map_err(|reason| (place + 1, reason))?));
    }
    Ok(claims)
}

fn json(line: &str, common: &ClaimInput) -> Result<ClaimFrom, String> {
    let mut reader = serde_json::Deserializer::from_str(line);
    let claim: ClaimFrom = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let field = error.path().to_string();
        let reason = error.into_inner();
        if field == "." { reason.to_string() } else { format!("{field}: {reason}") }
    })?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(ClaimFrom { claim: merged(claim.claim, common), ..claim })
}

/// The values of a line, and for the rest those that were given for all lines.
fn merged(own: ClaimInput, common: &ClaimInput) -> ClaimInput {
    let labels = match (own.labels, common.labels.clone()) {
        (Some(own), Some(common)) => Some(common.into_iter().chain(own).collect()),
        (own, common) => own.or(common),
    };
    ClaimInput {
        address: own.address,
        prefer: own.prefer,
        length: own.length.or(common.length),
        ttl: own.ttl.or_else(|| common.ttl.clone()),
        labels,
        hostnames: own.hostnames.or_else(|| common.hostnames.clone()),
        description: own.description.or_else(|| common.description.clone()),
        owner: own.owner.or_else(|| common.owner.clone()),
        adopt: own.adopt || common.adopt,
        force: own.force || common.force,
        wait: own.wait,
        keep: own.keep,
    }
}

fn csv(line: &str, common: &ClaimInput) -> Result<ClaimFrom, String> {
    let fields: Vec<_> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
    let (pool, key, address) = match fields.as_slice() {
        [pool, key] | [pool, key, ""] => (pool, key, None),
        [pool, key, address] => (pool, key, Some(address)),
        _ => {
            return Err(format!(
                "it has {}; write `pool,key` or `pool,key,address`",
                many(fields.len(), "field")
            ));
        }
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

    fn read(text: &str, common: &ClaimInput) -> Vec<ClaimFrom> {
        parse(text, common).unwrap().into_iter().map(|(_, claim)| claim).collect()
    }

    #[test]
    fn lines_are_csv_or_json() {
        let text = "pool,key,address\n# a comment\nlan,web-1\nlan, db ,10.0.3.60\n\n{\"key\":\"x\",\"any\":[\"lan\"]}\n";
        let claims = parse(text, &ClaimInput::default()).unwrap();
        let keys: Vec<_> = claims.iter().map(|(line, claim)| (*line, claim.key.as_str())).collect();
        assert_eq!(keys, [(3, "web-1"), (4, "db"), (6, "x")]);
        assert_eq!(claims[1].1.claim.address.as_deref(), Some("10.0.3.60"));
    }

    #[test]
    fn a_wrong_line_is_named_with_its_field() {
        let wrong = |text: &str| parse(text, &ClaimInput::default()).unwrap_err();
        assert_eq!(
            wrong("lan,a\nlan\n"),
            (2, "it has 1 field; write `pool,key` or `pool,key,address`".into())
        );
        assert_eq!(wrong("LAN,a").0, 1);
        for (line, told) in [
            ("lan,a,10.0.3.999", "address: "),
            ("{\"key\":\"x\",\"poool\":1}", "poool: unknown field `poool`"),
            ("{\"key\":7}", "key: invalid type: integer `7`"),
            ("{\"key\":\"x\",\"any\":[\"lan\",7]}", "any[1]: invalid type: integer `7`"),
            ("{\"key\":\"x\",\"claim\":{\"ttl\":60}}", "claim.ttl: invalid type: integer `60`"),
            ("{\"key\":\"x\"} {}", "trailing characters"),
        ] {
            let (at, reason) = wrong(line);
            assert!(at == 1 && reason.starts_with(told), "{line}: {reason}");
        }
    }

    #[test]
    fn what_is_said_for_all_lines_is_said_for_each_that_does_not_say_otherwise() {
        let labels = |pairs: &[(&str, &str)]| {
            Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        let common = ClaimInput {
            ttl: Some("1h".into()),
            owner: Some("team-a".into()),
            labels: labels(&[("site", "ams"), ("env", "dev")]),
            force: true,
            ..ClaimInput::default()
        };
        let text = "lan,a\n{\"key\":\"b\",\"any\":[\"lan\"]}\n{\"key\":\"c\",\"any\":[\"lan\"],\"claim\":{\"ttl\":\"2h\",\"labels\":{\"env\":\"live\"}}}";
        let claims = read(text, &common);
        assert_eq!(claims[0].claim, common);
        assert_eq!(claims[1].claim, common);
        let own = ClaimInput {
            ttl: Some("2h".into()),
            labels: labels(&[("site", "ams"), ("env", "live")]),
            ..common.clone()
        };
        assert_eq!(claims[2].claim, own);
    }
}
