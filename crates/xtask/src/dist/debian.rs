//! The package for Debian and its relatives.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Release, fresh, layout::Layout};
use crate::shell::{command, run};

/// After the files are there: the unit is known, and a service that ran goes on with the new version.
const AFTER: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart netstead.service || true
fi
";

/// Before the files are taken away: nothing of them runs any more. The data in /var/lib/netstead stays.
const BEFORE_REMOVAL: &str = "\
#!/bin/sh
set -e
if [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now netstead.service || true
fi
";

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: netstead

Files: *
Copyright: the Netstead contributors
License: MIT or Apache-2.0
 At your option, under the terms of the MIT license, or of the Apache License 2.0, which
 Debian has in /usr/share/common-licenses/Apache-2.0.
";

/// Makes it with `dpkg-deb`. None: that failed, and has said why.
pub(super) fn package(release: &Release, out: &Path) -> Result<Option<PathBuf>> {
    let stage = fresh(&out.join("stage-deb"))?;
    let layout = Layout {
        dir: stage.join("usr"),
        documents: Path::new("share/doc/netstead"),
        units: Path::new("lib/systemd/system"),
    };
    layout.fill(release)?;
    layout.write(Path::new("share/doc/netstead/copyright"), COPYRIGHT)?;
    fs::create_dir_all(stage.join("etc/netstead"))?;
    let control = stage.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(control.join("control"), control_file(release, size(&layout.dir)?))?;
    for (name, script) in [("postinst", AFTER), ("prerm", BEFORE_REMOVAL)] {
        fs::write(control.join(name), script)?;
        fs::set_permissions(control.join(name), fs::Permissions::from_mode(0o755))?;
    }
    let package = out.join(format!("netstead_{}_{}.deb", release.version, release.arch.docker()));
    let mut build = command("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&stage).arg(&package);
    let done = run(&mut build)?;
    fs::remove_dir_all(&stage)?;
    Ok(done.then_some(package))
}

fn control_file(release: &Release, kilobytes: u64) -> String {
    format!(
        "\
Package: netstead
Version: {}
Architecture: {}
Maintainer: the Netstead contributors <netstead@localhost>
Installed-Size: {kilobytes}
Section: net
Priority: optional
Recommends: ca-certificates
Description: an address and a name for everything you run
 Netstead looks at what runs on your machines, hands out addresses from pools so that
 no two holders ever share one, and keeps DNS servers and IPAM systems in line with both.
",
        release.version,
        release.arch.docker()
    )
}

/// The size of all files below a directory, in units of 1024 bytes.
fn size(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes.div_ceil(1024))
}
