//! `netstead import`

use std::{io::Write as _, path::Path};

use anyhow::{Context as _, bail};
use netstead_wire::files;

use super::say;
use crate::{
    cli::import::{Dnsweaver, ExternalDns, Pipam},
    import::{DNSWEAVER, Variables, convert, external_dns as of_external_dns, from_yaml, pipam},
    output,
};

pub(crate) fn dnsweaver(args: &Dnsweaver) -> anyhow::Result<()> {
    let read = |path: &Path| {
        files::read_named_text(path, files::MOST_OF_CONFIG)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let variables = match (&args.env_file, &args.file) {
        (Some(path), _) => Variables::of_file(&read(path)?).with_context(|| path.display().to_string())?,
        (None, Some(path)) => from_yaml(&read(path)?).with_context(|| path.display().to_string())?,
        (None, None) => Variables::of_environment(),
    };
    if !variables.is_set(DNSWEAVER) && !variables.is_set("PROVIDERS") {
        bail!("there is no {DNSWEAVER}: name dnsweaver's settings with --env-file or --file");
    }
    write(&convert(&variables).text, args.out.as_deref())
}

pub(crate) fn pipam(args: &Pipam) -> anyhow::Result<()> {
    let found = args.file.clone().or_else(|| pipam::usual_places().into_iter().find(|path| path.exists()));
    let Some(path) = found else {
        bail!("there is no pipam/config.toml in its usual places: name pipam's file with --file");
    };
    let text = files::read_named_text(&path, files::MOST_OF_CONFIG)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let file = pipam::parse(&path, &text).with_context(|| path.display().to_string())?;
    write(&pipam::convert(file), args.out.as_deref())
}

pub(crate) async fn external_dns(args: &ExternalDns) -> anyhow::Result<()> {
    let flags = match &args.file {
        Some(path) => {
            let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
            let text = files::read_named_text(path, files::MOST_OF_CONFIG)
                .with_context(|| format!("cannot read {}", path.display()))?;
            of_external_dns::Flags::of_file(&text).with_context(|| path.display().to_string())?
        }
        None => deployed(args).await?,
    };
    write(&of_external_dns::convert(&flags).text, args.out.as_deref())
}

#[cfg(feature = "kubernetes")]
async fn deployed(args: &ExternalDns) -> anyhow::Result<of_external_dns::Flags> {
    use netstead_model::{NoopObserver, SystemClock};
    use netstead_wire::kubernetes::{Cluster, KubernetesAccess};
    use std::sync::Arc;

    for (what, name) in [("namespace", &args.namespace), ("deployment", &args.deployment)] {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        if name.is_empty() || !name.chars().all(plain) {
            bail!("--{what}: `{name}` is no name of an object: it has small letters, digits, `-` and `.`");
        }
    }
    let access = KubernetesAccess { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
    let place = format!("the Deployment {}/{} of {}", args.namespace, args.deployment, access.describe());
    let cluster = Cluster::new(access, Arc::new(NoopObserver), Arc::new(SystemClock));
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/{}", args.namespace, args.deployment);
    let object: serde_json::Value =
        cluster.get(&path).await.with_context(|| format!("cannot read {place}"))?;
    of_external_dns::Flags::of_object(&object).context(place)
}

#[cfg(not(feature = "kubernetes"))]
async fn deployed(_: &ExternalDns) -> anyhow::Result<of_external_dns::Flags> {
    bail!("this build has no Kubernetes: use --file")
}

/// Writes a configuration to a new file, or to stdout.
fn write(text: &str, out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else { return output::emit(text) };
    // A secret may stand in it.
    let file = files::private().write(true).create_new(true).open(path);
    let mut file = file.with_context(|| format!("cannot make {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    say!("{} is written; look at its comments, then: netstead config check {0}", path.display());
    Ok(())
}
