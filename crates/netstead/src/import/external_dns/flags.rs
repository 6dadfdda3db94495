//! Flags as external-dns reads them, with a note which of them were used.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::{MOST_WORDS, manifest, quoted};

/// The beginning of every variable.
const PREFIX: &str = "EXTERNAL_DNS_";
/// Flags without a value; `--no-NAME` switches them off.
const BOOLEANS: [&str; 45] = [
    "always-publish-not-ready-addresses",
    "aws-evaluate-target-health",
    "aws-prefer-cname",
    "aws-sd-service-cleanup",
    "aws-zone-match-parent",
    "cloudflare-custom-hostnames",
    "cloudflare-proxied",
    "cloudflare-regional-services",
    "combine-fqdn-annotation",
    "coredns-strictly-owned",
    "create-ptr",
    "dry-run",
    "events",
    "exclude-unschedulable",
    "expose-internal-ipv6",
    "force-default-targets",
    "godaddy-api-ote",
    "ignore-hostname-annotation",
    "ignore-ingress-rules-spec",
    "ignore-ingress-tls-spec",
    "ignore-non-host-network-pods",
    "listen-endpoint-events",
    "ns1-ignoressl",
    "oci-auth-instance-principal",
    "once",
    "ovh-enable-cname-relative",
    "pdns-skip-tls-verify",
    "pihole-tls-skip-verify",
    "prefer-alias",
    "publish-host-ip",
    "publish-internal-services",
    "resolve-service-load-balancer-hostname",
    "rfc2136-create-ptr",
    "rfc2136-gss-tsig",
    "rfc2136-insecure",
    "rfc2136-skip-tls-verify",
    "rfc2136-tsig-axfr",
    "rfc2136-use-tls",
    "traefik-disable-legacy",
    "traefik-disable-new",
    "traefik-enable-legacy",
    "txt-encrypt-enabled",
    "txt-new-format-only",
    "version",
    "webhook-server",
];
/// Beginnings of flags, and the providers they are for.
pub(super) const PROVIDERS: [(&str, &str); 27] = [
    ("akamai-", "akamai"),
    ("alibaba-cloud-", "alibabacloud"),
    ("aws-", "aws aws-sd"),
    ("azure-", "azure azure-dns azure-private-dns"),
    ("cf-", "cloudfoundry"),
    ("cloudflare-", "cloudflare"),
    ("coredns-", "coredns skydns"),
    ("digitalocean-", "digitalocean"),
    ("dynamodb-", "aws"),
    ("exoscale-", "exoscale"),
    ("godaddy-", "godaddy"),
    ("google-", "google"),
    ("inmemory-", "inmemory"),
    ("ns1-", "ns1"),
    ("oci-", "oci"),
    ("ovh-", "ovh"),
    ("pdns-", "pdns"),
    ("pihole-", "pihole"),
    ("plural-", "plural"),
    ("rfc2136-", "rfc2136"),
    ("scw-", "scaleway"),
    ("tls-", "pdns rfc2136"),
    ("transip-", "transip"),
    ("ultradns-", "ultradns"),
    ("webhook-provider-", "webhook"),
    ("zone-id-", "cloudflare"),
    ("zone-name-", "azure"),
];
/// Ends of names of flags that hold what must not be printed.
const SECRET: [&str; 8] =
    ["-key", "secret", "password", "token", "apikey", "-account", "aes-key", "credentials"];

/// Flags that are carried over and have a value. A flag that is not known may have none.
const VALUED: [&str; 49] = [
    "annotation-filter",
    "crd-source-apiversion",
    "crd-source-kind",
    "default-targets",
    "domain-filter",
    "exclude-domains",
    "exclude-record-types",
    "exclude-target-net",
    "fqdn-template",
    "gateway-name",
    "gateway-namespace",
    "ingress-class",
    "interval",
    "kubeconfig",
    "label-filter",
    "log-format",
    "log-level",
    "managed-record-types",
    "migrate-from-txt-owner",
    "namespace",
    "pdns-api-key",
    "pdns-server",
    "pdns-server-id",
    "pihole-api-version",
    "pihole-password",
    "pihole-server",
    "policy",
    "provider",
    "regex-domain-exclusion",
    "regex-domain-filter",
    "registry",
    "rfc2136-host",
    "rfc2136-load-balancing-strategy",
    "rfc2136-min-ttl",
    "rfc2136-port",
    "rfc2136-tsig-keyname",
    "rfc2136-tsig-secret",
    "rfc2136-tsig-secret-alg",
    "rfc2136-zone",
    "server",
    "service-type-filter",
    "source",
    "target-net-filter",
    "txt-encrypt-aes-key",
    "txt-owner-id",
    "txt-prefix",
    "txt-suffix",
    "webhook-provider-url",
    "zone-id-filter",
];

