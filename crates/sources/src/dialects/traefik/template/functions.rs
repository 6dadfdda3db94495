//! The functions of a default rule: Traefik's `normalize`, Go's own, and the common ones of Sprig.

use super::{LONGEST, normalize, value::Value};

const KNOWN: &str = "normalize, index, lower, upper, trim, trimAll, trimPrefix, trimSuffix, replace, default, coalesce, \
    ternary, splitList, join, first, last, substr, trunc, contains, hasPrefix, hasSuffix, empty, eq, ne, and, or, not, \
    print, quote and toString";

/// Calls a function; what is piped into it is its last argument.
pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Result<Value<'a>, String> {
    let value = apply(name, arguments)?;
    match &value {
        Value::Text(text) if text.len() > LONGEST => Err(format!("{name} makes more than {LONGEST} bytes")),
        Value::List(list) if list.len() > LONGEST => Err(format!("{name} makes more than {LONGEST} parts")),
        _ => Ok(value),
    }
}

fn apply<'a>(name: &str, arguments: &[Value<'a>]) -> Result<Value<'a>, String> {
    let text = |text: String| Ok(Value::Text(text.into()));
    let truth = |truth: bool| Ok(Value::Bool(truth));
    match (name, arguments) {
        ("normalize", [a]) => text(normalize(&a.to_text())),
        ("lower", [a]) => text(a.to_text().to_lowercase()),
        ("upper", [a]) => text(a.to_text().to_uppercase()),
        ("trim", [a]) => text(a.to_text().trim().to_owned()),
        ("toString" | "print", [a]) => text(a.to_text().into_owned()),
        ("print", many) => text(many.iter().map(Value::to_text).collect()),
        ("quote", [a]) => text(format!("\"{}\"", a.to_text().escape_default())),
        ("trimAll", [cut, a]) => {
            let cut = cut.to_text();
            text(a.to_text().trim_matches(|c| cut.contains(c)).to_owned())
        }
        ("trimPrefix", [cut, a]) => {
            let a = a.to_text();
            text(a.strip_prefix(&*cut.to_text()).unwrap_or(&a).to_owned())
        }
        ("trimSuffix", [cut, a]) => {
            let a = a.to_text();
            text(a.strip_suffix(&*cut.to_text()).unwrap_or(&a).to_owned())
        }
        ("replace", [old, new, a]) => replace(&old.to_text(), &new.to_text(), &a.to_text()),
        ("default", [fallback, a]) => Ok(if a.is_true() { a.clone() } else { fallback.clone() }),
        ("coalesce" | "or", [.., _]) => {
            let found = arguments.iter().find(|argument| argument.is_true()).or(arguments.last());
            Ok(found.cloned().unwrap_or(Value::Nothing))
        }
        ("and", [.., _]) => {
            let found = arguments.iter().find(|argument| !argument.is_true()).or(arguments.last());
            Ok(found.cloned().unwrap_or(Value::Nothing))
        }
        ("ternary", [yes, no, a]) => Ok(if a.is_true() { yes.clone() } else { no.clone() }),
        ("splitList", [separator, a]) => {
            let (a, separator) = (a.to_text(), separator.to_text());
            Ok(Value::List(a.split(&*separator).map(str::to_owned).collect()))
        }
        ("join", [separator, Value::List(list)]) => text(list.join(&separator.to_text())),
        ("first", [Value::List(list)]) => text(list.first().cloned().unwrap_or_default()),
        ("last", [Value::List(list)]) => text(list.last().cloned().unwrap_or_default()),
        ("index", [from, key]) => Ok(from.get(&key.to_text())),
        ("substr", [Value::Number(from), Value::Number(to), a]) => {
            let from = usize::try_from(*from).unwrap_or(0);
            let count = usize::try_from(*to).map_or(usize::MAX, |to| to.saturating_sub(from));
            text(a.to_text().chars().skip(from).take(count).collect())
        }
        ("trunc", [Value::Number(count), a]) => {
            let count =
                usize::try_from(*count).map_err(|_| "trunc needs a number of at least 0".to_owned())?;
            text(a.to_text().chars().take(count).collect())
        }
        ("contains", [part, a]) => truth(a.to_text().contains(&*part.to_text())),
        ("hasPrefix", [part, a]) => truth(a.to_text().starts_with(&*part.to_text())),
        ("hasSuffix", [part, a]) => truth(a.to_text().ends_with(&*part.to_text())),
        ("empty" | "not", [a]) => truth(!a.is_true()),
        ("eq", [a, others @ ..]) => truth(others.iter().any(|other| other.to_text() == a.to_text())),
        ("ne", [a, b]) => truth(a.to_text() != b.to_text()),
        (name, arguments) => {
            Err(format!("{name} with {} arguments is not known; there are {KNOWN}", arguments.len()))
        }
    }
}

/// Checks the length before it grows.
fn replace<'a>(old: &str, new: &str, text: &str) -> Result<Value<'a>, String> {
    let grown = (text.len() + 1).saturating_mul(new.len().max(1));
    if grown > LONGEST * 16 {
        return Err(format!("replace makes more than {LONGEST} bytes"));
    }
    Ok(Value::Text(text.replace(old, new).into()))
}
