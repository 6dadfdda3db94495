//! Which file is read: the first that is named or found.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netstead_wire::files;

use super::Problem;
use crate::import::{self, Converted, DNSWEAVER};

/// The outcome of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundConfig {
    File {
        path: PathBuf,
        text: String,
        /// Settings of another tool that this text does not carry over as they are.
        warnings: Vec<Problem>,
    },
    /// None of these is there.
    Nothing { looked: Vec<PathBuf> },
}

/// The file that was `named`, which must be there, or the first of the usual places.
pub(crate) fn find(
    named: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<FoundConfig> {
    if let Some(path) = named {
        let text = files::read_named_text(path, files::MOST_OF_CONFIG)
            .with_context(|| format!("cannot read {}", path.display()))?;
        return Ok(FoundConfig::File { path: path.to_owned(), text, warnings: Vec::new() });
    }
    let looked = default_paths(&variable);
    for path in &looked {
        match files::read_text(path, files::MOST_OF_CONFIG) {
            Ok(text) => return Ok(FoundConfig::File { path: path.clone(), text, warnings: Vec::new() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }
    // Changing the image's name shall be the whole move from dnsweaver.
    if let Some(Converted { text, warnings }) = variable(DNSWEAVER).and_then(|_| import::from_environment()) {
        return Ok(FoundConfig::File { path: PathBuf::from("the variables DNSWEAVER_*"), text, warnings });
    }
    Ok(FoundConfig::Nothing { looked })
}

fn default_paths(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = set("XDG_CONFIG_HOME")
        .filter(|dir| dir.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".config")));
    let mut places = vec![PathBuf::from("netstead.toml")];
    places.extend(user.map(|dir| dir.join("netstead/netstead.toml")));
    places.push(PathBuf::from("/etc/netstead/netstead.toml"));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_places_come_in_order() {
        let places = |home: Option<&str>, xdg: Option<&str>| {
            let variable = |name: &str| match name {
                "HOME" => home.map(str::to_owned),
                "XDG_CONFIG_HOME" => xdg.map(str::to_owned),
                _ => None,
            };
            default_paths(variable)
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (here, etc) = ("netstead.toml", "/etc/netstead/netstead.toml");
        assert_eq!(places(None, None), format!("{here} {etc}"));
        assert_eq!(places(Some("/h"), None), format!("{here} /h/.config/netstead/netstead.toml {etc}"));
        assert_eq!(places(Some("/h"), Some("/x")), format!("{here} /x/netstead/netstead.toml {etc}"));
        assert_eq!(
            places(Some("/h"), Some("not/absolute")),
            format!("{here} /h/.config/netstead/netstead.toml {etc}")
        );
    }

    #[test]
    fn a_named_file_must_be_there() {
        let error = find(Some(Path::new("/nowhere/x.toml")), |_| None).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nowhere/x.toml");
    }
}
