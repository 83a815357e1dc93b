//! Charts as SVG, readable on light and on dark pages: one of bars for the ratios, one of lines for what grows with the cluster.
//!
//! Written by hand since there is so little of it. Colours follow the reader's choice through a media query, which browsers obey in pictures too.

use std::fmt::Write;

use crate::measure::{Line, Section};
use crate::report::times;
use crate::statistics::{Verdict, ratio, verdict};

const WIDTH: f64 = 960.0;
const ROW: f64 = 22.0;
/// Where bars begin; their labels stand left of it.
const LABELS: f64 = 430.0;
/// Room for the number behind a bar.
const NUMBERS: f64 = 90.0;

const STYLE: &str = "<style>\
text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:11px;fill:#59636e}.head{font-weight:600}\
.axis{stroke:#8c959f;stroke-width:1}.grid{stroke:#8c959f;stroke-width:1;stroke-dasharray:2 4;opacity:.6}\
.good{fill:#1a7f37}.bad{fill:#bc4c00}.missed{stroke:#cf222e;stroke-width:2}\
.l0{stroke:#0969da;fill:#0969da}.l1{stroke:#bc4c00;fill:#bc4c00}.l2{stroke:#1a7f37;fill:#1a7f37}.l3{stroke:#8250df;fill:#8250df}\
polyline{fill:none!important;stroke-width:2}\
@media (prefers-color-scheme: dark){text{fill:#e6edf3}.small{fill:#9198a1}.good{fill:#3fb950}.bad{fill:#f0883e}.missed{stroke:#f85149}\
.l0{stroke:#4493f8;fill:#4493f8}.l1{stroke:#f0883e;fill:#f0883e}.l2{stroke:#3fb950;fill:#3fb950}.l3{stroke:#ab7df8;fill:#ab7df8}}</style>";

/// A bar for each measure that has a ratio, from 1 to the right where ours is better and to the left where it is not; the scale is logarithmic. A frame
/// marks a missed goal. `None` when nothing can be compared.
pub fn ratios(sections: &[Section]) -> Option<String> {
    let mut rows = Vec::new();
    for section in sections {
        let bars: Vec<_> = section
            .measures
            .iter()
            .filter_map(|measure| Some((measure, ratio(measure)?)))
            .collect();
        if !bars.is_empty() {
            rows.push(Row::Head(&section.title));
            rows.extend(bars.into_iter().map(|(measure, ratio)| Row::Bar {
                label: &measure.title,
                ratio,
                missed: verdict(measure) == Some(Verdict::Missed),
            }));
        }
    }
    let finite = rows.iter().filter_map(|row| match row {
        Row::Bar { ratio, .. } if ratio.is_finite() && *ratio > 0.0 => Some(*ratio),
        _ => None,
    });
    // Full decades, and at least one to each side.
    let (low, high) = finite.fold((1.0_f64, 10.0_f64), |(low, high), ratio| {
        (low.min(ratio), high.max(ratio))
    });
    if rows.is_empty() {
        return None;
    }
    let scale = Scale {
        low: low.log10().floor(),
        high: high.log10().ceil(),
        from: LABELS,
        to: WIDTH - NUMBERS,
    };
    Some(draw_ratios(&rows, &scale))
}

enum Row<'a> {
    Head(&'a str),
    Bar { label: &'a str, ratio: f64, missed: bool },
}

/// A logarithmic scale between two powers of ten, on a stretch of the picture.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The powers of ten.
    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10_f64.powi(power))
    }
}

