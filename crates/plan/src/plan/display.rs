//! A plan as people read it, at 80 columns.

use std::{collections::BTreeMap, fmt, sync::Arc};

use netstead_model::{Ident, Name};

use super::{Blocked, DriftKind, Line, Plan, Sign, wrap};
use crate::{KeptReason, Mode, Now};

const WIDTH: usize = 80;
const WIDEST_NAME: usize = 32;
/// So many parked changes, and lines of one kind of note, are shown unless all are wanted.
const MOST: usize = 20;

/// A plan as it reads at one moment.
#[derive(Debug, Clone, Copy)]
pub struct ShownPlan<'a> {
    plan: &'a Plan,
    now: Now,
    most: usize,
}

impl ShownPlan<'_> {
    /// With every parked change and every note.
    #[must_use]
    pub fn in_full(self) -> Self {
        Self { most: usize::MAX, ..self }
    }
}

impl Plan {
    /// The plan with everything that runs out, such as a grace, as it is at `now`.
    pub fn at(&self, now: Now) -> ShownPlan<'_> {
        ShownPlan { plan: self, now, most: MOST }
    }
}

impl fmt::Display for ShownPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.show(f, self.most, |why| why.at(self.now))
    }
}

/// Without a time: see [`Plan::at`].
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, MOST, ToString::to_string)
    }
}

impl Plan {
    fn show(
        &self,
        f: &mut fmt::Formatter<'_>,
        most: usize,
        word: impl Fn(&KeptReason) -> String,
    ) -> fmt::Result {
        let names = self.steps.iter().map(|step| step.unit.name.as_str().len());
        let parked = self.parked.iter().flat_map(|parked| &parked.changes);
        let parked_names = parked.map(|change| change.name.as_str().len());
        let notes = self.blocked.iter().map(|one| &one.name).chain(self.kept.iter().map(|one| &one.name));
        let notes = notes.chain(self.refused.iter().map(|one| &one.name));
        let notes = notes.chain(self.drift.iter().map(|one| &one.name)).map(|name| name.as_str().len());
        let wide = names.chain(parked_names).chain(notes).max().unwrap_or_default().min(WIDEST_NAME);
        self.steps(f, wide)?;
        self.parked(f, wide, most)?;
        self.notes(f, wide, most, word)?;
        self.summary(f)
    }

    fn steps(&self, f: &mut fmt::Formatter<'_>, wide: usize) -> fmt::Result {
        let mut zone: Option<&Name> = None;
        for step in &self.steps {
            if zone != Some(&step.zone) {
                writeln!(f, "zone {} on {}", step.zone, self.provider)?;
                zone = Some(&step.zone);
            }
            for one in &step.lines {
                line(f, wide, &step.unit.name, one)?;
            }
        }
        Ok(())
    }

    fn parked(&self, f: &mut fmt::Formatter<'_>, wide: usize, most: usize) -> fmt::Result {
        let Some(parked) = &self.parked else { return Ok(()) };
        writeln!(f, "parked on {}, until `netstead apply {}`", self.provider, parked.hash)?;
        let mut guards: BTreeMap<&Arc<str>, Vec<_>> = BTreeMap::new();
        for change in &parked.changes {
            guards.entry(&change.guard).or_default().push(change);
        }
        for (guard, changes) in guards {
            writeln!(f, "  because: {guard}")?;
            for change in changes.iter().take(most) {
                for one in &change.lines {
                    line(f, wide, &change.name, one)?;
                }
            }
            self.more(f, changes.len(), most)?;
        }
        Ok(())
    }

    fn notes(
        &self,
        f: &mut fmt::Formatter<'_>,
        wide: usize,
        most: usize,
        word: impl Fn(&KeptReason) -> String,
    ) -> fmt::Result {
        if !self.blocked.is_empty() {
            writeln!(f, "blocked on {}", self.provider)?;
        }
        for blocked in self.blocked.iter().take(most) {
            block(f, wide, blocked, &self.provider)?;
        }
        self.more(f, self.blocked.len(), most)?;
        if !self.refused.is_empty() {
            writeln!(f, "refused on {}: the server cannot hold it", self.provider)?;
        }
        for refused in self.refused.iter().take(most) {
            row(f, '!', wide, &refused.name, "", "", &refused.why)?;
        }
        self.more(f, self.refused.len(), most)?;
        let mut whys: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for kept in &self.kept {
            whys.entry(word(&kept.why)).or_default().push(kept);
        }
        for (why, alike) in whys {
            let why = format!("kept: {why}");
            let many = alike.len() > 2 || alike.len() == 2 && why.chars().count() > WIDTH / 2;
            if many {
                wrap(&why, 0, WIDTH).iter().try_for_each(|line| writeln!(f, "{line}"))?;
            }
            for kept in alike.iter().take(most) {
                let (kind, text) = match &kept.value {
                    Some(value) => (value.kind().as_str(), value.to_string()),
                    None => ("", String::new()),
                };
                row(f, '=', wide, &kept.name, kind, &text, if many { "" } else { &why })?;
            }
            self.more(f, alike.len(), most)?;
        }
        for drift in self.drift.iter().take(most) {
            let why = match drift.kind {
                DriftKind::Missing => "drift: removed on the server",
                DriftKind::Foreign => "drift: not ours, left alone",
                DriftKind::Mark => "drift: a mark of ours that the store does not know; see `recover`",
            };
            let value = if drift.kind == DriftKind::Mark { String::new() } else { drift.value.to_string() };
            row(f, '!', wide, &drift.name, drift.value.kind().as_str(), &value, why)?;
        }
        self.more(f, self.drift.len(), most)
    }

