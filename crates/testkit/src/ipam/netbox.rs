//! NetBox itself, installed by `cargo xtask test` where there is a Python that it runs with.

mod client;

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{free_port, process::without_own_variables, skip::skip, tools::tool_directory, wait::wait_until};

/// The version and the recipe of `cargo xtask test`.
const VERSION: &str = "4.7.3";
const RECIPE: u32 = 1;
const TOKEN: &str = "0123456789abcdef0123456789abcdef01234567";
const READER: &str = "fedcba9876543210fedcba9876543210fedcba98";
const BEARER: &str = "nbt_netstead0001.abcdefghijklmnopqrstuvwxyz0123456789ABCD";
/// A machine whose processors are all busy takes a while.
const STARTS: Duration = Duration::from_secs(150);
/// Runs the servers until its input ends, which it does when the test process does.
const KEEPER: &str = include_str!("netbox/keeper.sh");

/// A running NetBox with an empty database.
#[derive(Debug)]
pub struct NetBox {
    keeper: Child,
    dir: TempDir,
    api: SocketAddr,
    binaries: PathBuf,
}

impl NetBox {
    /// The NetBox that the tests of this process share. `None`, and the test is left out, where it was not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<NetBox> = OnceLock::new();
        let (directory, dump) = files()?;
        Some(SHARED.get_or_init(|| Self::started(&directory, &dump)))
    }

    /// Starts one of its own.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start() -> Option<Self> {
        let (directory, dump) = files()?;
        Some(Self::started(&directory, &dump))
    }

    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn started(directory: &Path, dump: &Path) -> Self {
        match Self::try_start(directory, dump) {
            Ok(netbox) => netbox,
            Err(error) => panic!("NetBox does not start: {error}"),
        }
    }

    fn try_start(directory: &Path, dump: &Path) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let (port, redis) = (free_port()?, free_port()?);
        let binaries = postgres_binaries().ok_or_else(|| io::Error::other("there is no PostgreSQL"))?;
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "keeper"]).arg(dir.path()).arg(directory).arg(dump).arg(&binaries);
        keeper.args([port.to_string(), redis.to_string()]);
        without_own_variables(&mut keeper);
        let keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let api = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut netbox = Self { keeper, dir, api, binaries };
        netbox.wait()?;
        Ok(netbox)
    }

    /// Waits until it answers.
    fn wait(&mut self) -> io::Result<()> {
        let ready = wait_until(STARTS, || {
            if !matches!(self.keeper.try_wait(), Ok(None)) {
                return Some(false);
            }
            TcpStream::connect_timeout(&self.api, Duration::from_secs(1)).ok()?;
            self.try_call("GET", "/api/status/", None).ok().filter(|(status, _)| *status == 200).map(|_| true)
        });
        if ready == Some(true) { Ok(()) } else { Err(io::Error::other(self.log())) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.api)
    }

    /// A token of version 1 that may do everything.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The same of version 2.
    pub fn bearer(&self) -> &'static str {
        BEARER
    }

    /// A token that may only read.
    pub fn reader(&self) -> &'static str {
        READER
    }

    /// Everything its servers have written.
    pub fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        ["keeper.log", "database.log", "gunicorn.log"].map(read).join("\n")
    }

    /// Stops answering until [`NetBox::go_on`]. The database keeps what it has.
    ///
    /// # Errors
    ///
    /// If its directory cannot be written, or it does not end.
    pub fn stop(&self) -> io::Result<()> {
        fs::write(self.dir.path().join("stopped"), "")?;
        let id = fs::read_to_string(self.dir.path().join("gunicorn.pid"))?;
        let kill = Command::new("sh").args(["-c", "kill -s TERM \"$1\"", "sh", id.trim()]).status()?;
        let ended = || TcpStream::connect_timeout(&self.api, Duration::from_secs(1)).err().map(|_| ());
        match wait_until(STARTS, ended) {
            Some(()) if kill.success() => Ok(()),
            _ => Err(io::Error::other("NetBox does not end")),
        }
    }

    /// Answers again.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn go_on(&self) -> io::Result<()> {
        fs::remove_file(self.dir.path().join("stopped"))?;
        let answers = || self.try_call("GET", "/api/status/", None).ok().filter(|(status, _)| *status == 200);
        match wait_until(STARTS, answers) {
            Some(_) => Ok(()),
            None => Err(io::Error::other(self.log())),
        }
    }

    /// Takes the right to write from the token that may do everything, or gives it back.
    ///
    /// # Errors
    ///
    /// If its database does not do it.
    pub fn read_only(&self, is: bool) -> io::Result<()> {
        self.sql(&format!(
            "UPDATE users_token SET write_enabled = {} WHERE version = 1 AND plaintext = '{TOKEN}'",
            !is
        ))
        .map(drop)
    }

    /// Runs SQL in its database, and gives what `psql` prints.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub fn sql(&self, statement: &str) -> io::Result<String> {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.arg("-h")
            .arg(self.dir.path())
            .args(["-p", "5432", "-U", "postgres", "-At", "-c", statement, "netbox"]);
        let done = psql.stdin(Stdio::null()).output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
    }

    /// The objects of a list, such as `/api/ipam/prefixes/`.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (join, limit) = (if path.contains('?') { '&' } else { '?' }, "limit=1000");
        let answer = self.call("GET", &format!("{path}{join}{limit}"), None);
        answer.get("results").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Sends JSON and gives the answer.
    ///
    /// # Panics
    ///
    /// If it refuses.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        match self.try_call(method, path, body) {
            Ok((200..300, answer)) => answer,
            other => panic!("{method} {path}: {other:?}"),
        }
    }

    /// Makes an object and gives its id.
    ///
    /// # Panics
    ///
    /// If it refuses.
    pub fn make(&self, path: &str, body: &Value) -> u64 {
        self.call("POST", path, Some(body)).get("id").and_then(Value::as_u64).unwrap_or_default()
    }

    /// As [`NetBox::call`], with the status.
    ///
    /// # Errors
    ///
    /// If it cannot be reached.
    pub fn try_call(&self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        client::call(self.api, TOKEN, method, path, body)
    }
}

impl Drop for NetBox {
    fn drop(&mut self) {
        // The end of its input ends the keeper, and that ends the servers.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The installed NetBox and its dump. Without them the test is left out, and fails in the whole run.
fn files() -> Option<(PathBuf, PathBuf)> {
    let directory = tool_directory(&format!("netbox-{VERSION}"));
    let dump = directory.join(format!("netbox-{RECIPE}.dump"));
    if dump.is_file() {
        return Some((directory, dump));
    }
    let why = fs::read_to_string(directory.join("why-not")).unwrap_or_default();
    let why = if why.is_empty() { "`cargo xtask test --only test` installs it".to_owned() } else { why };
    skip(&format!("NetBox {VERSION} is not installed: {why}"));
    None
}

/// Where `initdb` and `postgres` are: Debian keeps them out of the PATH, one directory per version.
fn postgres_binaries() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let (version, bin) = (entry.file_name().to_string_lossy().parse(), entry.path().join("bin"));
        found.extend(version.ok().filter(|_| bin.join("initdb").is_file()).map(|version| (version, bin)));
    }
    let on_path =
        || std::env::split_paths(&std::env::var_os("PATH")?).find(|dir| dir.join("initdb").is_file());
    found.into_iter().max().map(|(_, bin)| bin).or_else(on_path)
}
