//! Errors of etcd in words that a person can act on.

use tonic::{Code, Status};

use super::client::whole;

const NO_USER: &str = "set `user` and `password`";

/// What etcd or the way to it said, and what to do about it.
pub(super) fn describe_error(status: &Status) -> String {
    let said = match std::error::Error::source(status) {
        Some(source) => whole(source),
        None => status.message().to_owned(),
    };
    match advice(status.code(), &said) {
        Some(advice) => format!("{said}; {advice}"),
        None => said,
    }
}

fn advice(code: Code, said: &str) -> Option<&'static str> {
    let has = |part: &str| said.contains(part);
    Some(match code {
        _ if has("database space exceeded") => {
            "its quota is used up: compact, defragment, then `etcdctl alarm disarm`"
        }
        Code::Unauthenticated => NO_USER,
        _ if has("user name is empty") => NO_USER,
        Code::PermissionDenied if has(" is refused") => "check `user` and `password`",
        Code::PermissionDenied => "the user needs read and write on the whole prefix",
        _ if has("not valid for name") => "if it is the right server, set `server_name` to a name it has",
        _ if has("ApplicationVerificationFailure") => {
            "its certificate is not the one of `fingerprint`; if it was renewed, set the new one"
        }
        _ if has("invalid peer certificate") => "set `ca_file` to who signed the certificate of etcd",
        _ if has("received fatal alert") => "set `client_cert` and `client_key` to what etcd asks for",
        // An etcd without TLS hangs up; the connection is reset if it had not read everything.
        _ if has("tls handshake eof") || (has("does not speak TLS") && has("Connection reset")) => {
            "if this etcd has no TLS, write `http://`"
        }
        _ => return None,
    })
}

/// The same when nothing was ever heard from etcd: one that hangs up then was most likely spoken to in the wrong way.
pub(super) fn describe_first_error(reason: String, url: &str) -> String {
    let hung_up = ["connection closed", "broken pipe", "connection reset", "http2 error"];
    if !hung_up.iter().any(|part| reason.contains(part)) {
        return reason;
    }
    let advice = if url.starts_with("https:") {
        "if it asks for certificates, set `client_cert` and `client_key`"
    } else {
        "if it has TLS, write `https://`"
    };
    format!("{reason}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_helps_is_added() {
        assert_eq!(describe_error(&Status::unavailable("etcdserver: no leader")), "etcdserver: no leader");
        assert_eq!(
            describe_error(&Status::unauthenticated("etcdserver: invalid auth token")),
            "etcdserver: invalid auth token; set `user` and `password`"
        );
    }

    #[test]
    fn an_etcd_that_hangs_up_on_tls_has_none_however_it_does_that() {
        for end in ["tls handshake eof", "Connection reset by peer (os error 104)"] {
            let said =
                format!("etcd at https://ns1:2379: it cannot be trusted, or does not speak TLS: {end}");
            assert!(describe_error(&Status::unavailable(said)).ends_with("write `http://`"), "{end}");
        }
    }
}
