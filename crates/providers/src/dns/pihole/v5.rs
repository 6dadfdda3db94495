//! The API of Pi-hole 5: one PHP page, whose every call carries the hash of the password.

use data_encoding::HEXLOWER;
use netstead_model::{ProviderError, RecordData};
use netstead_settings::SecretValue;
use netstead_wire::http::{Effect, Http, Reply};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::entries::Entries;
use crate::dns::{
    per_record::{Listing, NewRecord, Record, RecordError},
    refused_login::RefusedLogin,
};

#[derive(Debug)]
pub(super) struct V5 {
    http: Http,
    /// The hash of the hash of the password, each in hexadecimal.
    token: String,
    refused: RefusedLogin,
}

#[derive(Debug)]
pub(super) enum V5Error {
    Record(RecordError),
    /// The page is not there.
    NoApi(Box<Reply>),
}

#[derive(Deserialize)]
struct Entry {
    data: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Done {
    success: bool,
    #[serde(default)]
    message: String,
}

impl<E: Into<RecordError>> From<E> for V5Error {
    fn from(error: E) -> Self {
        Self::Record(error.into())
    }
}

impl V5 {
    pub(super) fn new(http: Http, password: Option<&SecretValue>, refused: RefusedLogin) -> Self {
        let token = password.map(|password| hash(&hash(password.expose()))).unwrap_or_default();
        let http = if token.is_empty() { http } else { http.redacting(&SecretValue::new(token.clone())) };
        Self { http, token, refused }
    }

    pub(super) async fn list(&self, ttl: u32) -> Result<Listing, V5Error> {
        let hosts: Entry = self.call(&[("customdns", ""), ("action", "get")], Effect::Read).await?;
        let aliases: Entry = self.call(&[("customcname", ""), ("action", "get")], Effect::Read).await?;
        let entries = Entries {
            hosts: hosts.data.into_iter().map(|(name, address)| format!("{address} {name}")).collect(),
            aliases: aliases.data.into_iter().map(|(name, target)| format!("{name},{target}")).collect(),
        };
        Ok(entries.listing(ttl))
    }

    pub(super) async fn create(&self, new: &NewRecord) -> Result<(), V5Error> {
        self.change("add", new, Effect::Once).await
    }

    pub(super) async fn delete(&self, old: &Record) -> Result<(), V5Error> {
        match self.change("delete", &old.again(), Effect::Idempotent).await {
            Err(V5Error::Record(RecordError::Rejected { reason })) if reason.contains("does not exist") => {
                Err(RecordError::Gone.into())
            }
            outcome => outcome,
        }
    }

    async fn change(&self, action: &str, record: &NewRecord, effect: Effect) -> Result<(), V5Error> {
        let (name, data) = (record.name.as_str(), record.data.to_string());
        let words = match &record.data {
            RecordData::Cname(target) => {
                [("customcname", ""), ("action", action), ("domain", name), ("target", target.as_str())]
            }
            _ => [("customdns", ""), ("action", action), ("domain", name), ("ip", &data)],
        };
        let done: Done = self.call(&words, effect).await?;
        if done.success { Ok(()) } else { Err(RecordError::Rejected { reason: done.message }.into()) }
    }

    /// Asks the page. It answers `[]` or one line of text to a wrong password, always with 200.
    async fn call<T: for<'de> Deserialize<'de>>(
        &self,
        words: &[(&str, &str)],
        effect: Effect,
    ) -> Result<T, V5Error> {
        self.refused.check()?;
        let request = self.http.get("/admin/api.php").query(words).query(&[("auth", &self.token)]);
        let reply = self.refused.note(request.effect(effect).send().await)?;
        if !reply.is_success() {
            return Err(V5Error::NoApi(Box::new(reply)));
        }
        if matches!(reply.text().trim(), "[]" | "Not authorized!" | "") {
            let server = self.http.server().to_owned();
            let denied = ProviderError::Denied { server, reason: "the password is wrong".into() };
            return Ok(self.refused.note(Err(denied))?);
        }
        Ok(reply.json().map_err(|error| {
            let (server, reason) = (self.http.server().to_owned(), format!("not its JSON: {error}"));
            if effect == Effect::Read {
                ProviderError::Malformed { server, reason }
            } else {
                ProviderError::Unknown { server, reason }
            }
        })?)
    }
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `WEBPASSWORD` of `pihole -a -p secret`: the second hash is over the text of the first.
    #[test]
    fn the_token_is_the_hash_of_the_text_of_the_hash() {
        let first = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(hash("secret"), first);
        assert_eq!(hash(&hash("secret")), hash(first));
        assert_ne!(hash(first), HEXLOWER.encode(&Sha256::digest(Sha256::digest("secret"))));
    }
}
