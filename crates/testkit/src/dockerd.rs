//! A real Docker, with processes, mounts and a network of its own.
//!
//! It lives in namespaces that are held by one process. That process ends with the value, or with the test run if the
//! value is never dropped, and takes everything with it: containers, mounts, bridges and firewall rules.

use std::{
    fs, io,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    process::Process,
    skip::{has_command, skip},
    tcp_forward::copy,
    wait::wait_until,
};

const SOON: Duration = Duration::from_mins(1);
/// Programs that the tests and Docker start.
const PROGRAMS: [&str; 8] =
    ["dockerd", "docker", "containerd", "runc", "iptables", "busybox", "unshare", "nsenter"];
/// A small image: one static program under several names.
const IMAGE: &str = "tiny:1";

/// A Docker daemon that listens on a socket of its own. It has one image, `tiny:1`, which sleeps.
#[derive(Debug)]
pub struct Dockerd {
    dir: PathBuf,
    /// Holds the namespaces until its standard input ends, and removes the directory then.
    holder: Child,
    /// The first process in the namespaces.
    inner: u32,
    daemon: Option<Process>,
    /// Further arguments of the daemon.
    more: Vec<String>,
}

impl Dockerd {
    /// `None`, and the test is skipped, on machines that cannot have it.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start() -> Option<Self> {
        Self::start_with(|_| Vec::new())
    }

    /// The same with more arguments for the daemon; `prepare` may put files into its directory.
    ///
    /// # Panics
    ///
    /// When it does not start.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn start_with(prepare: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        if let Some(missing) = PROGRAMS.into_iter().find(|program| !has_command(program)) {
            skip(&format!("`{missing}` is not installed"));
            return None;
        }
        match Self::hold() {
            Ok(mut docker) => {
                docker.more = prepare(&docker.dir);
                match docker.resume().and_then(|()| docker.import_image()) {
                    Ok(()) => Some(docker),
                    Err(error) => panic!("Docker does not start: {error}"),
                }
            }
            Err(error) => {
                skip(&format!("no namespaces can be made: {error}"));
                None
            }
        }
    }

    fn hold() -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("netstead-docker-").tempdir()?.keep();
        let (holder, inner) = hold(&dir)?;
        Ok(Self { dir, holder, inner, daemon: None, more: Vec::new() })
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("docker.sock")
    }

    /// As `DOCKER_HOST` has it.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// A directory that the daemon sees too.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts the daemon again after [`Dockerd::kill`].
    pub fn resume(&mut self) -> io::Result<()> {
        let dir = self.dir.display();
        let mut command = self.inside("dockerd");
        command.args([
            format!("--host={}", self.host()),
            format!("--data-root={dir}/data"),
            format!("--exec-root={dir}/exec"),
            format!("--pidfile={dir}/docker.pid"),
            format!("--cgroup-parent={}", cgroup(&self.dir)),
        ]);
        command.args(["--shutdown-timeout=1", "--log-level=warn"]).args(&self.more);
        let mut daemon = Process::start("dockerd", &mut command)?;
        let answers =
            wait_until(SOON, || (self.try_docker(&["info"]).is_ok() || !daemon.running()).then_some(()));
        if answers.is_none() || !daemon.running() {
            return Err(io::Error::other(format!("dockerd does not answer:\n{}", daemon.log())));
        }
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Ends the daemon at once, as a crash would; its containers go on.
    pub fn kill(&mut self) -> io::Result<()> {
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        for pid in children(daemon.id())? {
            run(Command::new("sh").args(["-c", r#"kill -9 "$1""#, "sh", &pid.to_string()]))?;
        }
        daemon.wait(SOON)?;
        // No init process reaps orphans there, so a process that died with the daemon would look alive.
        for file in ["docker.pid", "exec/containerd/containerd.pid"] {
            let _ = fs::remove_file(self.dir.join(file));
        }
        Ok(())
    }

    /// Ends everything in there at once, as when the machine loses power. [`Dockerd::resume`] is its next boot.
    pub fn lose_power(&mut self) -> io::Result<()> {
        self.kill()?;
        // What runs there was started there: the first process inherits whatever loses its parent.
        let mut rest = children(self.inner)?;
        while let Some(pid) = rest.pop() {
            rest.extend(children(pid).unwrap_or_default());
            let _ = run(Command::new("sh").args(["-c", r#"kill -9 "$1""#, "sh", &pid.to_string()]));
        }
        Ok(())
    }

    /// A port of this machine's loopback that leads to a port of the daemon's.
    pub fn reach(&self, port: u16) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let inner = self.inner;
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || relay(&client, inner, port));
            }
        });
        Ok(address)
    }

    /// Runs `docker` with these words and returns its output.
    ///
    /// # Panics
    ///
    /// When the command fails.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn docker(&self, words: &[&str]) -> String {
        self.try_docker(words).unwrap_or_else(|error| panic!("docker {}: {error}", words.join(" ")))
    }

    pub fn try_docker(&self, words: &[&str]) -> io::Result<String> {
        run(self.command("docker").args(words))
    }

    /// A program of this machine that speaks to this Docker.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DOCKER_HOST", self.host()).env("HOME", &self.dir).env_remove("DOCKER_CONTEXT");
        command
    }

    /// A program that runs where the daemon does.
    pub fn inside(&self, program: &str) -> Command {
        inside(self.inner, program)
    }

    fn import_image(&self) -> io::Result<()> {
        let bin = self.dir.join("image/bin");
        fs::create_dir_all(&bin)?;
        let busybox = bin.join("busybox");
        fs::copy(find_program("busybox")?, &busybox)?;
        fs::set_permissions(&busybox, fs::Permissions::from_mode(0o755))?;
        for name in ["sh", "sleep", "true", "nslookup"] {
            std::os::unix::fs::symlink("busybox", bin.join(name))?;
        }
        let script = r#"tar -C "$1" -c . | docker import --change 'CMD ["/bin/sleep","3600"]' - "$2""#;
        let image = self.dir.join("image");
        run(self.command("sh").args(["-c", script, "sh", &image.display().to_string(), IMAGE])).map(drop)
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        drop(self.daemon.take());
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn inside(inner: u32, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &inner.to_string(), "--net", "--mount", "--pid", "--", program]);
    command
}

