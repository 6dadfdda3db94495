//! [`Layout`]: the files of a release, as they are below `/usr` or `/usr/local`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::Release;
use crate::shell::{command, output, root};

/// Where the completions of each shell belong.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/netstead"),
    ("zsh", "share/zsh/site-functions/_netstead"),
    ("fish", "share/fish/vendor_completions.d/netstead.fish"),
];
/// Documents beside the guides.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// One prefix, and where it has what differs from place to place.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) dir: PathBuf,
    pub(super) documents: &'a Path,
    pub(super) units: &'a Path,
}

impl Layout<'_> {
    /// Puts everything there.
    pub(super) fn fill(&self, release: &Release) -> Result<()> {
        self.put(&release.program, Path::new("bin/netstead"), 0o755)?;
        self.put(
            &root().join("deploy/systemd/netstead.service"),
            &self.units.join("netstead.service"),
            0o644,
        )?;
        self.man_pages(&release.here)?;
        for (shell, file) in COMPLETIONS {
            let text = output(command(&release.here).args(["completions", shell]))?;
            self.write(Path::new(file), &text)?;
        }
        for document in DOCUMENTS {
            self.put(&root().join(document), &self.documents.join(document), 0o644)?;
        }
        self.put_all(&root().join("docs/guide"), &self.documents.join("guide"))
    }

    /// Puts a directory with all below it: the guides show pictures.
    fn put_all(&self, from: &Path, to: &Path) -> Result<()> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let to = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.put_all(&entry.path(), &to)?;
            } else {
                self.put(&entry.path(), &to, 0o644)?;
            }
        }
        Ok(())
    }

    fn man_pages(&self, program: &Path) -> Result<()> {
        let dir = self.dir.join("share/man/man1");
        fs::create_dir_all(&dir)?;
        output(command(program).arg("man").arg(&dir))?;
        let mut pages: Vec<PathBuf> =
            fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        pages.sort();
        for page in &pages {
            fs::set_permissions(page, fs::Permissions::from_mode(0o644))?;
        }
        output(command("gzip").args(["-n", "-9"]).args(&pages)).map(drop)
    }

    /// Writes a file that everybody may read.
    pub(super) fn write(&self, file: &Path, text: &str) -> Result<()> {
        let to = self.place(file)?;
        fs::write(&to, text).with_context(|| format!("{} cannot be written", to.display()))?;
        Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
    }

    fn put(&self, from: &Path, file: &Path, mode: u32) -> Result<()> {
        let to = self.place(file)?;
        fs::copy(from, &to)
            .with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
        Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
    }

    fn place(&self, file: &Path) -> Result<PathBuf> {
        let to = self.dir.join(file);
        fs::create_dir_all(to.parent().unwrap_or(&self.dir))?;
        Ok(to)
    }
}
