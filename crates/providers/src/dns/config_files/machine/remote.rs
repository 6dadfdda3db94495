//! Files and commands of another machine, through ssh. Everything runs in its `sh`, also a small one as routers have.

use std::path::Path;

use netstead_model::ProviderError;
use netstead_wire::ssh::{Ssh, SshError, quoted};

use super::{File, MOST_OF_FILES, MachineError, is_skipped};

/// Prints each file of a directory after a line with its size and name.
const LIST: &str = r#"for f in *; do [ -f "$f" ] || continue; n=$(wc -c < "$f") || exit 1; printf 'file %s %s\n' $n "$f"; cat -- "$f" || exit 1; done"#;

/// Prints a file after a line with its size and name, if it is there.
const SHOW: &str = r#"if [ -e "$f" ]; then n=$(wc -c < "$f") || exit 1; printf 'file %s %s\n' $n "$f"; cat -- "$f" || exit 1; fi"#;

pub(super) async fn read(ssh: &Ssh, dirs: &[&Path]) -> Result<Vec<Vec<File>>, ProviderError> {
    let part = |dir: &&Path| format!("cd {} || exit 1; {LIST}; echo end", path(dir));
    listings(ssh, &dirs.iter().map(part).collect::<Vec<_>>()).await
}

pub(super) async fn read_files(
    ssh: &Ssh,
    places: &[(&Path, &str)],
) -> Result<Vec<Option<Vec<u8>>>, ProviderError> {
    let part = |(dir, name): &(&Path, &str)| {
        format!("cd {} || exit 1; f={}; {SHOW}; echo end", path(dir), quoted(name))
    };
    let found = listings(ssh, &places.iter().map(part).collect::<Vec<_>>()).await?;
    Ok(found.into_iter().map(|files| files.into_iter().next().map(|file| file.bytes)).collect())
}

/// Runs commands of which each prints files and then a line `end`.
async fn listings(ssh: &Ssh, parts: &[String]) -> Result<Vec<Vec<File>>, ProviderError> {
    let reader = ssh.clone().limit(MOST_OF_FILES);
    let printed = reader.run_shell(&parts.join("; "), b"").await.map_err(|error| read_error(ssh, &error))?;
    let mut rest = printed.as_slice();
    let mut found = Vec::with_capacity(parts.len());
    for _ in parts {
        found.push(files(&mut rest).ok_or_else(|| {
            let reason = "a file changed while it was read, or the listing ends early".to_owned();
            ProviderError::Malformed { server: ssh.target().to_string(), reason }
        })?);
    }
    Ok(found)
}

/// The files up to the next line `end`; none if something is missing.
fn files(rest: &mut &[u8]) -> Option<Vec<File>> {
    let mut found = Vec::new();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = (rest.get(..end)?, rest.get(end + 1..)?);
        if line == b"end" {
            *rest = after;
            return Some(found);
        }
        let line = std::str::from_utf8(line).ok()?.strip_prefix("file ")?;
        let (size, name) = line.split_once(' ')?;
        let (bytes, after) = after.split_at_checked(size.parse().ok()?)?;
        *rest = after;
        if !is_skipped(name) {
            found.push(File { name: name.to_owned(), bytes: bytes.to_vec() });
        }
    }
}

pub(super) async fn write(
    ssh: &Ssh,
    dir: &Path,
    name: &str,
    bytes: Option<&[u8]>,
) -> Result<(), MachineError> {
    let (dir, file, new) = (path(dir), quoted(name), quoted(&format!(".{name}.new")));
    let command = match bytes {
        // The size is compared because a connection that breaks off looks like the end of the input. A `sync` that takes no
        // names syncs everything.
        Some(bytes) => format!(
            "cd {dir} || exit 1; rm -f -- {new}; cat > {new} && [ \"$(wc -c < {new})\" -eq {} ] && chmod 644 {new} && \
             {{ sync {new} 2>/dev/null || sync; }} && mv -f -- {new} {file} && {{ sync . 2>/dev/null || sync; }} || \
             {{ rm -f -- {new}; exit 1; }}",
            bytes.len()
        ),
        None => format!("cd {dir} || exit 1; rm -f -- {file} && {{ sync . 2>/dev/null || sync; }}"),
    };
    done(ssh, ssh.run_shell(&command, bytes.unwrap_or_default()).await.map(drop))
}

