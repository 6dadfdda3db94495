//! The home of a fixture: its configuration, its variables, and a place for its store.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::Command,
};

use netstead_testkit::wait_until;

use crate::sandbox::{CommandOutput, SOON, Sandbox};

/// Where the fixtures of all releases are, each in a directory that is called as its release.
pub(super) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Local,
    /// A cluster of one.
    Raft,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Raft => "raft",
        })
    }
}

#[derive(Debug)]
pub(super) struct Home {
    pub(super) sandbox: Sandbox,
}

impl Home {
    /// A home as the fixture at this place has it, without a store. `powerdns` is the URL of the server that takes its
    /// names.
    pub(super) fn prepare(fixture: &Path, kind: Kind, powerdns: &str) -> Self {
        let mut sandbox = Sandbox::empty();
        let from = fixture.join("home");
        let read = |name: &str| fs::read_to_string(from.join(name)).unwrap();
        let address = format!("127.0.0.1:{}", netstead_testkit::free_port().unwrap());
        let store = match kind {
            Kind::Local => "[store]\npath = \"data\"\nbackups = 2\n\n".to_owned(),
            Kind::Raft => format!(
                "[store]\ntype = \"raft\"\npath = \"data\"\nlisten = \"{address}\"\n\
                 secret = \"a secret of sixteen or more\"\n\n"
            ),
        };
        let path = sandbox.path();
        fs::write(path.join("netstead.toml"), store + &read("netstead.toml")).unwrap();
        fs::write(path.join("hosts"), read("hosts")).unwrap();
        fs::create_dir(path.join("dynamic")).unwrap();
        fs::write(path.join("dynamic/web.yml"), read("dynamic/web.yml")).unwrap();
        for (name, value) in read("environment").lines().filter_map(|line| line.split_once('=')) {
            sandbox.set(name.to_owned().leak(), value);
        }
        sandbox.set("NETSTEAD_DNS_LAN_URL", powerdns);
        sandbox.set("PDNS_KEY", "netstead-test");
        Self { sandbox }
    }

    /// Puts what an archive of the fixture holds into the home.
    pub(super) fn unpack(&self, archive: &Path) {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--xz", "--file"]).arg(archive).arg("--directory").arg(self.sandbox.path());
        assert!(tar.status().unwrap().success(), "{}", archive.display());
    }

    /// Puts these files and the tokens into an archive.
    pub(super) fn pack(&self, files: &[&str], archive: &Path) {
        let mut tar = Command::new("tar");
        tar.args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--sparse",
            "--xz",
            "--create",
        ])
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(self.sandbox.path())
        .args(["--exclude=backups"])
        .args(files)
        .args(self.tokens())
        .env("XZ_OPT", "-9e");
        assert!(tar.status().unwrap().success(), "{}", archive.display());
    }

    /// The files that hold the secrets of its tokens.
    fn tokens(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.sandbox.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.strip_suffix(".token").is_some())
            .collect();
        names.sort();
        names
    }

    pub(super) fn token(&self, subject: &str) -> String {
        let file = self.sandbox.path().join(format!("{subject}.token"));
        fs::read_to_string(file).unwrap().trim().to_owned()
    }

    /// Types a command until what it says is as it should be.
    pub(super) fn until(&self, line: &str, right: impl Fn(&CommandOutput) -> bool) -> CommandOutput {
        let typed = || self.sandbox.netstead(line.split(' '));
        let said = wait_until(SOON, || Some(typed()).filter(&right));
        said.unwrap_or_else(|| panic!("`netstead {line}` should have changed: {:?}", typed()))
    }
}
