//! [`ClientError`]: why a call did not give what was asked for.

use std::fmt::Write as _;

use reqwest::Url;

use crate::types::Problem;

/// One variant per thing the caller does next.
///
/// Each message names the subject; the cause follows through `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL, a certificate file or a name cannot be used. Nothing was sent.
    #[error("{reason}")]
    Unusable { reason: String },
    /// No server answers there. Nothing was done.
    #[error("nothing answers at {}", shown(.url))]
    Unreachable { url: Url, source: reqwest::Error },
    /// The answer began, and the connection ended before its end.
    #[error("{} broke off in the middle of its answer", shown(.url))]
    BrokenOff { url: Url, source: reqwest::Error },
    /// A server answers, but cannot prove its identity. Nothing was sent.
    #[error("the certificate of {} is not trusted: {}", shown(.url), CertificateProblem::of(.reason).explanation(.reason))]
    Untrusted { url: Url, reason: String },
    /// The URL says `https`, and the server speaks plain HTTP. Nothing was sent.
    #[error("{} answers in plain HTTP, not in TLS", shown(.url))]
    PlainHttp { url: Url },
    /// The server does not know this token, or the token may not do this.
    #[error("{}", problem_sentence(.problem))]
    Denied { url: Url, problem: Box<Problem> },
    /// The server decided against it. Nothing was changed.
    #[error("{}", problem_sentence(.0))]
    Refused(Box<Problem>),
    /// The server cannot do it now. Nothing was changed; ask again later.
    #[error("{}", problem_sentence(.problem))]
    Unavailable { url: Url, problem: Box<Problem> },
    /// It is not known whether it was done. Ask again: with the same key the answer will be the same.
    #[error("it is unknown whether this was done: {reason}")]
    Unknown { url: Url, reason: String },
    /// A read got no answer in time.
    #[error("{} did not answer in time", shown(.url))]
    Slow { url: Url },
    /// The program that answers there does not speak Netstead's API.
    #[error("{} does not answer like Netstead: {reason}", shown(.url))]
    Foreign { url: Url, reason: String },
}

/// Faults of a certificate that a person can repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CertificateProblem {
    /// It may sign others, and so must not be a server's own.
    Authority,
    UnknownIssuer,
    Expired,
    NotYet,
    WrongName,
    Other,
}

impl CertificateProblem {
    /// The library has no words for most of these but the names of its types.
    fn of(reason: &str) -> Self {
        let all = [
            ("CaUsedAsEndEntity", Self::Authority),
            ("UnknownIssuer", Self::UnknownIssuer),
            ("not valid yet", Self::NotYet),
            ("NotValidYet", Self::NotYet),
            ("certificate expired", Self::Expired),
            ("Expired", Self::Expired),
            ("not valid for name", Self::WrongName),
            ("NotValidForName", Self::WrongName),
        ];
        all.iter().find(|(part, _)| reason.contains(part)).map_or(Self::Other, |(_, known)| *known)
    }

    fn explanation(self, reason: &str) -> String {
        match self {
            Self::Authority => "it is that of an authority, which signs others and is no server".to_owned(),
            Self::UnknownIssuer => "no authority that is known here signed it".to_owned(),
            Self::Expired => "it has expired".to_owned(),
            Self::NotYet => "it is not valid yet".to_owned(),
            Self::WrongName => format!("it is for another name ({reason})"),
            Self::Other => reason.to_owned(),
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Authority => {
                "sign a certificate for the server with it, or make one that is no authority: \
                 `openssl req -x509 … -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST`"
            }
            Self::UnknownIssuer => "name the authority that signed it with `--ca-file`",
            Self::Expired => {
                "give the server a new one; if it is not that old, set the clock of this machine"
            }
            Self::NotYet => "set the clock of this machine, or of the one that made the token",
            Self::WrongName => {
                "use a name it is for in `--url`, or make one for this name (`subjectAltName`)"
            }
            Self::Other => "give the server another one, and name who signed it with `--ca-file`",
        }
    }
}

