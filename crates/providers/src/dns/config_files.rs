//! [`ConfigFiles`]: the files of a server that reads them when a command tells it to, on this machine or another behind ssh.
//!
//! 1. A mark says that files are about to change (`.netstead.pending`).
//! 2. The files are replaced, each as a whole.
//! 3. The reload command runs, and the mark is removed.
//!
//! If the command fails, the old files are put back and the command runs again. A node that dies on the way leaves the mark, and
//! the next one runs the command before anything else.

mod machine;

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use netstead_model::{Call, Outcome, ProviderError};
use netstead_settings::{BuildContext, SettingsError};
use netstead_wire::ssh::{Ssh, SshTarget};

use self::machine::Machine;
pub(super) use self::machine::{File, MachineError};
use super::refused_login::RefusedLogin;

/// Reloads are at least so far apart: systemd refuses a service that starts five times within ten seconds.
const RELOAD_PAUSE: Duration = Duration::from_secs(3);
/// Files with which the server did not start are not tried again for this long.
const REFUSED: Duration = Duration::from_mins(15);
/// Says that the server has not read its files since they changed. dnsmasq skips a file of this name.
const PENDING: &str = ".netstead.pending";

/// How ssh leads to the machine of the server; none is this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct SshKeys<'a> {
    pub(super) target: Option<&'a SshTarget>,
    pub(super) key: Option<&'a Path>,
    pub(super) known_hosts: Option<&'a Path>,
}

impl SshKeys<'_> {
    /// Refuses keys that mean nothing without a machine.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let needs =
            |key| Err(SettingsError::new(key, "it needs `ssh`").hint("write `ssh = \"ssh://USER@HOST\"`"));
        match (self.target, self.key, self.known_hosts) {
            (None, Some(_), _) => needs("ssh_key"),
            (None, _, Some(_)) => needs("ssh_known_hosts"),
            _ => Ok(()),
        }
    }

    fn machine(&self, program: &'static str, context: &BuildContext) -> Machine {
        let Some(target) = self.target else { return Machine::Local { program } };
        let mut ssh = Ssh::new(target.clone());
        if let Some(file) = self.key {
            ssh = ssh.identity_file(file);
        }
        if let Some(file) = self.known_hosts {
            ssh = ssh.known_hosts_file(file);
        }
        Machine::Remote { ssh: Box::new(ssh), refused: RefusedLogin::new(Arc::clone(&context.clock)) }
    }
}

/// A file to be replaced.
#[derive(Debug)]
pub(super) struct Replacement<'a> {
    pub(super) dir: &'a Path,
    pub(super) name: &'a str,
    pub(super) old: Option<&'a [u8]>,
    pub(super) new: Option<Vec<u8>>,
}

/// Why files were not replaced.
#[derive(Debug)]
pub(super) enum ReplaceError {
    /// The old files are there, and the server runs with them: the new ones are to blame.
    Refused(String),
    /// The old files are there.
    Failed(ProviderError),
    Unknown(ProviderError),
}

impl From<MachineError> for ReplaceError {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Failed(error) => Self::Failed(error),
            MachineError::Unknown(error) => Self::Unknown(error),
        }
    }
}

/// The files of one server.
pub(super) struct ConfigFiles {
    /// The server's program, for people.
    program: &'static str,
    shown: String,
    machine: Machine,
    context: BuildContext,
    reload: Vec<String>,
    /// The directory with the mark of a reload that is due. None if no file needs a reload.
    pending: Option<PathBuf>,
    reload_due: AtomicBool,
    reload_pause: Duration,
    last_reload: tokio::sync::Mutex<Option<Duration>>,
    refused: Mutex<Option<Refused>>,
}

/// Files with which the server did not start.
struct Refused {
    at: Duration,
    texts: Vec<Option<Vec<u8>>>,
    reason: String,
}

impl ConfigFiles {
    /// Opens nothing yet. `shown` is the server's name in errors.
    pub(super) fn new(
        program: &'static str,
        shown: String,
        ssh: SshKeys<'_>,
        context: &BuildContext,
    ) -> Self {
        Self {
            program,
            shown,
            machine: ssh.machine(program, context),
            context: context.clone(),
            reload: Vec::new(),
            pending: None,
            reload_due: AtomicBool::new(false),
            reload_pause: RELOAD_PAUSE,
            last_reload: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        }
    }

    /// With a command that makes the server read its files, and the directory to note in that it is due.
    #[must_use]
    pub(super) fn with_reload(self, reload: &[String], pending: &Path) -> Self {
        Self { reload: reload.to_vec(), pending: Some(pending.to_owned()), ..self }
    }

