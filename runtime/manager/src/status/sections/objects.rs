//! Sections of objects: totals, what was found, what waits.

use std::borrow::Cow;
use std::collections::HashMap;

use maud::{Markup, html};

use crate::status::facts::{Facts, Listed, Moment, Search, Totals, WaitingObject};
use crate::status::table::{Cell, Row, table};
use crate::telemetry::shape::shape;

/// How much there is, in one row of numbers.
pub fn totals(totals: &Totals) -> Markup {
    let Totals {
        nodes,
        services,
        routes,
    } = totals;
    html! {
        div class="totals" {
            (total("Nodes", nodes.total, &format!("{} Ready, {} to be initialised", nodes.ready, nodes.uninitialised)))
            (total(
                "Load balancers",
                services.load_balancers,
                &format!("{} with an address; {} Services in all", services.with_address, services.total),
            ))
            @match routes {
                Some(routes) => (total("Routes", routes.desired, &format!("{} missing", routes.missing))),
                None => (total("Routes", "\u{2013}", "not compared, or not made here")),
            }
        }
    }
}

fn total(name: &str, number: impl std::fmt::Display, more: &str) -> Markup {
    html! {
        p { b { (number.to_string()) } " " (name) br; span class="dim" { (more) } }
    }
}

/// What a search has found, with links to the explanations.
pub fn found(search: &Search) -> Markup {
    html! {
        h2 id="found" { "Found by \u{201c}" (search.query) "\u{201d}" }
        div class="card" {
            @if search.found.total == 0 {
                p class="none" { "No Node or Service of that name." }
            } @else {
                ul class="found" {
                    @for object in &search.found.shown {
                        li {
                            (object.kind) " "
                            @match &object.explain {
                                Some(link) => a href=(link) { (object.name) },
                                None => (object.name),
                            }
                        }
                    }
                }
            }
            @if search.found.more() > 0 { p class="dim" { "and " (search.found.more()) " more" } }
            p { a href="/" { "Show all again" } }
        }
    }
}

/// What is not done; of a search what it has found of it.
pub fn waiting(facts: &Facts) -> Markup {
    let waiting = &facts.waiting;
    if waiting.nodes.total + waiting.services.total == 0 {
        let text = match (&facts.search, facts.leadership.leads) {
            (_, false) => "See the leader's page.",
            (Some(_), true) => "Nothing of that name.",
            (None, true) => "Nothing: every Node and Service is done.",
        };
        return html! { div class="card" { p class="none" { (text) } } };
    }
    html! {
        (objects("Nodes", "Node", &waiting.nodes, facts.at))
        (objects("Services", "Service", &waiting.services, facts.at))
    }
}

fn objects(caption: &str, kind: &str, objects: &Listed<WaitingObject>, now: Moment) -> Markup {
    if objects.total == 0 {
        return html! {};
    }
    let whys = whys(&objects.shown);
    let rows = objects.shown.iter().zip(&whys).map(|(object, why)| Row {
        name: &object.name,
        link: Some(&object.explain),
        cells: vec![Cell::For(object.since), Cell::Text(&object.controller), Cell::Why(why)],
    });
    let rows: Vec<_> = rows.collect();
    let heads = [kind, "Waits", "Controller", "What for"];
    html! { div class="card flush" { (table(caption, &heads, &rows, objects.more(), now)) } }
}

/// What each waits for. An answer that another one has is shown there; the object's own page has all words.
fn whys(objects: &[WaitingObject]) -> Vec<Cow<'_, str>> {
    let mut told = HashMap::<(&str, &str, String), &str>::new();
    let mut whys = Vec::with_capacity(objects.len());
    for object in objects {
        let same = object.reason.as_deref().and_then(|reason| {
            let answer = (object.controller, object.provider.as_str(), shape(reason, &object.name));
            let first = *told.entry(answer).or_insert(&object.name);
            (first != object.name).then_some(first)
        });
        whys.push(match same {
            Some(first) => Cow::Owned(format!("the same as {first}")),
            None => Cow::Borrowed(object.why.as_str()),
        });
    }
    whys
}
