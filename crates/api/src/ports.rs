//! What the API does not know by itself: configuration files, and what is around the house.

use std::fmt::Debug;

use async_trait::async_trait;
use netstead_client::types::{ConfigProblem, FindingOutput};
use netstead_engine::WhatIfConfig;

/// Whoever understands configuration files.
pub trait ConfigReader: Send + Sync + Debug {
    /// What a file says, with all checks of a start, or everything that is wrong with it. It must read no other file
    /// and no secret: whoever sent the text may be anybody with a token.
    fn read_config(&self, name: &str, text: &str) -> Result<ParsedConfig, Vec<ConfigProblem>>;
}

/// A file that would be taken.
#[derive(Debug, Clone, Default)]
pub struct ParsedConfig {
    pub imagined: WhatIfConfig,
    /// What its plans will not show, one sentence each.
    pub notes: Vec<String>,
}

/// Whoever can look at what is around the house: its file, its nameserver, the resolvers of the machine.
#[async_trait]
pub trait HostDoctor: Send + Sync + Debug {
    /// One finding for each thing that was looked at. Bounded in time.
    async fn diagnose(&self) -> Vec<FindingOutput>;
}
