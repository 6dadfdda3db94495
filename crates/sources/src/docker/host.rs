//! [`DockerHost`]: the address of a Docker API.

use std::{fmt, path::PathBuf, str::FromStr};

use netstead_model::ParseError;

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
    Ssh {
        user: Option<String>,
        host: String,
        port: Option<u16>,
    },
}

impl DockerHost {
    /// Where Docker listens unless somebody says otherwise.
    pub const USUAL: &str = "/var/run/docker.sock";

    /// Whether its address alone says that it speaks TLS.
    pub(super) fn wants_tls(&self) -> bool {
        matches!(self, Self::Tcp { https: true, .. })
    }

    /// The machine, if it is another one.
    pub(super) fn remote(&self) -> Option<&str> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp { host, .. } | Self::Ssh { host, .. } => Some(host),
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
                let (host, port) = host_and_port(rest).ok_or_else(|| refuse("write `tcp://HOST:PORT`"))?;
                Ok(Self::Tcp { host, port, https: scheme == "https" })
            }
            "ssh" => {
                let (user, rest) = match rest.split_once('@') {
                    Some((user, rest)) => (Some(user.to_owned()), rest),
                    None => (None, rest),
                };
                let wrong = || refuse("write `ssh://USER@HOST` or `ssh://USER@HOST:PORT`");
                let (host, port) = host_and_port(rest).ok_or_else(wrong)?;
                if host.starts_with('-')
                    || user.as_ref().is_some_and(|user| user.is_empty() || user.starts_with('-'))
                {
                    return Err(wrong());
                }
                Ok(Self::Ssh { user, host, port })
            }
            _ => Err(refuse("it begins with `unix://`, `tcp://` or `ssh://`")),
        }
    }
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`, perhaps with a slash at the end.
fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':').or_else(|| after.is_empty().then_some(""))?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | '@' | '?' | '#');
    if host.is_empty() || host.contains(odd) {
        return None;
    }
    let port = if port.is_empty() { None } else { Some(port.parse().ok().filter(|port| *port != 0)?) };
    Some((host.to_owned(), port))
}

impl fmt::Display for DockerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |f: &mut fmt::Formatter<'_>, host: &str, port: &Option<u16>| {
            if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }?;
            port.map_or(Ok(()), |port| write!(f, ":{port}"))
        };
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp { host, port, .. } => {
                f.write_str("tcp://")?;
                place(f, host, port)
            }
            Self::Ssh { user, host, port } => {
                f.write_str("ssh://")?;
                user.as_ref().map_or(Ok(()), |user| write!(f, "{user}@"))?;
                place(f, host, port)
            }
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
