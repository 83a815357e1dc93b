//! `/`: the status page as HTML, without scripts; it refreshes itself.
//!
//! The answer to "is all well?" is its first line. Colours only repeat what words say.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::status::facts::{Moment, Status};
use crate::status::sections;
use crate::status::table::{ago, since_when};
use crate::status::verdict::{State, Trouble};

const STYLE: &str = include_str!("page.css");

/// The page renews itself after so many seconds.
const RENEWAL: u32 = 10;

/// What a browser may do with the page: show it, with our style. `nonce` is in [`page`] too.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page. `nonce` marks the style as ours and is different each time.
pub fn page(status: &Status, nonce: &str, renews: bool) -> String {
    let facts = &status.facts;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(status, nonce, renews))
            body {
                header {
                    span { b { "Cloudwit" } " " (facts.process.version) }
                    span { (facts.process.identity) ", started " (ago(facts.process.started, facts.at)) }
                }
                main {
                    (verdict(status))
                    nav aria-label="Sections" {
                        a href="#waiting" { "What waits" }
                        a href="#controllers" { "Controllers" }
                        a href="#providers" { "Providers" }
                        a href="#hosts" { "API hosts" }
                        a href="#deletion" { "Deletion brake" }
                        a href="#leadership" { "Leadership" }
                        a href="/status.json" { "JSON" }
                    }
                    (sections::all(facts))
                }
                footer {
                    p {
                        "As of " (facts.at.clock()) ". "
                        @if renews {
                            "This page renews itself every " (RENEWAL) " seconds; " a href="/?renew=off" { "hold it still" } "."
                        } @else {
                            "This page is held still; " a href="/" { "let it renew itself" } "."
                        }
                    }
                }
            }
        }
    };
    page.into_string().chars().map(visible).collect()
}

/// Control characters, and those that turn the direction of the text around them, would make a text read as something else than it is.
fn visible(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    }
}

fn head(status: &Status, nonce: &str, renews: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width,initial-scale=1";
            meta name="color-scheme" content="light dark";
            @if renews { meta http-equiv="refresh" content=(RENEWAL); }
            // An empty picture, so that no browser asks for another one.
            link rel="icon" href="data:,";
            title { (status.verdict.summary) " \u{2013} Cloudwit" }
            style nonce=(nonce) { (PreEscaped(STYLE)) }
        }
    }
}

/// Class, mark and word of a state; the mark is for the eye, the word for everybody.
fn look(state: State) -> (&'static str, &'static str, &'static str) {
    match state {
        State::Well => ("well", "\u{2713} ", "Well"),
        State::StandingBy => ("calm", "\u{2713} ", "Standing by"),
        State::Starting => ("calm", "\u{2026} ", "Starting"),
        State::Attention => ("warn", "! ", "Needs attention"),
        State::Failing => ("bad", "\u{2715} ", "Not well"),
    }
}

fn verdict(status: &Status) -> Markup {
    let verdict = &status.verdict;
    let (class, mark, word) = look(verdict.state);
    html! {
        section class={ "verdict " (class) } aria-labelledby="verdict" {
            h1 id="verdict" { span aria-hidden="true" { (mark) } (verdict.summary) }
            @match verdict.troubles.as_slice() {
                [] => {}
                [only] => { p { (word) (next_step(only, status.facts.at)) } }
                all => {
                    ol {
                        @for trouble in all {
                            li {
                                b { (trouble.what) } br;
                                (look(trouble.state).2) (next_step(trouble, status.facts.at))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Continues the word of the state.
fn next_step(trouble: &Trouble, now: Moment) -> Markup {
    html! {
        @if let Some(since) = trouble.since { " since " (since_when(since, now)) }
        ". " (trouble.next_step) " "
        a href={ "#" (trouble.section) } { "More" }
    }
}

#[cfg(test)]
mod tests;
