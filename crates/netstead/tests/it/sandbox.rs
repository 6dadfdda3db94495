//! A home of its own for each test: no server, file or variable of the machine is seen.

use std::{
    ffi::OsStr,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use netstead_client::{Client, Options};
use netstead_testkit::{Process, free_port};
use tempfile::TempDir;

pub(crate) const SOON: Duration = Duration::from_mins(1);

/// A user with a data directory and perhaps a server.
#[derive(Debug)]
pub(crate) struct Sandbox {
    home: TempDir,
    port: u16,
    dns: u16,
    server: Option<Process>,
    variables: Vec<(&'static str, String)>,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    /// Without a server yet.
    pub(crate) fn empty() -> Self {
        let (port, dns) = (free_port().unwrap(), free_port().unwrap());
        let home = tempfile::tempdir().unwrap();
        Self { home, port, dns, server: None, variables: Vec::new() }
    }

    pub(crate) fn with_server() -> Self {
        let mut sandbox = Self::empty();
        sandbox.start(&[]);
        sandbox
    }

    /// Every command of this sandbox gets this variable.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    /// The variables that were set.
    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The whole answer to a GET without a token.
    pub(crate) fn get(&self, path: &str) -> String {
        let address = ("127.0.0.1", self.port);
        let mut stream = TcpStream::connect(address).unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Where its nameserver answers.
    pub(crate) fn dns(&self) -> u16 {
        self.dns
    }

    /// Starts a server on the data directory, always at the same address, and waits until it is ready.
    pub(crate) fn start(&mut self, args: &[&str]) {
        let mut server = self.spawn(args);
        let ready = if args.contains(&"json") { "Ready." } else { "is ready" };
        server.wait_for_line(ready, SOON).unwrap();
        self.server = Some(server);
    }

    /// As [`Sandbox::start`], below a shell that has done `first`: `ulimit -n 100`.
    pub(crate) fn start_after(&mut self, first: &str, args: &[&str]) {
        let plain = self.run_command(args);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{first}; exec \"$0\" \"$@\"")])
            .arg(plain.get_program())
            .args(plain.get_args());
        command.current_dir(self.path());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut server = Process::start("netstead", &mut command).unwrap();
        server.wait_for_line("is ready", SOON).unwrap();
        self.server = Some(server);
    }

    fn spawn(&self, args: &[&str]) -> Process {
        Process::start("netstead", &mut self.run_command(args)).unwrap()
    }

    fn run_command(&self, args: &[&str]) -> Command {
        let mut command = self.command();
        command
            .args(["run", "--listen", &format!("127.0.0.1:{}", self.port), "--data-dir"])
            .arg(self.data())
            .args(["--dns-listen", &format!("127.0.0.1:{}", self.dns)])
            .args(args);
        command
    }

    /// Starts a server and kills it while it may still be starting.
    pub(crate) fn stumble(&self, after: Duration) {
        let mut server = self.spawn(&[]);
        std::thread::sleep(after);
        server.kill().unwrap();
    }

    pub(crate) fn server(&mut self) -> &mut Process {
        self.server.as_mut().expect("there is a server")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.server.take().expect("there is a server").kill().unwrap();
    }

    /// SIGTERM; the server must end well.
    pub(crate) fn stop(&mut self) {
        let mut server = self.server.take().expect("there is a server");
        server.terminate().unwrap();
        assert_eq!(server.wait(SOON).unwrap().code(), Some(0));
    }

    /// A `netstead` that knows this sandbox only.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netstead"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("NETSTEAD_")
                || name.to_string_lossy().ends_with("_DIRECTORY")
            {
                command.env_remove(name);
            }
        }
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            // A Docker of the machine is not part of the sandbox.
            .env("DOCKER_HOST", format!("unix://{}", self.path().join("docker.sock").display()))
            .env("NETSTEAD_URL", self.url())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Types `netstead` and these words.
    pub(crate) fn netstead<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> CommandOutput {
        CommandOutput::from(self.command().args(words).output().unwrap())
    }

    /// As [`House::netstead`], as one line without quotes; it must end well. Returns stdout.
    pub(crate) fn does(&self, line: &str) -> String {
        let said = self.netstead(line.split_whitespace());
        assert_eq!(said.code, 0, "`netstead {line}` failed:\n{}{}", said.out, said.err);
        said.out
    }

    /// The same, and it must fail. Returns what it said.
    pub(crate) fn fails(&self, line: &str) -> CommandOutput {
        let said = self.netstead(line.split_whitespace());
        assert_eq!(said.code, 1, "`netstead {line}` ended with {}:\n{}{}", said.code, said.out, said.err);
        assert!(said.err.starts_with("error: "), "`netstead {line}` said:\n{}", said.err);
        said
    }

    /// The admin token that the server left.
    pub(crate) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.path().join("state/netstead/credentials.json")).unwrap();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap();
        file["servers"][self.url()]["token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url(), Some(&self.token()), Options::default()).unwrap()
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}