impl ClientError {
    /// Advice about a certificate that is not trusted.
    pub fn certificate_advice(&self) -> Option<&'static str> {
        if let Self::Untrusted { reason, .. } = self {
            Some(CertificateProblem::of(reason).advice())
        } else {
            None
        }
    }

    /// The server's own words, if it is a server that spoke.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Denied { problem, .. } | Self::Unavailable { problem, .. } | Self::Refused(problem) => {
                Some(problem)
            }
            _ => None,
        }
    }

    /// Whether the server refused with this kind of problem: `is("no-such-claim")`.
    pub fn is(&self, slug: &str) -> bool {
        self.problem().is_some_and(|problem| problem.slug() == slug)
    }

    pub(crate) fn unusable(reason: impl Into<String>) -> Self {
        Self::Unusable { reason: reason.into() }
    }
}

impl Problem {
    /// The kind without its prefix: `address-held`.
    pub fn slug(&self) -> &str {
        self.kind.strip_prefix("urn:netstead:").unwrap_or(&self.kind)
    }

    /// Which entry of a bulk request it is about, if the whole request was refused because of one.
    pub fn entry(&self) -> Option<usize> {
        let in_field = || self.field.as_deref()?.strip_prefix("entries[")?.split_once(']')?.0.parse().ok();
        self.facts.get("entry").and_then(|entry| entry.parse().ok()).or_else(in_field)
    }
}

/// As people write it: a bare host has no slash behind it.
fn shown(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}

/// The problem in one sentence, with the field in front if the sentence does not name it already.
fn problem_sentence(problem: &Problem) -> String {
    let text = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
    let mut out = String::new();
    if let Some(field) = problem.field.as_deref().filter(|field| !text.contains(*field)) {
        let _ = write!(out, "{field}: ");
    }
    out + text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(detail: &str, field: Option<&str>) -> Problem {
        Problem {
            kind: "urn:netstead:invalid".into(),
            detail: detail.into(),
            field: field.map(str::to_owned),
            ..Problem::default()
        }
    }

    #[test]
    fn a_refusal_names_its_field_once() {
        let refused = |detail, field| ClientError::Refused(Box::new(problem(detail, field))).to_string();
        assert_eq!(refused("it is empty", Some("ranges")), "ranges: it is empty");
        assert_eq!(refused("ranges: it is empty", Some("ranges")), "ranges: it is empty");
        assert_eq!(refused("it is empty", None), "it is empty");
    }

    #[test]
    fn a_refused_bulk_says_which_entry_it_is_about() {
        let fact = Problem { facts: [("entry".to_owned(), "3".to_owned())].into(), ..Problem::default() };
        assert_eq!(fact.entry(), Some(3));
        assert_eq!(problem("", Some("entries[12].claim.ttl")).entry(), Some(12));
        assert_eq!(problem("", Some("entries")).entry(), None);
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_said_in_words() {
        let told = |reason: &str| {
            let url = Url::parse("https://ns.example.net/").unwrap();
            let error = ClientError::Untrusted { url, reason: reason.into() };
            assert!(error.certificate_advice().is_some());
            error.to_string().split_once("trusted: ").unwrap().1.to_owned()
        };
        let name = "certificate not valid for name \"ns.example.net\"; certificate is only valid for DnsName(\"a.test\")";
        let old = "certificate expired: verification time 20 (UNIX), but certificate is not valid after 10 (10 seconds ago)";
        let authority = told("Other(OtherError(CaUsedAsEndEntity))");
        assert_eq!(authority, "it is that of an authority, which signs others and is no server");
        assert_eq!(told("UnknownIssuer"), "no authority that is known here signed it");
        assert_eq!((told(old), told("NotValidYet")), ("it has expired".into(), "it is not valid yet".into()));
        assert_eq!(told(name), format!("it is for another name ({name})"));
        assert_eq!(told("BadSignature"), "BadSignature");
    }

    #[test]
    fn a_problem_is_known_by_its_slug() {
        let error = ClientError::Refused(Box::new(problem("", None)));
        assert!(error.is("invalid"));
        assert!(!error.is("exhausted"));
    }
}
