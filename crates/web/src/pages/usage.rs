//! Charts of pools over time, and of changes per day.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use netstead_client::types::{ChangesOfDay, ForecastOutput, PoolHistoryOutput, UsageOutput};

use crate::{
    calls::{Target, Trouble},
    chart::{BarChart, LineChart, round_top},
    visit::Visit,
};

const DAY: f64 = 86_400.0;
/// Below so many hundredths of a percent a pool is so large that only its claims can be seen.
const SEEN: u32 = 100;
/// Days of changes on the overview.
const CHANGES: &str = "30";

/// The times that a chart can show: the word in the address, the word on the page, and the days.
const SPANS: [(&str, &str, Option<i64>); 4] = [
    ("week", "Week", None),
    ("month", "Month", Some(31)),
    ("year", "Year", Some(366)),
    ("all", "All", Some(i64::MAX)),
];

/// The chart of a pool with its words.
#[derive(Debug)]
pub(crate) struct UsageChart {
    pub(super) chart: LineChart,
    /// The values at the upper edge and in the middle.
    pub(super) top: String,
    pub(super) middle: String,
    pub(super) from: String,
    pub(super) until: String,
    /// The last values in words.
    pub(super) text: String,
    pub(super) forecast: String,
    /// The values as a table: the time, the part in use, the claims, and what was made and ended on that day.
    pub(super) rows: Vec<[String; 5]>,
    pub(super) spans: Vec<(&'static str, String, bool)>,
}

/// One point of a chart.
struct Point {
    at: Timestamp,
    used: u32,
    claims: u64,
    made: Option<(u64, u64)>,
}

/// The chart of a pool, or why there is none.
pub(super) async fn of_pool(
    visit: &Visit,
    href: &str,
    pool: &str,
    span: &str,
) -> Result<UsageChart, Trouble> {
    let history: PoolHistoryOutput = visit.calls.aside(Target::of(["pools", pool, "usage"])).await?;
    Ok(chart(&history, href, span, visit.now))
}

#[expect(clippy::cast_precision_loss, reason = "a chart is some hundred pixels wide")]
fn chart(history: &PoolHistoryOutput, href: &str, span: &str, now: Timestamp) -> UsageChart {
    // A pool that is younger than two days has nothing to show per day yet.
    let usual = if history.days.len() > 2 { "month" } else { "week" };
    let known = SPANS.iter().find(|(word, ..)| *word == span);
    let (word, _, days) =
        known.or_else(|| SPANS.iter().find(|(word, ..)| *word == usual)).unwrap_or(&SPANS[0]);
    let (points, gap) = match days {
        None => (by_hour(history), DAY / 24.0 * 2.5),
        Some(days) => (by_day(history, *days, now), DAY * 1.5),
    };
    let most = points.iter().map(|point| point.used).max().unwrap_or_default();
    let by_part = most >= SEEN;
    let value = |point: &Point| if by_part { f64::from(point.used) / 100.0 } else { point.claims as f64 };
    let highest = points.iter().map(value).fold(0.0, f64::max);
    let top = if by_part { round_top(highest).min(100.0) } else { round_top(highest) };
    let label = |value: f64| if by_part { format!("{value} %") } else { format!("{value}") };
    let text = words(&points, days.is_none());
    let what = if by_part { "Part in use" } else { "Claims" };
    let title = format!("{what} of {} over time", history.pool);
    let place = |point: &Point| (point.at.as_second() as f64, value(point));
    let date = |point: Option<&Point>| point.map(|point| shown(point.at, days.is_none())).unwrap_or_default();
    let row = |point: &Point| {
        let made = point.made.map(|(made, ended)| [made.to_string(), ended.to_string()]).unwrap_or_default();
        let [made, ended] = made;
        [shown(point.at, days.is_none()), part(point.used), point.claims.to_string(), made, ended]
    };
    UsageChart {
        top: label(top),
        middle: label(top / 2.0),
        from: date(points.first()),
        until: "now".to_owned(),
        forecast: history.forecast.as_ref().map(ForecastOutput::sentence).unwrap_or_default(),
        rows: points.iter().rev().map(row).collect(),
        spans: SPANS
            .iter()
            .map(|(other, name, _)| (*name, format!("{href}?chart={other}#over-time"), other == word))
            .collect(),
        chart: LineChart {
            id: "over",
            title,
            text: text.clone(),
            points: points.iter().map(place).collect(),
            top,
            gap,
        },
        text,
    }
}

fn by_hour(history: &PoolHistoryOutput) -> Vec<Point> {
    let point = |sample: &netstead_client::types::UsageSample| Point {
        at: sample.at,
        used: sample.used_permyriad,
        claims: sample.claims,
        made: None,
    };
    history.hours.iter().map(point).collect()
}

fn by_day(history: &PoolHistoryOutput, days: i64, now: Timestamp) -> Vec<Point> {
    let seconds = days.saturating_mul(86_400);
    let oldest = now.as_second().saturating_sub(seconds);
    let point = |day: &netstead_client::types::UsageDay| Point {
        at: begin(day.day),
        used: day.used_permyriad,
        claims: day.claims,
        made: Some((day.claimed, day.ended)),
    };
    history.days.iter().map(point).filter(|point| point.at.as_second() >= oldest).collect()
}

/// The last values in words, so that they can be read without the drawing.
fn words(points: &[Point], by_hour: bool) -> String {
    let Some(last) = points.last() else { return "Nothing is known yet.".to_owned() };
    let now = format!("Now {} in use, {}.", part(last.used), claims(last.claims));
    match points.first().filter(|_| points.len() > 1) {
        Some(first) => {
            format!("{now} On {}: {}, {}.", shown(first.at, by_hour), part(first.used), claims(first.claims))
        }
        None => now,
    }
}

fn claims(count: u64) -> String {
    if count == 1 { "1 claim".to_owned() } else { format!("{count} claims") }
}

/// `12 %`, `0.3 %`
fn part(permyriad: u32) -> String {
    if permyriad >= 1000 || permyriad.is_multiple_of(100) {
        return format!("{} %", permyriad / 100);
    }
    format!("{:.1} %", f64::from(permyriad) / 100.0)
}

fn shown(at: Timestamp, by_hour: bool) -> String {
    let format = if by_hour { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d" };
    at.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

fn begin(day: Date) -> Timestamp {
    day.to_zoned(TimeZone::UTC).map(|day| day.timestamp()).unwrap_or_default()
}

/// The chart of changes per day with its words.
#[derive(Debug)]
pub(crate) struct ChangesChart {
    pub(super) chart: BarChart,
    pub(super) top: String,
    pub(super) middle: String,
    pub(super) from: String,
    pub(super) text: String,
    pub(super) rows: Vec<[String; 4]>,
}

/// Reads the history for the overview. Without it the rest of the page is worth as much.
pub(super) async fn all(visit: &Visit) -> UsageOutput {
    visit.calls.aside(Target::of(["usage"]).with("days", CHANGES)).await.unwrap_or_default()
}

/// The chart of changes; none while there was no change.
#[expect(clippy::cast_precision_loss, reason = "a chart is some hundred pixels high")]
pub(super) fn changes(days: &[ChangesOfDay]) -> Option<ChangesChart> {
    let sums = |day: &ChangesOfDay| [(day.claimed + day.ended) as f64, day.applied as f64];
    let most = days.iter().map(|day| sums(day).iter().sum::<f64>()).fold(0.0, f64::max);
    let (first, today) = (days.first()?, days.last()?);
    if most == 0.0 {
        return None;
    }
    let top = round_top(most).max(2.0);
    let said = |day: &ChangesOfDay| {
        format!("{} made, {} ended, {} at servers", claims(day.claimed), day.ended, day.applied)
    };
    let total = days.iter().map(|day| day.claimed + day.ended + day.applied).sum::<u64>();
    let text = format!("Today: {}. In {} days: {total} changes.", said(today), days.len());
    let row = |day: &ChangesOfDay| {
        [day.day.to_string(), day.claimed.to_string(), day.ended.to_string(), day.applied.to_string()]
    };
    Some(ChangesChart {
        top: format!("{top}"),
        middle: format!("{}", top / 2.0),
        from: first.day.to_string(),
        rows: days.iter().rev().map(row).collect(),
        chart: BarChart {
            id: "changed",
            title: "Changes per day".to_owned(),
            text: text.clone(),
            bars: days.iter().map(|day| (format!("{}: {}", day.day, said(day)), sums(day))).collect(),
            top,
        },
        text,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history() -> PoolHistoryOutput {
        let day = |number: u32| {
            json!({"day": format!("2026-11-{number:02}"), "claims": 50 + number,
            "used_permyriad": 3000 + 100 * number, "claimed": 2, "ended": 1})
        };
        let hour = |number: u32| {
            json!({"at": format!("2026-11-19T{number:02}:00:00Z"), "claims": 60 + number,
            "used_permyriad": 4000})
        };
        serde_json::from_value(json!({
            "pool": "lan", "hours": (0..12).map(hour).collect::<Vec<_>>(), "days": (1..20).map(day).collect::<Vec<_>>(),
            "forecast": {"per_day": 1.6, "days_left": 80},
        }))
        .unwrap()
    }

    #[test]
    fn a_chart_shows_the_days_of_a_month_or_the_hours_of_a_week() {
        let now = "2026-11-19T12:00:00Z".parse().unwrap();
        let month = chart(&history(), "/pools/lan", "", now);
        assert_eq!(
            (month.chart.points.len(), month.top.as_str(), month.middle.as_str()),
            (19, "50 %", "25 %")
        );
        assert_eq!(month.text, "Now 49 % in use, 69 claims. On 2026-11-01: 31 %, 51 claims.");
        assert_eq!(month.forecast, "at 1.6 a day, full in about 80 days");
        assert_eq!(month.rows[0], ["2026-11-19", "49 %", "69", "2", "1"].map(str::to_owned));
        let week = chart(&history(), "/pools/lan", "week", now);
        assert_eq!((week.chart.points.len(), week.from.as_str()), (12, "2026-11-19 00:00"));
        assert!(week.spans.contains(&("Week", "/pools/lan?chart=week#over-time".to_owned(), true)));
    }

    #[test]
    fn a_pool_that_is_almost_empty_for_ever_shows_its_claims() {
        let mut large = history();
        for day in &mut large.days {
            day.used_permyriad = 1;
        }
        let shown = chart(&large, "/pools/six", "month", "2026-11-19T12:00:00Z".parse().unwrap());
        assert_eq!((shown.top.as_str(), shown.chart.title.as_str()), ("100", "Claims of lan over time"));
    }

    #[test]
    fn days_without_a_change_are_no_chart() {
        let day = |claimed, applied| ChangesOfDay {
            day: "2026-11-19".parse().unwrap(),
            claimed,
            ended: 0,
            applied,
        };
        assert!(changes(&[day(0, 0), day(0, 0)]).is_none());
        let chart = changes(&[day(0, 7), day(1, 2)]).unwrap();
        assert_eq!(chart.text, "Today: 1 claim made, 0 ended, 2 at servers. In 2 days: 10 changes.");
        assert_eq!((chart.top.as_str(), chart.chart.bars.len()), ("10", 2));
    }
}
