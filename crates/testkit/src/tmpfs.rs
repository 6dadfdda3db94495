//! [`Tmpfs`]: a disk small enough to fill.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::skip::skip;

const FILLER: &str = "filler";

/// A file system of its own in memory, unmounted when this is dropped.
#[derive(Debug)]
pub struct Tmpfs {
    dir: TempDir,
}

impl Tmpfs {
    /// Mounts one of `bytes` bytes. Where that is not permitted the test is [skipped](skip()) and gets `None`.
    ///
    /// # Panics
    ///
    /// In the full run, where it is not permitted.
    pub fn mount(bytes: u64) -> Option<Self> {
        match try_mount(bytes) {
            Ok(dir) => Some(Self { dir }),
            Err(error) => {
                skip(&format!("a tmpfs cannot be mounted: {error}"));
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Takes all the space that is left.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.path().join(FILLER))?;
        // Page by page in the end: a tmpfs gives whole pages.
        for size in [1 << 16, 1 << 12] {
            let block = vec![0; size];
            loop {
                match file.write_all(&block) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Gives the space back that [`Tmpfs::fill`] took.
    pub fn free(&self) -> io::Result<()> {
        let filler = self.path().join(FILLER);
        // Emptied first: a process that another test is just starting may hold the file for a moment longer.
        File::options().write(true).open(&filler)?.set_len(0)?;
        fs::remove_file(filler)
    }
}

fn try_mount(bytes: u64) -> io::Result<TempDir> {
    let dir = tempfile::tempdir()?;
    let size = format!("size={bytes},mode=0700");
    let done =
        Command::new("mount").args(["-t", "tmpfs", "-o", &size, "netstead-test"]).arg(dir.path()).output()?;
    if done.status.success() {
        return Ok(dir);
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let quiet = |lazy: &[&str]| {
            let status =
                Command::new("umount").args(lazy).arg(self.dir.path()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        // A file still open (the test is failing) only delays the end of the file system, not of its name.
        if !quiet(&[]) && !quiet(&["--lazy"]) {
            eprintln!("{} could not be unmounted", self.dir.path().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_refuses_a_byte_and_heals() {
        let Some(disk) = Tmpfs::mount(1 << 20) else { return };
        let file = disk.path().join("file");
        disk.fill().unwrap();
        let refused = fs::write(&file, b"x").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        disk.free().unwrap();
        fs::write(&file, b"x").unwrap();
    }

    #[test]
    fn dropping_it_unmounts_it() {
        let Some(disk) = Tmpfs::mount(1 << 20) else { return };
        let path = disk.path().to_owned();
        let mounted = |path: &Path| {
            fs::read_to_string("/proc/self/mounts").unwrap().contains(&path.display().to_string())
        };
        assert!(mounted(&path));
        drop(disk);
        assert!(!mounted(&path) && !path.exists());
    }
}
