//! [`Machine`]: the machine that a server runs on, this one or another behind ssh: its files, and commands.

mod local;
mod remote;

use std::path::{Path, PathBuf};

use netstead_model::ProviderError;
use netstead_wire::ssh::Ssh;

use crate::dns::refused_login::RefusedLogin;

/// The most bytes of all files of a directory.
const MOST_OF_FILES: usize = 32 << 20;

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::dns) struct File {
    pub(in crate::dns) name: String,
    pub(in crate::dns) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) enum Machine {
    /// With the program whose files they are, for people.
    Local {
        program: &'static str,
    },
    Remote {
        ssh: Box<Ssh>,
        refused: RefusedLogin,
    },
}

/// Why something on the machine did not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::dns) enum MachineError {
    /// Nothing was changed.
    Failed(ProviderError),
    /// It is not known whether it happened.
    Unknown(ProviderError),
}

impl MachineError {
    pub(in crate::dns) fn into_provider_error(self) -> ProviderError {
        match self {
            Self::Failed(error) | Self::Unknown(error) => error,
        }
    }
}

impl Machine {
    /// The machine's name for people; that of the program on this one.
    fn server(&self) -> String {
        match self {
            Self::Local { program } => (*program).to_owned(),
            Self::Remote { ssh, .. } => ssh.target().to_string(),
        }
    }

    /// The files of each directory that dnsmasq would read.
    pub(super) async fn read(&self, dirs: &[&Path]) -> Result<Vec<Vec<File>>, ProviderError> {
        match self {
            Self::Local { .. } => {
                let owned: Vec<PathBuf> = dirs.iter().map(|dir| dir.to_path_buf()).collect();
                let read = move || owned.iter().map(|dir| local::read(dir)).collect();
                blocking(read).await.map_err(|reason| self.unreachable(reason))
            }
            Self::Remote { ssh, refused } => {
                refused.check()?;
                refused.note(remote::read(ssh, dirs).await)
            }
        }
    }

    /// The contents of each file; none for a file that is not there, although its directory is.
    pub(super) async fn read_files(
        &self,
        places: &[(&Path, &str)],
    ) -> Result<Vec<Option<Vec<u8>>>, ProviderError> {
        match self {
            Self::Local { .. } => {
                let owned: Vec<(PathBuf, String)> =
                    places.iter().map(|(dir, name)| (dir.to_path_buf(), (*name).to_owned())).collect();
                let read = move || owned.iter().map(|(dir, name)| local::read_file(dir, name)).collect();
                blocking(read).await.map_err(|reason| self.unreachable(reason))
            }
            Self::Remote { ssh, refused } => {
                refused.check()?;
                refused.note(remote::read_files(ssh, places).await)
            }
        }
    }

    /// Replaces a file as a whole and makes it last: a reader sees the old contents or the new ones. `None` removes it.
    pub(super) async fn write(
        &self,
        dir: &Path,
        name: &str,
        bytes: Option<&[u8]>,
    ) -> Result<(), MachineError> {
        match self {
            Self::Local { .. } => {
                let (dir, name, bytes) = (dir.to_owned(), name.to_owned(), bytes.map(<[u8]>::to_vec));
                let write = move || local::write(&dir, &name, bytes.as_deref());
                blocking(write).await.map_err(|reason| MachineError::Failed(self.unreachable(reason)))
            }
            Self::Remote { ssh, refused } => {
                refused.check().map_err(MachineError::Failed)?;
                note(refused, remote::write(ssh, dir, name, bytes).await)
            }
        }
    }

    /// Whether files of a directory could be replaced.
    pub(super) async fn may_write(&self, dir: &Path) -> Result<(), ProviderError> {
        match self {
            Self::Local { .. } => {
                let dir = dir.to_owned();
                let asked = blocking(move || local::may_write(&dir)).await;
                asked.map_err(|reason| ProviderError::Denied { server: self.server(), reason })
            }
            Self::Remote { ssh, refused } => {
                refused.check()?;
                refused.note(remote::may_write(ssh, dir).await)
            }
        }
    }

    /// Whether a file of this name is there, also one that dnsmasq would not read.
    pub(super) async fn has(&self, dir: &Path, name: &str) -> Result<bool, ProviderError> {
        match self {
            Self::Local { .. } => Ok(tokio::fs::try_exists(dir.join(name)).await.unwrap_or(false)),
            Self::Remote { ssh, refused } => {
                refused.check()?;
                refused.note(remote::has(ssh, dir, name).await)
            }
        }
    }

    /// Runs a command to its end. The reason of a failure has the command's own words.
    pub(super) async fn run(&self, words: &[String]) -> Result<(), MachineError> {
        match self {
            Self::Local { .. } => {
                local::run(words).await.map_err(|reason| MachineError::Failed(self.unreachable(reason)))
            }
            Self::Remote { ssh, refused } => {
                refused.check().map_err(MachineError::Failed)?;
                note(refused, remote::run(ssh, words).await)
            }
        }
    }

    fn unreachable(&self, reason: String) -> ProviderError {
        ProviderError::Unreachable { server: self.server(), reason }
    }
}

/// Notes a refused login.
fn note(refused: &RefusedLogin, outcome: Result<(), MachineError>) -> Result<(), MachineError> {
    if let Err(MachineError::Failed(error @ ProviderError::Denied { .. })) = &outcome {
        refused.remember(error.clone());
    }
    outcome
}

/// Whether dnsmasq skips a file of this name.
fn is_skipped(name: &str) -> bool {
    let of_dpkg = [".dpkg-dist", ".dpkg-old", ".dpkg-new", ".dpkg-tmp"];
    name.starts_with('.')
        || name.ends_with('~')
        || (name.starts_with('#') && name.ends_with('#'))
        || of_dpkg.iter().any(|end| name.ends_with(end))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}
