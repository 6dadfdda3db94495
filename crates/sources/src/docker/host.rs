//! [`DockerHost`]: the address of a Docker API.

use std::{fmt, path::PathBuf, str::FromStr};

use netstead_model::ParseError;
use netstead_wire::{split_host_port, ssh::SshTarget, write_host_port};

const PLAIN_PORT: u16 = 2375;
const TLS_PORT: u16 = 2376;

/// The address of a Docker API, as `DOCKER_HOST` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerHost {
    Unix(PathBuf),
    Tcp {
        host: String,
        /// 2376 with TLS and 2375 without, unless it is said.
        port: Option<u16>,
        /// It was written `https://`.
        https: bool,
    },
    /// Through the `ssh` program of this machine, with its settings, keys and known hosts.
    Ssh(SshTarget),
}

impl DockerHost {
    /// Docker's default socket.
    pub const USUAL: &str = "/var/run/docker.sock";

    /// Whether its address alone says that it speaks TLS.
    pub(super) fn wants_tls(&self) -> bool {
        matches!(self, Self::Tcp { https: true, .. })
    }

    /// The machine, if it is another one.
    pub(super) fn remote(&self) -> Option<&str> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { host, .. } | Self::Ssh(SshTarget { host, .. }) => Some(host),
        }
    }
}

pub(super) fn port(port: Option<u16>, tls: bool) -> u16 {
    port.unwrap_or(if tls { TLS_PORT } else { PLAIN_PORT })
}

impl Default for DockerHost {
    fn default() -> Self {
        Self::Unix(Self::USUAL.into())
    }
}

impl FromStr for DockerHost {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |reason: &str| ParseError::new("Docker host", text, None, reason);
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(refuse(
                "write `unix:///var/run/docker.sock`, `tcp://HOST:PORT` or `ssh://USER@HOST`",
            ));
        };
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "unix" => Err(refuse("the path of a socket begins with `/`")),
            "tcp" | "http" | "https" => {
                let (host, port) = split_host_port(rest).ok_or_else(|| refuse("write `tcp://HOST:PORT`"))?;
                Ok(Self::Tcp { host, port, https: scheme == "https" })
            }
            "ssh" => {
                let wrong = |_| refuse("write `ssh://USER@HOST` or `ssh://USER@HOST:PORT`");
                text.parse().map(Self::Ssh).map_err(wrong)
            }
            _ => Err(refuse("it begins with `unix://`, `tcp://` or `ssh://`")),
        }
    }
}

impl fmt::Display for DockerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port, .. } => {
                f.write_str("tcp://")?;
                write_host_port(f, host, *port)
            }
            Self::Ssh(target) => target.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_written_as_it_is_read() {
        for text in [
            "unix:///var/run/docker.sock",
            "tcp://nas.home.test:2376",
            "tcp://nas",
            "tcp://[fd00::5]:2375",
            "ssh://root@nas.home.test",
            "ssh://nas:2222",
        ] {
            assert_eq!(text.parse::<DockerHost>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_a_reason() {
        for text in [
            "",
            "/var/run/docker.sock",
            "unix://docker.sock",
            "tcp://",
            "tcp://a:b",
            "tcp://a:0",
            "ssh://-oX=y",
            "npipe:////./x",
        ] {
            let error = text.parse::<DockerHost>().unwrap_err().to_string();
            assert!(error.contains("Docker host"), "{error}");
        }
    }
}
