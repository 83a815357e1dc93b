//! The charts of what grows with the cluster: lines over the number of Nodes, both axes logarithmic.

use std::fmt::Write;

use crate::measure::{Line, Unit};
use crate::report::svg::{Scale, WIDTH, begin, escape, plain};

const HEIGHT: f64 = 440.0;
/// Where the topmost line of the grid is; title and legend stand above it.
const TOP: f64 = 70.0;
/// Where the lowest one is.
const BOTTOM: f64 = HEIGHT - 40.0;
/// Where the grid begins; the axis' numbers stand left of it.
const LEFT: f64 = 80.0;
/// Where the first power of ten is: right of the grid's begin, so that the values of its points do not stand in the axis' numbers.
const FIRST: f64 = 130.0;
const RIGHT: f64 = WIDTH - 50.0;
/// Of small letters.
const LETTER: f64 = 6.4;
const LINE: f64 = 12.0;
/// From one row of words below the chart to the next.
const ROW: f64 = 16.0;

/// The lines of one chart over the size of the cluster, both axes logarithmic: what is proportional to the cluster is a straight line that climbs a
/// decade in a decade. What they say stands below.
/// `None` without a point.
pub fn growth(title: &str, lines: &[&Line], words: &[String]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| drawable(line));
    points().next()?;
    let unit = lines[0].unit;
    let across = scale(points().map(|(size, _)| size), FIRST, RIGHT);
    let up = scale(points().map(|(_, value)| value / base(unit)), BOTTOM, TOP);
    let below: Vec<String> = words.iter().flat_map(|words| wrapped(words)).collect();
    let mut svg = begin(HEIGHT + ROW * below.len() as f64, title);
    let _ = write!(svg, "<text class=\"head\" x=\"10\" y=\"22\">{}</text>", escape(title));
    draw_grid(&mut svg, &across, &up, unit);
    let places: Vec<Vec<Point>> = lines
        .iter()
        .map(|line| {
            let place = |(size, value): (f64, f64)| Point {
                x: across.at(size),
                y: up.at(value / base(unit)),
                words: unit.shown(value),
            };
            drawable(line).map(place).collect()
        })
        .collect();
    for (index, (line, points)) in lines.iter().zip(&places).enumerate() {
        draw_line(&mut svg, line, points, index);
    }
    for (x, y, words) in labels(&places.concat()) {
        // In the colour of its line, since it may stand nearer to another one.
        let is_its = |points: &Vec<Point>| points.iter().any(|point| point.x == x && point.words == words);
        let index = places.iter().position(is_its).unwrap_or_default() % 4;
        let _ = write!(
            svg,
            "<text class=\"small t{index}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{words}</text>"
        );
    }
    for (row, words) in below.iter().enumerate() {
        let y = HEIGHT + ROW * row as f64;
        let _ = write!(
            svg,
            "<text class=\"small\" x=\"20\" y=\"{y:.1}\">{}</text>",
            escape(words)
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// In rows that fit into the picture; those after the first stand a little to the right.
fn wrapped(words: &str) -> Vec<String> {
    let fitting = ((WIDTH - 40.0) / LETTER) as usize;
    let mut rows = vec![String::new()];
    for word in words.split(' ') {
        if rows
            .last()
            .is_some_and(|row| row.chars().count() + word.chars().count() >= fitting)
        {
            rows.push("\u{a0}\u{a0}\u{a0}".to_owned());
        }
        if let Some(row) = rows.last_mut() {
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
    }
    rows
}

/// A logarithmic scale has no place for nothing.
fn drawable(line: &Line) -> impl Iterator<Item = (f64, f64)> {
    line.points
        .iter()
        .copied()
        .filter(|(size, value)| *size > 0.0 && *value > 0.0)
}

/// Powers of ten are taken of this: of MiB, not of bytes.
fn base(unit: Unit) -> f64 {
    if unit == Unit::Bytes { 1_048_576.0 } else { 1.0 }
}

/// Full decades, at least one.
fn scale(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let low = low.log10().floor();
    Scale {
        low,
        high: high.log10().ceil().max(low + 1.0),
        from,
        to,
    }
}

fn draw_grid(svg: &mut String, across: &Scale, up: &Scale, unit: Unit) {
    for size in across.decades() {
        let x = across.at(size);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 18.0,
            plain(size)
        );
    }
    for value in up.decades() {
        let y = up.at(value);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
             <text class=\"small\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            y + 4.0,
            unit.shown(value * base(unit))
        );
    }
}

/// A point in the picture, and its value in words.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    x: f64,
    y: f64,
    words: String,
}

/// Its points, joined, and its name in the legend.
fn draw_line(svg: &mut String, line: &Line, points: &[Point], index: usize) {
    let class = format!("l{}", index % 4);
    let joined: Vec<String> = points
        .iter()
        .map(|point| format!("{:.1},{:.1}", point.x, point.y))
        .collect();
    let _ = write!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", joined.join(" "));
    for Point { x, y, .. } in points {
        let _ = write!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>");
    }
    let x = 20.0 + 230.0 * index as f64;
    let _ = write!(
        svg,
        "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"41\" r=\"5\"/><text x=\"{:.1}\" y=\"45\">{}</text>",
        x + 10.0,
        escape(&line.label)
    );
}

