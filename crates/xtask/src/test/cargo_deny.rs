//! cargo-deny: built once, outside of the repository, while the first steps run.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{cargo, command, run},
    tools::{directory, politely, program},
};

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
        if program(&root, "cargo-deny").is_file() {
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
        let mut check = command(program(&root(), "cargo-deny"));
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

/// Where this version is kept.
fn root() -> PathBuf {
    directory(&format!("cargo-deny-{VERSION}"))
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_failed_build_is_shown() {
        let log: Vec<String> = (1..=40).map(|number| format!("line {number}")).collect();
        let shown = last_lines(&(log.join("\n") + "\n"));
        assert!(shown.starts_with("line 16\n") && shown.ends_with("line 40"), "{shown}");
        assert_eq!(last_lines("error: no network\n"), "error: no network");
    }

    #[test]
    fn a_build_that_fails_says_why() {
        let dir = std::env::temp_dir().join(format!("netstead-deny-{}", std::process::id()));
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
