//! Finds the Docker of this machine, if nothing is configured.
//!
//! Only without any configuration. A file, even an empty one, says everything there is to look at.

use std::fmt;
#[cfg(feature = "docker")]
use std::path::PathBuf;

/// The result of the search on this machine, for people and for the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// The configuration says what to look at.
    Off,
    /// Docker's socket is there.
    #[cfg(feature = "docker")]
    Docker(PathBuf),
    /// It is not.
    Nothing {
        /// Where it was looked for, or why it was not.
        why: String,
    },
}

impl fmt::Display for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => Ok(()),
            #[cfg(feature = "docker")]
            Self::Docker(socket) => write!(f, "; Docker is looked at through {}", socket.display()),
            Self::Nothing { why } => write!(f, "; no Docker: {why}"),
        }
    }
}

impl Discovery {
    /// Looks where Docker's own command line would, as long as that is a socket of this machine: another host may be
    /// somebody's production, and is looked at when it is configured.
    #[cfg(feature = "docker")]
    pub(crate) fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        use netstead_sources::docker::DockerHost;

        let nothing = |why: String| Self::Nothing { why };
        let socket = match variable("DOCKER_HOST").filter(|host| !host.is_empty()) {
            None => PathBuf::from(DockerHost::USUAL),
            Some(host) => match host.parse() {
                Ok(DockerHost::Unix(path)) => path,
                Ok(_) => return nothing(format!("DOCKER_HOST is {host}; name it in a [source.docker]")),
                Err(error) => return nothing(format!("DOCKER_HOST: {error}")),
            },
        };
        if socket.exists() {
            Self::Docker(socket)
        } else {
            nothing(format!("there is no {}", socket.display()))
        }
    }

    /// The address of the Docker that was found.
    pub(crate) fn docker_host(&self) -> Option<String> {
        match self {
            #[cfg(feature = "docker")]
            Self::Docker(socket) => Some(format!("unix://{}", socket.display())),
            _ => None,
        }
    }

    #[cfg(not(feature = "docker"))]
    pub(crate) fn detect(_: impl Fn(&str) -> Option<String>) -> Self {
        Self::Nothing { why: "it is not in this build".into() }
    }
}
