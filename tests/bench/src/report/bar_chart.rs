//! The chart of all ratios: a bar for each figure that ours and the peer have.

use std::fmt::Write;
use std::ops::Range;

use crate::measure::Section;
use crate::measure::statistics::{Verdict, ratio, verdict};
use crate::report::svg::{Scale, WIDTH, begin, escape, plain};
use crate::report::times;

const ROW: f64 = 22.0;
/// Where rows begin.
const TOP: f64 = 46.0;
/// Where bars begin; their labels stand left of it.
const LABELS: f64 = 330.0;
/// Letters for which there is room left of the bars; what is longer is set narrower.
const LETTERS: usize = 44;
/// Room for the number behind a bar.
const NUMBERS: f64 = 90.0;

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

fn draw_ratios(rows: &[Row<'_>], scale: &Scale) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
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
        draw_decade(&mut svg, rows, scale, value);
    }
    for (index, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, scale, TOP + ROW * index as f64);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A line beside the bars of each section, but not through titles, and its number below all of them.
fn draw_decade(svg: &mut String, rows: &[Row<'_>], scale: &Scale, value: f64) {
    let x = scale.at(value);
    let class = if value == 1.0 { "axis" } else { "grid" };
    for bars in runs_of_bars(rows) {
        let [y1, y2] = [bars.start, bars.end].map(|row| TOP + ROW * row as f64);
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{y1:.1}\" x2=\"{x:.1}\" y2=\"{y2:.1}\"/>"
        );
    }
    let _ = write!(
        svg,
        "<text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        TOP + ROW * rows.len() as f64 + 18.0,
        plain(value)
    );
}

/// The rows between titles.
fn runs_of_bars(rows: &[Row<'_>]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        match (row, runs.last_mut()) {
            (Row::Head(_), _) => {}
            (Row::Bar { .. }, Some(run)) if run.end == index => run.end += 1,
            (Row::Bar { .. }, _) => runs.push(index..index + 1),
        }
    }
    runs
}

fn draw_row(svg: &mut String, row: &Row<'_>, scale: &Scale, y: f64) {
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
                "<text x=\"{:.1}\" y=\"{base:.1}\" text-anchor=\"end\"{}>{}</text>\
                 <rect class=\"{class}{missed}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{base:.1}\">{}</text>",
                LABELS - 10.0,
                narrowed(label),
                escape(label),
                y + 4.0,
                ROW - 8.0,
                one.max(end) + 6.0,
                times(*ratio),
            );
        }
    }
}

/// The attributes of a label that is too long for its place.
fn narrowed(label: &str) -> String {
    if label.chars().count() <= LETTERS {
        return String::new();
    }
    format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", LABELS - 20.0)
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
            .filter(|rect| attribute(rect, "class") != "page")
            .map(|bar| (attribute(bar, "class"), number(bar, " x"), number(bar, " width")))
            .collect()
    }

    #[test]
    fn bar_points_right_where_ours_is_better() {
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
    fn a_label_that_would_leave_the_picture_is_set_narrower() {
        assert_eq!(narrowed("CPU time"), "");
        assert!(narrowed(&"x".repeat(LETTERS + 1)).contains("textLength=\"310\""));
        let mut long = section(1.0, 2.0);
        long.measures[0].title = "x".repeat(LETTERS + 1);
        assert!(ratios(&[long]).unwrap().contains("textLength"));
    }

    #[test]
    fn what_needs_nothing_at_all_has_the_longest_bar() {
        let svg = ratios(&[section(0.0, 5.0)]).unwrap();
        assert!((bars(&svg)[0].2 - (WIDTH - NUMBERS - LABELS)).abs() < 0.1, "{svg}");
        assert!(svg.contains("none at all"), "{svg}");
    }

    #[test]
    fn no_line_runs_through_a_title() {
        let rows = [
            Row::Head("a"),
            Row::Bar {
                label: "x",
                ratio: 2.0,
                missed: false,
            },
            Row::Bar {
                label: "y",
                ratio: 2.0,
                missed: false,
            },
            Row::Head("b"),
            Row::Bar {
                label: "x",
                ratio: 2.0,
                missed: false,
            },
        ];
        assert_eq!(runs_of_bars(&rows), [1..3, 4..5]);
    }
}
