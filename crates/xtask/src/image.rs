//! `cargo xtask image`: the container image, out of files of this machine.

pub(crate) mod binary;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use crate::shell::{command, root, run};

/// Where Debian and most others keep the roots of TLS in one file.
const ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The C library looks into no file and asks no other service than these two.
const LOOKUP: &str = "hosts: files dns\n";

/// Build the container image, with a static release build; nothing is fetched.
///
/// Example: cargo xtask image --tag netstead:dev
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The name of the image.
    #[arg(long, default_value = "netstead:latest")]
    tag: String,
    /// For which machines [default: this one's kind].
    #[arg(long, value_delimiter = ',')]
    arch: Vec<Arch>,
    /// Only put what goes into the image into this directory.
    #[arg(long, value_name = "DIR")]
    lay_out: Option<PathBuf>,
    /// A debug build, for a try.
    #[arg(long)]
    debug: bool,
}

/// A kind of machine, as Docker calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    pub(crate) const HERE: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::Amd64 };

    pub(crate) fn docker(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    fn rust(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
        }
    }
}

pub(crate) fn image(options: &Options) -> Result<bool> {
    let arches = if options.arch.is_empty() { vec![Arch::HERE] } else { options.arch.clone() };
    let dir = match &options.lay_out {
        Some(dir) => std::path::absolute(dir)?,
        None => root().join("target/image"),
    };
    for arch in &arches {
        if !lay_out(&dir, *arch, options.debug)? {
            return Ok(false);
        }
    }
    if options.lay_out.is_some() {
        return Ok(true);
    }
    for arch in &arches {
        // One image for each kind: one that is for several needs BuildKit and a registry.
        let tag = if let [_] = *arches {
            options.tag.clone()
        } else {
            format!("{}-{}", options.tag, arch.docker())
        };
        let mut build = command("docker");
        build.args(["build", "--build-arg", &format!("TARGETARCH={}", arch.docker()), "--tag", &tag]);
        if !run(build.args(["--file", "deploy/Dockerfile"]).arg(&dir))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts into `dir` what `deploy/Dockerfile` copies. False: the build failed, and has said why.
pub(crate) fn lay_out(dir: &Path, arch: Arch, debug: bool) -> Result<bool> {
    let Some(program) = binary::build(arch, debug)? else { return Ok(false) };
    let put = |from: &Path, to: &str| -> Result<()> {
        let to = dir.join(to);
        fs::create_dir_all(to.parent().unwrap_or(dir))?;
        fs::copy(from, &to)
            .with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
        Ok(())
    };
    put(&program, &format!("{}/netstead", arch.docker()))?;
    put(Path::new(ROOTS), "root/etc/ssl/certs/ca-certificates.crt")?;
    fs::write(dir.join("root/etc/nsswitch.conf"), LOOKUP)?;
    fs::create_dir_all(dir.join("state"))?;
    eprintln!("{} has what goes into the image for {}.", dir.display(), arch.docker());
    Ok(true)
}