fn draw_ratios(rows: &[Row<'_>], scale: &Scale) -> String {
    let top = 46.0;
    let bottom = top + ROW * rows.len() as f64;
    let mut svg = begin(
        bottom + 34.0,
        "How many times as good as upstream's each figure of Cloudwit is",
    );
    let _ = write!(
        svg,
        "<text class=\"head\" x=\"10\" y=\"22\">Cloudwit beside upstream: times as good</text>\
         <text class=\"small\" x=\"{WIDTH}\" y=\"22\" text-anchor=\"end\" dx=\"-10\">logarithmic; right of 1 Cloudwit is better; framed: goal missed</text>"
    );
    for value in scale.decades() {
        let x = scale.at(value);
        let class = if value == 1.0 { "axis" } else { "grid" };
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            plain(value)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = top + ROW * index as f64;
        let base = y + 15.0;
        match row {
            Row::Head(title) => {
                let _ = write!(
                    svg,
                    "<text class=\"head\" x=\"10\" y=\"{base:.1}\">{}</text>",
                    escape(title)
                );
            }
            Row::Bar { label, ratio, missed } => {
                let (one, end) = (scale.at(1.0), scale.at(*ratio));
                let (x, width) = (one.min(end), (end - one).abs().max(1.0));
                let class = if *ratio >= 1.0 { "good" } else { "bad" };
                let missed = if *missed { " missed" } else { "" };
                let _ = write!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
                     <rect class=\"{class}{missed}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
                     <text x=\"{:.1}\" y=\"{base:.1}\">{}</text>",
                    LABELS - 10.0,
                    escape(label),
                    y + 4.0,
                    ROW - 8.0,
                    one.max(end) + 6.0,
                    times(*ratio),
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The lines of one chart over the size of the cluster, both axes logarithmic: what is proportional to the cluster is a straight line that climbs a
/// decade in a decade. `None` without a point.
pub fn growth(title: &str, lines: &[&Line]) -> Option<String> {
    let points = || {
        lines
            .iter()
            .flat_map(|line| &line.points)
            .filter(|(x, y)| *x > 0.0 && *y > 0.0)
    };
    points().next()?;
    let range = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) = points().map(of).fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0))
    };
    let (height, top) = (420.0, 50.0);
    let ((low, high), (bottom, ceiling)) = (range(|point| point.0), range(|point| point.1));
    let across = Scale {
        low,
        high,
        from: 110.0,
        to: WIDTH - 30.0,
    };
    let up = Scale {
        low: bottom,
        high: ceiling,
        from: height - 50.0,
        to: top,
    };
    let mut svg = begin(height, title);
    let _ = write!(svg, "<text class=\"head\" x=\"10\" y=\"22\">{}</text>", escape(title));
    for size in across.decades() {
        let x = across.at(size);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{:.1}\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            up.to,
            up.from,
            up.from + 18.0,
            plain(size)
        );
    }
    let unit = lines[0].unit;
    for value in up.decades() {
        let y = up.at(value);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            across.from,
            across.to,
            across.from - 8.0,
            y + 4.0,
            unit.shown(value)
        );
    }
    for (index, line) in lines.iter().enumerate() {
        draw_line(&mut svg, line, index, &across, &up);
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Its points, joined, each with its value, and its label in the legend.
fn draw_line(svg: &mut String, line: &Line, index: usize, across: &Scale, up: &Scale) {
    let class = format!("l{}", index % 4);
    let drawn: Vec<(f64, f64, f64)> = line
        .points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (across.at(*x), up.at(*y), *y))
        .collect();
    let joined: Vec<String> = drawn.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", joined.join(" "));
    for (x, y, value) in drawn {
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y - 9.0,
            line.unit.shown(value)
        );
    }
    let x = 20.0 + 230.0 * index as f64;
    let _ = write!(
        svg,
        "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"38\" r=\"5\"/><text x=\"{:.1}\" y=\"43\">{}</text>",
        x + 10.0,
        escape(&line.label)
    );
}

fn begin(height: f64, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\
         <title>{}</title>{STYLE}",
        escape(title)
    )
}