pub(super) async fn may_write(ssh: &Ssh, dir: &Path) -> Result<(), ProviderError> {
    let server = || ssh.target().to_string();
    match ssh.run_shell(&format!("[ -d {0} ] && [ -w {0} ]", path(dir)), b"").await {
        Ok(_) => Ok(()),
        Err(SshError::Failed { .. }) => {
            let reason = format!("no file can be written in {}", dir.display());
            Err(ProviderError::Denied { server: server(), reason })
        }
        Err(error) => Err(read_error(ssh, &error)),
    }
}

pub(super) async fn has(ssh: &Ssh, dir: &Path, name: &str) -> Result<bool, ProviderError> {
    match ssh.run_shell(&format!("[ -e {} ]", path(&dir.join(name))), b"").await {
        Ok(_) => Ok(true),
        Err(SshError::Failed { .. }) => Ok(false),
        Err(error) => Err(read_error(ssh, &error)),
    }
}

pub(super) async fn run(ssh: &Ssh, words: &[String]) -> Result<(), MachineError> {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    // A server that the command starts may keep its output, and the connection would last as long.
    let command = format!(
        "e=$(mktemp) || exit 1; {} </dev/null >/dev/null 2>\"$e\"; r=$?; head -c 400 \"$e\" >&2; rm -f \"$e\"; exit $r",
        words.join(" ")
    );
    done(ssh, ssh.run_shell(&command, b"").await.map(drop))
}

fn path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn read_error(ssh: &Ssh, error: &SshError) -> ProviderError {
    let server = ssh.target().to_string();
    match error {
        SshError::Unreachable { reason, .. } => {
            refusal(&server, reason).unwrap_or(ProviderError::Unreachable { server, reason: reason.clone() })
        }
        SshError::TooLarge { .. } => ProviderError::Malformed { server, reason: error.to_string() },
        SshError::Failed { said, .. } => ProviderError::Unreachable { server, reason: said.clone() },
        _ => ProviderError::Unreachable { server, reason: error.to_string() },
    }
}

/// Refusals that a person must mend, with the next step.
fn refusal(server: &str, reason: &str) -> Option<ProviderError> {
    let step = if reason.contains("Host key verification failed") {
        "its host key is not the one in the known hosts; look at it and add it there"
    } else if ["Permission denied", "Too many authentication failures"].iter().any(|one| reason.contains(one))
    {
        "add the public key to its authorized keys"
    } else {
        return None;
    };
    Some(ProviderError::Denied { server: server.to_owned(), reason: format!("{reason} ({step})") })
}

/// The meaning of a failed change. Commands that end with an error of their own changed nothing; whether one ran whose
/// connection broke is not known.
fn done(ssh: &Ssh, outcome: Result<(), SshError>) -> Result<(), MachineError> {
    let error = match outcome {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let server = ssh.target().to_string();
    Err(match &error {
        SshError::Failed { said, status, .. } => {
            let reason = format!("a command ends with {status}: {said}");
            MachineError::Failed(ProviderError::Unreachable { server, reason })
        }
        SshError::NoProgram | SshError::NotStarted(_) => MachineError::Failed(read_error(ssh, &error)),
        SshError::Unreachable { reason, .. } => match refusal(&server, reason) {
            Some(denied) => MachineError::Failed(denied),
            None if reason.starts_with("ssh: ") => {
                MachineError::Failed(ProviderError::Unreachable { server, reason: reason.clone() })
            }
            None => MachineError::Unknown(ProviderError::Unknown { server, reason: reason.clone() }),
        },
        _ => MachineError::Unknown(ProviderError::Unknown { server, reason: error.to_string() }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_whole_or_none() {
        let text = b"file 3 a.conf\nx=\nfile 0 b\nfile 1 c~\nzend\nfile 4 d\nend\nend\n";
        let mut rest = text.as_slice();
        let file = |name: &str, bytes: &[u8]| File { name: name.into(), bytes: bytes.into() };
        assert_eq!(files(&mut rest), Some(vec![file("a.conf", b"x=\n"), file("b", b"")]));
        assert_eq!(files(&mut rest), Some(vec![file("d", b"end\n")]));
        assert!(rest.is_empty());
        for broken in ["file 3 a\nx\nend\n", "file 9 a\nx\nend\n", "file 1 a\nx", "end", "odd\n"] {
            assert_eq!(files(&mut broken.as_bytes()), None, "{broken}");
        }
    }
}
