//! The connections to a Docker host: a socket, TCP with or without TLS, or the `ssh` program.

use std::{io, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use netstead_wire::{
    ConnectError, Stream, TlsClient, connect_tcp, connect_unix,
    ssh::{Ssh, SshStream},
};
use nix::unistd::{Gid, Group};

use super::host::{DockerHost, port};

/// How long a TCP connection may take, and TLS over it.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open connection, and the `ssh` below it.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    pub(super) ssh: Option<SshStream>,
}

/// Opens connections to one host.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) host: DockerHost,
    pub(super) tls: Option<TlsClient>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Connector {
    /// A connection, or a sentence about why there is none.
    pub(super) async fn open(&self) -> Result<Connection, String> {
        let stream = match &self.host {
            DockerHost::Unix(path) => connect_unix(path).await.map_err(|error| no_socket(path, &error))?,
            DockerHost::Tcp { host, port: written, .. } => {
                let at = port(*written, self.tls.is_some());
                let opened = connect_tcp(host, at, self.tls.as_ref(), PATIENCE).await;
                opened.map_err(|error| self.no_connection(&error))?
            }
            // The docker program at the other end does the rest, as with Docker's own command line.
            DockerHost::Ssh(target) => {
                let opened = Ssh::new(target.clone()).open("docker system dial-stdio");
                let (ssh, stream) = opened.map_err(|error| error.to_string())?;
                return Ok(Connection { stream: Box::new(stream), ssh: Some(ssh) });
            }
        };
        Ok(Connection { stream, ssh: None })
    }

    fn no_connection(&self, error: &ConnectError) -> String {
        let (host, seconds) = (&self.host, PATIENCE.as_secs());
        match error {
            ConnectError::Late(_) => format!("{host} does not answer within {seconds} s"),
            ConnectError::Unreachable(error) => format!("{host} cannot be reached: {error}"),
            ConnectError::TlsLate(_) => format!("{host} does not answer TLS within {seconds} s"),
            ConnectError::Untrusted(error) => {
                format!("{host} cannot be trusted, or does not speak TLS: {error}")
            }
            error => format!("{host}: {error}"),
        }
    }
}

pub(super) fn no_socket(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {shown}: is Docker installed and running?"),
        io::ErrorKind::PermissionDenied => {
            let group = group_of(path).map_or_else(|| "that owns it".to_owned(), |name| format!("`{name}`"));
            format!("{shown} may not be opened: run Netstead as a member of the group {group}")
        }
        io::ErrorKind::ConnectionRefused => format!("nothing listens at {shown}: is Docker running?"),
        _ => format!("{shown} cannot be opened: {error}"),
    }
}

/// The name of the group that may open a socket, or its number.
pub(super) fn group_of(path: &Path) -> Option<String> {
    let gid = std::fs::metadata(path).ok()?.gid();
    let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    Some(group.map_or_else(|| gid.to_string(), |group| group.name))
}
