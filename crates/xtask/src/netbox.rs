//! NetBox for the tests: a package for Python, and a dump of its database, which takes six minutes of one core to make.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{command, is_installed, is_root, output},
    tools::{directory, politely, program},
};

/// The version and the recipe are named in the testkit too.
const VERSION: &str = "4.7.3";
/// Changes when the dump would be another one.
const RECIPE: u32 = 1;

const CONFIGURATION: &str = include_str!("../recipes/netbox/configuration.py");
const USERS: &str = include_str!("../recipes/netbox/users.py");

/// The user that `PostgreSQL` runs as where we are root: it refuses to be root.
const DATABASE_USER: &str = "postgres";
/// How long a server may take to start.
const STARTS: u32 = 60;

/// NetBox being prepared, beside other steps.
#[derive(Debug)]
pub(crate) struct NetBox(JoinHandle<()>);

impl NetBox {
    /// Begins to install what is missing. The packages of the machine must be there.
    pub(crate) fn prepare() -> Self {
        Self(thread::spawn(|| {
            if let Err(error) = provide() {
                eprintln!("note: tests of NetBox cannot run: {error:#}");
            }
        }))
    }

    /// Returns once nothing is installed any more.
    pub(crate) fn wait(self) {
        let _ = self.0.join();
    }
}

fn provide() -> Result<()> {
    let directory = directory(&format!("netbox-{VERSION}"));
    let dump = directory.join(format!("netbox-{RECIPE}.dump"));
    if dump.is_file() {
        return Ok(());
    }
    fs::create_dir_all(&directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    let outcome = make(&directory, &dump);
    // The tests say it too.
    let why_not = outcome.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
    let _ = fs::write(directory.join("why-not"), why_not);
    outcome
}

fn make(directory: &Path, dump: &Path) -> Result<()> {
    let Some(python) = python() else {
        bail!("there is no Python 3.12 or later; install it, or name it in NETSTEAD_PYTHON");
    };
    for needed in ["pg_config", "redis-server"] {
        if !is_installed(needed) {
            bail!("there is no `{needed}`");
        }
    }
    eprintln!("note: NetBox {VERSION} is installed into {}", directory.display());
    install(&python, directory)?;
    fs::create_dir_all(directory.join("conf"))?;
    fs::write(directory.join("conf/configuration.py"), CONFIGURATION)?;
    let scratch = env::temp_dir().join(format!("netstead-netbox-{}", std::process::id()));
    let made = make_dump(directory, &scratch, dump);
    let _ = fs::remove_dir_all(&scratch);
    made
}

/// A Python that NetBox runs with. One that a version manager only pretends to have does not count.
fn python() -> Option<PathBuf> {
    let named = env::var_os("NETSTEAD_PYTHON").map(PathBuf::from).into_iter();
    let found = ["python3.14", "python3.13", "python3.12", "python3"].map(PathBuf::from);
    named.chain(pyenv_versions()).chain(found).find(|python| {
        let asked = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))";
        let quiet = Command::new(python).args(["-c", asked]).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    })
}

/// The versions that pyenv has installed: they work without being chosen. The oldest that will do comes first.
fn pyenv_versions() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv"));
    let Some(root) = env::var_os("PYENV_ROOT").map(PathBuf::from).or(home) else { return Vec::new() };
    let mut all: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(root.join("versions")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let minor = name.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
        all.extend(minor.filter(|minor| *minor >= 12).map(|minor| (minor, entry.path().join("bin/python3"))));
    }
    all.sort();
    all.into_iter().map(|(_, path)| path).collect()
}

fn install(python: &Path, directory: &Path) -> Result<()> {
    let environment = directory.join("env");
    if environment.join("installed").is_file() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(&environment);
    output(Command::new(python).args(["-m", "venv"]).arg(&environment)).context("no venv can be made")?;
    let pip = program(&environment, "pip");
    let mut pip = politely(command(pip).args(["install", "--quiet", &format!("netbox=={VERSION}")]));
    output(&mut pip).context("pip does not install it")?;
    fs::write(environment.join("installed"), "").context("the environment cannot be written")
}