/// Of a power of ten: `0.1`, `1`, `1,000`.
fn plain(value: f64) -> String {
    if value < 1.0 { value.to_string() } else { times(value) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Goal, Measure, Samples, Unit};

    fn section(ours: f64, peer: f64) -> Section {
        let mut section = Section::new("wave", "A wave <of> Nodes", "");
        let mut measure = Measure::new("cpu", "CPU & time", Unit::Seconds)
            .ours([ours])
            .goal(Goal::Times(3.0));
        measure.peer = Some(Samples {
            values: vec![peer],
            failures: Vec::new(),
        });
        section.measures = vec![measure, Measure::new("alone", "of ours alone", Unit::Count).ours([1.0])];
        section
    }

    /// The bars' classes, begins and widths.
    fn bars(svg: &str) -> Vec<(String, f64, f64)> {
        let attribute = |bar: &str, name: &str| {
            bar.split_once(&format!("{name}=\""))
                .unwrap()
                .1
                .split_once('"')
                .unwrap()
                .0
                .to_owned()
        };
        let number = |bar: &str, name: &str| attribute(bar, name).parse::<f64>().unwrap();
        svg.split("<rect ")
            .skip(1)
            .map(|bar| (attribute(bar, "class"), number(bar, " x"), number(bar, " width")))
            .collect()
    }

    #[test]
    fn a_bar_goes_right_where_ours_is_better_and_left_where_it_is_not() {
        let better = bars(&ratios(&[section(1.0, 10.0)]).unwrap());
        let [(class, from, width)] = &better[..] else {
            panic!("{better:?}")
        };
        assert_eq!((class.as_str(), *from), ("good", LABELS));
        assert!(
            (width - (WIDTH - NUMBERS - LABELS)).abs() < 0.1,
            "one decade is the whole width: {width}"
        );
        let worse = bars(&ratios(&[section(10.0, 1.0)]).unwrap());
        let [(class, from, width)] = &worse[..] else {
            panic!("{worse:?}")
        };
        assert_eq!((class.as_str(), *from), ("bad missed", LABELS));
        assert!(
            (width * 2.0 - (WIDTH - NUMBERS - LABELS)).abs() < 0.2,
            "half of two decades: {width}"
        );
    }

    #[test]
    fn words_are_escaped_and_what_has_no_ratio_has_no_bar() {
        let svg = ratios(&[section(2.0, 5.0)]).unwrap();
        assert!(
            svg.contains("A wave &lt;of&gt; Nodes") && svg.contains("CPU &amp; time") && svg.contains(">2.50<"),
            "{svg}"
        );
        assert!(!svg.contains("of ours alone"), "{svg}");
        assert!(svg.contains("prefers-color-scheme: dark"), "{svg}");
        assert_eq!(ratios(&[Section::new("x", "x", "")]), None);
    }

    #[test]
    fn what_needs_nothing_at_all_has_the_longest_bar() {
        let svg = ratios(&[section(0.0, 5.0)]).unwrap();
        assert!((bars(&svg)[0].2 - (WIDTH - NUMBERS - LABELS)).abs() < 0.1, "{svg}");
        assert!(svg.contains("none at all"), "{svg}");
    }

    #[test]
    fn a_proportional_line_climbs_a_decade_in_a_decade() {
        let line = Line {
            chart: "memory".into(),
            label: "resident".into(),
            unit: Unit::Count,
            points: vec![(1000.0, 2.0), (10_000.0, 20.0), (100_000.0, 200.0), (5.0, 0.0)],
        };
        let svg = growth("Memory", &[&line]).unwrap();
        let points = svg.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
        let points: Vec<(f64, f64)> = points
            .split(' ')
            .map(|point| point.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        let [a, b, c] = points[..] else { panic!("{points:?}") };
        assert!(
            (b.0 - a.0 - (c.0 - b.0)).abs() < 0.2 && (b.1 - a.1 - (c.1 - b.1)).abs() < 0.2,
            "{points:?}"
        );
        assert!(a.1 > b.1, "up is more: {points:?}");
        assert_eq!(growth("Nothing", &[]), None);
    }
}
