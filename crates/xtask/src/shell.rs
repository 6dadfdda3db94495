//! Other programs, run from the top of the workspace.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Features that `cargo test --workspace` builds dependencies with: a debug build with the same compiles none of them again.
pub(crate) const AS_TESTS: &str = "--features tokio/test-util,netstead-sources/default";

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let own = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).ancestors().nth(2).map(Path::to_owned).unwrap_or_default()
}

pub(crate) fn command(program: impl Into<OsString>) -> Command {
    let mut command = Command::new(program.into());
    command.current_dir(root());
    command
}

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &str) -> Command {
    let mut command = command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments.split_whitespace());
    command
}

/// Runs it with our own terminal. False: it failed, and has said why.
pub(crate) fn run(command: &mut Command) -> Result<bool> {
    announce(command);
    let status = command.status().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    Ok(status.success())
}

/// Runs it and hands each line of its stdout to `look` as it passes by on its way to ours.
pub(crate) fn run_watched(command: &mut Command, mut look: impl FnMut(&str)) -> Result<bool> {
    announce(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{}` cannot be started", shown(command)))?;
    let pipe = child.stdout.take().context("the pipe of a child is missing")?;
    let mut pipe = BufReader::new(pipe);
    let mut out = std::io::stdout().lock();
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        out.flush()?;
        look(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(child.wait()?.success())
}

/// Returns what it prints on stdout; an error if it fails.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let done = command.output().with_context(|| format!("`{}` cannot be started", shown(command)))?;
    if !done.status.success() {
        bail!("`{}` failed:\n{}", shown(command), String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn announce(command: &Command) {
    eprintln!("\n$ {}", shown(command));
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Whether a program of this name can be run. The `sbin` directories are looked at too: a user's `PATH` may
/// lack them, and servers stand there.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(more).any(|dir| dir.join(name).is_file())
}

/// A file of this name in the directory where our own binary was built.
pub(crate) fn beside_us(name: &str) -> Result<PathBuf> {
    Ok(env::current_exe().context("our own path is not known")?.with_file_name(name))
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// How long `work` took.
#[expect(clippy::disallowed_methods, reason = "no test holds the clock of a build still")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}