/// Makes the database in a `PostgreSQL` of its own, and keeps a dump.
fn make_dump(directory: &Path, scratch: &Path, dump: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(scratch);
    let (data, sockets) = (scratch.join("data"), scratch.join("sockets"));
    fs::create_dir_all(&data)?;
    fs::create_dir_all(&sockets)?;
    if is_root() {
        output(command("chown").arg(DATABASE_USER).args([&data, &sockets]))?;
    }
    let binaries = postgres_binaries().context("there is no PostgreSQL; install the package postgresql")?;
    let mut initdb = as_database_user(&binaries.join("initdb"));
    initdb.args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"]);
    output(initdb.arg("-D").arg(&data))?;
    let mut server = as_database_user(&binaries.join("postgres"));
    server.arg("-D").arg(&data).arg("-k").arg(&sockets).args(["-p", "5432"]);
    for setting in ["listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off"] {
        server.args(["-c", setting]);
    }
    let _server = Running::start(&mut server)?;
    let mut redis = command("redis-server");
    let port = free_port()?.to_string();
    redis.args(["--bind", "127.0.0.1", "--port", &port, "--save", ""]).current_dir(scratch);
    let _redis = Running::start(&mut redis)?;
    let at_database = |name: &str| {
        let mut program = command(binaries.join(name));
        program.arg("-h").arg(&sockets).args(["-p", "5432", "-U", "postgres"]);
        program
    };
    wait_for(|| output(at_database("psql").args(["-c", "SELECT 1", "postgres"])).is_ok())?;
    output(at_database("createdb").arg("netbox"))?;
    let netbox = |words: &[&str]| {
        let mut netbox = politely(command(program(&directory.join("env"), "netbox")).args(words));
        netbox.env("NETBOX_ROOT", directory).env("TEST_DATABASE_HOST", &sockets);
        netbox.env("TEST_DATABASE_PORT", "5432").env("TEST_REDIS_PORT", &port);
        netbox
    };
    output(&mut netbox(&["migrate", "--no-input"])).context("its database cannot be made")?;
    output(&mut netbox(&["shell", "--command", USERS])).context("its users cannot be made")?;
    let unfinished = directory.join("unfinished.dump");
    output(at_database("pg_dump").args(["-Fc", "-f"]).arg(&unfinished).arg("netbox"))?;
    // A dump is there only once it is whole.
    fs::rename(&unfinished, dump).with_context(|| format!("{} cannot be made", dump.display()))
}

/// Where `initdb` and `postgres` are: Debian keeps them out of the PATH, one directory per version. The newest is taken.
fn postgres_binaries() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let (version, bin) = (entry.file_name().to_string_lossy().parse(), entry.path().join("bin"));
        found.extend(version.ok().filter(|_| bin.join("initdb").is_file()).map(|version| (version, bin)));
    }
    let on_path = || env::split_paths(&env::var_os("PATH")?).find(|dir| dir.join("initdb").is_file());
    found.into_iter().max().map(|(_, bin)| bin).or_else(on_path)
}

/// The program as a user that `PostgreSQL` accepts.
fn as_database_user(binary: &Path) -> Command {
    if !is_root() {
        return command(binary);
    }
    let mut setpriv = command("setpriv");
    setpriv.args(["--reuid", DATABASE_USER, "--regid", DATABASE_USER, "--init-groups"]).arg(binary);
    setpriv.current_dir("/");
    setpriv
}

/// A server that ends with its value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Self> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().map(Self).context("a server cannot be started")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16> {
    let any = std::net::TcpListener::bind(("127.0.0.1", 0)).context("no port is free")?;
    Ok(any.local_addr()?.port())
}

fn wait_for(ready: impl Fn() -> bool) -> Result<()> {
    for _ in 0..STARTS {
        if ready() {
            return Ok(());
        }
        thread::sleep(Duration::from_secs(1));
    }
    bail!("PostgreSQL does not start");
}
