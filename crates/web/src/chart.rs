//! Charts as SVG: made on the server, without a script or a style of their own.

use std::fmt::{self, Write as _};

use askama::filters::HtmlSafe;

/// Width of a drawing in its own units. The browser stretches it, so the text stands beside it.
const WIDE: f64 = 1000.0;
const HIGH: f64 = 100.0;

/// A line over time, filled below. A time without a point is a gap.
#[derive(Debug, Clone)]
pub(crate) struct LineChart {
    /// Makes ids unique on the page.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) text: String,
    /// Steps of time since some moment, in order, and values.
    pub(crate) points: Vec<(f64, f64)>,
    /// The value at the upper edge.
    pub(crate) top: f64,
    /// Points that are further apart are not joined.
    pub(crate) gap: f64,
}

impl LineChart {
    /// The points that follow each other without a gap, in the units of the drawing.
    fn runs(&self) -> Vec<Vec<(f64, f64)>> {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else { return Vec::new() };
        let (begin, length) = (first.0, (last.0 - first.0).max(f64::MIN_POSITIVE));
        let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut before = f64::NEG_INFINITY;
        for (time, value) in &self.points {
            if time - before > self.gap {
                runs.push(Vec::new());
            }
            before = *time;
            let y = HIGH - (value / self.top.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * HIGH;
            if let Some(run) = runs.last_mut() {
                run.push(((time - begin) / length * WIDE, y));
            }
        }
        runs
    }
}

/// Title and text are escaped; all else is numbers.
impl HtmlSafe for LineChart {}

impl fmt::Display for LineChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        open(f, self.id, &self.title, &self.text)?;
        for y in [HIGH / 2.0, 0.0] {
            write!(f, "<path class=\"rule\" d=\"M0 {y}H{WIDE}\"/>")?;
        }
        for run in self.runs() {
            let mut line = String::new();
            for (number, (x, y)) in run.iter().enumerate() {
                write!(line, "{}{x:.1} {y:.2}", if number == 0 { 'M' } else { 'L' })?;
            }
            if let [(x, _)] = run.as_slice() {
                // One point alone is seen as a short line.
                write!(line, "H{:.1}", (x + 4.0).min(WIDE))?;
            }
            let (left, right) = (run.first().map_or(0.0, |p| p.0), run.last().map_or(0.0, |p| p.0));
            write!(f, "<path class=\"area\" d=\"{line}L{right:.1} {HIGH}L{left:.1} {HIGH}Z\"/>")?;
            write!(f, "<path class=\"line\" d=\"{line}\"/>")?;
        }
        f.write_str("</svg>")
    }
}

/// A bar for each day, of two parts, one on the other.
#[derive(Debug, Clone)]
pub(crate) struct BarChart {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) text: String,
    /// The text of a day, and its parts.
    pub(crate) bars: Vec<(String, [f64; 2])>,
    pub(crate) top: f64,
}

impl HtmlSafe for BarChart {}

impl fmt::Display for BarChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        open(f, self.id, &self.title, &self.text)?;
        write!(f, "<path class=\"rule\" d=\"M0 {}H{WIDE}M0 0H{WIDE}\"/>", HIGH / 2.0)?;
        #[expect(clippy::cast_precision_loss, reason = "some hundred bars at most")]
        let step = WIDE / self.bars.len().max(1) as f64;
        let mut x = 0.0;
        for (text, parts) in &self.bars {
            write!(f, "<g><title>{}</title>", Escaped(text))?;
            let mut y = HIGH;
            for (value, class) in parts.iter().zip(["first", "second"]) {
                let height = (value / self.top.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * HIGH;
                if height > 0.0 {
                    y -= height;
                    let (left, wide) = (x + step * 0.12, step * 0.76);
                    write!(
                        f,
                        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{y:.2}\" width=\"{wide:.1}\" height=\"{height:.2}\"/>"
                    )?;
                }
            }
            f.write_str("</g>")?;
            x += step;
        }
        f.write_str("</svg>")
    }
}

fn open(f: &mut fmt::Formatter<'_>, id: &str, title: &str, text: &str) -> fmt::Result {
    write!(
        f,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDE} {HIGH}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
        Escaped(title),
        Escaped(text)
    )
}

/// A text between tags.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            c => f.write_char(c),
        })
    }
}

/// The next round number from `most` on: 1, 2, 5, 10, 20, 50, …
pub(crate) fn round_top(most: f64) -> f64 {
    let mut top = 1.0;
    loop {
        for step in [1.0, 2.0, 5.0] {
            if most <= top * step {
                return top * step;
            }
        }
        top *= 10.0;
        if top > 1e18 {
            return top;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_high_as_its_values_and_broken_where_nothing_is_known() {
        let points = vec![(0.0, 0.0), (1.0, 5.0), (2.0, 10.0), (9.0, 10.0), (10.0, 0.0)];
        let (id, title, text) = ("u", "Usage of <lan>".to_owned(), "Now 0 %".to_owned());
        let chart = LineChart { id, title, text, points, top: 10.0, gap: 2.0 };
        insta::assert_snapshot!(chart.to_string().replace("><", ">\n<"), @r#"
        <svg class="chart" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-labelledby="u-t u-d">
        <title id="u-t">Usage of &lt;lan&gt;</title>
        <desc id="u-d">Now 0 %</desc>
        <path class="rule" d="M0 50H1000"/>
        <path class="rule" d="M0 0H1000"/>
        <path class="area" d="M0.0 100.00L100.0 50.00L200.0 0.00L200.0 100L0.0 100Z"/>
        <path class="line" d="M0.0 100.00L100.0 50.00L200.0 0.00"/>
        <path class="area" d="M900.0 0.00L1000.0 100.00L1000.0 100L900.0 100Z"/>
        <path class="line" d="M900.0 0.00L1000.0 100.00"/>
        </svg>
        "#);
    }

    #[test]
    fn a_bar_has_its_parts_on_each_other() {
        let bars = vec![("Monday".to_owned(), [1.0, 3.0]), ("Tuesday".to_owned(), [0.0, 0.0])];
        let (id, title, text) = ("c", "Changes".to_owned(), String::new());
        let chart = BarChart { id, title, text, bars, top: 5.0 }.to_string();
        assert!(
            chart.contains(
                "<g><title>Monday</title><rect class=\"first\" x=\"60.0\" y=\"80.00\" width=\"380.0\" height=\"20.00\"/>\
                 <rect class=\"second\" x=\"60.0\" y=\"20.00\" width=\"380.0\" height=\"60.00\"/></g>\
                 <g><title>Tuesday</title></g></svg>"
            ),
            "{chart}"
        );
    }

    #[test]
    fn the_upper_edge_is_a_round_number() {
        let tops: Vec<f64> = [0.0, 1.0, 1.5, 3.0, 7.0, 42.0, 101.0].map(round_top).to_vec();
        assert_eq!(tops, [1.0, 1.0, 2.0, 5.0, 10.0, 50.0, 200.0]);
    }
}
