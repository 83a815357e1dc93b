//! Tables and times of the status page.
//!
//! On a narrow screen each row of a table becomes a block whose cells carry the names of their columns; the roles keep it a table for
//! screen readers.

use std::fmt::Display;
use std::time::Duration;

use maud::{Markup, Render, html};

use crate::status::facts::Moment;

/// One cell of a table.
pub enum Cell<'a> {
    /// Text.
    Text(&'a dyn Display),
    /// A name that may be long.
    Name(&'a str),
    /// Sentences that need room.
    Why(&'a str),
    /// A number, to the right.
    Number(&'a dyn Display),
    /// A badge: class and word.
    Badge(&'static str, &'a str),
    /// How long ago it was; nothing when it is not known.
    Ago(Option<Moment>),
    /// For how long it has been so; nothing when that is not known.
    For(Option<Moment>),
}

impl Cell<'_> {
    fn class(&self) -> &'static str {
        match self {
            Self::Number(_) => "num",
            Self::Why(_) => "why",
            Self::Name(_) => "name",
            _ => "",
        }
    }

    fn content(&self, now: Moment) -> Markup {
        match self {
            Self::Text(text) | Self::Number(text) => text.to_string().render(),
            Self::Name(text) | Self::Why(text) => text.render(),
            Self::Badge(class, word) => badge(class, word),
            Self::Ago(Some(at)) => ago(*at, now),
            Self::For(Some(at)) => lasting(*at, now),
            Self::Ago(None) | Self::For(None) => "\u{2013}".render(),
        }
    }
}

/// A row: its name, where that leads, and the other cells.
pub struct Row<'a> {
    /// The first cell.
    pub name: &'a str,
    /// Makes the name a link.
    pub link: Option<&'a str>,
    /// The cells below all heads but the first.
    pub cells: Vec<Cell<'a>>,
}

/// A table, and how many rows were cut off.
pub fn table(caption: &str, heads: &[&str], rows: &[Row<'_>], more: usize, now: Moment) -> Markup {
    html! {
        table role="table" {
            caption { (caption) }
            thead role="rowgroup" {
                tr role="row" {
                    @for head in heads { th role="columnheader" scope="col" { (head) } }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        th role="rowheader" scope="row" {
                            @if let Some(link) = row.link { a href=(link) { (row.name) } } @else { (row.name) }
                        }
                        @for (head, cell) in heads.iter().skip(1).zip(&row.cells) {
                            td role="cell" class=(cell.class()) data-of=(head) { span { (cell.content(now)) } }
                        }
                    }
                }
            }
        }
        @if more > 0 { p class="more" { "and " (more) " more" } }
    }
}

/// A word in a coloured frame.
pub fn badge(class: &str, word: &str) -> Markup {
    html! { span class={ "badge " (class) } { (word) } }
}

/// `4 m 12 s ago`, with the moment itself for who points at it and for programs.
pub fn ago(at: Moment, now: Moment) -> Markup {
    moment(at, format_args!("{} ago", span(now.seconds_since(at))))
}

/// `4 m 12 s`, the same way.
fn lasting(at: Moment, now: Moment) -> Markup {
    moment(at, span(now.seconds_since(at)))
}

/// `2026-01-01 00:00:00 UTC (4 m 12 s)`.
pub fn since_when(at: Moment, now: Moment) -> Markup {
    html! { (moment(at, at.clock())) " (" (span(now.seconds_since(at))) ")" }
}

fn moment(at: Moment, text: impl Display) -> Markup {
    html! { time datetime=(at.text()) title=(at.clock()) { (text.to_string()) } }
}

/// Days from two on, else as `cloudwit explain` says it.
pub fn span(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    if seconds >= 2 * DAY {
        format!("{} d", seconds / DAY)
    } else {
        cloudwit_controllers::report::explain::span(Duration::from_secs(seconds))
    }
}