/// A value: a text, or the name of the variable that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FlagValue {
    Text(String),
    Variable(String),
    /// A text with a variable in it whose value is not known: `team-$(NAME)`.
    Unknown(String),
}

/// All flags by name, without the dashes.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    all: BTreeMap<String, Vec<FlagValue>>,
    used: RefCell<BTreeSet<String>>,
    /// Flags that would have been made use of, if their values were known.
    unread: RefCell<BTreeSet<String>>,
    /// Variables that are no flags, such as `CF_API_TOKEN`.
    pub(super) variables: BTreeSet<String>,
}

impl Flags {
    /// A file: the words of a command line, a list of arguments in YAML, or the workload that external-dns is.
    pub(crate) fn of_file(text: &str) -> anyhow::Result<Self> {
        let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let Some(first) = first else { bail!("it is empty") };
        if !first.starts_with(['{', '['])
            && !first.starts_with("- ")
            && !first.contains(": ")
            && !first.ends_with(':')
            && first != "---"
        {
            return Self::of_words(&words(text)?, &BTreeMap::new());
        }
        let mut other = None;
        for part in format!("\n{text}").split("\n---") {
            let part = part.trim();
            if part.lines().all(|line| line.is_empty() || line.starts_with('#')) {
                continue;
            }
            let document: Value = serde_saphyr::from_str(part).context("it is neither flags nor YAML")?;
            if let Value::Array(items) = &document {
                let words: Vec<String> =
                    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                return Self::of_words(&words, &BTreeMap::new());
            }
            match Self::of_object(&document) {
                Ok(flags) => return Ok(flags),
                Err(error) => other = Some(error),
            }
        }
        Err(other.unwrap_or_else(|| anyhow::anyhow!("it has no document")))
    }

    /// The flags of a Deployment, or of what else has Pods.
    pub(crate) fn of_object(object: &Value) -> anyhow::Result<Self> {
        let container = manifest::container(object)?;
        let variables = manifest::variables(container)?;
        Self::of_words(&manifest::words(container), &variables)
    }

