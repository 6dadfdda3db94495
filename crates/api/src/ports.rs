//! Traits that the binary implements for the API: reading configuration files, and checks of the host.

use std::fmt::Debug;

use async_trait::async_trait;
use netstead_client::types::{ConfigProblem, FindingOutput};
use netstead_engine::WhatIfConfig;

/// Reads configuration files.
pub trait ConfigReader: Send + Sync + Debug {
    /// Parses a file, with all checks of a start, or returns everything that is wrong with it. It must read no other file and
    /// no secret: the text may come from any holder of a token.
    fn read_config(&self, name: &str, text: &str) -> Result<ParsedConfig, Vec<ConfigProblem>>;
}

/// Names of the kinds that this build has, in its own list of them. The `OpenAPI` document names them.
#[derive(Debug, Clone, Default)]
pub struct KindNames {
    pub sources: Vec<&'static str>,
    pub providers: Vec<&'static str>,
}

/// A file that would be taken.
#[derive(Debug, Clone, Default)]
pub struct ParsedConfig {
    pub imagined: WhatIfConfig,
    /// Changes that its plans will not show, one sentence each.
    pub notes: Vec<String>,
}

/// Checks the host: the configuration file, the nameserver, the resolvers of the machine.
#[async_trait]
pub trait HostDoctor: Send + Sync + Debug {
    /// One finding for each thing that was looked at. Bounded in time.
    async fn diagnose(&self) -> Vec<FindingOutput>;

    /// Warnings of the configuration in force, one sentence each, with its place.
    fn warnings(&self) -> Vec<String>;

    /// Why the configuration that was read last is not in force: a sentence without its full stop.
    fn refused_config(&self) -> Option<String>;
}
