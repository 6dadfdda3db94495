//! Requests and responses.

/// A request, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    /// Decoded, without the query.
    pub path: String,
    /// With the query, as it was sent.
    pub target: String,
    pub query: Vec<(String, String)>,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    pub status: u16,
    /// The text after the status; `.` unless set.
    pub reason: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl HttpRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The body as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The pairs of a form in the body; none if the body is no form.
    pub fn form(&self) -> Vec<(String, String)> {
        let is_form =
            self.header("content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
        if is_form { pairs(&String::from_utf8_lossy(&self.body)) } else { Vec::new() }
    }
}

impl HttpResponse {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, reason: None, headers: Vec::new(), body: body.into() }
    }

    pub fn json(status: u16, body: impl Into<String>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status, reason: None, headers, body: body.into() }
    }

    /// Says `reason` after the status.
    #[must_use]
    pub fn reason(self, reason: &str) -> Self {
        Self { reason: Some(reason.lines().next().unwrap_or_default().to_owned()), ..self }
    }

    /// JSON that is no text yet.
    pub fn value(status: u16, body: &serde_json::Value) -> Self {
        Self::json(status, body.to_string())
    }

    /// Adds a header. The connection ends after an answer with `connection: close`.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// The pairs of a query or form.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    };
    parts.map(pair).collect()
}

/// Without `%` escapes.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%');
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(pairs("a=b+c&d=%2F%25%C3%BC&e"), [pair("a", "b c"), pair("d", "/%ü"), pair("e", "")]);
    }
}
