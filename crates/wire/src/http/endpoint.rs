//! [`Endpoint`]: one URL that is called as it is written.

use netstead_settings::{BuildContext, SettingsError};
use reqwest::{Method, Url};

use super::{Http, Request};
use crate::Tls;

/// One URL that is called as it is written, with its path and query. The URL may be a secret, as those of chat services
/// are: errors name the host only, and path and query are removed from everything the server says.
#[derive(Debug, Clone)]
pub struct Endpoint {
    http: Http,
    path: String,
    query: Option<String>,
}

impl Endpoint {
    /// Connects to nothing. A user and password in `url` are sent as credentials.
    pub fn open(url: &str, tls: &Tls, context: &BuildContext) -> Result<Self, SettingsError> {
        // The URL itself is not shown.
        let wrong = |problem: String| SettingsError::new("url", problem);
        let mut base = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        let (path, query) = (base.path().to_owned(), base.query().map(str::to_owned));
        let (user, password) =
            (percent_decoded(base.username()), base.password().map(percent_decoded).unwrap_or_default());
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("it begins with neither `http://` nor `https://`".into()));
        }
        let unset = base.set_username("").and_then(|()| base.set_password(None));
        unset.map_err(|()| wrong("it has no host".into()))?;
        base.set_path("");
        base.set_query(None);
        base.set_fragment(None);
        let mut http = Http::open(base.as_str(), tls, context)?;
        if !user.is_empty() || !password.is_empty() {
            http = http.credentials(&user, &password)?;
        }
        http.redactor = http.redactor.and(&path).and(query.as_deref().unwrap_or_default());
        Ok(Self { http, path, query })
    }

    /// Changes what is sent with every request, and its limits.
    pub fn with(
        self,
        change: impl FnOnce(Http) -> Result<Http, SettingsError>,
    ) -> Result<Self, SettingsError> {
        Ok(Self { http: change(self.http)?, ..self })
    }

    pub fn request(&self, method: Method) -> Request<'_> {
        let request = self.http.request(method, &self.path);
        match &self.query {
            Some(query) => request.raw_query(query),
            None => request,
        }
    }
}

fn percent_decoded(text: &str) -> String {
    // A form also turns `+` into a blank, which user and password do not.
    let kept = format!("x={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(kept.as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use netstead_model::Ident;

    use super::*;

    #[test]
    fn an_endpoint_shows_its_host_and_is_called_as_written() {
        let context = BuildContext::new(Ident::from_static("x"));
        let open = |url: &str| Endpoint::open(url, &Tls::default(), &context);
        let endpoint = open("http://me:p%40ss+1@127.0.0.1:9/services/T%2F1?wait&to=a%20b#part").unwrap();
        let request = endpoint.request(Method::POST);
        assert_eq!(request.url().as_str(), "http://127.0.0.1:9/services/T%2F1?wait&to=a%20b");
        assert_eq!(endpoint.http.server(), "http://127.0.0.1:9");
        assert_eq!(endpoint.http.shown("no /services/T%2F1 for p@ss+1"), "no (redacted) for (redacted)");
        let pair = data_encoding::BASE64.encode(b"me:p@ss+1");
        assert_eq!(endpoint.http.headers["authorization"], format!("Basic {pair}"));
        for (url, told) in [
            ("ftp://ns1/secret", "url: it begins with neither `http://` nor `https://`"),
            ("secret", "url: relative URL without a base"),
        ] {
            assert_eq!(open(url).unwrap_err().to_string(), told);
        }
    }
}
