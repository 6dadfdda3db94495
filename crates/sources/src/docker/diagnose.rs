//! Checks of a Docker host for `netstead doctor`: can it be reached, and which version is it.

use std::{io, path::Path};

use netstead_model::Diagnosis;
use netstead_wire::connect_unix;

use super::{
    api::{Api, ApiError, VERSION},
    connect::{group_of, no_socket},
    host::DockerHost,
    types::Version,
};

/// The oldest API with everything that is read here.
const OLDEST_API: (u32, u32) = (1, 24);

pub(super) async fn diagnose(host: &DockerHost, api: &Api) -> Vec<Diagnosis> {
    if let DockerHost::Unix(path) = host
        && let Err(error) = connect_unix(path).await
    {
        return vec![closed_socket(path, &error)];
    }
    match api.get::<Version>(VERSION, "").await {
        Ok(version) => vec![judge(host, &version)],
        Err(ApiError::Forbidden { .. }) => {
            vec![Diagnosis::fine(format!("{host} answers, and does not show its version"))]
        }
        Err(error) => {
            let hint = match host {
                DockerHost::Unix(_) => {
                    "is it Docker that listens there? `docker version` asks it too".to_owned()
                }
                DockerHost::Tcp { .. } => {
                    "see that it listens there, and that the keys of TLS fit its certificate".to_owned()
                }
                DockerHost::Ssh(target) => format!(
                    "as the user of Netstead, `ssh {} docker version` must work without a question",
                    target.command_line()
                ),
            };
            vec![Diagnosis::problem(error.to_string(), hint)]
        }
    }
}

fn closed_socket(path: &Path, error: &io::Error) -> Diagnosis {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let group = group_of(path).unwrap_or_else(|| "GROUP".to_owned());
            format!(
                "add its user to that group: `usermod -aG {group} USER`, `SupplementaryGroups={group}` in a \
                     systemd unit, or `--group-add` for a container; then restart Netstead"
            )
        }
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "start Docker; in a container, mount the socket into it; or correct `host`".to_owned()
        }
        _ => "correct `host`".to_owned(),
    };
    Diagnosis::problem(no_socket(path, error), hint)
}

fn judge(host: &DockerHost, version: &Version) -> Diagnosis {
    let Version { version, api_version } = version;
    let text = format!("{host} is Docker {version}, API {api_version}");
    let number = api_version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    match number {
        Some(number) if number < OLDEST_API => {
            let (major, minor) = OLDEST_API;
            Diagnosis::problem(text, format!("Netstead needs API {major}.{minor}: install a newer Docker"))
        }
        _ => Diagnosis::fine(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_may_not_be_opened_names_its_group() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let group = group_of(file.path()).unwrap();
        let found = closed_socket(file.path(), &io::ErrorKind::PermissionDenied.into());
        let text = format!(
            "{} may not be opened: run Netstead as a member of the group `{group}`",
            file.path().display()
        );
        let hint = format!(
            "add its user to that group: `usermod -aG {group} USER`, `SupplementaryGroups={group}` in a systemd unit, \
             or `--group-add` for a container; then restart Netstead"
        );
        assert_eq!(found, Diagnosis::problem(text, hint));
    }

    #[test]
    fn a_docker_that_is_too_old_is_a_problem() {
        let host = DockerHost::default();
        let of = |api: &str| Version { version: "1.2.3".to_owned(), api_version: api.to_owned() };
        let text = |api: &str| format!("unix:///var/run/docker.sock is Docker 1.2.3, API {api}");
        let hint = "Netstead needs API 1.24: install a newer Docker";
        assert_eq!(judge(&host, &of("1.23")), Diagnosis::problem(text("1.23"), hint));
        assert_eq!(judge(&host, &of("1.47")), Diagnosis::fine(text("1.47")));
    }
}
