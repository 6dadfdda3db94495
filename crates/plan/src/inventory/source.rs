//! One source over time: its newest view, its configuration, and all workloads it reported.

use std::collections::BTreeMap;

use jiff::Timestamp;
use netstead_model::{Key, View};
use serde::{Deserialize, Serialize};

use super::{Entry, Presence};
use crate::{Digest, Now, SourceRules};

/// The form of the digests that this version makes: over the keys and values of a table as they are written.
const DIGEST_FORM: u8 = 1;

/// What the engine knows about a source beside its reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceConfig {
    /// Over everything in the source's table.
    pub config: Digest,
    /// People say what is in it (`manual`, `ledger`): what it changes was asked for.
    #[serde(default)]
    pub commanded: bool,
    #[serde(default)]
    pub rules: SourceRules,
}

/// The newest view of a source, and everything it brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts")]
pub struct SourceState {
    pub view: View,
    /// When the newest report was begun, for people.
    pub begun: Timestamp,
    /// The same in engine time, which a clock set back does not move.
    pub began: u64,
    /// Engine time of the newest report, and of the newest Complete one.
    pub last: u64,
    pub last_complete: Option<u64>,
    pub session: u64,
    pub config: Digest,
    /// The form of `config`; 0 is that of version 0.1.0, over the settings as that version understood them.
    pub form: u8,
    /// Engine time; reports begun before this were made under another configuration.
    pub configured_at: u64,
    /// It gave a Complete report to the present leader.
    pub fresh: bool,
    pub commanded: bool,
    /// Limits of the names and records the source may ask for.
    pub rules: SourceRules,
    pub detached: bool,
    pub cleaned: bool,
    pub suspect: Option<Suspicion>,
    pub entries: BTreeMap<Key, Entry>,
}

/// Too much vanished at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    pub since: u64,
    /// How often it said so.
    pub polls: u32,
    pub missing: u32,
    pub of: u32,
}

impl Default for SourceState {
    fn default() -> Self {
        Self {
            view: View::Failed { reason: "no report yet".into() },
            begun: Timestamp::MIN,
            began: 0,
            last: 0,
            last_complete: None,
            session: 0,
            config: Digest::of([""]),
            form: 0,
            configured_at: 0,
            fresh: false,
            commanded: false,
            rules: SourceRules::default(),
            detached: false,
            cleaned: false,
            suspect: None,
            entries: BTreeMap::new(),
        }
    }
}

impl SourceState {
    pub(super) fn configure(&mut self, config: &SourceConfig, now: Now) {
        if self.form < DIGEST_FORM {
            self.replace_digest(config.config);
        }
        if self.config != config.config {
            self.config = config.config;
            self.configured_at = now.millis;
        }
        self.commanded = config.commanded;
        self.rules.clone_from(&config.rules);
        self.cleaned = false;
    }

    /// Takes over a digest of an older form, which cannot be compared, as equal: an upgrade alone is no new configuration.
    fn replace_digest(&mut self, new: Digest) {
        let old = std::mem::replace(&mut self.config, new);
        self.form = DIGEST_FORM;
        for entry in self.entries.values_mut() {
            let former = entry.former.iter_mut().map(|former| &mut former.config);
            for digest in former.chain([&mut entry.config]) {
                if *digest == old {
                    *digest = new;
                }
            }
        }
    }

    /// The connection is new: what was absent may be there again.
    pub(super) fn restart(&mut self, now: Now) {
        for entry in self.entries.values_mut() {
            if let Presence::Absent(absence) = &mut entry.presence {
                absence.restart();
            }
            entry.former.iter_mut().for_each(|former| former.absence.restart());
        }
        if let Some(suspect) = &mut self.suspect {
            (suspect.since, suspect.polls) = (now.millis, 0);
        }
    }

    /// Whether its absences may be believed now.
    pub(crate) fn settled(&self) -> bool {
        self.fresh && self.suspect.is_none() && self.view == View::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Now {
        Now { millis, at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn a_digest_of_an_older_form_counts_as_equal_once() {
        let digest = |text: &str| SourceConfig {
            config: Digest::of([text]),
            commanded: false,
            rules: SourceRules::default(),
        };
        // As version 0.1.0 stored it.
        let mut state: SourceState =
            serde_json::from_value(serde_json::json!({ "config": Digest::of(["old"]), "configured_at": 7 }))
                .unwrap();
        state.configure(&digest("new"), at(100));
        assert_eq!((state.config, state.configured_at, state.form), (Digest::of(["new"]), 7, DIGEST_FORM));
        state.configure(&digest("newer"), at(200));
        assert_eq!((state.config, state.configured_at), (Digest::of(["newer"]), 200));
    }
}