/// Connects a client with a port in there, until either ends.
fn relay(client: &TcpStream, inner: u32, port: u16) {
    let mut command = inside(inner, "busybox");
    command.args(["nc", "127.0.0.1", &port.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut server) = command.spawn() else { return };
    let (Some(into), Some(out)) = (server.stdin.take(), server.stdout.take()) else { return };
    thread::scope(|scope| {
        scope.spawn(move || copy(client, into, |_| {}));
        copy(out, client, |_| {});
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.kill();
    });
    let _ = server.wait();
}

/// A process that holds new namespaces, and the id of the first process in them.
fn hold(dir: &Path) -> io::Result<(Child, u32)> {
    let inside = "busybox ip link set lo up; echo ready; read end";
    let script = format!(
        "unshare --net --mount --pid --fork --kill-child --mount-proc sh -c '{inside}'; rm -rf \"$1\"; \
         rmdir /sys/fs/cgroup/{cgroup} /sys/fs/cgroup/*/{cgroup} 2>/dev/null",
        cgroup = cgroup(dir)
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(dir);
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut line = String::new();
    if let Some(out) = holder.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    let unshare = children(holder.id())?.into_iter().next();
    let inner = unshare.map(children).transpose()?.and_then(|inner| inner.into_iter().next());
    match inner {
        Some(inner) if line == "ready\n" => Ok((holder, inner)),
        _ => Err(io::Error::other("unshare failed")),
    }
}

/// The cgroup of the daemon's containers. The name is used only here.
fn cgroup(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn children(pid: u32) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

fn find_program(program: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(program));
    places.find(|place| place.is_file()).ok_or_else(|| io::Error::other(format!("{program} is gone")))
}

fn run(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}
