//! Marks as comments on the records, and the one form of them that the engine knows.
//!
//! A comment that marks a record ends with `netstead/1 OWNER TYPE:DIGEST`; text of a person before it stays. The digest is that
//! of the value, so a record that a person changes in the dashboard is not ours any more, although its comment stays.
//!
//! A zone may have marks of both kinds, because the key `marks` was changed. Those of the other kind are read in an unusual form:
//! they count for `recover`, and the next plan replaces them.

use std::collections::{BTreeMap, BTreeSet};

use netstead_model::{
    Name, OwnerId, RecordData, RecordSet, RecordType, SetChange, Unit, Values, WriteOrder,
    mark::{Mark, digest_of, is_mark, mark_name},
};

use super::{AUTOMATIC, MarkForm, wire::Comments};
use crate::dns::{
    per_record::{
        Listing, NewRecord, Record,
        unit_calls::{RecordCall, unit_calls},
    },
    preconditions::ServerRecords,
};

/// The longest comment, on the smallest plan.
const LONGEST_COMMENT: usize = 100;
const BEGIN: &str = "netstead/1 ";
/// The time to live of a mark that is no record.
const USUAL_TTL: u32 = 300;

/// Type and digest of a value.
type Token = (RecordType, String);
type Tokens = BTreeSet<Token>;

/// The records of a zone with their comments.
#[derive(Debug)]
pub(super) struct MarkedZone {
    zone: Name,
    form: MarkForm,
    records: BTreeMap<Name, Vec<Record>>,
    comments: Comments,
    /// Marks that comments say, by name and owner.
    marks: BTreeMap<Name, BTreeMap<OwnerId, Tokens>>,
    /// Names and owners by the name that their mark would have as a TXT record.
    places: BTreeMap<Name, (Name, OwnerId)>,
    found: ServerRecords,
}

/// A call and the comment that goes with it; none leaves the comment as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommentedCall {
    pub(super) call: RecordCall,
    pub(super) comment: Option<String>,
}

impl MarkedZone {
    pub(super) fn new(zone: &Name, form: MarkForm, listing: Listing, comments: Comments) -> Self {
        let found = listing.found();
        let mut records: BTreeMap<Name, Vec<Record>> = BTreeMap::new();
        let mut marks: BTreeMap<Name, BTreeMap<OwnerId, Tokens>> = BTreeMap::new();
        for record in listing.records {
            let comment = comments.get(&record.id).map(String::as_str).unwrap_or_default();
            if let (_, Some((owner, token))) = split(comment) {
                let of_name = marks.entry(record.name.clone()).or_default();
                of_name.entry(owner).or_default().insert(token);
            }
            records.entry(record.name.clone()).or_default().push(record);
        }
        let zone = zone.clone();
        let mut this = Self { zone, form, records, comments, marks, places: BTreeMap::new(), found };
        this.show_marks();
        this
    }

    /// The sets of the zone, marks among them.
    pub(super) fn found(&self) -> &ServerRecords {
        &self.found
    }

    pub(super) fn into_sets(self) -> Vec<RecordSet> {
        self.found.into_sets()
    }

    /// Puts the marks among the sets.
    fn show_marks(&mut self) {
        if self.form == MarkForm::Comment {
            let texts = self.found.sets.values_mut().filter(|set| is_mark_set(set));
            for set in texts {
                set.ttl = AUTOMATIC;
                let marks = set.values.iter().filter_map(Mark::parse);
                set.values = marks.filter_map(|mark| mark.to_unusual_data()).collect::<Values>();
            }
        }
        for (name, of_name) in &self.marks {
            for (owner, tokens) in of_name {
                let delegation = *name != self.zone && tokens.iter().any(|(kind, _)| *kind == RecordType::Ns);
                let Ok(at) = mark_name(owner, name, &self.zone, delegation).parse::<Name>() else { continue };
                let mark = Mark::of_tokens(tokens.iter().cloned());
                let (data, ttl) = match self.form {
                    MarkForm::Comment => (mark.to_data(), AUTOMATIC),
                    MarkForm::Txt => (mark.to_unusual_data(), USUAL_TTL),
                };
                let Some(data) = data else { continue };
                self.places.insert(at.clone(), (name.clone(), owner.clone()));
                let set = self.found.sets.entry((at.clone(), RecordType::Txt));
                let new = || RecordSet::new(at, RecordType::Txt, ttl, []);
                set.or_insert_with(new).values.insert(data);
            }
        }
    }

