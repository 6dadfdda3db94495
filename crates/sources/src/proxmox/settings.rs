//! `[source.NAME]` with `type = "proxmox"`.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use netstead_model::{Cidr, Name, ParseError, Source, Span};
use netstead_settings::{
    BuildContext, Configured, Identity, Kind, OneOrMore, Secret, SettingsError, Shape, TextShape, choice,
    table,
};
use netstead_wire::{Tls, http::check_url};

use super::{
    Proxmox,
    api::{Api, Credentials},
};
use crate::{SourceKind, SourceTraits};

pub const KIND: SourceKind =
    Kind::new::<ProxmoxSettings>("proxmox", "machines and containers of one Proxmox VE cluster", || {
        SourceTraits { labels: false }
    });

choice! {
    /// A place that a guest's name comes from.
    pub enum HostnameFrom {
        /// The guest agent of a machine.
        Agent = "agent",
        /// `hostname` of a container, `name` of a machine.
        Config = "config",
        /// The name in the list of guests.
        Name = "name",
    }
}

impl std::str::FromStr for HostnameFrom {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let known = Self::ALL.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        known.ok_or_else(|| ParseError::new("place", text, None, "it is none of `agent`, `config`, `name`"))
    }
}

impl std::fmt::Display for HostnameFrom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TextShape for HostnameFrom {
    fn text_shape() -> Shape {
        Shape::Choice(Self::ALL.iter().map(|(word, _)| *word).collect())
    }
}

choice! {
    /// Where the names of guests point.
    #[derive(Default)]
    pub enum GuestTarget {
        /// At the addresses of the guest.
        #[default]
        Guest = "guest",
        /// At the target of each provider.
        Provider = "provider",
    }
}

table! {
    /// One cluster as the file has it.
    pub struct ProxmoxSettings {
        /// addresses of one or more nodes of the cluster; the next is asked when one does not answer
        url: OneOrMore<String>, required "\"https://pve1.example.com:8006\"";
        /// the API token: `USER@REALM!NAME`
        token_id: Option<String>, unset;
        /// the secret of the token
        token_secret: Option<Secret>, unset;
        /// log in with a user instead of a token: `USER@REALM`
        user: Option<String>, unset;
        /// the password of `user`
        password: Option<Secret>, unset;
        /// how often the list of guests is read
        interval: Span, default "15s";
        /// how often the addresses of a guest are read; the guests are spread over this time
        address_interval: Span, default "60s";
        /// where a guest's name comes from, the preferred place first: `agent`, `config`, `name`
        hostname: Vec<HostnameFrom>, default ["agent", "config", "name"];
        /// the domain of guests whose name has none
        domain_suffix: Option<Name>, unset "none: `[domain]` tables decide by address";
        /// a tag `PREFIX+HOST` asks for the name `HOST`
        hostname_tag_prefix: Option<String>, unset;
        /// where names point: at the addresses of the `guest`, or at the target of each `provider`
        target: GuestTarget, default "guest";
        /// only guests on these nodes
        nodes: OneOrMore<String>, unset "all";
        /// only guests in these pools
        pools: OneOrMore<String>, unset "all";
        /// only guests with one of these tags; `web*` is every tag that begins with `web`
        tags: OneOrMore<String>, unset "all";
        /// only guests in these states
        states: OneOrMore<String>, default ["running"];
        /// only addresses in these networks
        networks: OneOrMore<Cidr>, unset "all";
        /// addresses in these networks are left out
        skip_cidrs: OneOrMore<Cidr>, unset "none";
        /// addresses that are published as others: `{ "10.0.3.9" = "198.51.100.9" }`
        ip_map: BTreeMap<String, String>, unset;
        tls_settings: Tls, all;
    }
}

impl ProxmoxSettings {
    fn credentials(&self) -> Result<Credentials, SettingsError> {
        let hint = "write `token_id = \"netstead@pve!dns\"` and `token_secret`, or `user` and `password`";
        match (&self.token_id, &self.token_secret, &self.user, &self.password) {
            (Some(id), Some(secret), None, None) => {
                if !id.contains('@') || !id.contains('!') {
                    let problem = format!("`{id}` is no id of a token");
                    return Err(SettingsError::new("token_id", problem).hint("write it as `USER@REALM!NAME`"));
                }
                Ok(Credentials::Token { id: id.clone(), secret: secret.clone() })
            }
            (None, None, Some(user), Some(password)) => {
                if !user.contains('@') {
                    let problem = format!("`{user}` has no realm");
                    return Err(SettingsError::new("user", problem).hint("write it as `root@pam`"));
                }
                Ok(Credentials::Password { user: user.clone(), password: password.clone() })
            }
            (Some(_), None, None, None) => {
                Err(SettingsError::new("token_secret", "it is missing, and `token_id` is set").hint(hint))
            }
            (None, Some(_), None, None) => {
                Err(SettingsError::new("token_id", "it is missing, and `token_secret` is set").hint(hint))
            }
            (None, None, Some(_), None) => {
                Err(SettingsError::new("password", "it is missing, and `user` is set").hint(hint))
            }
            (None, None, None, None) => Err(SettingsError::new("token_id", "it is missing").hint(hint)),
            _ => Err(SettingsError::new("token_id", "a token and a user are both set").hint(hint)),
        }
    }

    /// `ip_map`, parsed.
    pub(super) fn address_map(&self) -> Result<BTreeMap<IpAddr, IpAddr>, SettingsError> {
        let ip = |text: &str| {
            text.parse::<IpAddr>()
                .map_err(|_| SettingsError::new("ip_map", format!("`{text}` is no address")))
        };
        self.ip_map.iter().map(|(from, to)| Ok((ip(from)?, ip(to)?))).collect()
    }
}

impl Configured<dyn Source> for ProxmoxSettings {
    fn identity(&self) -> Identity {
        self.url.iter().fold(Identity::default(), |identity, url| identity.and_url(url, ""))
    }

    fn server(&self) -> String {
        self.url.join(", ")
    }

    fn check(&self) -> Result<(), SettingsError> {
        if self.url.is_empty() {
            return Err(SettingsError::new("url", "it is empty"));
        }
        self.url.iter().try_for_each(|url| check_url(url))?;
        self.tls_settings.check()?;
        self.credentials()?;
        for (key, span) in [("interval", self.interval), ("address_interval", self.address_interval)] {
            if Duration::from(span) < Duration::from_secs(1) {
                return Err(SettingsError::new(key, "it is shorter than a second"));
            }
        }
        self.address_map().map(drop)
    }

    fn build(&self, context: &BuildContext) -> Result<Arc<dyn Source>, SettingsError> {
        let api = Api::new(&self.url, &self.tls_settings, &self.credentials()?, context)?;
        Ok(Arc::new(Proxmox::new(self.clone(), api, context)?))
    }
}
