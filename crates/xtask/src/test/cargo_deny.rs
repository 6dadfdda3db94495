//! cargo-deny: built once, outside of the repository, while the first steps run.

use std::{
    env,
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, command, is_installed, run};

/// A newer one may find more: raise it in a commit of its own.
const VERSION: &str = "0.20.2";
/// How much of a failed build is shown.
const SHOWN_LINES: usize = 25;

/// The program, or its build in progress. Dropping it ends the build; the next run goes on where it was.
#[derive(Debug, Default)]
pub(super) struct CargoDeny {
    build: Option<Build>,
    /// Why no build could be started.
    problem: Option<String>,
}

#[derive(Debug)]
struct Build {
    child: Child,
    log: PathBuf,
    /// Directory of build files, which the program does not need.
    scratch: PathBuf,
}

impl CargoDeny {
    /// Begins to build it, unless it is there.
    pub(super) fn prepare() -> Self {
        let root = root();
        if program(&root).is_file() {
            return Self::default();
        }
        match Build::start(&root) {
            Ok(build) => Self { build: Some(build), problem: None },
            Err(error) => Self { build: None, problem: Some(format!("{error:#}")) },
        }
    }

    /// Checks the workspace with it, once it is built. False: the check failed, and has said why.
    pub(super) fn check(&mut self) -> Result<bool> {
        if let Some(problem) = self.problem.take() {
            bail!("cargo-deny cannot be installed: {problem}");
        }
        if let Some(build) = self.build.take() {
            build.wait()?;
        }
        let mut check = command(program(&root()));
        run(check.args(["--all-features", "check", "bans", "licenses", "sources"]))
    }
}

impl Build {
    fn start(root: &Path) -> Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("{} cannot be made", root.display()))?;
        let (log, scratch) = (root.join("build.log"), root.join("build"));
        let out = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
        let mut install = politely(&cargo("install cargo-deny --locked --version"));
        install.arg(VERSION).arg("--root").arg(root);
        // A directory of its own: in that of the workspace it would wait for the other builds, and they for it.
        install.env("CARGO_TARGET_DIR", &scratch);
        install.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        eprintln!("note: cargo-deny {VERSION} is built beside the first steps, into {}", root.display());
        let child = install.spawn().context("cargo cannot be started")?;
        Ok(Self { child, log, scratch })
    }

    fn wait(mut self) -> Result<()> {
        let done = self.child.wait().context("the build of cargo-deny was lost")?;
        if !done.success() {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            bail!("cargo-deny {VERSION} cannot be installed ({done}):\n{}", last_lines(&log));
        }
        // It only takes room from here on.
        let _ = std::fs::remove_dir_all(&self.scratch);
        Ok(())
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same command at the lowest priority, where there is a `nice`.
fn politely(plain: &Command) -> Command {
    if !is_installed("nice") {
        let mut same = command(plain.get_program());
        same.args(plain.get_args());
        return same;
    }
    let mut nice = command("nice");
    nice.args(["-n", "19"]).arg(plain.get_program()).args(plain.get_args());
    nice
}

/// Where this version is kept.
fn root() -> PathBuf {
    cache(|name| env::var_os(name).filter(|value| !value.is_empty())).join(format!("cargo-deny-{VERSION}"))
}

fn program(root: &Path) -> PathBuf {
    root.join("bin/cargo-deny")
}

/// Tools that outlive a checkout: `$NETSTEAD_CACHE`, `$XDG_CACHE_HOME/netstead-tools` or `~/.cache/netstead-tools`.
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(own) = absolute("NETSTEAD_CACHE") {
        return own;
    }
    let user = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    user.unwrap_or_else(env::temp_dir).join("netstead-tools")
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_kept_outside_of_the_repository() {
        let cache = |set: &[(&str, &str)]| {
            let variable =
                |name: &str| set.iter().find(|(one, _)| *one == name).map(|(_, value)| OsString::from(value));
            cache(variable).display().to_string()
        };
        assert_eq!(cache(&[("HOME", "/home/u")]), "/home/u/.cache/netstead-tools");
        assert_eq!(cache(&[("HOME", "/home/u"), ("XDG_CACHE_HOME", "/x")]), "/x/netstead-tools");
        assert_eq!(cache(&[("HOME", "/home/u"), ("NETSTEAD_CACHE", "/n")]), "/n");
        assert_eq!(cache(&[("HOME", "/home/u"), ("NETSTEAD_CACHE", "n")]), "/home/u/.cache/netstead-tools");
    }

    #[test]
    fn the_end_of_a_failed_build_is_shown() {
        let log: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
        let shown = last_lines(&(log.join("\n") + "\n"));
        assert!(shown.starts_with("line 16\n") && shown.ends_with("line 40"), "{shown}");
        assert_eq!(last_lines("error: no network\n"), "error: no network");
    }

    #[test]
    fn a_build_that_fails_says_why() {
        let dir = env::temp_dir().join(format!("netstead-deny-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (log, scratch) = (dir.join("build.log"), dir.join("build"));
        let out = File::create(&log).unwrap();
        let child = command("sh").args(["-c", "echo no network; exit 101"]).stdout(out).spawn().unwrap();
        let build = Some(Build { child, log, scratch });
        let told = CargoDeny { build, problem: None }.check().unwrap_err().to_string();
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(
            told.starts_with(&format!("cargo-deny {VERSION} cannot be installed (exit status: 101)")),
            "{told}"
        );
        assert!(told.ends_with("\nno network"), "{told}");
    }
}
