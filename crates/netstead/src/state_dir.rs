//! The directories of a user's data and credentials.

use std::path::PathBuf;

/// Looks up a variable of the environment; an argument, so that tests need not change their own.
pub(crate) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// `$STATE_DIRECTORY` (systemd), `$XDG_STATE_HOME/netstead`, `~/.local/state/netstead`, else `/var/lib/netstead`.
pub(crate) fn state_dir(variable: Variable<'_>) -> PathBuf {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = absolute("STATE_DIRECTORY") {
        return path;
    }
    let user = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    user.map_or_else(|| PathBuf::from("/var/lib/netstead"), |dir| dir.join("netstead"))
}

/// Where a server leaves the admin token: beside its data, or in `/run/netstead` for a system service.
pub(crate) fn credentials_dir(variable: Variable<'_>) -> PathBuf {
    let runtime = variable("RUNTIME_DIRECTORY").map(PathBuf::from).filter(|path| path.is_absolute());
    runtime.unwrap_or_else(|| state_dir(variable))
}

/// Where the command line looks for a token: the user's own, then that of the system service.
pub(crate) fn credentials_dirs(variable: Variable<'_>) -> Vec<PathBuf> {
    let mut dirs = vec![credentials_dir(variable), state_dir(variable), PathBuf::from("/run/netstead")];
    dirs.dedup();
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_with(set: &[(&str, &str)]) -> String {
        let variable =
            |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        state_dir(&variable).display().to_string()
    }

    #[test]
    fn data_lives_where_the_system_says() {
        assert_eq!(dir_with(&[]), "/var/lib/netstead");
        assert_eq!(dir_with(&[("HOME", "/home/u")]), "/home/u/.local/state/netstead");
        assert_eq!(dir_with(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "/x")]), "/x/netstead");
        assert_eq!(
            dir_with(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "rel")]),
            "/home/u/.local/state/netstead"
        );
        assert_eq!(dir_with(&[("HOME", "/home/u"), ("STATE_DIRECTORY", "/var/lib/n")]), "/var/lib/n");
    }
}
