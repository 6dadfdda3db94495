//! [`Ssh`]: commands on another machine, through the `ssh` program of this one.
//!
//! The user's own settings, keys, agent and known hosts apply, as at a terminal. `ssh` never asks a question here
//! (`BatchMode`): a host whose key is not known, or that wants a password, is an error with ssh's own words.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use netstead_wire::ssh::Ssh;
//!
//! let ssh = Ssh::new("ssh://root@router.home.example.com".parse()?);
//! ssh.write_file("/etc/dnsmasq.d/netstead.conf", b"host-record=web.home.test,10.0.3.50\n").await?;
//! ssh.run_shell("systemctl reload dnsmasq", b"").await?;
//! # Ok(())
//! # }
//! ```

mod run;
mod target;

use std::{
    io,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join},
    process::{Child, Command},
    time::timeout,
};

pub use self::target::SshTarget;

/// How long ssh may take to connect, in seconds.
const CONNECT_TIMEOUT: &str = "ConnectTimeout=10";
/// A connection whose other end is silent for three times this long is closed by ssh.
const ALIVE: &str = "ServerAliveInterval=15";
/// How long a command may take, connecting included.
const WHOLE: Duration = Duration::from_secs(30);
/// The most of a command's output.
const MOST_OUTPUT: usize = 1 << 20;
/// The most bytes of ssh's or a command's complaint that an error shows.
const MOST_WORDS: usize = 400;

/// Why a command on another machine came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    #[error("there is no `ssh` program here; it is needed for `ssh://` hosts")]
    NoProgram,
    #[error("`ssh` cannot be started: {0}")]
    NotStarted(io::Error),
    /// ssh itself failed; the command did not run, or its connection broke.
    #[error("{target} cannot be reached: {reason}")]
    Unreachable { target: String, reason: String },
    /// The command ran and failed.
    #[error("{target}: `{command}` ends with {status}: {said}")]
    Failed { target: String, command: String, status: std::process::ExitStatus, said: String },
    /// It is not known whether the command ran.
    #[error("{target}: `{command}` takes longer than {} s", .limit.as_secs())]
    Late { target: String, command: String, limit: Duration },
    #[error("{target}: `{command}` prints more than {limit} bytes, the most that is read")]
    TooLarge { target: String, command: String, limit: usize },
}

/// One machine behind ssh.
#[derive(Debug, Clone)]
pub struct Ssh {
    target: SshTarget,
    config_file: Option<PathBuf>,
    identity_file: Option<PathBuf>,
    known_hosts_file: Option<PathBuf>,
    timeout: Duration,
    limit: usize,
}

/// A command on another machine whose input and output are a connection.
pub struct SshStream {
    child: Child,
}

impl Ssh {
    pub fn new(target: SshTarget) -> Self {
        let (config_file, identity_file, known_hosts_file) = (None, None, None);
        Self { target, config_file, identity_file, known_hosts_file, timeout: WHOLE, limit: MOST_OUTPUT }
    }

    /// Settings of ssh instead of the user's own.
    #[must_use]
    pub fn config_file(self, path: impl Into<PathBuf>) -> Self {
        Self { config_file: Some(path.into()), ..self }
    }

    /// The key to log in with, instead of those that ssh finds.
    #[must_use]
    pub fn identity_file(self, path: impl Into<PathBuf>) -> Self {
        Self { identity_file: Some(path.into()), ..self }
    }

    /// The only file with host keys to trust, instead of the user's own and the machine's.
    #[must_use]
    pub fn known_hosts_file(self, path: impl Into<PathBuf>) -> Self {
        Self { known_hosts_file: Some(path.into()), ..self }
    }

    /// How long one command may take, connecting included. 30 s unless set.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The most bytes of output that are read of one command. 1 MiB unless set.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    pub fn target(&self) -> &SshTarget {
        &self.target
    }

    /// Starts `command`, words for the shell of the other machine, and connects to its input and output.
    pub fn open(
        &self,
        command: &str,
    ) -> Result<(SshStream, impl AsyncRead + AsyncWrite + Send + Unpin + use<>), SshError> {
        let mut child = self.start(command)?;
        let (Some(out), Some(into)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(SshError::NotStarted(io::Error::other("it has no pipes")));
        };
        Ok((SshStream { child }, join(out, into)))
    }

    fn start(&self, remote_command: &str) -> Result<Child, SshError> {
        let SshTarget { user, host, port } = &self.target;
        let mut command = Command::new("ssh");
        command.args(["-T", "-o", "BatchMode=yes", "-o", CONNECT_TIMEOUT, "-o", ALIVE]);
        if let Some(file) = &self.config_file {
            command.arg("-F").arg(file);
        }
        if let Some(file) = &self.identity_file {
            command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(file);
        }
        if let Some(file) = &self.known_hosts_file {
            let option = |name: &str, value: &Path| {
                // ssh reads the value as a line of its settings: blanks need quotes, and a percent sign begins a token.
                format!("{name}=\"{}\"", value.display().to_string().replace('%', "%%"))
            };
            command.args(["-o", "StrictHostKeyChecking=yes"]);
            command.args(["-o", &option("UserKnownHostsFile", file)]);
            command.args(["-o", &option("GlobalKnownHostsFile", Path::new("/dev/null"))]);
        }
        if let Some(user) = user {
            command.args(["-l", user]);
        }
        if let Some(port) = port {
            command.args(["-p", &port.to_string()]);
        }
        command.args(["--", host, remote_command]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SshError::NoProgram,
            _ => SshError::NotStarted(error),
        })
    }
}

impl SshStream {
    /// Waits in the background until the command has ended, which it does when its pipes close.
    pub fn reap(mut self) {
        tokio::spawn(async move { self.child.wait().await });
    }

    /// The words of ssh about a connection that failed.
    pub async fn last_words(mut self) -> Option<String> {
        let stderr = self.child.stderr.take()?;
        let mut words = Vec::new();
        let read = async {
            let _ = stderr.take(MOST_WORDS as u64).read_to_end(&mut words).await;
        };
        // A program of the user's may outlive ssh and hold it open.
        let _ = timeout(Duration::from_millis(500), read).await;
        one_line(&words)
    }
}

impl std::fmt::Debug for SshStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SshStream")
    }
}

/// The text in one line, if there is any.
fn one_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// A word as the shell of the other machine reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_stays_one_word() {
        for (word, form) in [
            ("/etc/hosts", "/etc/hosts"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's; rm -rf /", r"'it'\''s; rm -rf /'"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), form);
        }
    }
}
