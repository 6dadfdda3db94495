//! Drops root: how a container starts.
//!
//! Docker's socket belongs to a group whose number differs from host to host, so an image cannot name it. As root, the process
//! finds out that group, gives a new data directory to the user, joins the group, and becomes the user.

use std::{
    fmt, io,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::Context as _;
use netstead_wire::files;
use nix::unistd::{Gid, Uid, geteuid, getgroups, setgid, setgroups, setuid};

use crate::{
    cli::{Cli, Command, Global},
    config::RaftConfig,
    loaded_config::LoadedConfig,
    state_dir::{credentials_dir, variable},
    store_location::StoreLocation,
};

/// A user and a group by their numbers: an image has no list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl FromStr for User {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (uid, gid) = text.split_once(':').unwrap_or((text, text));
        let number = |part: &str| {
            // All ones mean "no change" to the system.
            let number = part.parse().ok().filter(|number| *number != 0 && *number != u32::MAX);
            number.ok_or_else(|| format!("`{part}` is no number of a user or group other than root's"))
        };
        Ok(Self { uid: number(uid)?, gid: number(gid)? })
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.uid, self.gid)
    }
}

/// Drops root to `--user`. Does nothing when not root: the container runtime already did it.
pub(crate) fn to_requested_user(cli: &Cli) -> anyhow::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    if let Command::Run(args) = &cli.command {
        return args.user.map_or(Ok(()), |user| before_running(user, &cli.global));
    }
    // What is typed beside a server that did so reads that user's token. Who cannot become one goes on without.
    let user = variable("NETSTEAD_USER").and_then(|user| user.parse().ok());
    let _ = user.map(|user| become_user(user, &[]));
    Ok(())
}

fn before_running(user: User, global: &Global) -> anyhow::Result<()> {
    // What is wrong with the configuration is told when it is read as that user.
    let settings = LoadedConfig::read_silently(global.config.as_deref());
    let mut groups: Vec<Gid> = getgroups().unwrap_or_default();
    groups.retain(|group| group.as_raw() != 0);
    if let Some(settings) = &settings {
        groups.extend(sockets(settings).iter().filter_map(|socket| group_of(socket)));
        match settings.store(global) {
            StoreLocation::Local(dir) | StoreLocation::Raft(RaftConfig { path: Some(dir), .. }) => {
                hand_over(&dir, user);
            }
            _ => {}
        }
        hand_over(&credentials_dir(&variable), user);
    }
    groups.sort_unstable_by_key(|group| group.as_raw());
    groups.dedup();
    become_user(user, &groups).with_context(|| {
        format!("cannot become user {user}; a container needs the capabilities SETUID and SETGID for it")
    })
}

fn become_user(user: User, groups: &[Gid]) -> nix::Result<()> {
    setgroups(groups)?;
    setgid(Gid::from_raw(user.gid))?;
    setuid(Uid::from_raw(user.uid))
}

/// The sockets of this machine that sources use.
fn sockets(settings: &LoadedConfig) -> Vec<PathBuf> {
    settings.config.sources.iter().flat_map(|source| source.table.local_sockets()).collect()
}

fn group_of(socket: &Path) -> Option<Gid> {
    std::fs::metadata(socket).ok().map(|found| Gid::from_raw(found.gid()))
}

/// Makes a directory the user's if it is root's and nothing is in it yet: a new volume. If that fails, opening what is
/// in it says so.
fn hand_over(dir: &Path, user: User) {
    let fresh = || -> io::Result<bool> {
        files::create_private_dir(dir)?;
        Ok(std::fs::metadata(dir)?.uid() == 0 && std::fs::read_dir(dir)?.next().is_none())
    };
    if fresh().unwrap_or_default() {
        let _ = chown(dir, Some(user.uid), Some(user.gid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_number_and_never_root() {
        let read = |text: &str| text.parse::<User>().map(|user| user.to_string());
        assert_eq!(read("1000").as_deref(), Ok("1000:1000"));
        assert_eq!(read("1000:100").as_deref(), Ok("1000:100"));
        for text in ["", "0", "1000:0", "root", "-1", "4294967295", "1:2:3"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
