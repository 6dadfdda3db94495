//! [`SshTarget`]: `ssh://USER@HOST:PORT`.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;

use crate::host_port::{split_host_port, write_host_port};

/// A machine that is reached through ssh. Its host may be an alias of the user's ssh settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTarget {
    pub user: Option<String>,
    pub host: String,
    pub port: Option<u16>,
}

impl SshTarget {
    /// The words after `ssh` that lead there, for a hint.
    pub fn command_line(&self) -> String {
        let port = self.port.map(|port| format!("-p {port} ")).unwrap_or_default();
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        format!("{port}{user}{}", self.host)
    }
}

impl FromStr for SshTarget {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || {
            let reason = "write `ssh://USER@HOST` or `ssh://USER@HOST:PORT`";
            ParseError::new("ssh host", text, None, reason)
        };
        let rest = text.strip_prefix("ssh://").ok_or_else(wrong)?;
        let (user, rest) = match rest.split_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, rest),
        };
        let (host, port) = split_host_port(rest).ok_or_else(wrong)?;
        // Either would be taken for an option of ssh.
        let odd = |text: &str| text.is_empty() || text.starts_with('-');
        if odd(&host) || user.as_deref().is_some_and(odd) {
            return Err(wrong());
        }
        Ok(Self { user, host, port })
    }
}

impl fmt::Display for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        self.user.as_ref().map_or(Ok(()), |user| write!(f, "{user}@"))?;
        write_host_port(f, &self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_written_as_it_is_read() {
        for text in ["ssh://nas", "ssh://root@nas.home.test", "ssh://nas:2222", "ssh://me@[fd00::5]:22"] {
            assert_eq!(text.parse::<SshTarget>().unwrap().to_string(), text);
        }
        for text in ["nas", "ssh://", "ssh://-oX=y", "ssh://@nas", "ssh://-l@nas", "ssh://nas:0", "ssh://a b"]
        {
            assert!(text.parse::<SshTarget>().is_err(), "{text}");
        }
    }
}
