//! Logging to stderr: lines of text, or objects of JSON.

use std::{fmt, io::IsTerminal as _, str::FromStr};

use serde::{Serialize, Serializer};
use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The level of the log: `info`, or `info,netstead_store=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter(String);

impl LogFilter {
    pub(crate) fn info() -> Self {
        Self("info".into())
    }

    /// For commands: what a certificate lacks is told as the command's own error.
    pub(crate) fn warn() -> Self {
        Self("warn,rustls_platform_verifier=off,openraft=off,lsm_tree::table::block=off".into())
    }

    /// With one level for all, the storage engine and the libraries of connections stay quiet: they log every file and every
    /// frame. `debug,fjall=debug` names them, and has what they say.
    fn directives(&self) -> String {
        let level = self.0.to_ascii_lowercase();
        if matches!(level.as_str(), "info" | "debug") {
            // openraft tells of a node that is away five times a second, and lsm_tree of a damaged block with every read;
            // the store says so once.
            let quiet = if level == "debug" {
                ",h2=info,hyper=info,hyper_util=info,rustls=info,tower=info"
            } else {
                ""
            };
            format!("{self},fjall=warn,lsm_tree=warn,lsm_tree::table::block=off,openraft=off{quiet}")
        } else {
            self.0.clone()
        }
    }
}

impl FromStr for LogFilter {
    type Err = String;

    /// Stricter than tracing, which takes `inof` for the name of a module.
    fn from_str(text: &str) -> Result<Self, String> {
        let level = |level: &str| {
            matches!(
                level.to_ascii_lowercase().as_str(),
                "off" | "error" | "warn" | "info" | "debug" | "trace"
            )
        };
        for part in text.split(',') {
            let (module, wanted) = part.split_once('=').unwrap_or(("x", part));
            if module.is_empty() || !level(wanted) {
                return Err(format!("`{part}` is no level: use `error`, `warn`, `info`, `debug` or `trace`"));
            }
        }
        EnvFilter::try_new(text).map_err(|error| error.to_string())?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for LogFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Sends everything that is logged from now on, by us and by what we use, to stderr.
pub(crate) fn start(filter: &LogFilter, format: LogFormat) -> anyhow::Result<()> {
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter.directives())?)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(false);
    // `init` hands what is written to `log` (fjall does) to tracing as well.
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).with_target(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_quiet_unless_they_are_named() {
        for text in ["info", "debug", "DEBUG"] {
            let directives = text.parse::<LogFilter>().unwrap().directives();
            assert!(
                directives.contains("fjall=warn") && directives.contains("lsm_tree=warn"),
                "{directives}"
            );
            assert!(EnvFilter::try_new(&directives).is_ok(), "{directives}");
        }
        assert_eq!("debug,fjall=debug".parse::<LogFilter>().unwrap().directives(), "debug,fjall=debug");
        assert_eq!("trace".parse::<LogFilter>().unwrap().directives(), "trace");
    }

    #[test]
    fn a_level_may_be_given_per_module() {
        for text in ["info", "WARN", "off", "info,netstead_store=debug", "info,fjall=error"] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
        for text in ["", "inof", "info,", "=debug", "netstead=loud"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text}");
        }
    }
}