    /// The calls that make a unit of `owner` true. `note` is the comment of new records that need no mark. An error says why the
    /// marks of the unit cannot be comments.
    pub(super) fn calls(&self, unit: &Unit, owner: &str, note: &str) -> Result<Vec<CommentedCall>, String> {
        let (marks, plain): (Vec<&SetChange>, Vec<&SetChange>) =
            unit.changes.iter().partition(|change| changes_mark(change));
        let plain = match self.form {
            MarkForm::Comment => {
                let changes = plain.into_iter().cloned().collect();
                &Unit { name: unit.name.clone(), changes }
            }
            MarkForm::Txt => unit,
        };
        let names = plain.names();
        let there: Vec<Record> =
            names.into_iter().filter_map(|name| self.records.get(name)).flatten().cloned().collect();
        let mut calls = unit_calls(plain, &there, WriteOrder::InPlace);
        let after = self.marks_after(unit, &marks);
        if self.form == MarkForm::Comment {
            // The records of marks that were TXT.
            let old = marks.iter().filter_map(|change| self.records.get(change.name()?)).flatten();
            let old = old.filter(|record| record.data.kind() == RecordType::Txt);
            calls.extend(old.cloned().map(RecordCall::Delete));
        }
        let named = marks.iter().filter_map(|change| is_mark(change.name()?.as_str()));
        let touched: BTreeSet<&str> = named.chain([owner]).collect();
        let (calls, held) = self.commented(calls, &touched, &after, note);
        match self.asked(&marks).into_iter().find(|token| !held.contains(token)) {
            Some((kind, _)) => Err(format!("a mark is for {kind} records that are not there")),
            None => Ok(calls),
        }
    }

    /// Marks that comments shall say then, at each name that the unit is about.
    fn marks_after(&self, unit: &Unit, changes: &[&SetChange]) -> BTreeMap<Name, BTreeMap<OwnerId, Tokens>> {
        let now = |name: &Name| self.marks.get(name).cloned().unwrap_or_default();
        let mut after = BTreeMap::from([(unit.name.clone(), now(&unit.name))]);
        let place = |change: &SetChange| -> Option<(Name, OwnerId)> {
            let at = change.name()?;
            let owner: OwnerId = is_mark(at.as_str())?.parse().ok()?;
            if is_mark(unit.name.as_str()).is_none() {
                return Some((unit.name.clone(), owner));
            }
            self.places.get(at).cloned()
        };
        let places: Vec<(&SetChange, (Name, OwnerId))> =
            changes.iter().filter_map(|change| Some((*change, place(change)?))).collect();
        for (_, (name, owner)) in &places {
            after.entry(name.clone()).or_insert_with(|| now(name)).remove(owner);
        }
        for (change, (name, owner)) in places.into_iter().filter(|_| self.form == MarkForm::Comment) {
            let values = change.after.iter().flat_map(|set| &set.values);
            let tokens = values.filter_map(Mark::parse).flat_map(|mark| mark.tokens().to_vec());
            let of_name: &mut BTreeMap<OwnerId, Tokens> = after.entry(name).or_default();
            of_name.entry(owner).or_default().extend(tokens);
        }
        after
    }

    /// Adds comments to calls, and calls for records of which only the comment changes. Also returns what is marked then. Marks of
    /// owners that are not `touched` stay, unless the value changes.
    fn commented(
        &self,
        calls: Vec<RecordCall>,
        touched: &BTreeSet<&str>,
        after: &BTreeMap<Name, BTreeMap<OwnerId, Tokens>>,
        note: &str,
    ) -> (Vec<CommentedCall>, Tokens) {
        let mut held = Tokens::new();
        let mut mark = |name: &Name, data: &RecordData| {
            let of_name = after.get(name)?;
            let token = (data.kind(), digest_of(name, data));
            let (owner, _) = of_name.iter().find(|(_, tokens)| tokens.contains(&token))?;
            held.insert(token.clone());
            Some((owner.clone(), token))
        };
        // The new comment of a record that is there, if it is another one.
        let mut changed = |old: &Record, new: &RecordData| {
            let comment = self.comments.get(&old.id).map(String::as_str).unwrap_or_default();
            let (text, marked) = split(comment);
            let shall = mark(&old.name, new);
            let foreign = marked.as_ref().is_some_and(|(owner, _)| !touched.contains(owner.as_str()));
            let stays = marked == shall || foreign && shall.is_none() && old.data == *new;
            (after.contains_key(&old.name) && !stays).then(|| join(text, shall.as_ref()))
        };
        let mut all = Vec::with_capacity(calls.len());
        let mut seen: BTreeSet<String> = BTreeSet::new();
        for call in calls {
            let comment = match &call {
                RecordCall::Delete(old) => {
                    seen.insert(old.id.clone());
                    None
                }
                RecordCall::Update(old, new) => {
                    seen.insert(old.id.clone());
                    changed(old, &new.data)
                }
                RecordCall::Create(_) => None,
            };
            all.push(CommentedCall { call, comment });
        }
        for old in after.keys().filter_map(|name| self.records.get(name)).flatten() {
            if !seen.contains(&old.id)
                && let Some(comment) = changed(old, &old.data)
            {
                let call = RecordCall::Update(old.clone(), old.again());
                all.push(CommentedCall { call, comment: Some(comment) });
            }
        }
        for one in &mut all {
            if let RecordCall::Create(NewRecord { name, data, .. }) = &one.call {
                let shall = mark(name, data);
                one.comment = Some(shall.map_or_else(|| note.to_owned(), |mark| join("", Some(&mark))));
            }
        }
        (all, held)
    }

