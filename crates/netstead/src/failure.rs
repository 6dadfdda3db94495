//! Errors for people: an `error:` line, a `hint:` line and an exit code.

use std::{fmt, process::ExitCode};

use netstead_client::{ClientError, types::Problem};

/// The words that the server adds to an answer that it could give if it might be old.
const STALE: &str = "; `?stale=ok`";

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Fine = 0,
    Error = 1,
    /// Not everything is as it should be yet.
    Pending = 2,
    /// Something a person wanted protected is protected.
    Guarded = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error with advice.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    exit: Exit,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::Error }
    }

    /// Whether this is its advice.
    pub(crate) fn advises(&self, hint: &str) -> bool {
        self.hint.as_deref() == Some(hint)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// Several things are wrong and each was told already.
#[derive(Debug)]
pub(crate) struct AlreadyReported;

impl fmt::Display for AlreadyReported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("see above")
    }
}

impl std::error::Error for AlreadyReported {}

/// The error of a command that changes something and could not even read: old data would not help it.
pub(crate) fn without_stale_advice(error: anyhow::Error) -> anyhow::Error {
    let unfresh = match error.downcast_ref() {
        Some(ClientError::Unavailable { problem, .. }) => problem.detail.contains(STALE),
        _ => false,
    };
    if !unfresh {
        return error;
    }
    Failure::new(without_stale_hint(&message(&error)))
        .hint("do the same again once the store can be asked")
        .into()
}

/// A server's sentence without its advice to ask for something old.
pub(crate) fn without_stale_hint(told: &str) -> &str {
    told.split(STALE).next().unwrap_or_default()
}

/// Tells a person what went wrong and returns the exit code it deserves.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if error.is::<AlreadyReported>() {
        return Exit::Error;
    }
    if reader_went_away(error) {
        return Exit::Fine;
    }
    let (hint, exit) = advice(error);
    print_error(&message(error), hint.as_deref());
    exit
}

/// All causes in one line; of those behind a client's error only the last, which is what the system said.
fn message(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut causes = error.chain();
    while let Some(cause) = causes.next() {
        let text = cause.to_string();
        // Some errors repeat their cause in their own words.
        if !parts.last().is_some_and(|last| last.ends_with(&text)) {
            parts.push(text);
        }
        if cause.is::<ClientError>() {
            parts.extend(causes.by_ref().last().map(ToString::to_string));
        }
    }
    parts.join(": ")
}

/// The two lines, in colour at a terminal.
pub(crate) fn print_error(message: &str, hint: Option<&str>) {
    anstream::eprintln!("\x1b[1;31merror:\x1b[0m {}", crate::output::plain(message));
    if let Some(hint) = hint {
        anstream::eprintln!("\x1b[1;36mhint:\x1b[0m {}", crate::output::plain(hint));
    }
}

/// The same for what is allowed and probably not meant.
pub(crate) fn print_warning(message: &str, hint: Option<&str>) {
    anstream::eprintln!("\x1b[1;33mwarning:\x1b[0m {}", crate::output::plain(message));
    if let Some(hint) = hint {
        anstream::eprintln!("\x1b[1;36mhint:\x1b[0m {}", crate::output::plain(hint));
    }
}

fn reader_went_away(error: &anyhow::Error) -> bool {
    let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(broken))
        && error.to_string().contains("stdout")
}

fn advice(error: &anyhow::Error) -> (Option<String>, Exit) {
    // These look through the contexts that were put around an error.
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return (failure.hint.clone(), failure.exit);
    }
    if let Some(error) = error.downcast_ref::<ClientError>() {
        let exit = if error.is("paused") { Exit::Guarded } else { Exit::Error };
        return (client_hint(error), exit);
    }
    (None, Exit::Error)
}

fn client_hint(error: &ClientError) -> Option<String> {
    let hint = match error {
        ClientError::Unreachable { .. } => {
            "start a server with `netstead run`, or name one with `--url` or NETSTEAD_URL; without a server, \
             `--local` opens the data directory itself"
        }
        ClientError::PlainHttp { .. } => {
            "write `http://` in `--url`; to encrypt, give the server a certificate with `[api] tls_cert` and `tls_key`"
        }
        ClientError::BrokenOff { .. } => "try again; the server's log says why it broke off",
        ClientError::Denied { problem, .. } if problem.slug() == "unauthenticated" => {
            "give a token with `--token` or NETSTEAD_TOKEN; `netstead token create` makes one, and `netstead run` \
             leaves one for the user who starts it"
        }
        ClientError::Untrusted { .. } => return error.certificate_advice().map(str::to_owned),
        ClientError::Unknown { .. } => "look, or do the same again: a claim that was made is not made twice",
        ClientError::Slow { .. } => "try again, or give it more time with `--timeout 2m`",
        ClientError::Unavailable { problem, .. } if problem.detail.contains(STALE) => {
            "`--stale` shows what is known there, however old"
        }
        ClientError::Foreign { .. } => "is this the right `--url`?",
        ClientError::Refused(problem) => return refusal_hint(problem),
        _ => return None,
    };
    Some(hint.to_owned())
}

fn refusal_hint(problem: &Problem) -> Option<String> {
    let hint = match problem.slug() {
        "no-such-pool" => "`netstead get pools` lists those there are",
        "no-such-vrf" => "`netstead get pools -o wide` shows the VRF of each",
        "nothing-selected" => "`netstead get pools -o wide` shows their labels",
        "address-held" => {
            "claim without `--address` for any other, or see `netstead explain` with the address"
        }
        "key-held" => "use another key, or take it over with `--adopt`",
        "exhausted" => "wait for one with `--wait 5m`, or make the pool larger with `netstead pool update`",
        "resting" => "wait, or take it with `--force`",
        "observed" => "if it is yours, take it with `--adopt`",
        "pool-exists" => "change it with `netstead pool update`",
        "pool-in-use" => "release its claims first, or delete it with `--force REASON`",
        "paused" => "look at what is in use, then `netstead resume`",
        "gone" => "start without `--after`",
        "no-such-provider" => "`netstead get providers` lists those there are",
        "no-such-plan" => "`netstead plan` shows what is parked now, and under which hash",
        "no-such-source" => "`netstead get sources` lists those there are",
        "no-such-generation" => "`netstead get providers -o wide` shows the newest generation of each",
        "attached" => "take its table out of the file, which is read again by itself",
        "detached" => {
            "put its table back into the file, clean it, then take it out; or leave its records with `--forget`"
        }
        "still-running" => "`netstead get providers` says how it ended",
        "not-as-shown" => "do the same again, and look at what it shows now",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_changes_something_is_not_told_to_do_with_something_old() {
        let problem = Problem {
            kind: "urn:netstead:unavailable".into(),
            detail: "it cannot be known: no quorum; `?stale=ok` answers with what is known".into(),
            ..Problem::default()
        };
        let error = || {
            let url = "http://127.0.0.1:5301".parse().unwrap();
            anyhow::Error::from(ClientError::Unavailable { url, problem: Box::new(problem.clone()) })
        };
        assert!(advice(&error()).0.unwrap().contains("--stale"));
        let changing = without_stale_advice(error());
        assert_eq!(message(&changing), "it cannot be known: no quorum");
        assert!(!advice(&changing).0.unwrap().contains("--stale"));
    }
}