    fn more(&self, f: &mut fmt::Formatter<'_>, all: usize, most: usize) -> fmt::Result {
        let more = all.saturating_sub(most);
        if more == 0 {
            return Ok(());
        }
        writeln!(f, "      and {more} more: `netstead plan {} --all` shows them", self.provider)
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |sign: Sign| {
            self.steps.iter().flat_map(|step| &step.lines).filter(|line| line.sign == sign).count()
        };
        let parked = self.parked.as_ref().map_or(0, |parked| parked.changes.len());
        if self.steps.is_empty() {
            write!(f, "{}: nothing to change", self.provider)?;
        } else {
            let (add, change, remove) = (count(Sign::Add), count(Sign::Change), count(Sign::Remove));
            write!(f, "{}: {add} to add, {change} to change, {remove} to remove", self.provider)?;
        }
        let (blocked, refused, kept) = (self.blocked.len(), self.refused.len(), self.kept.len());
        for (number, what) in [(parked, "parked"), (blocked, "blocked"), (refused, "refused"), (kept, "kept")]
        {
            if number > 0 {
                write!(f, ", {number} {what}")?;
            }
        }
        if self.mode == Mode::Observe {
            write!(f, " (only observed)")?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, wide: usize, name: &Name, line: &Line) -> fmt::Result {
    let sign = line.sign.as_char();
    row(f, sign, wide, name, line.kind.map_or("", |kind| kind.as_str()), &line.text, &line.why)
}

fn block(f: &mut fmt::Formatter<'_>, wide: usize, blocked: &Blocked, provider: &Ident) -> fmt::Result {
    let first = blocked.wanted.first();
    let kind = first.map_or("", |value| value.kind().as_str());
    let wanted: Vec<String> = blocked.wanted.iter().take(3).map(ToString::to_string).collect();
    row(f, '!', wide, &blocked.name, kind, &wanted.join(", "), &blocked.why)?;
    for value in blocked.found.iter().take(3) {
        writeln!(f, "      there: {} {value}", value.kind())?;
    }
    if blocked.adopt {
        writeln!(f, "      take it over: netstead adopt {}", blocked.name)?;
    }
    if let Some(owner) = &blocked.owner {
        writeln!(f, "      if that was this one with a lost store: netstead recover --owner {owner}")?;
    }
    if let Some(free_by) = &blocked.free_by {
        writeln!(f, "      free it: {free_by}")?;
    }
    if blocked.share {
        writeln!(f, "      share the name: share = true in [dns.{provider}]")?;
    }
    Ok(())
}

/// One row; what does not fit goes on a line of its own.
fn row(
    f: &mut fmt::Formatter<'_>,
    sign: char,
    wide: usize,
    name: &Name,
    kind: &str,
    text: &str,
    why: &str,
) -> fmt::Result {
    let mut left = format!("  {sign} {:<wide$}", name.as_str());
    for part in [format!("{kind:<5}").as_str(), text] {
        if !part.trim().is_empty() {
            left.push_str("  ");
            left.push_str(part);
        }
    }
    let mut left = left.trim_end().to_owned();
    if left.chars().count() > WIDTH {
        writeln!(f, "  {sign} {name}")?;
        left = format!("      {kind:<5}  {text}");
    }
    if why.is_empty() {
        return writeln!(f, "{left}");
    }
    if left.chars().count() + 2 + why.chars().count() <= WIDTH {
        return writeln!(f, "{left}  {why}");
    }
    writeln!(f, "{left}")?;
    wrap(why, 6, WIDTH).iter().try_for_each(|line| writeln!(f, "{line}"))
}
