//! The connections to a Docker host: a socket, TCP with or without TLS, or the `ssh` program.

use std::{io, path::Path, process::Stdio, sync::Arc, time::Duration};

use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join},
    net::{TcpStream, UnixStream},
    process::{Child, Command},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::host::{DockerHost, port};

/// A TCP connection, and TLS over it, must stand within this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// What of a failed ssh's words is shown.
const WORDS: u64 = 400;

pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection, and what must live as long as it does.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    /// Ends with the connection.
    pub(super) child: Option<Child>,
}

/// Opens connections to one host.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) host: DockerHost,
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Connector {
    /// A connection, or a sentence about why there is none.
    pub(super) async fn open(&self) -> Result<Connection, String> {
        let stream: Box<dyn Stream> = match &self.host {
            DockerHost::Unix(path) => {
                let opened = UnixStream::connect(path).await;
                Box::new(opened.map_err(|error| no_socket(path, &error))?)
            }
            DockerHost::Tcp { host, port: written, .. } => {
                let at = port(*written, self.tls.is_some());
                self.tcp(host, at).await?
            }
            DockerHost::Ssh { user, host, port } => return ssh(user.as_deref(), host, *port),
        };
        Ok(Connection { stream, child: None })
    }

    async fn tcp(&self, host: &str, port: u16) -> Result<Box<dyn Stream>, String> {
        let seconds = PATIENCE.as_secs();
        let opened = timeout(PATIENCE, TcpStream::connect((host, port))).await;
        let stream = opened
            .map_err(|_| format!("{} does not answer within {seconds} s", self.host))?
            .map_err(|error| format!("{} cannot be reached: {error}", self.host))?;
        // A host that vanished without a word is noticed by the next look; nothing more is needed here.
        stream.set_nodelay(true).map_err(|error| format!("{}: {error}", self.host))?;
        let Some(config) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is no name a certificate can be for"))?;
        let shaken = timeout(PATIENCE, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await;
        let stream = shaken
            .map_err(|_| format!("{} does not answer TLS within {seconds} s", self.host))?
            .map_err(|error| format!("{} cannot be trusted, or does not speak TLS: {error}", self.host))?;
        Ok(Box::new(stream))
    }
}

fn no_socket(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no {path}: is Docker installed and running?"),
        io::ErrorKind::PermissionDenied => {
            format!("{path} may not be opened: run Netstead as a member of the group that owns it")
        }
        io::ErrorKind::ConnectionRefused => format!("nobody listens at {path}: is Docker running?"),
        _ => format!("{path} cannot be opened: {error}"),
    }
}

/// Speaks through the docker program at the other end, as Docker's own command line does.
fn ssh(user: Option<&str>, host: &str, port: Option<u16>) -> Result<Connection, String> {
    let mut command = Command::new("ssh");
    command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15"]);
    if let Some(user) = user {
        command.args(["-l", user]);
    }
    if let Some(port) = port {
        command.args(["-p", &port.to_string()]);
    }
    command.args(["--", host, "docker", "system", "dial-stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no `ssh` program here; it is needed for `ssh://` hosts".to_owned()
        }
        _ => format!("`ssh` cannot be started: {error}"),
    })?;
    let (Some(out), Some(into)) = (child.stdout.take(), child.stdin.take()) else {
        return Err("`ssh` was started without its pipes".into());
    };
    Ok(Connection { stream: Box::new(join(out, into)), child: Some(child) })
}

/// What `ssh` had to say about a connection that failed.
pub(super) async fn last_words(child: &mut Child) -> Option<String> {
    let stderr = child.stderr.take()?;
    let mut words = Vec::new();
    let read = async {
        let _ = stderr.take(WORDS).read_to_end(&mut words).await;
    };
    // It may be held open by a program of the user's that outlives `ssh`.
    let _ = timeout(Duration::from_millis(500), read).await;
    let words = String::from_utf8_lossy(&words);
    let words: Vec<&str> = words.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
