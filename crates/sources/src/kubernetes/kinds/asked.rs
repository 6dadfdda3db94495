//! [`Asked`]: what an object asks for by its own fields, before its annotations are read.

use std::net::IpAddr;

use netstead_model::{Address, Interface, Name};

use crate::dialects::{
    NameRequest, RequestedContent, TargetSpec,
    diagnostics::{Diagnostics, excerpt},
};

/// The names of an object by its kind, and where its names point.
#[derive(Debug)]
pub(in crate::kubernetes) struct Asked {
    pub(in crate::kubernetes) names: Vec<NameRequest>,
    pub(in crate::kubernetes) points: Points,
    pub(in crate::kubernetes) interfaces: Vec<Interface>,
    /// Its addresses are those of a proxy or machine that others share.
    pub(in crate::kubernetes) shared: bool,
    pub(in crate::kubernetes) notes: Diagnostics,
    /// The names in external-dns' annotation `hostname` count.
    pub(in crate::kubernetes) annotated: bool,
    /// Something that its names depend on is not known now, and why.
    pub(in crate::kubernetes) unclear: Option<String>,
}

/// Where names of an object point by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::kubernetes) struct Points {
    pub(in crate::kubernetes) addresses: Vec<Address>,
    /// Of a load balancer that has a name and no address.
    pub(in crate::kubernetes) name: Option<Name>,
    /// Why there is neither.
    pub(in crate::kubernetes) why: Option<String>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            names: Vec::new(),
            points: Points::default(),
            interfaces: Vec::new(),
            shared: false,
            notes: Diagnostics::default(),
            annotated: true,
            unclear: None,
        }
    }
}

impl Asked {
    /// Asks for a host, unless it is none.
    pub(in crate::kubernetes) fn ask(&mut self, host: &str, reason: &str) {
        match host.trim().trim_end_matches('.').parse::<Name>() {
            Ok(name) => self.names.push(NameRequest::new(name, reason)),
            Err(error) => self.notes.add(format!("{reason}: {error}")),
        }
    }

    /// Asks for hosts that point at these addresses, whatever else the object points at.
    pub(in crate::kubernetes) fn ask_at(&mut self, hosts: &str, addresses: &[Address], reason: &str) {
        for host in crate::dialects::list::words(hosts) {
            let before = self.names.len();
            self.ask(host, reason);
            for request in self.names.iter_mut().skip(before) {
                request.content = RequestedContent::Points {
                    target: TargetSpec::Addresses(addresses.to_vec()),
                    kind: None,
                };
            }
        }
    }
}

impl Points {
    pub(in crate::kubernetes) fn none(why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::default() }
    }

    /// Addresses or host names as a status has them: addresses, or else the first name.
    pub(in crate::kubernetes) fn of_texts<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        notes: &mut Diagnostics,
    ) -> Self {
        let (mut addresses, mut names) = (Vec::new(), Vec::new());
        for text in texts.into_iter().map(str::trim).filter(|text| !text.is_empty()) {
            match (text.parse::<IpAddr>(), text.trim_end_matches('.').parse::<Name>()) {
                (Ok(ip), _) => addresses.push(Address::from(ip)),
                (Err(_), Ok(name)) => names.push(name),
                (Err(_), Err(error)) => notes.add(format!("its target `{}`: {error}", excerpt(text))),
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        names.sort_unstable();
        names.dedup();
        if !addresses.is_empty() {
            return Self { addresses, ..Self::default() };
        }
        if names.len() > 1 {
            let all: Vec<String> = names.iter().map(ToString::to_string).collect();
            notes.add(format!("a CNAME has one target, and here are {}: the first is taken", all.join(", ")));
        }
        Self { name: names.into_iter().next(), ..Self::default() }
    }

    pub(in crate::kubernetes) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.name.is_none()
    }
}
