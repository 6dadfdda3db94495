//! `netstead import`

use std::{io::Write as _, path::Path};

use anyhow::{Context as _, bail};
use netstead_wire::files;

use super::say;
use crate::{
    cli::import::{Dnsweaver, Pipam},
    import::{DNSWEAVER, Variables, convert, from_yaml, pipam},
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
