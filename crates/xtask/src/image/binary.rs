//! Builds the program as one static file.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::Arch;
use crate::shell::{AS_TESTS, cargo, root, run};

/// An ELF segment that names the loader of shared libraries.
const LOADER: u32 = 3;

/// Builds it and says where it is. None: the build failed, and has said why.
///
/// Only the last step links the C library in, so everything before it is shared with ordinary builds.
pub(crate) fn build(arch: Arch, debug: bool) -> Result<Option<PathBuf>> {
    build_static("netstead", "netstead", AS_TESTS, arch, debug)
}

/// As [`build`], the Terraform provider.
pub(crate) fn build_provider(arch: Arch, debug: bool) -> Result<Option<PathBuf>> {
    build_static("netstead-terraform", "terraform-provider-netstead", "", arch, debug)
}

/// `as_tests` are options with which a debug build is one that the tests have made already.
fn build_static(
    package: &str,
    program: &str,
    as_tests: &str,
    arch: Arch,
    debug: bool,
) -> Result<Option<PathBuf>> {
    let mut build = cargo(&format!("rustc --package {package} --bin {program}"));
    let mut place = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    if arch != Arch::HERE {
        build.args(["--target", arch.rust()]);
        place.push(arch.rust());
        if let Arch::Arm64 = arch {
            // Debian's cross compiler, unless something else is set.
            let linker = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER";
            build.env(linker, env::var_os(linker).unwrap_or_else(|| "aarch64-linux-gnu-gcc".into()));
        }
    }
    if debug {
        build.args(as_tests.split_whitespace());
        place.push("debug");
    } else {
        build.args(["--profile", "dist"]);
        place.push("dist");
    }
    if !run(build.args(["--", "-C", "target-feature=+crt-static", "-C", "strip=debuginfo"]))? {
        return Ok(None);
    }
    let program = place.join(program);
    if !is_static(&program)? {
        bail!("{} still needs shared libraries", program.display());
    }
    Ok(Some(program))
}

/// Whether a 64-bit program runs without a loader of shared libraries.
fn is_static(program: &Path) -> Result<bool> {
    let bytes = std::fs::read(program).with_context(|| format!("{} cannot be read", program.display()))?;
    segments(&bytes)
        .map(|kinds| !kinds.contains(&LOADER))
        .with_context(|| format!("{} is no program of this kind of machine", program.display()))
}

/// The kinds of segments of an ELF file with 64 bits, little end first.
fn segments(bytes: &[u8]) -> Option<Vec<u32>> {
    let number = |at: usize, size: usize| {
        let part = bytes.get(at..at.checked_add(size)?)?;
        part.iter().rev().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    (0..count).map(|n| u32::try_from(number(table.checked_add(n * size)?, 4)?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_shared_libraries_is_known_as_such() {
        // Rust links those of this machine unless it is told otherwise.
        assert!(!is_static(&env::current_exe().unwrap()).unwrap());
        assert_eq!(segments(b"\x7fELF\x02\x01"), None);
        assert_eq!(segments(b"#!/bin/sh"), None);
    }
}
