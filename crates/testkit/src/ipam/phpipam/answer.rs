//! [`Answer`]: the envelope, and the forms that values take in it.

use serde_json::{Map, Value, json};

use crate::fake_http::{HttpRequest, HttpResponse};

/// The forms of values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habits {
    pub(super) stringify: bool,
    pub(super) escape: bool,
    pub(super) nest: bool,
}

#[derive(Debug)]
pub(super) struct Answer {
    code: u16,
    message: Option<String>,
    id: Option<u64>,
    data: Option<Value>,
}

impl Answer {
    pub(super) fn data(data: Value) -> Self {
        Self { code: 200, message: None, id: None, data: Some(data) }
    }

    pub(super) fn done(message: &str) -> Self {
        Self { code: 200, message: Some(message.to_owned()), id: None, data: None }
    }

    /// 201. The id is a text, always.
    pub(super) fn created(message: &str, id: u64, data: Option<Value>) -> Self {
        Self { code: 201, message: Some(message.to_owned()), id: Some(id), data }
    }

    pub(super) fn refused(code: u16, message: &str) -> Self {
        Self { code, message: Some(message.to_owned()), id: None, data: None }
    }

    pub(super) fn response(self, habits: Habits, stringify: bool) -> HttpResponse {
        let mut body = Map::from_iter([
            ("code".to_owned(), json!(self.code)),
            ("success".to_owned(), json!(self.code < 300)),
        ]);
        body.extend(self.message.map(|message| ("message".to_owned(), json!(message))));
        body.extend(self.id.map(|id| ("id".to_owned(), json!(id.to_string()))));
        if let Some(data) = self.data {
            body.insert("data".to_owned(), shaped(data, habits, stringify || habits.stringify));
        }
        body.insert("time".to_owned(), json!(0.003));
        HttpResponse::value(self.code, &Value::Object(body))
    }
}

/// A value with texts for numbers and with entities, as the habits are.
fn shaped(value: Value, habits: Habits, stringify: bool) -> Value {
    match value {
        Value::Number(number) if stringify => json!(number.to_string()),
        Value::String(text) if habits.escape => json!(escaped(&text)),
        Value::Array(list) => list.into_iter().map(|one| shaped(one, habits, stringify)).collect(),
        Value::Object(map) => {
            let map = if habits.nest { nested(map) } else { map };
            // Custom fields are nested once.
            let inner = |name: &str| Habits { nest: habits.nest && name != "custom_fields", ..habits };
            let field = |(name, one): (String, Value)| {
                let one = shaped(one, inner(&name), stringify);
                (name, one)
            };
            map.into_iter().map(field).collect()
        }
        other => other,
    }
}

fn nested(map: Map<String, Value>) -> Map<String, Value> {
    let (custom, mut rest): (Map<_, _>, Map<_, _>) =
        map.into_iter().partition(|(name, _)| name.starts_with("custom_"));
    if !custom.is_empty() {
        rest.insert("custom_fields".to_owned(), Value::Object(custom));
    }
    rest
}

fn escaped(text: &str) -> String {
    let entity = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#039;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(entity).collect()
}

/// The rows that `filter_by`, `filter_value` and `filter_match` leave. The first row says whether the field exists.
pub(super) fn filtered(request: &HttpRequest, rows: Vec<Value>) -> Result<Vec<Value>, Answer> {
    let Some(by) = request.parameter("filter_by") else { return Ok(rows) };
    let value = match request.parameter("filter_value") {
        None => return Err(Answer::refused(400, "Missing filter_value")),
        Some("") => return Err(Answer::refused(400, "Empty filter_value")),
        Some(value) => value,
    };
    if rows.first().is_none_or(|row| row.get(by).is_none()) {
        return Err(Answer::refused(400, "Invalid filter_by"));
    }
    let way = request.parameter("filter_match").unwrap_or("full");
    let fits = |row: &Value| {
        let found = row.get(by).map(super::text).unwrap_or_default();
        match way {
            "partial" => found.contains(value),
            _ => found == value,
        }
    };
    match way {
        "full" | "partial" => {}
        // Regular expressions are phpIPAM's own; Netstead sends none.
        "regex" => return Err(Answer::refused(501, "Not Implemented")),
        _ => return Err(Answer::refused(400, "Invalid filter_match")),
    }
    let left: Vec<Value> = rows.into_iter().filter(fits).collect();
    if left.is_empty() { Err(Answer::refused(404, "No results (filter applied)")) } else { Ok(left) }
}
