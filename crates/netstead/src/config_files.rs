//! Opens everything that a configuration names: secrets, keys and certificates. Nothing is connected and nothing is written.

use std::path::Path;

use netstead_settings::{BuildContext, NOT_SET};
use netstead_wire::files;

use crate::{
    config::{Config, Problem, RaftSecurityConfig, Secret, StoreConfig},
    state_dir::variable,
};

/// The only kind that needs the store of a running server, and names no file.
const BUILTIN: &str = "builtin";

/// Whether a problem is of this process alone: a variable or a credential that only the service has.
pub(crate) fn is_elsewhere(problem: &Problem) -> bool {
    problem.message.contains(NOT_SET)
}

/// Everything that a start with this configuration would stumble over, beside what the file itself says.
pub(crate) fn problems(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let context = |name: &netstead_model::Ident| {
        BuildContext::new(name.clone()).with_variables(std::sync::Arc::new(variable))
    };
    for source in &config.sources {
        let built = source.table.build(&format!("source.{}", source.name), &context(&source.name));
        problems.extend(built.err());
    }
    for provider in config.providers.iter().filter(|provider| provider.server.kind.name != BUILTIN) {
        let built = provider.server.build(&format!("dns.{}", provider.name), &context(&provider.name));
        problems.extend(built.err());
    }
    for system in &config.ipam {
        let built = system.server.build(&format!("ipam.{}", system.name), &context(&system.name));
        problems.extend(built.err());
    }
    for backend in &config.backends {
        let built = backend.table.build(&format!("backend.{}", backend.name), &context(&backend.name));
        problems.extend(built.err());
    }
    problems.extend(secrets(config).filter_map(|(key, secret)| {
        let reason = secret.reveal_with(&variable).err()?;
        Some(Problem::new("configuration", format!("{key}: {reason}")))
    }));
    problems.extend(files_of(config).filter_map(|(key, path)| {
        let error = files::read(path, files::MOST_OF_PEM).err()?;
        Some(Problem::new("configuration", format!("{key}: cannot read {}: {error}", path.display())))
    }));
    problems
}

/// Secrets of tables that have no kinds.
fn secrets(config: &Config) -> impl Iterator<Item = (String, &Secret)> {
    let store = match &config.store {
        StoreConfig::Etcd(etcd) => etcd.password.as_ref().map(|secret| ("store.password", secret)),
        StoreConfig::Raft(raft) => match &raft.security {
            RaftSecurityConfig::Secret { secret } => Some(("store.secret", secret)),
            RaftSecurityConfig::Files { .. } | RaftSecurityConfig::Missing => None,
        },
        StoreConfig::Memory | StoreConfig::Local { .. } => None,
    };
    let notify = config.notify.iter().flat_map(|notify| {
        let token = notify.token.as_ref().map(|token| ("notify.token", token));
        std::iter::once(("notify.url", &notify.url)).chain(token)
    });
    let listeners = config.external_dns.iter().filter_map(|table| {
        table.token.as_ref().map(|token| (format!("external_dns.{}.token", table.name), token))
    });
    store.into_iter().chain(notify).map(|(key, secret)| (key.to_owned(), secret)).chain(listeners)
}

/// Certificates and keys of tables that have no kinds.
fn files_of(config: &Config) -> impl Iterator<Item = (String, &Path)> {
    let store: Vec<(&str, &Path)> = match &config.store {
        StoreConfig::Raft(raft) => match &raft.security {
            RaftSecurityConfig::Files { ca_file, cert_file, key_file } => {
                vec![("store.ca_file", ca_file), ("store.cert_file", cert_file), ("store.key_file", key_file)]
            }
            RaftSecurityConfig::Secret { .. } | RaftSecurityConfig::Missing => Vec::new(),
        },
        StoreConfig::Memory | StoreConfig::Local { .. } | StoreConfig::Etcd(_) => Vec::new(),
    };
    let api =
        config.api.tls.iter().flat_map(|tls| [("api.tls_cert", &*tls.cert), ("api.tls_key", &*tls.key)]);
    let peers = config.api.peer_ca_file.iter().map(|file| ("api.peer_ca_file", file.as_path()));
    let listeners = config.external_dns.iter().flat_map(|table| {
        let of = |key: &str| format!("external_dns.{}.{key}", table.name);
        table.tls.iter().flat_map(move |tls| [(of("tls_cert"), &*tls.cert), (of("tls_key"), &*tls.key)])
    });
    store.into_iter().chain(api).chain(peers).map(|(key, path)| (key.to_owned(), path)).chain(listeners)
}
