//! `cargo xtask dist`: what a release hands out: an archive, a package for Debian, and the Terraform provider.

mod debian;
mod layout;
mod terraform;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};

use self::layout::Layout;
use crate::{
    image::{Arch, binary},
    shell::{command, output, root, run},
};

/// Build the archive and the Debian package of a release, each with the program, man pages, completions and the systemd unit.
///
/// Example: cargo xtask dist archive --out target/packages
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Things to make [default: all].
    #[arg(value_enum)]
    what: Vec<What>,
    /// Where it is put.
    #[arg(long, default_value = "target/packages")]
    out: PathBuf,
    /// For which machines [default: this one's kind].
    #[arg(long, value_delimiter = ',')]
    arch: Vec<Arch>,
    /// A Terraform provider that is built already, for the kind of machine that `--arch` names.
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
    /// A debug build, for a try.
    #[arg(long)]
    debug: bool,
}

/// A thing that a release hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// `netstead-VERSION-linux-ARCH.tar.gz`
    Archive,
    /// `netstead_VERSION_ARCH.deb`
    Deb,
    /// The Terraform provider: a mirror, and the files that a registry wants.
    Terraform,
}

pub(crate) fn dist(options: &Options) -> Result<bool> {
    let arches = if options.arch.is_empty() { vec![Arch::HERE] } else { options.arch.clone() };
    let what = if options.what.is_empty() { What::value_variants() } else { &options.what };
    let out = std::path::absolute(root().join(&options.out))?;
    fs::create_dir_all(&out)?;
    if what.contains(&What::Terraform) {
        for arch in &arches {
            if !terraform::lay_out(&out, *arch, options.provider.as_deref(), options.debug)? {
                return Ok(false);
            }
        }
    }
    let what: Vec<What> = what.iter().copied().filter(|what| *what != What::Terraform).collect();
    if what.is_empty() {
        return Ok(true);
    }
    // Man pages and completions come out of a program that runs here.
    let Some(here) = binary::build(Arch::HERE, options.debug)? else { return Ok(false) };
    for arch in arches {
        let program =
            if arch == Arch::HERE { Some(here.clone()) } else { binary::build(arch, options.debug)? };
        let Some(program) = program else { return Ok(false) };
        let release = Release { version: version()?, arch, program, here: here.clone() };
        for what in &what {
            let Some(made) = release.make(*what, &out)? else { return Ok(false) };
            eprintln!("{} is made", made.display());
        }
    }
    write_checksums(&out)?;
    Ok(true)
}

/// One version for one kind of machine.
#[derive(Debug)]
pub(crate) struct Release {
    pub(crate) version: String,
    pub(crate) arch: Arch,
    pub(crate) program: PathBuf,
    /// The same program for this machine.
    pub(crate) here: PathBuf,
}

impl Release {
    /// Makes one thing and says where it is. None: a program failed, and has said why.
    fn make(&self, what: What, out: &Path) -> Result<Option<PathBuf>> {
        match what {
            What::Archive => self.archive(out),
            What::Deb => debian::package(self, out),
            What::Terraform => Ok(None),
        }
    }

    /// The files under `bin`, `share` and `lib`, as they go into `/usr/local`.
    fn archive(&self, out: &Path) -> Result<Option<PathBuf>> {
        let name = format!("netstead-{}-linux-{}", self.version, self.arch.docker());
        let stage = fresh(&out.join("stage"))?;
        let documents = Path::new("share/doc/netstead");
        Layout { dir: stage.join(&name), documents, units: Path::new("lib/systemd/system") }.fill(self)?;
        let archive = out.join(format!("{name}.tar.gz"));
        let mut tar = pack(&archive, &stage);
        let done = run(tar.arg(&name))?;
        fs::remove_dir_all(&stage)?;
        Ok(done.then_some(archive))
    }
}

/// Packs what is below `dir`: the same files always give the same archive.
fn pack(archive: &Path, dir: &Path) -> Command {
    let mut tar = command("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mtime=@0", "--use-compress-program=gzip -n -9", "--file"]);
    tar.arg(archive).arg("--directory").arg(dir);
    tar
}

