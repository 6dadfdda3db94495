//! Another Netstead, over its API: a branch office draws from the pools of the head office.

use std::{sync::Arc, time::Duration};

use netstead_client::{Client, Options, RemotePools};
use netstead_model::PoolBackend;
use netstead_settings::{Configured, Identity, Kind, table};
use netstead_wire::http::check_url;

use super::{BackendKind, BackendTraits};
use crate::{BuildContext, Secret, SettingsError, Tls};

pub const KIND: BackendKind = Kind::new::<Config>("netstead", "another Netstead, over its API", traits);

/// How long one call may take with all its repetitions.
const TIMEOUT: Duration = Duration::from_secs(8);
/// How often a call that got no answer is repeated at once; the worker asks again later anyway.
const RETRIES: u32 = 1;

table! {
    /// `[backend.NAME]` with `type = "netstead"`.
    pub struct Config {
        /// of its API: `https://netstead.example.com:5301`; of a cluster, of each node with commas between them
        url: String, required "\"https://netstead.example.com:5301\"";
        /// a token of it with the role `claim`, a secret
        token: Secret, required "{ file = \"/run/secrets/head-office\" }";
        tls: Tls, all;
    }
}

impl Configured<dyn PoolBackend> for Config {
    fn identity(&self) -> Identity {
        self.urls().fold(Identity::default(), |identity, url| identity.and_url(url, ""))
    }

    fn server(&self) -> String {
        self.url.clone()
    }

    fn check(&self) -> Result<(), SettingsError> {
        for url in self.urls() {
            check_url(url)?;
        }
        self.tls.check()?;
        let unused = [
            ("client_cert", self.tls.client_cert.is_some()),
            ("server_name", self.tls.server_name.is_some()),
            ("fingerprint", self.tls.fingerprint.is_some()),
        ];
        match unused.into_iter().find(|(_, set)| *set) {
            Some((key, _)) => {
                Err(SettingsError::new(key, "a Netstead is trusted by `ca_file` or the machine's roots")
                    .hint("leave it out"))
            }
            None => Ok(()),
        }
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn PoolBackend>, SettingsError> {
        let token = self.token.reveal(context).map_err(|problem| SettingsError::new("token", problem))?;
        let options = Options {
            timeout: TIMEOUT,
            retries: RETRIES,
            ca_file: self.tls.ca_file.clone(),
            insecure: self.tls.insecure,
            ..Options::default()
        };
        let client = Client::new(&self.url, Some(token.expose().trim()), options)
            .map_err(|error| SettingsError::new("url", error.to_string()))?;
        Ok(Arc::new(RemotePools::new(client)))
    }
}

impl Config {
    fn urls(&self) -> impl Iterator<Item = &str> {
        self.url.split(',').map(str::trim)
    }
}

/// It gives every promise of a ledger.
fn traits() -> BackendTraits {
    BackendTraits { one_object_per_key: true, prefixes: true, macs: true }
}