    /// With another pause between reloads: 3 s unless set.
    #[must_use]
    pub(super) fn with_reload_pause(self, reload_pause: Duration) -> Self {
        Self { reload_pause, ..self }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The files of each directory, but for those that dnsmasq would skip.
    pub(super) async fn read_directories(&self, dirs: &[&Path]) -> Result<Vec<Vec<File>>, ProviderError> {
        self.observed("read", self.machine.read(dirs)).await
    }

    /// The contents of each file; none for a file that is not there.
    pub(super) async fn read_files(
        &self,
        files: &[(&Path, &str)],
    ) -> Result<Vec<Option<Vec<u8>>>, ProviderError> {
        self.observed("read", self.machine.read_files(files)).await
    }

    /// Replaces a file that the server notices by itself.
    pub(super) async fn write(
        &self,
        dir: &Path,
        name: &str,
        bytes: Option<&[u8]>,
    ) -> Result<(), MachineError> {
        self.observed("write", self.machine.write(dir, name, bytes)).await
    }

    /// Whether files of these directories could be replaced.
    pub(super) async fn may_write(&self, dirs: &[&Path]) -> Result<(), ProviderError> {
        for dir in dirs {
            self.machine.may_write(dir).await?;
        }
        Ok(())
    }

    /// Makes the server read its files if a node died between a change of them and the reload.
    pub(super) async fn prepare(&self) -> Result<(), ProviderError> {
        let Some(dir) = &self.pending else { return Ok(()) };
        if self.machine.has(dir, PENDING).await? {
            self.reload_due.store(true, Ordering::SeqCst);
        }
        self.finish_reload().await
    }

    /// Makes the server read its files if they changed and an earlier reload did not come about.
    pub(super) async fn finish_reload(&self) -> Result<(), ProviderError> {
        if !self.reload_due.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.run_reload().await.map_err(|error| match error.into_provider_error() {
            ProviderError::Unreachable { reason, .. } => {
                self.unreachable(format!("`reload` fails: {reason}"))
            }
            error => error,
        })
    }

    /// Replaces files and makes the server read them; puts the old ones back if that fails.
    pub(super) async fn replace(&self, replacements: &[Replacement<'_>]) -> Result<(), ReplaceError> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let texts: Vec<Option<Vec<u8>>> = replacements.iter().map(|one| one.new.clone()).collect();
        if let Some(reason) = self.refused_before(&texts) {
            return Err(ReplaceError::Refused(reason));
        }
        self.machine.write(pending, PENDING, Some(b"")).await?;
        self.reload_due.store(true, Ordering::SeqCst);
        for (index, one) in replacements.iter().enumerate() {
            if let Err(error) = self.write(one.dir, one.name, one.new.as_deref()).await {
                self.put_back(replacements.get(..index).unwrap_or_default()).await?;
                if matches!(error, MachineError::Failed(_)) {
                    // The server has read the files that are there.
                    self.reload_due.store(false, Ordering::SeqCst);
                    let _ = self.machine.write(pending, PENDING, None).await;
                }
                return Err(error.into());
            }
        }
        let reason = match self.run_reload().await {
            Ok(()) => return Ok(()),
            Err(MachineError::Unknown(error)) => return Err(ReplaceError::Unknown(error)),
            Err(MachineError::Failed(ProviderError::Unreachable { reason, .. })) => reason,
            Err(MachineError::Failed(error)) => error.to_string(),
        };
        self.put_back(replacements).await?;
        if self.run_reload().await.is_ok() {
            let program = self.program;
            let reason = format!("{program} does not start with it, and has the old files again: {reason}");
            self.note_refused(texts, &reason);
            return Err(ReplaceError::Refused(reason));
        }
        let reason = format!("`reload` fails, and the old files are back: {reason}");
        Err(ReplaceError::Failed(self.unreachable(reason)))
    }

    async fn put_back(&self, replacements: &[Replacement<'_>]) -> Result<(), ReplaceError> {
        for one in replacements {
            let back = self.machine.write(one.dir, one.name, one.old).await;
            back.map_err(|error| {
                let (server, reason) = (self.shown.clone(), error.into_provider_error().to_string());
                ReplaceError::Unknown(ProviderError::Unknown { server, reason })
            })?;
        }
        Ok(())
    }

    /// Runs the reload command, and notes that the server has read its files.
    async fn run_reload(&self) -> Result<(), MachineError> {
        let mut last = self.last_reload.lock().await;
        if let Some(last) = *last {
            let since = self.context.clock.monotonic().saturating_sub(last);
            tokio::time::sleep(self.reload_pause.saturating_sub(since)).await;
        }
        let ended = self.observed("reload", self.machine.run(&self.reload)).await;
        *last = Some(self.context.clock.monotonic());
        ended?;
        self.reload_due.store(false, Ordering::SeqCst);
        if let Some(dir) = &self.pending {
            // If it stays, the server is reloaded once too often.
            let _ = self.machine.write(dir, PENDING, None).await;
        }
        Ok(())
    }

    /// Counts a call for the metrics.
    async fn observed<T, E>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let begun = self.context.clock.monotonic();
        let ended = call.await;
        let took = self.context.clock.monotonic().saturating_sub(begun);
        let outcome = if ended.is_ok() { Outcome::Answered } else { Outcome::Failed };
        self.context.calls.called(Call { operation, outcome, took });
        ended
    }

    fn refused_before(&self, texts: &[Option<Vec<u8>>]) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.context.clock.monotonic();
        let same = |refused: &&Refused| refused.texts == texts && now.saturating_sub(refused.at) < REFUSED;
        refused.as_ref().filter(same).map(|refused| refused.reason.clone())
    }

    fn note_refused(&self, texts: Vec<Option<Vec<u8>>>, reason: &str) {
        let (at, reason) = (self.context.clock.monotonic(), reason.to_owned());
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(Refused { at, texts, reason });
    }

    pub(super) fn unreachable(&self, reason: String) -> ProviderError {
        ProviderError::Unreachable { server: self.shown.clone(), reason }
    }
}

impl fmt::Debug for ConfigFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFiles").field("shown", &self.shown).finish_non_exhaustive()
    }
}
