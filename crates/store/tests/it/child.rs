//! This test binary once more, as a process that may be killed.

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use netstead_store::LocalStore;

const ROLE: &str = "NETSTEAD_STORE_TEST_ROLE";
const DIR: &str = "NETSTEAD_STORE_TEST_DIR";

/// The work of a child in its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opens the store and keeps it.
    Hold,
    /// Opens the store and commits as fast as it can.
    Load,
    /// The same with so much in each commit that the log is written over again and again.
    HeavyLoad,
}

/// Not a test unless [`Process::start`] runs it.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else { return };
    let dir = PathBuf::from(env::var(DIR).unwrap());
    thread::spawn(|| {
        // The parent holds the other end: when it is gone, so are we.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        say("begin");
        match LocalStore::open(&dir).await {
            Ok(store) => {
                say("open");
                if role == format!("{:?}", Role::Load) {
                    crate::kill::load(store, 60).await;
                } else if role == format!("{:?}", Role::HeavyLoad) {
                    crate::kill::load(store, 40_000).await;
                } else {
                    std::future::pending::<()>().await;
                    drop(store);
                }
            }
            Err(error) => say(&format!("failed {error}")),
        }
    });
}

/// One line to the parent; it has left this process when this returns.
pub(crate) fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("@{line}\n").as_bytes()).unwrap();
}

pub(crate) struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// Held open as long as the child may live.
    stdin: Option<ChildStdin>,
}

impl Process {
    pub(crate) fn start(role: Role, dir: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child::child", "--nocapture"])
            .env(ROLE, format!("{role:?}"))
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let stdin = child.stdin.take();
        Self { child, lines, stdin }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next thing the child said, without those of the test harness.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // A line cut in half by the kill was not said.
            if let Some(said) = line.strip_suffix('\n').and_then(|line| line.split_once('@')) {
                return Some(said.1.to_owned());
            }
        }
    }

    /// Sends SIGKILL and returns the lines of the child that were not read yet.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let said = std::iter::from_fn(|| self.next()).collect();
        self.child.wait().unwrap();
        drop(self.stdin);
        said
    }
}
