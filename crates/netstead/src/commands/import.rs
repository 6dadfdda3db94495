//! `netstead import`

use std::{io::Write as _, path::Path};

use anyhow::{Context as _, bail};
use netstead_wire::files;

use super::say;
use crate::{
    cli::import::Dnsweaver,
    import::{DNSWEAVER, Variables, convert, from_yaml},
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
    let text = convert(&variables).text;
    let Some(path) = &args.out else { return output::emit(&text) };
    // A secret may stand in it.
    let file = files::private().write(true).create_new(true).open(path);
    let mut file = file.with_context(|| format!("cannot make {}", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    say!("{} is written; look at its comments, then: netstead config check {0}", path.display());
    Ok(())
}
