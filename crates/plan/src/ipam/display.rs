//! A plan as people read it.

use std::fmt;

use super::{IpamPlan, diff::subject};
use crate::{Line, Mode, Now, Sign};

/// So many lines of one kind are shown.
const MOST: usize = 20;

impl IpamPlan {
    /// The plan as it reads at this time.
    pub fn at(&self, now: Now) -> String {
        ShownIpamPlan { plan: self, now: Some(now), most: MOST }.to_string()
    }

    /// The same with every note.
    pub fn in_full_at(&self, now: Now) -> String {
        ShownIpamPlan { plan: self, now: Some(now), most: usize::MAX }.to_string()
    }
}

impl fmt::Display for IpamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ShownIpamPlan { plan: self, now: None, most: MOST }.fmt(f)
    }
}

struct ShownIpamPlan<'a> {
    plan: &'a IpamPlan,
    now: Option<Now>,
    most: usize,
}

impl fmt::Display for ShownIpamPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        for line in plan.steps.iter().flat_map(|step| &step.lines) {
            writeln!(f, "  {} {}  {}", line.sign.as_char(), line.text, line.why)?;
        }
        if let Some(parked) = &plan.parked {
            writeln!(f, "parked, until `netstead apply {}`:", parked.hash)?;
            for change in &parked.changes {
                for Line { sign, text, why, .. } in &change.lines {
                    writeln!(f, "  {} {text}  {why}  parked: {}", sign.as_char(), change.guard)?;
                }
            }
        }
        for blocked in plan.blocked.iter().take(self.most) {
            writeln!(f, "  ! {}  blocked: {}", subject(&blocked.key), blocked.why)?;
            if blocked.adopt.is_some() {
                writeln!(f, "      take it over: netstead adopt --object {}", blocked.key)?;
            }
        }
        self.more(f, plan.blocked.len())?;
        for kept in plan.kept.iter().take(self.most) {
            let why = self.now.map_or_else(|| kept.why.to_string(), |now| kept.why.at(now));
            writeln!(f, "  = {}  kept: {why}", subject(&kept.key))?;
        }
        self.more(f, plan.kept.len())?;
        for drift in plan.drift.iter().take(self.most) {
            let empty = || "(empty)".to_owned();
            let found = drift.found.as_ref().map_or_else(empty, ToString::to_string);
            let subject = subject(&drift.key);
            match (&drift.field, &drift.wanted) {
                (Some(field), Some(wanted)) => {
                    writeln!(f, "  ! {subject} {field}: drift: others set {found}, we want {wanted}")?;
                    writeln!(f, "      write ours again: netstead adopt --object {}", drift.key)?;
                }
                _ => writeln!(f, "  ! {subject}  drift: others changed it")?,
            }
        }
        self.more(f, plan.drift.len())?;
        self.summary(f)
    }
}

impl ShownIpamPlan<'_> {
    fn more(&self, f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
        let more = all.saturating_sub(self.most);
        if more == 0 {
            return Ok(());
        }
        writeln!(f, "      and {more} more: `netstead plan {} --all` shows them", self.plan.provider)
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let lines = || plan.steps.iter().flat_map(|step| &step.lines);
        let count = |sign: Sign| lines().filter(|line| line.sign == sign).count();
        if plan.steps.is_empty() {
            write!(f, "{}: nothing to change", plan.provider)?;
        } else {
            let (add, change, remove) = (count(Sign::Add), count(Sign::Change), count(Sign::Remove));
            write!(f, "{}: {add} to add, {change} to change, {remove} to remove", plan.provider)?;
        }
        let parked = plan.parked.as_ref().map_or(0, |parked| parked.changes.len());
        let counts = [
            (parked, "parked"),
            (plan.blocked.len(), "blocked"),
            (plan.kept.len(), "kept"),
            (plan.drift.len(), "drifted"),
        ];
        for (number, what) in counts.into_iter().filter(|(number, _)| *number > 0) {
            write!(f, ", {number} {what}")?;
        }
        if plan.mode == Mode::Observe {
            write!(f, " (only observed)")?;
        }
        Ok(())
    }
}