    fn of_words(words: &[String], variables: &BTreeMap<String, FlagValue>) -> anyhow::Result<Self> {
        let mut flags = Self::default();
        // What stands before the first flag is the program.
        let mut rest = words.iter().skip_while(|word| !word.starts_with("--")).peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
                bail!("`{}` is no flag: external-dns takes only words that begin with `--`", shown(word));
            };
            let (name, value) =
                flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            let off = name.strip_prefix("no-").filter(|name| BOOLEANS.contains(name));
            if let Some(name) = off {
                flags.add(name, FlagValue::Text("false".to_owned()));
            } else if BOOLEANS.contains(&name) {
                flags.add(name, FlagValue::Text(value.unwrap_or("true").to_owned()));
            } else if let Some(value) = value {
                flags.add(name, resolved(value, variables));
            } else if let Some(value) = rest.next_if(|next| !next.starts_with("--")) {
                flags.add(name, resolved(value, variables));
            } else if VALUED.contains(&name) {
                bail!("--{name} has no value");
            } else {
                // A switch of another version of external-dns.
                flags.add(name, FlagValue::Text("true".to_owned()));
            }
        }
        for (variable, value) in variables {
            let Some(name) = variable.strip_prefix(PREFIX) else {
                flags.variables.insert(variable.clone());
                continue;
            };
            // A flag goes before a variable.
            let name = name.to_ascii_lowercase().replace('_', "-");
            if flags.all.contains_key(&name) {
                continue;
            }
            match value {
                FlagValue::Text(text) => text
                    .lines()
                    .filter(|line| !line.is_empty())
                    .for_each(|line| flags.add(&name, FlagValue::Text(line.to_owned()))),
                // The pod that Netstead runs in gets it in the same way.
                FlagValue::Variable(_) | FlagValue::Unknown(_) => {
                    flags.add(&name, FlagValue::Variable(variable.clone()));
                }
            }
        }
        Ok(flags)
    }

    fn add(&mut self, name: &str, value: FlagValue) {
        self.all.entry(name.to_owned()).or_default().push(value);
    }

    fn values(&self, name: &str) -> &[FlagValue] {
        let values = self.all.get(name).map(Vec::as_slice).unwrap_or_default();
        if !values.is_empty() {
            self.used.borrow_mut().insert(name.to_owned());
        }
        values
    }

    /// The texts of a flag that may be given more than once, each with commas or not. From now on it counts as made use of.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        let texts = self.values(name).iter().filter_map(|value| self.known(name, value));
        texts.flat_map(|text| text.split(',')).map(str::trim).filter(|text| !text.is_empty()).collect()
    }

    /// The last text of a flag that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let last = self.known(name, self.values(name).last()?)?;
        Some(last.trim()).filter(|text| !text.is_empty())
    }

    /// The text of a value. One that is only known in the cluster is noted.
    fn known<'a>(&self, name: &str, value: &'a FlagValue) -> Option<&'a str> {
        if let FlagValue::Text(text) = value {
            return Some(text);
        }
        self.unread.borrow_mut().insert(name.to_owned());
        None
    }

    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).map(|text| matches!(text, "true" | "1"))
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.switch(name) == Some(true)
    }

    /// A secret as the configuration has it: pointed at where it is in a variable, or written out.
    pub(super) fn secret(&self, name: &str) -> Option<String> {
        match self.values(name).last()? {
            FlagValue::Variable(variable) => Some(format!("{{ env = {} }}", quoted(variable))),
            FlagValue::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(quoted),
            FlagValue::Unknown(_) => {
                self.unread.borrow_mut().insert(name.to_owned());
                None
            }
        }
    }

    /// The flags whose values are only known in the cluster, and each as a line for people.
    pub(super) fn unread(&self) -> Vec<(String, String)> {
        let unread = self.unread.borrow();
        self.all.iter().filter(|(name, _)| unread.contains(*name)).map(line).collect()
    }

    /// The flags that were not used, and each as a line for people.
    pub(super) fn left(&self) -> Vec<(String, String)> {
        let used = self.used.borrow();
        self.all.iter().filter(|(name, _)| !used.contains(*name)).map(line).collect()
    }
}

/// A flag with its values, as people may see it.
fn line((name, values): (&String, &Vec<FlagValue>)) -> (String, String) {
    let secret = SECRET.iter().any(|end| name.ends_with(end));
    let text = |value: &FlagValue| match value {
        FlagValue::Text(_) | FlagValue::Unknown(_) if secret => "(a secret)".to_owned(),
        FlagValue::Text(text) | FlagValue::Unknown(text) => shown(text),
        FlagValue::Variable(variable) => format!("$({variable})"),
    };
    let texts: Vec<String> = values.iter().map(text).collect();
    (name.clone(), format!("--{name}={}", texts.join(",")))
}

