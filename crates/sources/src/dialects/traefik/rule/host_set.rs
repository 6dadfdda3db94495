//! Sets of hosts: some, or all but some.

use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostSet {
    These(BTreeSet<String>),
    AllBut(BTreeSet<String>),
}

impl HostSet {
    pub(super) const ALL: Self = Self::AllBut(BTreeSet::new());
    pub(super) const NONE: Self = Self::These(BTreeSet::new());

    fn not(self) -> Self {
        match self {
            Self::These(hosts) => Self::AllBut(hosts),
            Self::AllBut(hosts) => Self::These(hosts),
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::These(a), Self::These(b)) => Self::These(common(a, b)),
            (Self::AllBut(a), Self::AllBut(b)) => Self::AllBut(joined(a, b)),
            (Self::These(these), Self::AllBut(but)) | (Self::AllBut(but), Self::These(these)) => {
                Self::These(without(these, &but))
            }
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    pub(super) fn contains(&self, host: &str) -> bool {
        match self {
            Self::These(hosts) => hosts.contains(host),
            Self::AllBut(hosts) => !hosts.contains(host),
        }
    }
}

// Each of these looks at the smaller set only, so a long chain of alternatives costs little more than its length.

fn joined(a: BTreeSet<String>, b: BTreeSet<String>) -> BTreeSet<String> {
    let (mut large, small) = if a.len() < b.len() { (b, a) } else { (a, b) };
    large.extend(small);
    large
}

fn common(a: BTreeSet<String>, b: BTreeSet<String>) -> BTreeSet<String> {
    let (large, mut small) = if a.len() < b.len() { (b, a) } else { (a, b) };
    small.retain(|host| large.contains(host));
    small
}

fn without(mut these: BTreeSet<String>, but: &BTreeSet<String>) -> BTreeSet<String> {
    if these.len() < but.len() {
        these.retain(|host| !but.contains(host));
    } else {
        for host in but {
            these.remove(host);
        }
    }
    these
}

/// The hosts for which an expression can be true, and those for which it is always true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostCondition {
    pub(super) can: HostSet,
    sure: HostSet,
}

impl HostCondition {
    /// It holds for these hosts and no other.
    pub(super) fn exactly(hosts: BTreeSet<String>) -> Self {
        Self { can: HostSet::These(hosts.clone()), sure: HostSet::These(hosts) }
    }

    /// The expression is about something else, or cannot be judged.
    pub(super) fn open() -> Self {
        Self { can: HostSet::ALL, sure: HostSet::NONE }
    }

    pub(super) fn not(self) -> Self {
        Self { can: self.sure.not(), sure: self.can.not() }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self { can: self.can.and(other.can), sure: self.sure.and(other.sure) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { can: self.can.or(other.can), sure: self.sure.or(other.sure) }
    }
}