/// Where the middle of each point's words is: above it, or below, or as near to that as leaves all words and points free. The same words at the same
/// point stand there once.
fn labels(points: &[Point]) -> Vec<(f64, f64, &str)> {
    let mut placed: Vec<(f64, f64, &str)> = Vec::new();
    for point in points {
        let near = |x: f64, y: f64| (x - point.x).abs() < LETTER && (y - point.y).abs() < 2.0 * LINE;
        if placed.iter().any(|(x, y, words)| *words == point.words && near(*x, *y)) {
            continue;
        }
        let mut tries = (0..12).flat_map(|step| {
            let away = f64::from(step) * LINE / 2.0;
            [point.y - 9.0 - away, point.y + 18.0 + away]
        });
        let free = |y: f64| {
            let words = half_width(&point.words);
            let from_words = placed
                .iter()
                .all(|(x, other, text)| (x - point.x).abs() > words + half_width(text) || (other - y).abs() >= LINE);
            let from_points = points
                .iter()
                .all(|other| (other.x - point.x).abs() > words || !(-4.0..=13.0).contains(&(y - other.y)));
            from_words && from_points
        };
        // What has no free place anywhere near is left out: the table has it.
        if let Some(y) = tries.find(|y| free(*y)) {
            placed.push((point.x, y, &point.words));
        }
    }
    placed
}

fn half_width(words: &str) -> f64 {
    words.chars().count() as f64 * LETTER / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proportional_line_climbs_a_decade_in_a_decade() {
        let line = Line {
            chart: "memory".into(),
            label: "resident".into(),
            unit: Unit::Count,
            points: vec![(1000.0, 2.0), (10_000.0, 20.0), (100_000.0, 200.0), (5.0, 0.0)],
        };
        let svg = growth("Memory", &[&line], &[]).unwrap();
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
        assert_eq!(growth("Nothing", &[], &[]), None);
    }

    #[test]
    fn a_value_has_the_colour_of_its_line() {
        let line = |label: &str, value| Line {
            chart: "time".into(),
            label: label.into(),
            unit: Unit::Seconds,
            points: vec![(1000.0, value)],
        };
        let (one, other) = (line("one", 5.0), line("other", 4.0));
        let svg = growth("Time", &[&one, &other], &[]).unwrap();
        let class = |words: &str| {
            let (before, _) = svg.split_once(&format!(">{words}<")).unwrap();
            before
                .rsplit_once("class=\"")
                .unwrap()
                .1
                .split_once('"')
                .unwrap()
                .0
                .to_owned()
        };
        assert_eq!([class("5 s"), class("4 s")], ["small t0", "small t1"]);
    }

    #[test]
    fn long_words_stand_below_each_other_whole() {
        let words = "a Node more costs ".repeat(20);
        let rows = wrapped(words.trim());
        assert!(
            rows.len() == 3 && rows.iter().all(|row| row.chars().count() <= 144),
            "{rows:?}"
        );
        let joined: Vec<&str> = rows.iter().map(|row| row.trim()).collect();
        assert_eq!(joined.join(" "), words.trim());
        assert_eq!(wrapped("short"), ["short"]);
    }

    fn point(x: f64, y: f64, words: &str) -> Point {
        Point {
            x,
            y,
            words: words.into(),
        }
    }

    #[test]
    fn values_of_near_points_stand_apart() {
        let points = [
            point(100.0, 200.0, "8.81 s"),
            point(100.0, 205.0, "6.16 s"),
            point(300.0, 200.0, "31 s"),
        ];
        let placed = labels(&points);
        assert_eq!(placed.len(), 3);
        assert!((placed[0].1 - placed[1].1).abs() >= LINE, "{placed:?}");
        assert_eq!(
            placed[2],
            (300.0, 191.0, "31 s"),
            "where nothing is near, they stand above"
        );
        for (x, y, _) in &placed {
            let hidden = points
                .iter()
                .any(|point| point.x == *x && (-4.0..=13.0).contains(&(y - point.y)));
            assert!(!hidden, "words over a point: {placed:?}");
        }
    }

    #[test]
    fn different_values_at_one_place_stand_above_and_below_it() {
        let points = [point(100.0, 200.0, "57 MiB"), point(100.0, 200.0, "58 MiB")];
        assert_eq!(labels(&points), [(100.0, 191.0, "57 MiB"), (100.0, 218.0, "58 MiB")]);
    }

    #[test]
    fn lines_that_meet_have_their_value_once() {
        let points = [point(100.0, 200.0, "57 MiB"), point(100.0, 200.0, "57 MiB")];
        assert_eq!(labels(&points).len(), 1);
    }

    #[test]
    fn memory_is_counted_in_powers_of_ten_of_mib() {
        let line = Line {
            chart: "memory".into(),
            label: "resident".into(),
            unit: Unit::Bytes,
            points: vec![(1000.0, 30.0 * 1_048_576.0), (5000.0, 60.0 * 1_048_576.0)],
        };
        let svg = growth("Memory", &[&line], &[]).unwrap();
        assert!(svg.contains(">10 MiB<") && svg.contains(">100 MiB<"), "{svg}");
    }
}
