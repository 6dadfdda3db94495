//! `PHPIPAMIPPool`: a subnet of phpIPAM.

use std::sync::Arc;

use async_trait::async_trait;
use netstead_model::{BackendClaim, BackendError, BackendPoolInfo, Ident, PoolBackend as _};
use netstead_operator::{ExternalAddress, ExternalClaim, ExternalPool};
use netstead_providers::{
    BuildContext, PhpIpamSecurity, Secret,
    pool::phpipam::{Config, PhpIpamPools},
};
use serde::Deserialize;
use serde_json::Value;

use super::{TlsSpec, read_spec};

/// `spec` of a `PHPIPAMIPPool`.
#[derive(Deserialize)]
#[serde(default)]
struct PhpIpamSpec {
    subnetid: i64,
    credentials: PhpIpamCredentials,
    tls: TlsSpec,
}

impl Default for PhpIpamSpec {
    fn default() -> Self {
        Self { subnetid: -1, credentials: PhpIpamCredentials::default(), tls: TlsSpec::default() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PhpIpamCredentials {
    username: String,
    password: String,
    app_id: String,
    endpoint: String,
}

pub(super) fn open(spec: &Value) -> Result<Arc<dyn ExternalPool>, String> {
    let spec: PhpIpamSpec = read_spec(spec)?;
    if spec.subnetid < 0 {
        return Err("spec.subnetid: the id of a subnet is needed, as phpIPAM's pages show it".to_owned());
    }
    let credentials = spec.credentials;
    for (name, value) in [
        ("endpoint", &credentials.endpoint),
        ("app_id", &credentials.app_id),
        ("username", &credentials.username),
        ("password", &credentials.password),
    ] {
        if value.is_empty() {
            return Err(format!(
                "spec.credentials.{name}: it is missing, here and in the Secret of credentialsRef"
            ));
        }
    }
    let PhpIpamCredentials { endpoint, app_id, username, password } = credentials;
    let is_https = endpoint.starts_with("https://");
    let mut config = Config::new(endpoint, &app_id, &username, Secret::new(password));
    if is_https {
        config.connection.security = PhpIpamSecurity::SslToken;
    }
    spec.tls.apply_to(&mut config.connection.tls);
    let name = "phpipam".parse::<Ident>().map_err(|error| error.to_string())?;
    let pools = config.open(&BuildContext::new(name)).map_err(|error| {
        let field = match error.key {
            "url" => "credentials.endpoint",
            "app" => "credentials.app_id",
            "user" => "credentials.username",
            "password" => "credentials.password",
            _ => "tls",
        };
        format!("spec.{field}: {}", error.problem)
    })?;
    Ok(Arc::new(PhpIpamPool { pools, subnet: spec.subnetid.to_string() }))
}

/// A subnet of phpIPAM.
#[derive(Debug)]
struct PhpIpamPool {
    pools: PhpIpamPools,
    subnet: String,
}

#[async_trait]
impl ExternalPool for PhpIpamPool {
    async fn describe(&self) -> Result<BackendPoolInfo, BackendError> {
        self.pools.describe(&self.subnet).await
    }

    async fn claim(&self, claim: &ExternalClaim) -> Result<ExternalAddress, BackendError> {
        let wanted = BackendClaim {
            pool: self.subnet.clone(),
            key: claim.key.clone(),
            want: claim.want,
            length: None,
            note: format!("`{}` of Cluster API", claim.hostname),
        };
        self.pools.claim_for_host(&wanted, &claim.hostname).await.map(|object| object.address.into())
    }

    async fn release(&self, claim: &ExternalClaim) -> Result<(), BackendError> {
        self.pools.release_for_host(&self.subnet, &claim.key, &claim.hostname).await
    }
}
