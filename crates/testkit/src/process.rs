//! [`Process`]: a server that runs as long as its value lives.

use std::{
    env, fmt,
    fs::File,
    io,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::wait::wait_until;

/// How much of a log is worth showing.
const TAIL: usize = 60;

/// A running child whose output goes to a file. Dropping it kills it, and shows the end of the log if the
/// test is failing.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    _dir: TempDir,
}

impl Process {
    /// Starts `command` with an empty stdin and both outputs in one log.
    ///
    /// Variables named `NETSTEAD_…` are not inherited: only what `command` sets itself reaches the child, so
    /// a test means the same in every shell.
    pub fn start(name: &str, command: &mut Command) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let log = dir.path().join("log");
        let out = File::create(&log)?;
        without_own_variables(command);
        let child = command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).spawn()?;
        Ok(Self { name: name.to_owned(), child, log, _dir: dir })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All it has written so far.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// The first complete line of the log that contains `part`. An error shows the end of the log.
    pub fn wait_for_line(&mut self, part: &str, patience: Duration) -> io::Result<String> {
        let found = self.wait_until(patience, |process| {
            let log = process.log();
            log.split_inclusive('\n')
                .filter_map(|line| line.strip_suffix('\n'))
                .find(|line| line.contains(part))
                .map(str::to_owned)
        })?;
        found.ok_or_else(|| self.late(&format!("no line with `{part}`"), patience))
    }

    /// Waits until something listens at `address` while this process lives.
    pub fn wait_for_port(&mut self, address: SocketAddr, patience: Duration) -> io::Result<()> {
        let found = self.wait_until(patience, |process| {
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
            // What answered may be another server that took the port, which makes this one end.
            process.running().then_some(())
        })?;
        found.ok_or_else(|| self.late(&format!("nothing listens at {address}"), patience))
    }

    /// Asks it to end, with SIGTERM.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal("TERM")
    }

    /// Sends a signal by its name without `SIG`. A process that has ended gets none.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        // The shell's own `kill`: the program is a package of its own on Debian.
        let script = r#"kill -s "$1" "$2""#;
        let status = Command::new("sh")
            .args(["-c", script, "sh", name, &self.id().to_string()])
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{} cannot be sent SIG{name}", self.name)))
    }

    /// Ends it at once, with SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        let child = &mut self.child;
        match wait_until(patience, || child.try_wait().transpose()) {
            Some(ended) => ended,
            None => Err(self.late("it has not ended", patience)),
        }
    }

    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `Ok(None)` when time is up; an error when the process ended first.
    fn wait_until<T>(
        &mut self,
        patience: Duration,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let found = wait_until(patience, || {
            // In this order: what a process wrote right before it ended still counts.
            let ended = !self.running();
            look(self).map(Ok).or_else(|| ended.then_some(Err(())))
        });
        match found {
            Some(Ok(found)) => Ok(Some(found)),
            Some(Err(())) => Err(io::Error::other(format!("{} has ended:\n{}", self.name, self.tail()))),
            None => Ok(None),
        }
    }

    fn late(&self, what: &str, patience: Duration) -> io::Error {
        let message = format!("{}: {what} after {patience:?}:\n{}", self.name, self.tail());
        io::Error::new(io::ErrorKind::TimedOut, message)
    }

    fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(TAIL)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- the end of the log of {}:\n{}\n---", self.name, self.tail());
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("name", &self.name).field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Keeps the caller's own `NETSTEAD_…` variables from the child, save those that `command` sets.
pub(crate) fn without_own_variables(command: &mut Command) {
    let set: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("NETSTEAD_") && !set.contains(&name) {
            command.env_remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, TcpListener},
        os::unix::process::ExitStatusExt,
    };

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Process {
        Process::start("shell", Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_line_is_found_on_either_output() {
        let mut process = shell("echo one; echo two >&2; exec sleep 60");
        assert_eq!(process.wait_for_line("on", SOON).unwrap(), "one");
        assert_eq!(process.wait_for_line("tw", SOON).unwrap(), "two");
        let error = process.wait_for_line("three", Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.to_string(), "shell: no line with `three` after 30ms:\none\ntwo");
    }

    #[test]
    fn a_process_that_ended_is_not_waited_for() {
        let mut process = shell("echo no such file");
        let error = process.wait_for_line("ready", SOON).unwrap_err();
        assert_eq!(error.to_string(), "shell has ended:\nno such file");
    }

    #[test]
    fn the_last_line_of_a_process_that_ended_counts() {
        assert_eq!(shell("echo ready").wait_for_line("ready", SOON).unwrap(), "ready");
    }

    #[test]
    fn somebody_elses_port_is_not_ours() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut process = shell("exit 1");
        process.wait(SOON).unwrap();
        assert!(process.wait_for_port(other.local_addr().unwrap(), SOON).is_err());
    }

    #[test]
    fn a_signal_reaches_it() {
        let mut process = shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
        process.wait_for_line("ready", SOON).unwrap();
        process.terminate().unwrap();
        assert_eq!(process.wait(SOON).unwrap().code(), Some(7));
    }

    #[test]
    fn a_kill_cannot_be_caught() {
        let mut process = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        process.wait_for_line("ready", SOON).unwrap();
        assert_eq!(process.kill().unwrap().signal(), Some(9));
    }

    #[test]
    fn dropping_it_ends_it() {
        let process = shell("exec sleep 60");
        let entry = format!("/proc/{}", process.id());
        assert!(Path::new(&entry).exists());
        drop(process);
        assert!(!Path::new(&entry).exists());
    }
}
