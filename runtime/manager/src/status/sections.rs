//! Sections of the status page.

use maud::{Markup, html};

mod objects;
mod volumes;

use crate::status::facts::{
    ApiHost, CandidateFacts, ControllerFacts, ControllerState, Deletion, Facts, FaultFacts, LeaseFacts, Listed, Moment,
    ProviderFacts, SwapFacts,
};
use crate::status::table::{Cell, Row, ago, badge, since_when, span, table};
use crate::status::verdict::count;

/// All of them.
pub fn all(facts: &Facts) -> Markup {
    html! {
        (objects::totals(&facts.totals))
        @if let Some(search) = &facts.search { (objects::found(search)) }
        h2 id="waiting" { "What waits, and why" }
        (objects::waiting(facts))
        h2 id="controllers" { "Controllers" }
        (controllers(facts))
        (volumes::volumes(facts))
        h2 id="providers" { "Providers" }
        @for one in &facts.providers { (provider(one, facts.at)) }
        h2 id="hosts" { "API hosts" }
        (hosts(facts))
        h2 id="deletion" { "Deletion brake" }
        (deletion(facts))
        h2 id="leadership" { "Leadership" }
        (leadership(facts))
    }
}

fn controllers(facts: &Facts) -> Markup {
    let heads = ["Controller", "State", "Next", "In work", "Later", "Oldest", "Last done"];
    let rows = facts.controllers.iter().map(|controller| {
        let (class, word) = state_of(controller);
        Row {
            name: controller.name,
            link: None,
            cells: vec![
                Cell::Badge(class, word),
                Cell::Number(&controller.ready),
                Cell::Number(&controller.in_work),
                Cell::Number(&controller.later),
                Cell::For(controller.oldest_since),
                Cell::Ago(controller.last_done),
            ],
        }
    });
    let rows: Vec<_> = rows.collect();
    html! {
        div class="card flush" {
            (table("Queues", &heads, &rows, 0, facts.at))
            dl class="legend" {
                @for (head, meaning) in COLUMNS { dt { (head) } dd { (meaning) } }
            }
            @for controller in &facts.controllers {
                @if let Some(why) = &controller.why {
                    p class="more" { (controller.name) " is off: " (why) "." }
                }
                @for trouble in &controller.troubles {
                    p class="more" {
                        (controller.name) ": " (trouble.what) ". Next try at " (trouble.next.clock()) "."
                    }
                }
            }
        }
    }
}

/// What the columns of the queues count.
const COLUMNS: [(&str, &str); 5] = [
    ("Next", "objects that a worker takes as soon as it is free"),
    (
        "In work",
        "objects with a call to the cloud or the API server in flight",
    ),
    (
        "Later",
        "objects that wait for their time: after a failure, or until the cloud is ready",
    ),
    ("Oldest", "how long the oldest of these has not been done"),
    ("Last done", "when an object was last done with nothing left to do"),
];

fn state_of(controller: &ControllerFacts) -> (&'static str, &'static str) {
    match controller.state {
        ControllerState::Running if controller.troubles.is_empty() => ("well", "running"),
        ControllerState::Running => ("bad", "held up"),
        ControllerState::StandingBy => ("calm", "standing by"),
        ControllerState::Off => ("off", "off"),
        ControllerState::Hanging => ("bad", "hangs"),
    }
}

fn provider(provider: &ProviderFacts, now: Moment) -> Markup {
    html! {
        article class="card" {
            h3 { (provider.name) }
            dl {
                dt { "Runs" }
                dd { (provider.provider) " " (provider.version) " since " (since_when(provider.since, now)) }
                dt { "Contract" }
                dd { "cloudwit:provider " (provider.contract) }
                dt { "Component" }
                dd { code { "sha256:" (provider.component_digest) } }
                dt { "Offers" }
                dd { (provider.abilities.join(", ")) }
                dt { "Provider ids" }
                dd { (provider.provider_id_prefixes.join(", ")) }
                dt { "May reach" }
                dd { (list(&provider.granted, "nothing: no HTTP destination is granted")) }
                @if !provider.lacking.is_empty() {
                    dt { "Would like" }
                    dd { (list(&provider.lacking, "")) }
                }
                dt { "Last swap" }
                dd { (swap(provider.last_swap.as_ref(), now)) }
                dt { "Last fault" }
                dd { (fault(provider.last_fault.as_ref(), now)) }
            }
        }
    }
}

fn list(lines: &[String], none: &str) -> Markup {
    html! {
        @if lines.is_empty() {
            span class="dim" { (none) }
        } @else {
            ul { @for line in lines { li { code { (line) } } } }
        }
    }
}

fn swap(swap: Option<&SwapFacts>, now: Moment) -> Markup {
    let Some(swap) = swap else {
        return html! { span class="dim" { "none since the start" } };
    };
    let (class, word) = match swap.refused {
        true => ("warn", "refused"),
        false => ("well", swap.result),
    };
    html! {
        (badge(class, word)) " " (ago(swap.at, now))
        @if swap.refused { ", at the step \u{201c}" (swap.result) "\u{201d}" }
        p { (swap.message) }
    }
}

fn fault(fault: Option<&FaultFacts>, now: Moment) -> Markup {
    let Some(fault) = fault else {
        return html! { span class="dim" { "none" } };
    };
    html! {
        (badge("warn", fault.kind)) " " (ago(fault.at, now))
        p { (fault.message) }
        @if !fault.output.is_empty() {
            details open { summary { "Its last lines" } pre tabindex="0" { (fault.output) } }
        }
    }
}

