//! [`Outcome`]: what became of the names of one object, in a word and a sentence.

use std::{collections::BTreeSet, fmt::Write as _};

use jiff::Timestamp;
use netstead_model::{NameState, WorkloadNames, WrittenState};

/// Longer messages are cut.
const LONGEST: usize = 900;
/// Names and reasons in one message.
const MOST: usize = 5;
/// The end of a reason that passes by itself: `its load balancer has no address yet`.
const BY_ITSELF: &str = " yet";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every provider has every name.
    Published,
    /// Some name will be written by itself.
    Pending,
    /// Some name is not written until a person changes something.
    Refused,
    /// Something of the object cannot be used, so that it has no name.
    Invalid,
    /// It asks for names, and no provider answers for them.
    NoProvider,
}

impl Verdict {
    /// The reason of the condition and of Events.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Published => "Published",
            Self::Pending => "Pending",
            Self::Refused => "Refused",
            Self::Invalid => "Invalid",
            Self::NoProvider => "NoProvider",
        }
    }

    pub(super) fn is_good(self) -> bool {
        self == Self::Published
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    pub(super) message: String,
}

impl Outcome {
    pub(super) fn of(news: &WorkloadNames) -> Self {
        let having = |state: WrittenState| -> Vec<&NameState> {
            news.names.iter().filter(|one| one.state == state).collect()
        };
        let (refused, pending) = (having(WrittenState::Refused), having(WrittenState::Pending));
        // A name that is written by itself has no reason why it is not.
        let pointless: Vec<&&NameState> = pending.iter().filter(|one| one.why.is_some()).collect();
        let why = |one: &NameState| {
            let why = one.why.as_deref().unwrap_or("it is refused");
            format!("{}: {why}", place(one))
        };
        // Something that comes by itself, or that a person must mend.
        let missing = || {
            let comes = news.why_not.iter().any(|note| note.ends_with(BY_ITSELF));
            if comes { Verdict::Pending } else { Verdict::Invalid }
        };
        let with_notes = |verdict: Verdict, parts: Vec<String>| {
            let mut message = joined(parts);
            if !news.why_not.is_empty() {
                let _ = write!(message, "; note: {}", joined(news.why_not.clone()));
            }
            Self { verdict, message: shortened(message) }
        };
        let alone =
            |verdict: Verdict, parts: Vec<String>| Self { verdict, message: shortened(joined(parts)) };
        if !refused.is_empty() {
            return alone(Verdict::Refused, refused.into_iter().map(why).collect());
        }
        if !pointless.is_empty() && news.why_not.is_empty() {
            return alone(Verdict::Invalid, pointless.into_iter().map(|one| why(one)).collect());
        }
        if !pointless.is_empty() || (news.names.is_empty() && !news.why_not.is_empty()) {
            return alone(missing(), news.why_not.clone());
        }
        if !pending.is_empty() {
            let waits = |one: &NameState| format!("{} is not written yet", place(one));
            return with_notes(Verdict::Pending, pending.into_iter().map(waits).collect());
        }
        if news.names.is_empty() {
            return alone(Verdict::NoProvider, vec!["no provider answers for its names".to_owned()]);
        }
        with_notes(Verdict::Published, news.names.iter().map(place).collect())
    }

    /// Events are few: bad news when they are new, and good news when there were others before, or the object itself is new.
    pub(super) fn is_worth_an_event(
        &self,
        before: Option<&Self>,
        created: Option<Timestamp>,
        began: Timestamp,
    ) -> bool {
        match self.verdict {
            Verdict::Pending => false,
            Verdict::Published => match before {
                Some(before) => !before.verdict.is_good(),
                None => created.is_some_and(|created| created >= began),
            },
            Verdict::Refused | Verdict::Invalid | Verdict::NoProvider => before != Some(self),
        }
    }
}

fn place(one: &NameState) -> String {
    match &one.provider {
        Some(provider) => format!("{} at {provider}", one.name),
        None => one.name.to_string(),
    }
}

fn joined(parts: Vec<String>) -> String {
    let parts: BTreeSet<String> = parts.into_iter().collect();
    let more = parts.len().saturating_sub(MOST);
    let mut text = parts.into_iter().take(MOST).collect::<Vec<_>>().join("; ");
    if more > 0 {
        let _ = write!(text, "; and {more} more");
    }
    text
}

fn shortened(text: String) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    let mut text: String = text.chars().take(LONGEST).collect();
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(states: &[(WrittenState, Option<&str>)], why_not: &[&str]) -> WorkloadNames {
        let name = |(number, (state, why)): (usize, &(WrittenState, Option<&str>))| NameState {
            name: format!("n{number}.test").parse().unwrap(),
            provider: Some("lan".parse().unwrap()),
            state: *state,
            why: why.map(str::to_owned),
        };
        WorkloadNames {
            id: "a".parse().unwrap(),
            names: states.iter().enumerate().map(name).collect(),
            why_not: why_not.iter().map(|why| (*why).to_owned()).collect(),
        }
    }

    #[test]
    fn an_outcome_is_its_worst_part() {
        use WrittenState::{Pending, Refused, Written};
        let cases = [
            (news(&[(Written, None), (Written, None)], &[]), "Published: n0.test at lan; n1.test at lan"),
            (news(&[(Written, None), (Pending, None)], &[]), "Pending: n1.test at lan is not written yet"),
            (news(&[(Refused, Some("taken")), (Pending, None)], &["x"]), "Refused: n0.test at lan: taken"),
            (news(&[], &["values[0]: no address"]), "Invalid: values[0]: no address"),
            (news(&[], &[]), "NoProvider: no provider answers for its names"),
            // A name that the provider's target leads somewhere is published, whatever its object lacks.
            (
                news(&[(Written, None)], &["its own address is not known: it has none"]),
                "Published: n0.test at lan; note: its own address is not known: it has none",
            ),
            (
                news(&[(Pending, None)], &["its own address is not known: it has none"]),
                "Pending: n0.test at lan is not written yet; note: its own address is not known: it has none",
            ),
            // Without one, an address that comes by itself is waited for, and another must be given by a person.
            (
                news(&[(Pending, Some("no address"))], &["its load balancer has no address yet"]),
                "Pending: its load balancer has no address yet",
            ),
            (
                news(&[(Written, None), (Pending, Some("no address"))], &["an IngressRoute has none"]),
                "Invalid: an IngressRoute has none",
            ),
            (news(&[(Pending, Some("no address"))], &[]), "Invalid: n0.test at lan: no address"),
            (news(&[], &["its Gateway has no address yet"]), "Pending: its Gateway has no address yet"),
        ];
        for (news, text) in cases {
            let outcome = Outcome::of(&news);
            assert_eq!(format!("{}: {}", outcome.verdict.word(), outcome.message), text);
        }
    }

    #[test]
    fn good_news_of_old_objects_are_no_event() {
        let began: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let (old, new) = ("2025-12-31T00:00:00Z".parse().ok(), "2026-01-01T00:00:01Z".parse().ok());
        let good = Outcome::of(&news(&[(WrittenState::Written, None)], &[]));
        let bad = Outcome::of(&news(&[(WrittenState::Refused, Some("taken"))], &[]));
        assert!(!good.is_worth_an_event(None, old, began));
        assert!(good.is_worth_an_event(None, new, began));
        assert!(good.is_worth_an_event(Some(&bad), old, began));
        assert!(!good.is_worth_an_event(Some(&good), new, began));
        assert!(bad.is_worth_an_event(None, old, began) && !bad.is_worth_an_event(Some(&bad), new, began));
    }
}