/// An empty directory.
fn fresh(dir: &Path) -> Result<PathBuf> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("{} cannot be emptied", dir.display()))?;
    }
    fs::create_dir_all(dir)?;
    Ok(dir.to_owned())
}

/// The version of the workspace.
fn version() -> Result<String> {
    let text = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \""));
    Ok(line.and_then(|rest| rest.split('"').next()).context("the workspace has no version")?.to_owned())
}

/// `SHA256SUMS` of everything in the directory.
fn write_checksums(out: &Path) -> Result<()> {
    let mut names: Vec<String> = fs::read_dir(out)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| [".tar.gz", ".deb", ".zip"].iter().any(|end| name.ends_with(end)))
        .collect();
    names.sort();
    let mut sums = command("sha256sum");
    let text = output(sums.current_dir(out).args(&names))?;
    Ok(fs::write(out.join("SHA256SUMS"), text)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::shell::is_installed;

    /// A release whose program knows `man` and `completions` only.
    fn release(dir: &Path) -> Release {
        let program = dir.join("program");
        let script = "#!/bin/sh\ncase $1 in\nman) echo .TH netstead > \"$2/netstead.1\";;\n\
                      completions) echo \"# $2\";;\nesac\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Release { version: "1.2.3".into(), arch: Arch::Amd64, program: program.clone(), here: program }
    }

    fn scratch(name: &str) -> PathBuf {
        fresh(&std::env::temp_dir().join(format!("netstead-dist-{name}-{}", std::process::id()))).unwrap()
    }

    #[test]
    fn the_archive_has_the_program_its_pages_completions_and_unit_and_is_the_same_each_time() {
        let dir = scratch("archive");
        let release = release(&dir);
        let archive = release.make(What::Archive, &dir).unwrap().unwrap();
        let first = fs::read(&archive).unwrap();
        let list = output(command("tar").args(["--list", "--file"]).arg(&archive)).unwrap();
        for file in [
            "bin/netstead",
            "share/man/man1/netstead.1.gz",
            "share/bash-completion/completions/netstead",
            "share/zsh/site-functions/_netstead",
            "share/fish/vendor_completions.d/netstead.fish",
            "lib/systemd/system/netstead.service",
            "share/doc/netstead/README.md",
            "share/doc/netstead/guide/first-pool.md",
        ] {
            let file = format!("netstead-1.2.3-linux-amd64/{file}");
            assert!(list.lines().any(|line| line == file), "{file} is missing:\n{list}");
        }
        release.make(What::Archive, &dir).unwrap().unwrap();
        assert!(fs::read(&archive).unwrap() == first, "two archives of the same files differ");
        write_checksums(&dir).unwrap();
        let sums = fs::read_to_string(dir.join("SHA256SUMS")).unwrap();
        assert!(sums.ends_with("  netstead-1.2.3-linux-amd64.tar.gz\n"), "{sums}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_debian_package_is_one_that_dpkg_reads() {
        if !is_installed("dpkg-deb") {
            eprintln!("skipped: there is no dpkg-deb");
            return;
        }
        let dir = scratch("deb");
        let package = release(&dir).make(What::Deb, &dir).unwrap().unwrap();
        assert!(package.ends_with("netstead_1.2.3_amd64.deb"), "{}", package.display());
        let about = output(command("dpkg-deb").arg("--field").arg(&package)).unwrap();
        for line in ["Package: netstead", "Version: 1.2.3", "Architecture: amd64"] {
            assert!(about.lines().any(|one| one == line), "{line} is missing:\n{about}");
        }
        let list = output(command("dpkg-deb").arg("--contents").arg(&package)).unwrap();
        for file in [
            "./usr/bin/netstead",
            "./usr/share/man/man1/netstead.1.gz",
            "./usr/lib/systemd/system/netstead.service",
            "./usr/share/doc/netstead/copyright",
            "./etc/netstead/",
        ] {
            assert!(list.lines().any(|line| line.ends_with(file)), "{file} is missing:\n{list}");
        }
        assert!(list.lines().all(|line| line.contains("root/root")), "{list}");
        fs::remove_dir_all(dir).unwrap();
    }
}
