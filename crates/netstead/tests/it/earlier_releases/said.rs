//! Records what a release says of its own store, and compares it with what a later one says.

use std::fs;

use netstead_testkit::wait_until;
use serde_json::{Value, json};

use super::home::Home;
use crate::{resolve, sandbox::SOON};

/// Lists of which nothing is added by a start.
const WHOLE: &[&str] = &[
    "get pools",
    "get claims",
    "get addresses",
    "get reservations",
    "get records --provider own",
    "get zones --provider own",
    "get workloads",
    "get sources",
    "plan own",
];
/// Lists that grow.
const GROWING: &[&str] = &["get events --limit 0", "get changes --limit 0 --provider own", "token list"];

/// Fields that are about the moment, not about the store: the end of a lease by the time of day, when a source was last
/// looked at, and since when changes are parked, which counts the time of the engine.
const PASSING: &[&str] = &["until", "begun", "parked.since"];

/// Fields with sentences, which a later release may word otherwise.
const SENTENCES: &[&str] = &["why", "text", "names_reason", "reasons", "because"];

/// Names that are asked for at the nameserver.
const NAMES: &[&str] = &[
    "web-1.office.test",
    "db.office.test",
    "sql.office.test",
    "host-1.office.test",
    "www.office.test",
    "probe.lab.test",
    "door.lab.test",
    "rack-7.racks.test",
    "shop.web.test",
    "printer.gone.test",
    "gone.office.test",
];

/// The file that holds it: one line per list.
pub(super) const SAID: &str = "said.jsonl";

/// Writes down what the server says now.
pub(super) fn record(home: &Home) {
    let lists = WHOLE.iter().chain(GROWING).map(|list| ((*list).to_owned(), list_of(home, list)));
    let names = NAMES.iter().map(|name| ((*name).to_owned(), answer_to(home, name)));
    let lines: Vec<String> = lists.chain(names).map(|(list, said)| json!([list, said]).to_string()).collect();
    fs::write(home.sandbox.path().join(SAID), lines.join("\n") + "\n").unwrap();
}

/// Sees that the server says everything that the earlier one said, save lists that are `left_out`. It may say more.
pub(super) fn compare(home: &Home, left_out: &[&str]) {
    let recorded = fs::read_to_string(home.sandbox.path().join(SAID)).unwrap();
    for line in recorded.lines() {
        let (list, then): (String, Value) = serde_json::from_str(line).unwrap();
        if NAMES.contains(&list.as_str()) {
            assert_eq!(answer_to(home, &list), then, "{list}");
        } else if !left_out.contains(&list.as_str()) {
            // The first look at sources and servers takes a moment.
            let differs = || difference(&list, &then, &list_of(home, &list));
            let same = wait_until(SOON, || differs().is_none().then_some(()));
            assert!(same.is_some(), "{}", differs().unwrap_or_default());
        }
    }
}

/// Names the first item that a list had then and lacks now.
fn difference(list: &str, then: &Value, now: &Value) -> Option<String> {
    let (then, now) = (then.as_array()?, now.as_array()?);
    if WHOLE.contains(&list) && now.len() != then.len() {
        return Some(format!("`{list}` has {} items, and had {}: {now:?}", now.len(), then.len()));
    }
    let missing = |item: &&Value| now.iter().all(|candidate| changed("", candidate, item).is_some());
    let item = then.iter().find(missing)?;
    let changes: Vec<String> = now.iter().filter_map(|candidate| changed("", candidate, item)).collect();
    Some(format!("`{list}` lacks {item}, because\n{}", changes.join("\n")))
}

/// The first field that `now` does not have as `then` had it. An object may have got more fields.
fn changed(path: &str, now: &Value, then: &Value) -> Option<String> {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().filter(|(field, _)| !SENTENCES.contains(&field.as_str())).find_map(|(field, then)| {
                let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
                let now = now.get(field).unwrap_or(&Value::Null);
                if PASSING.contains(&path.as_str()) { None } else { changed(&path, now, then) }
            })
        }
        (Value::Array(now), Value::Array(then)) if now.len() == then.len() => {
            now.iter().zip(then).find_map(|(now, then)| changed(path, now, then))
        }
        _ => (now != then).then(|| format!("{path}: {then} is now {now}")),
    }
}

fn list_of(home: &Home, list: &str) -> Value {
    let words = list.split(' ').chain(["-o", "json"]);
    let said = home.sandbox.netstead(words);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("`netstead {list}`: {said:?}"))
}

fn answer_to(home: &Home, name: &str) -> Value {
    let answer = resolve::a(home.sandbox.dns(), name);
    json!({"code": answer.code, "values": answer.values})
}
