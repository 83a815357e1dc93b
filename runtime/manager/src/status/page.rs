//! `/`: the status page as HTML, without scripts; it refreshes itself.
//!
//! The answer to "is all well?" is its first line. Colours only repeat what words say.

use maud::{Markup, html};

use crate::status::causes::Affected;
use crate::status::facts::{Listed, Moment, Status};
use crate::status::frame::Frame;
use crate::status::sections;
use crate::status::table::{badge, since_when};
use crate::status::verdict::{State, Trouble};

/// So many of the objects behind a cause are named in its entry.
const NAMED: usize = 6;

/// The page. `nonce` marks the style as ours and is different each time.
pub fn page(status: &Status, nonce: &str, renews: bool) -> String {
    let facts = &status.facts;
    let frame = Frame {
        title: &status.verdict.summary,
        nonce,
        renews,
        path: "/",
        query: facts.search.as_ref().map_or("", |search| &search.query),
        process: &facts.process,
        at: facts.at,
    };
    frame.around(&html! {
        (verdict(status))
        nav aria-label="Sections" {
            a href="#waiting" { "What waits" }
            a href="#controllers" { "Controllers" }
            @if !facts.volumes.is_empty() { a href="#volumes" { "Volumes" } }
            a href="#providers" { "Providers" }
            a href="#hosts" { "API hosts" }
            a href="#deletion" { "Deletion brake" }
            a href="#leadership" { "Leadership" }
            a href="/status.json" { "JSON" }
        }
        (sections::all(facts))
    })
}

/// Class, mark and word of a state; the mark beside the word.
fn look(state: State) -> (&'static str, &'static str, &'static str) {
    match state {
        State::Well => ("well", "\u{2713} ", "well"),
        State::StandingBy => ("calm", "\u{2713} ", "standing by"),
        State::Starting => ("calm", "\u{2026} ", "starting"),
        State::Notice => ("calm", "\u{2713} ", "notice"),
        State::Attention => ("warn", "! ", "warning"),
        State::Failing => ("bad", "\u{2715} ", "critical"),
    }
}

fn verdict(status: &Status) -> Markup {
    let verdict = &status.verdict;
    let (class, mark, _) = look(verdict.state);
    let at = status.facts.at;
    html! {
        section class={ "verdict " (class) } aria-labelledby="verdict" {
            h1 id="verdict" { span aria-hidden="true" { (mark) } (verdict.summary) }
            @match verdict.troubles.as_slice() {
                [] => {}
                [only] => { (trouble(only, false, at)) }
                all => {
                    ol { @for one in all { li { (trouble(one, true, at)) } } }
                }
            }
        }
    }
}

/// How bad it is, what it holds up, since when, and what to do.
fn trouble(trouble: &Trouble, named: bool, now: Moment) -> Markup {
    let (class, _, word) = look(trouble.state);
    html! {
        p {
            (badge(class, word)) " "
            @if named { b { (trouble.what) } " " }
            @if let Some(since) = trouble.since { "Since " (since_when(since, now)) "." }
        }
        @if trouble.behind.is_some() || trouble.objects.is_some() {
            p {
                @if let Some(behind) = &trouble.behind { "Behind it: " (behind) " " }
                @if let Some(objects) = &trouble.objects { (names(objects)) }
            }
        }
        p { (trouble.next_step) " " a href={ "#" (trouble.section) } { "More" } }
    }
}

/// The first of the objects, as links to their explanations.
fn names(objects: &Listed<Affected>) -> Markup {
    let shown = objects.shown.iter().take(NAMED);
    let more = objects.total - shown.len();
    html! {
        @for (at, object) in shown.enumerate() {
            @if at > 0 { ", " }
            @match &object.explain {
                Some(link) => a href=(link) { (object.name) },
                None => (object.name),
            }
        }
        @if more > 0 { " and " (more) " more" }
        @if objects.total > 0 { "." }
    }
}

#[cfg(test)]
mod tests;
