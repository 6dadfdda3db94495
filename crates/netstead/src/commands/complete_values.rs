//! `netstead complete-values`: names that the server knows, for the completions of a shell.

use clap::{Arg, Command};
use netstead_client::{
    ClaimQuery, Client, Paged, PlanQuery, PoolQuery, ProviderQuery, SourceQuery, WorkloadQuery,
};

use super::Context;
use crate::{
    cli::{Cli, admin::CompleteValues},
    output::{self, Row},
};

/// So many values are offered at most: more are of no use to a person who completes one.
const MOST: u32 = 1000;

/// A set of names that a word may be one of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    Pools,
    /// Keys of the claims in a pool.
    Keys(String),
    /// `POOL/KEY`.
    Claims,
    Providers,
    Sources,
    Workloads,
    /// Hashes of what waits for a person.
    Parked,
    Kinds,
}

/// Prints the names that the last word may become. What cannot be learned is not offered: a shell shows no errors.
pub(crate) async fn complete(context: &Context, args: &CompleteValues) -> anyhow::Result<()> {
    let Some((current, before)) = args.words.split_last() else { return Ok(()) };
    let words: Vec<&str> = before.iter().map(String::as_str).collect();
    let Some(values) = wanted(&Cli::for_people(), &words) else { return Ok(()) };
    let found = known(&context.client, &values).await.unwrap_or_default();
    let fitting = found.into_iter().filter(|value| value.starts_with(current.as_str()));
    output::emit(&fitting.map(|value| output::plain(&value) + "\n").collect::<String>())
}

/// The names that the word after these may be.
fn wanted(root: &Command, before: &[&str]) -> Option<Values> {
    let (mut command, mut path, mut positionals) = (root, Vec::new(), Vec::new());
    let mut words = before.iter().copied().peekable();
    while let Some(word) = words.next() {
        if let Some(inner) = command.find_subcommand(word).filter(|_| positionals.is_empty()) {
            command = inner;
            path.push(inner.get_name());
        } else if let Some(long) = word.strip_prefix("--") {
            let option =
                command.get_arguments().chain(root.get_arguments()).find(|arg| arg.get_long() == Some(long));
            let takes = option.filter(|arg| arg.get_action().takes_values());
            if let Some(option) = takes
                && words.next().is_none()
            {
                return of_argument(&path, option, &positionals);
            }
        } else if !word.starts_with('-') {
            positionals.push(word);
        }
    }
    let next = command.get_positionals().nth(positionals.len())?;
    of_argument(&path, next, &positionals)
}

/// The names that an argument may be, by its command and its id.
fn of_argument(path: &[&str], arg: &Arg, before: &[&str]) -> Option<Values> {
    match (path, arg.get_id().as_str(), before) {
        (["describe"], "first", _) => Some(Values::Kinds),
        (["describe"], "second", [kind]) => match kind.strip_suffix('s').unwrap_or(kind) {
            "pool" => Some(Values::Pools),
            "claim" => Some(Values::Claims),
            "provider" => Some(Values::Providers),
            "source" => Some(Values::Sources),
            "workload" => Some(Values::Workloads),
            _ => None,
        },
        (["get", "claims"], "name", _) => Some(Values::Claims),
        (["get", "pools"] | ["pool", _], "name", _) if path != ["pool", "create"] => Some(Values::Pools),
        (["get", "providers"], "name", _) | (_, "provider", _) => Some(Values::Providers),
        (["get", "sources"], "name", _) | (_, "source", _) => Some(Values::Sources),
        (["claim"], "first" | "any", _) | (_, "pool" | "pools", _) => Some(Values::Pools),
        (["claim" | "reserve"], ..) => None,
        (_, "key", [pool, ..]) => Some(Values::Keys((*pool).to_owned())),
        (["apply"], "hash", _) => Some(Values::Parked),
        _ => None,
    }
}

async fn known(client: &Client, values: &Values) -> anyhow::Result<Vec<String>> {
    Ok(match values {
        Values::Pools => names(client, PoolQuery::default()).await?,
        Values::Keys(pool) => {
            let query = ClaimQuery { pool: Some(pool.clone()), limit: Some(MOST), ..ClaimQuery::default() };
            client.page(&query).await?.items.into_iter().map(|claim| claim.key).collect()
        }
        Values::Claims => names(client, ClaimQuery::default()).await?,
        Values::Providers => names(client, ProviderQuery::default()).await?,
        Values::Sources => names(client, SourceQuery::default()).await?,
        Values::Workloads => names(client, WorkloadQuery::default()).await?,
        Values::Parked => {
            let plans = client.page(&PlanQuery::default()).await?.items;
            plans.into_iter().filter_map(|plan| Some(plan.parked?.hash)).collect()
        }
        Values::Kinds => ["pool", "claim", "provider", "source", "workload"].map(str::to_owned).to_vec(),
    })
}

/// The names of the first page of a list.
async fn names<Q: Paged<Item: Row>>(client: &Client, mut query: Q) -> anyhow::Result<Vec<String>> {
    query.ask_for(MOST);
    Ok(client.page(&query).await?.items.iter().map(Row::name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_completed_from_the_list_it_belongs_to() {
        let root = Cli::for_people();
        for (line, values) in [
            ("claim", Some(Values::Pools)),
            ("claim lan", None),
            ("release lan", Some(Values::Keys("lan".into()))),
            ("get pool", Some(Values::Pools)),
            ("get claims --pool", Some(Values::Pools)),
            ("get claims", Some(Values::Claims)),
            ("plan", Some(Values::Providers)),
            ("--output json plan", Some(Values::Providers)),
            ("pause --reason words --provider", Some(Values::Providers)),
            ("apply", Some(Values::Parked)),
            ("clean --source", Some(Values::Sources)),
            ("describe", Some(Values::Kinds)),
            ("describe workload", Some(Values::Workloads)),
            ("pool delete", Some(Values::Pools)),
            ("pool create", None),
            ("status", None),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(wanted(&root, &words), values, "{line}");
        }
    }
}
