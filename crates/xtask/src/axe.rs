//! axe-core, which finds what keeps people out of a web page: out of npm's registry into the tool cache, for tests only.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{command, is_installed, output},
    tools::{directory, program},
};

/// The version is named in the testkit too.
const VERSION: &str = "4.14.0";

/// Installs it once. Where that does not work this says why, and the test that needs it is skipped, or fails in the full run.
pub(crate) fn provide() {
    let directory = directory(&format!("axe-core-{VERSION}"));
    if let Err(error) = install(&directory) {
        eprintln!("note: there is no axe-core for the tests of the web page: {error:#}");
    }
}

fn install(directory: &Path) -> Result<()> {
    let script = program(directory, "axe.min.js");
    if script.is_file() {
        return Ok(());
    }
    if !is_installed("npm") {
        bail!("there is no `npm`");
    }
    eprintln!("note: axe-core {VERSION} is put into {}", directory.display());
    let bin = script.parent().unwrap_or(directory);
    fs::create_dir_all(bin)?;
    let mut pack = command("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(directory).arg(format!("axe-core@{VERSION}"));
    output(&mut pack).context("npm does not bring it")?;
    let archive = directory.join(format!("axe-core-{VERSION}.tgz"));
    let mut unpack = command("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(directory).arg("package/axe.min.js");
    output(&mut unpack).context("tar does not unpack it")?;
    fs::rename(directory.join("package/axe.min.js"), &script)
        .with_context(|| format!("{} cannot be made", script.display()))
}
