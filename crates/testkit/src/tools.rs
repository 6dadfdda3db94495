//! Programs that `cargo xtask test` builds and keeps outside of the repository.

use std::{env, ffi::OsString, path::PathBuf};

/// The program `name` of `package`, such as `adguardhome-0.107.79`, if it was built.
pub fn tool(package: &str, name: &str) -> Option<PathBuf> {
    let program = tool_directory(package).join("bin").join(name);
    program.is_file().then_some(program)
}

/// The directory of `package`, whether it is there or not.
pub(crate) fn tool_directory(package: &str) -> PathBuf {
    cache(|name| env::var_os(name)).join(package)
}

/// `$NETSTEAD_CACHE`, `$XDG_CACHE_HOME/netstead-tools` or `~/.cache/netstead-tools`, as xtask has it.
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(own) = absolute("NETSTEAD_CACHE") {
        return own;
    }
    let user = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    user.unwrap_or_else(env::temp_dir).join("netstead-tools")
}
