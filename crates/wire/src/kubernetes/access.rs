//! [`KubernetesAccess`]: where a cluster is, and with which credentials.

use std::path::PathBuf;

use netstead_settings::{Identity, SettingsError, table};

table! {
    /// How a cluster is reached.
    #[derive(Default)]
    pub struct KubernetesAccess {
        /// the kubeconfig with address and credentials of the cluster
        kubeconfig: Option<PathBuf>, unset "the service account of the pod Netstead runs in";
        /// the context of the kubeconfig
        context: Option<String>, unset "its current context";
    }
}

impl Eq for KubernetesAccess {}

impl KubernetesAccess {
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.context.is_some() && self.kubeconfig.is_none() {
            let problem = "a context is part of a kubeconfig, and `kubeconfig` is not set";
            return Err(
                SettingsError::new("context", problem).hint("set `kubeconfig`, or leave `context` out")
            );
        }
        Ok(())
    }

    /// The cluster that is meant, as far as the settings say.
    pub fn identity(&self) -> Identity {
        match &self.kubeconfig {
            None => Identity::own("in-cluster"),
            Some(path) => {
                Identity::own(&format!("{}#{}", path.display(), self.context.as_deref().unwrap_or_default()))
            }
        }
    }

    /// The cluster for people.
    pub fn describe(&self) -> String {
        match (&self.kubeconfig, &self.context) {
            (None, _) => "the cluster Netstead runs in".to_owned(),
            (Some(path), None) => path.display().to_string(),
            (Some(path), Some(context)) => format!("{context} in {}", path.display()),
        }
    }
}
