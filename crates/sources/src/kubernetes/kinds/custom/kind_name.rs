//! [`KindName`]: a kind as kubectl names it, `virtualservices.networking.istio.io`.

use std::{fmt, str::FromStr};

use netstead_model::ParseError;

/// The plural of a kind and its group, with a version between if only that one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindName {
    plural: String,
    version: Option<String>,
    /// Empty for the core group.
    group: String,
}

impl KindName {
    pub(in crate::kubernetes::kinds) fn word(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(in crate::kubernetes::kinds) fn plural(&self) -> &str {
        &self.plural
    }

    pub(in crate::kubernetes::kinds) fn group(&self) -> &str {
        &self.group
    }

    /// Empty if the server's preferred one is meant.
    pub(in crate::kubernetes::kinds) fn versions(&self) -> Vec<String> {
        match &self.version {
            None if self.group.is_empty() => vec!["v1".to_owned()],
            version => version.iter().cloned().collect(),
        }
    }
}

impl FromStr for KindName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |reason: &str| Err(ParseError::new("kind", text, None, reason));
        let good = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if text.len() > 200 || !text.split('.').all(good) {
            return refuse("write the plural of the kind and its group, as `kubectl get crds` prints it");
        }
        let (plural, rest) = text.split_once('.').unwrap_or((text, ""));
        let (first, after) = rest.split_once('.').unwrap_or((rest, ""));
        let (version, group) = if is_version(first) { (Some(first), after) } else { (None, rest) };
        Ok(Self { plural: plural.to_owned(), version: version.map(str::to_owned), group: group.to_owned() })
    }
}

/// `v1`, `v2beta1`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    split.map_or_else(|| digits(rest), |(major, minor)| digits(major) && digits(minor))
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        for part in self.version.iter().chain(Some(&self.group).filter(|group| !group.is_empty())) {
            write!(f, ".{part}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_as_kubectl_names_it() {
        let cases = [
            ("virtualservices.networking.istio.io", "virtualservices", "", "networking.istio.io"),
            (
                "virtualservices.v1beta1.networking.istio.io",
                "virtualservices",
                "v1beta1",
                "networking.istio.io",
            ),
            ("certificates.vault.example.com", "certificates", "", "vault.example.com"),
            ("configmaps", "configmaps", "v1", ""),
        ];
        for (text, plural, version, group) in cases {
            let name: KindName = text.parse().unwrap();
            assert_eq!(
                (name.plural(), name.versions().join(","), name.group()),
                (plural, version.to_owned(), group)
            );
            assert_eq!(name.to_string(), text);
        }
        for wrong in ["", "VirtualService", "a..b", ".a", "a b.c", "a/b.c"] {
            assert!(wrong.parse::<KindName>().is_err(), "{wrong}");
        }
    }
}
