//! [`Keeper`]: keeps a certificate that the API server trusts in use.
//!
//! All replicas share one Secret. One of them renews it; its version in the API server decides which. A new certificate is shown only
//! after the API server was told of its authority, and the authority before stays trusted:
//!
//! 1. Replica A writes the new certificate, with both authorities, into the Secret.
//! 2. A tells the API server of both authorities, waits until that has spread, and shows the new certificate.
//! 3. B still shows the old one, which is trusted. It reads the Secret and does the same as A.

use std::{sync::Arc, time::Duration};

use jiff::{Timestamp, ToSpan as _};
use netstead_wire::kubernetes::{KubernetesError, Resource};
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};
use tracing::{debug, info, warn};

use super::{
    SERVICE, WebhookOptions,
    certificate::{Certificate, RENEWAL_DAYS},
    registration::Registration,
};
use crate::{PoolKind, kinds, object::ObjectName, shared::Shared};

/// The annotation of the Secret with the end of its certificate.
const ENDS: &str = "ipam.netstead.io/certificate-ends";
/// The annotation of the Secret with the names that its certificate is for.
const NAMES: &str = "ipam.netstead.io/certificate-names";
/// How soon it is tried again after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// Attempts to write the Secret while other replicas do so too.
const ATTEMPTS: usize = 3;

#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    options: WebhookOptions,
    kinds: Vec<PoolKind>,
    config: watch::Sender<Option<Arc<ServerConfig>>>,
    /// The certificate that is shown.
    shown: Option<Certificate>,
}

impl Keeper {
    pub(super) fn new(
        shared: Arc<Shared>,
        options: WebhookOptions,
        kinds: Vec<PoolKind>,
        config: watch::Sender<Option<Arc<ServerConfig>>>,
    ) -> Self {
        Self { shared, options, kinds, config, shown: None }
    }

    /// Goes on until it is dropped.
    pub(super) async fn run(mut self) {
        let mut told = None;
        loop {
            let pause = match self.look_once().await {
                Ok(()) => {
                    if told.take().is_some() {
                        info!("The webhooks are registered again.");
                    }
                    self.options.interval
                }
                Err(problem) => {
                    // Once for each problem, not every few seconds.
                    if told.as_ref() != Some(&problem) {
                        warn!(problem, "The webhooks are not as they should be; it is tried again.");
                        told = Some(problem);
                    }
                    AGAIN.min(self.options.interval)
                }
            };
            sleep(pause).await;
        }
    }

    async fn look_once(&mut self) -> Result<(), String> {
        let certificate = self.certificate().await?;
        // The authority of the certificate that is shown is trusted until another one is.
        let shown = self.shown.as_ref().and_then(|shown| shown.authorities.as_deref());
        let authorities = match (certificate.authorities.as_deref(), shown) {
            (Some(own), Some(shown)) if own != shown => Some(format!("{own}\n{shown}")),
            (own, _) => own.map(str::to_owned),
        };
        let registration = Registration {
            api: &self.shared.api,
            kinds: &self.kinds,
            namespace: self.shared.namespace.as_deref(),
            options: &self.options,
            authorities: authorities.as_deref(),
        };
        let registered = registration.complete().await;
        if self.shown.as_ref() == Some(&certificate) {
            return registered;
        }
        let config = certificate.server_config()?;
        if self.shown.is_some() {
            // The one that is shown goes on while the API server does not know the new one.
            registered.as_ref().map_err(Clone::clone)?;
            sleep(self.options.settle).await;
        }
        self.config.send_replace(Some(config));
        info!(listen = %self.options.listen, "The webhooks have a new certificate.");
        self.shown = Some(certificate);
        registered
    }

    async fn certificate(&self) -> Result<Certificate, String> {
        if let Some(dir) = &self.options.cert_dir {
            return Certificate::read(dir).await;
        }
        let name = ObjectName::new(&self.options.namespace, SERVICE);
        for _ in 0..ATTEMPTS {
            match self.certificate_of(&name).await {
                Ok(certificate) => return Ok(certificate),
                Err(Problem::Server(KubernetesError::Conflict(_))) => {
                    debug!("Another replica has written the certificate.");
                }
                Err(Problem::Server(error)) => return Err(format!("the Secret {name}: {error}")),
                Err(Problem::Making(error)) => return Err(format!("no certificate can be made: {error}")),
            }
        }
        Err(format!("the Secret {name} is written again and again by others"))
    }

