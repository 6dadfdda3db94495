//! [`Sshd`]: an OpenSSH server with keys of its own, for the user who runs the tests.

use std::{
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{Process, free_port, has_command, skip};

const PATIENCE: Duration = Duration::from_secs(20);

/// A running sshd on loopback. Nothing of the user's own settings for ssh is used or changed.
#[derive(Debug)]
pub struct Sshd {
    server: Process,
    dir: TempDir,
    port: u16,
    user: String,
}

impl Sshd {
    /// Starts one whose sessions have these variables; `None` where sshd cannot run.
    pub fn start(variables: &[(&str, &str)]) -> Option<Self> {
        for program in ["sshd", "ssh", "ssh-keygen"] {
            let place = Path::new("/usr/sbin").join(program);
            if !has_command(program) && !place.exists() {
                skip(&format!("`{program}` is not installed"));
                return None;
            }
        }
        Self::try_start(variables).map_err(|error| skip(&format!("sshd cannot be started: {error}"))).ok()
    }

    fn try_start(variables: &[(&str, &str)]) -> io::Result<Self> {
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name).display().to_string();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])
                .status()?;
            if !made.success() {
                return Err(io::Error::other("ssh-keygen failed"));
            }
        }
        fs::copy(at("user.pub"), at("authorized"))?;
        let port = free_port()?;
        let mut config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n",
            at("host"),
            at("authorized"),
        );
        if !variables.is_empty() {
            let pairs: Vec<_> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let _ = writeln!(config, "SetEnv {}", pairs.join(" "));
        }
        fs::write(at("sshd_config"), config)?;
        // sshd separates its privileges there. It refuses to start as root without it.
        let _ = fs::create_dir_all("/run/sshd");
        let server = launch(&at("sshd_config"), port)?;
        fs::write(
            at("ssh_config"),
            format!(
                "Host 127.0.0.1\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n",
                at("user"),
                at("known")
            ),
        )?;
        fs::write(at("known"), "")?;
        let user = String::from_utf8_lossy(&Command::new("id").arg("-un").output()?.stdout).trim().to_owned();
        Ok(Self { server, dir, port, user })
    }

    /// `ssh://USER@127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("ssh://{}@127.0.0.1:{}", self.user, self.port)
    }

    /// Settings of ssh that lead here.
    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("ssh_config")
    }

    /// The key that opens it.
    pub fn key_file(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// A key that does not open it.
    pub fn other_key_file(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    /// The file that [`Sshd::make_known`] writes the server's key to.
    pub fn known_hosts_file(&self) -> PathBuf {
        self.dir.path().join("known")
    }

    /// The key opens it again.
    pub fn allow(&self) -> io::Result<()> {
        fs::copy(self.dir.path().join("user.pub"), self.dir.path().join("authorized")).map(drop)
    }

    /// Makes the server's key known; before that, ssh refuses to connect.
    pub fn make_known(&self) -> io::Result<()> {
        let key = fs::read_to_string(self.dir.path().join("host.pub"))?;
        fs::write(self.dir.path().join("known"), format!("[127.0.0.1]:{} {key}", self.port))
    }

    /// No key opens it any more.
    pub fn forbid(&self) -> io::Result<()> {
        fs::write(self.dir.path().join("authorized"), "")
    }

    /// Ends it at once, and every session it has.
    pub fn stop(&mut self) -> io::Result<()> {
        self.server.kill().map(drop)
    }

    /// Starts it again, on the same port with the same keys.
    pub fn restart(&mut self) -> io::Result<()> {
        self.server = launch(&self.dir.path().join("sshd_config").display().to_string(), self.port)?;
        Ok(())
    }

    pub fn log(&self) -> String {
        self.server.log()
    }
}

fn launch(config: &str, port: u16) -> io::Result<Process> {
    let program = ["/usr/sbin/sshd", "/usr/bin/sshd"].into_iter().find(|path| Path::new(path).exists());
    let mut command = Command::new(program.unwrap_or("sshd"));
    let mut server = Process::start("sshd", command.args(["-D", "-e", "-f", config]))?;
    server.wait_for_port(([127, 0, 0, 1], port).into(), PATIENCE)?;
    Ok(server)
}