    /// Tokens that the changes of marks ask for; none where marks are TXT.
    fn asked(&self, marks: &[&SetChange]) -> Tokens {
        let marks = marks.iter().filter(|_| self.form == MarkForm::Comment);
        let after = marks.filter_map(|change| change.after.as_ref());
        let marks = after.flat_map(|set| &set.values).filter_map(Mark::parse);
        marks.flat_map(|mark| mark.tokens().to_vec()).collect()
    }
}

/// Whether the set is a mark: its name and its values say so.
pub(super) fn is_mark_set(set: &RecordSet) -> bool {
    let mut values = set.values.iter();
    set.kind == RecordType::Txt
        && is_mark(set.name.as_str()).is_some()
        && values.all(|value| Mark::parse(value).is_some())
}

fn changes_mark(change: &SetChange) -> bool {
    let mut sets = change.before.iter().chain(&change.after).peekable();
    sets.peek().is_some() && sets.all(is_mark_set)
}

/// The text of a person, and the mark behind it.
fn split(comment: &str) -> (&str, Option<(OwnerId, Token)>) {
    let mark = |(at, _): (usize, &str)| {
        let (text, mark) = comment.split_at_checked(at)?;
        let mut words = mark.strip_prefix(BEGIN)?.split(' ');
        let (owner, token, None) = (words.next()?, words.next()?, words.next()) else { return None };
        let (kind, digest) = token.split_once(':')?;
        Some((text.trim_end(), (owner.parse().ok()?, (kind.parse().ok()?, digest.to_owned()))))
    };
    match comment.rmatch_indices(BEGIN).next().and_then(mark) {
        Some((text, mark)) => (text, Some(mark)),
        None => (comment, None),
    }
}

/// A comment of both. If that is too long, the text is cut.
fn join(text: &str, mark: Option<&(OwnerId, Token)>) -> String {
    let Some((owner, (kind, digest))) = mark else { return cut(text, LONGEST_COMMENT) };
    let mark = format!("{BEGIN}{owner} {kind}:{digest}");
    match cut(text, LONGEST_COMMENT.saturating_sub(mark.len() + 1)) {
        text if text.is_empty() => mark,
        text => format!("{text} {mark}"),
    }
}

pub(super) fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect::<String>().trim_end().to_owned()
}

/// The comment on new records beside TXT marks, for people who look at the zone.
pub(super) fn note(owner: &str, provider: &str) -> String {
    cut(&format!("made by Netstead {owner}, provider {provider}"), LONGEST_COMMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_text_and_mark() {
        let owner: OwnerId = "o".repeat(32).parse().unwrap();
        let mark = (owner, (RecordType::Https, "0123456789ab".to_owned()));
        for text in ["", "mine", "netstead/1 is here"] {
            let comment = join(text, Some(&mark));
            assert_eq!(split(&comment), (text, Some(mark.clone())), "{comment}");
            assert_eq!(join(text, None), text);
        }
        let long = join(&"ä".repeat(200), Some(&mark));
        assert_eq!(long.chars().count(), LONGEST_COMMENT);
        assert_eq!(split(&long).1, Some(mark));
        for foreign in
            ["mine", "netstead/1 o", "netstead/1 o A", "netstead/1 o A:x y", "netstead/1 default A:x"]
        {
            assert_eq!(split(foreign), (foreign, None));
        }
    }
}