    /// The certificate of the Secret, or a new one that is written there.
    async fn certificate_of(&self, name: &ObjectName) -> Result<Certificate, Problem> {
        let (api, now) = (&self.shared.api, self.shared.clock.wall());
        let resource = secrets();
        let found: Option<Value> = api.get(&resource, name).await?;
        let kept = found.as_ref().and_then(Kept::read);
        let names = self.names();
        if let Some(kept) = &kept
            && kept.names == names.join(",")
            && kept.ends > now + (24 * RENEWAL_DAYS).hours()
        {
            return Ok(kept.certificate.clone());
        }
        let before = kept.as_ref().and_then(|kept| kept.certificate.authorities.as_deref());
        let (certificate, ends) = Certificate::make(&names, before, now)?;
        let secret = secret(found.as_ref(), name, &certificate, &names.join(","), ends);
        if found.is_some() {
            api.replace::<Value>(&resource, name, &secret).await?;
        } else {
            api.create::<Value>(&resource, &name.namespace, &secret).await?;
        }
        info!(%ends, "A new certificate for the webhooks was made.");
        Ok(certificate)
    }

    /// The names by which the API server calls the webhooks.
    fn names(&self) -> Vec<String> {
        if let Some(url) = &self.options.url {
            return vec![host(url).to_owned()];
        }
        let service = format!("{SERVICE}.{}.svc", self.options.namespace);
        vec![format!("{service}.cluster.local"), service]
    }
}

/// Why there is no certificate.
enum Problem {
    Server(KubernetesError),
    Making(rcgen::Error),
}

impl From<KubernetesError> for Problem {
    fn from(error: KubernetesError) -> Self {
        Self::Server(error)
    }
}

impl From<rcgen::Error> for Problem {
    fn from(error: rcgen::Error) -> Self {
        Self::Making(error)
    }
}

/// The contents of the Secret.
struct Kept {
    certificate: Certificate,
    names: String,
    ends: Timestamp,
}

impl Kept {
    /// None of a Secret that lacks something: it is filled anew.
    fn read(secret: &Value) -> Option<Self> {
        let data = |key: &str| {
            let text = secret.get("data")?.get(key)?.as_str()?;
            String::from_utf8(data_encoding::BASE64.decode(text.as_bytes()).ok()?).ok()
        };
        let annotation = |name: &str| secret.get("metadata")?.get("annotations")?.get(name)?.as_str();
        let certificate = Certificate {
            chain: data("tls.crt")?,
            key: data("tls.key")?,
            authorities: Some(data("ca.crt")?),
        };
        certificate.server_config().ok()?;
        Some(Self {
            certificate,
            names: annotation(NAMES)?.to_owned(),
            ends: annotation(ENDS)?.parse().ok()?,
        })
    }
}

/// The Secret with a new certificate; other parts of it stay.
fn secret(
    found: Option<&Value>,
    name: &ObjectName,
    certificate: &Certificate,
    names: &str,
    ends: Timestamp,
) -> Value {
    let fresh = || {
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {
            "name": name.name, "namespace": name.namespace, "labels": { "cluster.x-k8s.io/provider": "ipam-netstead" } } })
    };
    let mut secret = found.cloned().unwrap_or_else(fresh);
    let encoded = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let data = json!({
        "ca.crt": encoded(certificate.authorities.as_deref().unwrap_or_default()),
        "tls.crt": encoded(&certificate.chain),
        "tls.key": encoded(&certificate.key),
    });
    if let Some(fields) = secret.as_object_mut() {
        fields.insert("data".to_owned(), data);
    }
    if let Some(metadata) = secret.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(ENDS.to_owned(), Value::from(ends.to_string()));
            annotations.insert(NAMES.to_owned(), Value::from(names));
        }
    }
    secret
}

fn secrets() -> Resource {
    kinds::resource("", "v1", "secrets", "Secret", true)
}

/// The host of `https://host:port`; that of an IPv6 address is in brackets.
pub(super) fn host(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let rest = rest.split('/').next().unwrap_or(rest);
    if let Some((host, _)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return host;
    }
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_the_host_of_the_url() {
        assert_eq!(host("https://127.0.0.1:9443"), "127.0.0.1");
        assert_eq!(host("https://[fd00::1]:9443/x"), "fd00::1");
        assert_eq!(host("https://ipam.example.net"), "ipam.example.net");
    }

    #[test]
    fn a_secret_comes_back_as_it_was_written_and_keeps_what_others_wrote() {
        let name = ObjectName::new("shop", SERVICE);
        let (certificate, ends) =
            Certificate::make(&["a.example.net".to_owned()], None, Timestamp::UNIX_EPOCH).unwrap();
        let found = json!({ "kind": "Secret", "metadata": { "name": "x", "annotations": { "a": "b" }, "resourceVersion": "7" } });
        assert!(Kept::read(&found).is_none());
        let written = secret(Some(&found), &name, &certificate, "a.example.net", ends);
        assert_eq!(written["metadata"]["annotations"]["a"], "b");
        assert_eq!(written["metadata"]["resourceVersion"], "7");
        let kept = Kept::read(&written).unwrap();
        assert_eq!((kept.certificate, kept.names.as_str(), kept.ends), (certificate, "a.example.net", ends));
    }
}
