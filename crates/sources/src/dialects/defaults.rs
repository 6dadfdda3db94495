//! Labels that count for all names of a workload.

use netstead_model::{Ident, RecordType};

use super::{
    NameRequest, RequestedContent, TargetSpec,
    diagnostics::Diagnostics,
    fields::{Fields, Unusable},
};

/// Defaults for names without settings of their own.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    pub(super) ttl: Option<u32>,
    pub(super) target: Option<TargetSpec>,
    pub(super) kind: Option<RecordType>,
    pub(super) providers: Vec<Ident>,
    pub(super) adopt: Option<bool>,
    pub(super) share: Option<bool>,
    pub(super) proxied: Option<bool>,
    pub(super) pool: Option<Ident>,
    /// Something that decides where names go cannot be read, so no name may go anywhere.
    pub(super) unusable: bool,
}

impl Defaults {
    /// Those of `netstead.*`: everything but the names themselves.
    pub(super) fn of_netstead(fields: &Fields<'_>, notes: &mut Diagnostics) -> Self {
        let mut unusable = false;
        let mut blame = |Unusable| unusable = true;
        let target = fields.target(notes).map_err(&mut blame).unwrap_or_default();
        let kind = fields.kind(notes).map_err(&mut blame).unwrap_or_default();
        let providers =
            fields.providers(&["provider", "providers"], notes).map_err(&mut blame).unwrap_or_default();
        let kind = kind.filter(|kind| {
            let pointer = matches!(kind, RecordType::A | RecordType::Aaaa | RecordType::Cname);
            if !pointer {
                fields.note("type", "only A, AAAA or CNAME; others go under netstead.records.<n>", notes);
                unusable = true;
            }
            pointer
        });
        Self {
            ttl: fields.ttl(notes),
            target,
            kind,
            providers,
            adopt: fields.flag("adopt", notes),
            share: fields.flag("share", notes),
            proxied: fields.flag("proxied", notes),
            pool: fields.parsed("pool", notes).unwrap_or_default(),
            unusable,
        }
    }

    /// Those of `dnsweaver.*`: to which instances the names go, and whether equal records are taken over.
    pub(super) fn of_dnsweaver(fields: &Fields<'_>, notes: &mut Diagnostics) -> Self {
        let providers = fields.providers(&["provider", "instances"], notes);
        Self {
            unusable: providers.is_err(),
            providers: providers.unwrap_or_default(),
            adopt: fields.flag("adopt", notes),
            ..Self::default()
        }
    }

    /// The ask with what it left open; none when that cannot be known.
    pub(super) fn complete(&self, mut ask: NameRequest) -> Option<NameRequest> {
        if self.unusable {
            return None;
        }
        if let RequestedContent::Points { target, kind } = &mut ask.content {
            if *target == TargetSpec::Source
                && let Some(own) = &self.target
            {
                *target = own.clone();
            }
            *kind = kind.or(self.kind);
        }
        ask.ttl = ask.ttl.or(self.ttl);
        if ask.providers.is_empty() {
            ask.providers.clone_from(&self.providers);
        }
        ask.adopt = ask.adopt.or(self.adopt);
        ask.share = ask.share.or(self.share);
        ask.proxied = ask.proxied.or(self.proxied);
        Some(ask)
    }
}