/// A text on one line.
fn shown(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `$(NAME)` is the variable; within a longer text its value stands in its place.
fn resolved(text: &str, variables: &BTreeMap<String, FlagValue>) -> FlagValue {
    let whole = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(name) = whole.filter(|name| !name.contains(['(', ')'])) {
        return match variables.get(name) {
            Some(FlagValue::Text(text)) => FlagValue::Text(text.clone()),
            _ => FlagValue::Variable(name.to_owned()),
        };
    }
    let (mut out, mut known) = (text.to_owned(), true);
    for (name, value) in variables {
        let place = format!("$({name})");
        match value {
            FlagValue::Text(value) => out = out.replace(&place, value),
            _ => known &= !out.contains(&place),
        }
    }
    if known { FlagValue::Text(out) } else { FlagValue::Unknown(out) }
}

/// The words of a command line: quotes hold a word together, and a backslash takes the next character as it is. A line that
/// begins with `#` is a comment.
fn words(text: &str) -> anyhow::Result<Vec<String>> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let (mut words, mut word, mut quote): (Vec<String>, Option<String>, Option<char>) =
        (Vec::new(), None, None);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => match rest.next() {
                Some('\n') => {}
                Some(next) => word.get_or_insert_default().push(next),
                None => bail!("it ends with a backslash"),
            },
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
        if words.len() > MOST_WORDS {
            bail!("it has more than {MOST_WORDS} words");
        }
    }
    if let Some(open) = quote {
        bail!("a quote `{open}` is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        Flags::of_file(text).unwrap().left().into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn words_lists_and_workloads_are_the_same_flags() {
        let flags = ["--events=true", "--fqdn-template={{.Name}}.a b", "--source=ingress,service"];
        let words = "external-dns --source=ingress \\\n  --source service # no comment here\n";
        assert!(Flags::of_file(words).is_err());
        assert_eq!(
            told(
                "# ours\nexternal-dns --source=ingress \\\n  --source service --events '--fqdn-template={{.Name}}.a b'\n"
            ),
            flags
        );
        assert_eq!(
            told("- --source=ingress\n- --source=service\n- --events\n- --fqdn-template={{.Name}}.a b\n"),
            flags
        );
        let deployment = "\
apiVersion: apps/v1
kind: Deployment
metadata: { name: external-dns }
spec:
  template:
    spec:
      containers:
      - name: sidecar
        image: other
      - name: main
        image: registry.k8s.io/external-dns/external-dns:v0.21.0
        args: [--source=ingress, --source=service]
        env:
        - { name: EXTERNAL_DNS_EVENTS, value: \"true\" }
        - { name: EXTERNAL_DNS_FQDN_TEMPLATE, value: \"{{.Name}}.a b\" }
        - { name: EXTERNAL_DNS_SOURCE, value: node }
";
        assert_eq!(told(deployment), flags);
    }

    #[test]
    fn what_is_no_flag_is_refused_and_secrets_are_not_shown() {
        for (text, why) in [
            ("", "it is empty"),
            ("external-dns --source=ingress stray", "`stray` is no flag"),
            ("--source", "--source has no value"),
            ("--source --events", "--source has no value"),
            ("--source='a", "a quote `'` is not closed"),
            ("kind: Service\nmetadata: {}\n", "there is no container"),
        ] {
            let error = Flags::of_file(text).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{text}: {error:#}");
        }
        assert_eq!(
            told("--pdns-api-key=hunter2 --no-events"),
            ["--events=false", "--pdns-api-key=(a secret)"]
        );
    }

    #[test]
    fn a_switch_of_another_version_is_kept_and_a_value_that_is_not_known_is_said() {
        assert_eq!(
            told("--new-switch --no-new-habit --source=a"),
            ["--new-switch=true", "--no-new-habit=true", "--source=a"]
        );
        let text = "\
kind: Pod
spec:
  containers:
  - name: external-dns
    args: [--label-filter=$(LABELS), \"--namespace=team-$(TEAM)\", --source=$(KIND), --pdns-api-key=x$(KEY)]
    env:
    - { name: LABELS, valueFrom: { configMapKeyRef: { name: a, key: labels } } }
    - { name: TEAM, valueFrom: { configMapKeyRef: { name: a, key: team } } }
    - { name: KEY, valueFrom: { secretKeyRef: { name: a, key: key } } }
    - { name: KIND, value: ingress }
";
        let flags = Flags::of_file(text).unwrap();
        assert_eq!((flags.text("label-filter"), flags.text("namespace")), (None, None));
        assert_eq!((flags.list("source"), flags.secret("pdns-api-key")), (vec!["ingress"], None));
        let unread: Vec<String> = flags.unread().into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            unread,
            ["--label-filter=$(LABELS)", "--namespace=team-$(TEAM)", "--pdns-api-key=(a secret)"]
        );
        assert_eq!(flags.left(), []);
    }
}
