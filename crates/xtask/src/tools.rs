//! Programs that outlive a checkout: built once, kept outside of the repository.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use crate::shell::{command, is_installed};

/// The directory of one version of a program, such as `cargo-deny-0.20.2`.
pub(crate) fn directory(package: &str) -> PathBuf {
    cache(|name| env::var_os(name).filter(|value| !value.is_empty())).join(package)
}

/// The program in that directory.
pub(crate) fn program(directory: &Path, name: &str) -> PathBuf {
    directory.join("bin").join(name)
}

/// The same command at the lowest priority, where there is a `nice`.
pub(crate) fn politely(plain: &Command) -> Command {
    if !is_installed("nice") {
        let mut same = command(plain.get_program());
        same.args(plain.get_args());
        return same;
    }
    let mut nice = command("nice");
    nice.args(["-n", "19"]).arg(plain.get_program()).args(plain.get_args());
    nice
}

/// `$NETSTEAD_CACHE`, `$XDG_CACHE_HOME/netstead-tools` or `~/.cache/netstead-tools`.
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(own) = absolute("NETSTEAD_CACHE") {
        return own;
    }
    let user = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    user.unwrap_or_else(env::temp_dir).join("netstead-tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_kept_outside_of_the_repository() {
        let cache = |set: &[(&str, &str)]| {
            let variable =
                |name: &str| set.iter().find(|(one, _)| *one == name).map(|(_, value)| OsString::from(value));
            cache(variable).display().to_string()
        };
        assert_eq!(cache(&[("HOME", "/home/u")]), "/home/u/.cache/netstead-tools");
        assert_eq!(cache(&[("HOME", "/home/u"), ("XDG_CACHE_HOME", "/x")]), "/x/netstead-tools");
        assert_eq!(cache(&[("HOME", "/home/u"), ("NETSTEAD_CACHE", "/n")]), "/n");
        assert_eq!(cache(&[("HOME", "/home/u"), ("NETSTEAD_CACHE", "n")]), "/home/u/.cache/netstead-tools");
    }
}