fn hosts(facts: &Facts) -> Markup {
    if facts.api_hosts.is_empty() {
        return html! { div class="card" { p class="none" { "No request was made yet." } } };
    }
    let texts = facts.api_hosts.iter().map(|host| {
        let pause = host.paused_until.map(|until| format!("pause until {}", until.clock()));
        let error = host.last_error.as_ref();
        let error = error.map_or_else(
            || "none".to_owned(),
            |error| format!("{} at {}", error.what, error.at.clock()),
        );
        let errors = format!("{} of {}", host.errors, host.requests);
        (host, pause, error, errors, budget(host))
    });
    let texts: Vec<_> = texts.collect();
    let rows = texts.iter().map(|(host, pause, error, errors, allowed)| Row {
        name: &host.host,
        link: None,
        cells: vec![
            Cell::Text(&host.provider),
            match (pause, host.errors_in_a_row) {
                (Some(pause), _) => Cell::Badge("warn", pause),
                (None, 0) => Cell::Badge("well", "answers"),
                (None, _) => Cell::Badge("bad", "does not answer well"),
            },
            Cell::Ago(host.last_success),
            Cell::Text(error),
            Cell::Text(errors),
            Cell::Text(allowed),
            Cell::Number(&host.waiting),
        ],
    });
    let rows: Vec<_> = rows.collect();
    let heads = [
        "Host",
        "Provider",
        "State",
        "Last success",
        "Last error",
        "Errors",
        "Requests allowed",
        "Waiting",
    ];
    html! { div class="card flush" { (table("Where requests go", &heads, &rows, 0, facts.at)) } }
}

fn budget(host: &ApiHost) -> String {
    match (host.left, host.per_second, host.burst) {
        (Some(left), Some(per_second), Some(burst)) => {
            format!("{per_second:.3} a second, {burst} at once, {left} of these left now")
        }
        _ => "any number".into(),
    }
}

fn deletion(facts: &Facts) -> Markup {
    html! {
        @if facts.deletion.is_empty() {
            div class="card" {
                p class="none" {
                    "No Node is deleted by this process"
                    @if facts.leadership.leads { "." } @else { ": it does not lead." }
                }
            }
        }
        @for one in &facts.deletion { (brake(one, facts.at)) }
    }
}

fn brake(deletion: &Deletion, now: Moment) -> Markup {
    let (class, word) = match (deletion.braked_since, deletion.policy) {
        (Some(_), _) => ("bad", "engaged"),
        (None, "off") => ("off", "deletion is switched off"),
        (None, "taint") => ("calm", "Nodes are tainted, not deleted"),
        (None, _) => ("well", "released"),
    };
    html! {
        div class="card" {
            h3 { (deletion.provider) " " (badge(class, word)) }
            p {
                @if let Some(since) = deletion.braked_since {
                    "Since " (since_when(since, now)) " no Node is deleted. "
                }
                (count(deletion.candidates.total, "Node seems", "Nodes seem")) " to be gone; "
                (count(deletion.deleted, "was", "were")) " deleted within the last " (span(deletion.window_seconds))
                ", of " (deletion.allowed) " that may go in that time."
            }
            @if deletion.candidates.total > 0 { (candidates(&deletion.candidates, now)) }
        }
    }
}

fn candidates(candidates: &Listed<CandidateFacts>, now: Moment) -> Markup {
    let links = candidates.shown.iter();
    let links: Vec<_> = links.map(|one| format!("/explain/node/{}", one.node)).collect();
    let rows = candidates.shown.iter().zip(&links).map(|(candidate, link)| Row {
        name: &candidate.node,
        link: Some(link),
        cells: vec![
            Cell::Name(&candidate.provider_id),
            Cell::For(Some(candidate.since)),
            Cell::Number(&candidate.answers),
            match candidate.held {
                true => Cell::Badge("bad", "held by the brake"),
                false => Cell::Badge("calm", "is being confirmed"),
            },
        ],
    });
    let rows: Vec<_> = rows.collect();
    let heads = ["Node", "Machine", "Gone", "Answers", "Next"];
    table(
        "Nodes whose machine seems to be gone",
        &heads,
        &rows,
        candidates.more(),
        now,
    )
}

fn leadership(facts: &Facts) -> Markup {
    let word = match (facts.leadership.elects, facts.leadership.leads) {
        (false, _) => "works alone: leader election is off.",
        (true, true) => "leads.",
        (true, false) => "does not lead; it takes over when the leader goes.",
    };
    html! {
        div class="card" {
            p { "This process, " code { (facts.process.identity) } ", " (word) }
            @for one in &facts.leadership.leases { (lease(one, facts.at)) }
        }
    }
}

fn lease(lease: &LeaseFacts, now: Moment) -> Markup {
    html! {
        dl {
            dt { "Lease" }
            dd { (lease.lease) }
            dt { "Held by" }
            dd {
                @match &lease.holder {
                    Some(holder) => { code { (holder) } @if lease.leads { " (this process)" } }
                    None if lease.seen => { "no holder" }
                    None => { "not known yet" }
                }
            }
            @for (name, moment) in [("Since", lease.since), ("Last sign of life", lease.renewed)] {
                @if let Some(moment) = moment {
                    dt { (name) }
                    dd { (since_when(moment, now)) }
                }
            }
            dt { "Changed hands" }
            dd { (count(lease.transitions.unsigned_abs() as usize, "time", "times")) }
        }
    }
}
