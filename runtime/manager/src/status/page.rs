//! `/`: the status as HTML for people. One page without scripts, pictures or anything from elsewhere; it renews itself.
//!
//! The answer to "is all well?" is its first line. Colours only repeat what words say. On a narrow screen each row of a table becomes a
//! block whose cells carry the names of their columns; the roles keep it a table for screen readers.

use std::fmt::Display;

use crate::status::facts::{
    ApiHost, CandidateFacts, ControllerFacts, ControllerState, Deletion, Facts, FaultFacts, LeaseFacts, Listed, Moment,
    ProviderFacts, Status, SwapFacts, WaitingObject,
};
use crate::status::html::Html;
use crate::status::verdict::{State, Trouble, count};

const STYLE: &str = include_str!("page.css");

/// The page renews itself after so many seconds.
const RENEWAL: &str = "10";

/// What a browser may do with the page: show it, with our style. `nonce` is in [`page`] too.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// The page. `nonce` marks the style as ours and is different each time.
pub fn page(status: &Status, nonce: &str, renews: bool) -> String {
    let mut html = Html::default();
    head(&mut html, status, nonce, renews);
    let facts = &status.facts;
    html.raw("<main>");
    verdict(&mut html, status);
    html.raw(
        "<nav aria-label=\"Sections\"><a href=\"#waiting\">What waits</a><a href=\"#controllers\">Controllers</a>",
    );
    html.raw(
        "<a href=\"#providers\">Providers</a><a href=\"#hosts\">API hosts</a><a href=\"#deletion\">Deletion brake</a>",
    );
    html.raw("<a href=\"#leadership\">Leadership</a><a href=\"/status.json\">JSON</a></nav>");
    waiting(&mut html, facts);
    controllers(&mut html, facts);
    providers(&mut html, facts);
    hosts(&mut html, facts);
    deletion(&mut html, facts);
    leadership(&mut html, facts);
    html.raw("</main><footer>");
    html.wrap("<p>As of ", facts.at.clock(), ". ");
    if renews {
        html.wrap(
            "This page renews itself every ",
            RENEWAL,
            " seconds; <a href=\"/?renew=off\">hold it still</a>.</p>",
        );
    } else {
        html.raw("This page is held still; <a href=\"/\">let it renew itself</a>.</p>");
    }
    html.raw("</footer>");
    html.finish()
}

fn head(html: &mut Html, status: &Status, nonce: &str, renews: bool) {
    let process = &status.facts.process;
    html.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">");
    if renews {
        html.wrap("<meta http-equiv=\"refresh\" content=\"", RENEWAL, "\">");
    }
    // An empty picture, so that no browser asks for another one.
    html.raw("<link rel=\"icon\" href=\"data:,\">");
    html.wrap("<title>", &status.verdict.summary, " \u{2013} Cloudwit</title>");
    html.wrap("<style nonce=\"", nonce, "\">")
        .raw(STYLE)
        .raw("</style></head><body>");
    html.wrap("<header><span><b>Cloudwit</b> ", &process.version, "</span>");
    html.wrap("<span>", &process.identity, ", started ");
    ago(html, process.started, status.facts.at);
    html.raw("</span></header>");
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

fn verdict(html: &mut Html, status: &Status) {
    let verdict = &status.verdict;
    let (class, mark, word) = look(verdict.state);
    html.wrap("<section class=\"verdict ", class, "\" aria-labelledby=\"verdict\">");
    html.wrap("<h1 id=\"verdict\"><span aria-hidden=\"true\">", mark, "</span>");
    html.text(&verdict.summary).raw("</h1>");
    match verdict.troubles.as_slice() {
        [] => {}
        [only] => {
            html.wrap("<p>", word, "");
            next_step(html, only, status.facts.at);
            html.raw("</p>");
        }
        all => {
            html.raw("<ol>");
            for trouble in all {
                html.wrap("<li><b>", &trouble.what, "</b><br>")
                    .text(look(trouble.state).2);
                next_step(html, trouble, status.facts.at);
                html.raw("</li>");
            }
            html.raw("</ol>");
        }
    }
    html.raw("</section>");
}

/// Continues the word of the state.
fn next_step(html: &mut Html, trouble: &Trouble, now: Moment) {
    if let Some(since) = trouble.since {
        html.raw(" since ");
        since_when(html, since, now);
    }
    html.wrap(". ", &trouble.next_step, " ");
    html.wrap("<a href=\"#", trouble.section, "\">More</a>");
}

fn section(html: &mut Html, id: &'static str, title: &'static str) {
    html.wrap("<h2 id=\"", id, "\">").raw(title).raw("</h2>");
}

/// One cell of a table.
enum Cell<'a> {
    /// Text.
    Text(&'a dyn Display),
    /// A name that may be long.
    Name(&'a str),
    /// Sentences that need room.
    Why(&'a str),
    Number(&'a dyn Display),
    /// A badge: class and word.
    Badge(&'static str, &'a str),
    /// How long ago it was; nothing when it is not known.
    Ago(Option<Moment>),
    /// For how long it has been so; nothing when that is not known.
    For(Option<Moment>),
}

struct Table<'a> {
    html: &'a mut Html,
    heads: &'static [&'static str],
    now: Moment,
}

impl<'a> Table<'a> {
    fn new(html: &'a mut Html, caption: &'static str, heads: &'static [&'static str], now: Moment) -> Self {
        html.wrap(
            "<table role=\"table\"><caption>",
            caption,
            "</caption><thead role=\"rowgroup\"><tr role=\"row\">",
        );
        for head in heads {
            html.wrap("<th role=\"columnheader\" scope=\"col\">", head, "</th>");
        }
        html.raw("</tr></thead><tbody role=\"rowgroup\">");
        Self { html, heads, now }
    }

    /// The first cell names the row, and is a link where there is one.
    fn row(&mut self, name: &str, link: Option<&str>, cells: &[Cell<'_>]) {
        self.html.raw("<tr role=\"row\"><th role=\"rowheader\" scope=\"row\">");
        match link {
            Some(link) => self.html.wrap("<a href=\"", link, "\">").wrap("", name, "</a>"),
            None => self.html.text(name),
        };
        self.html.raw("</th>");
        for (head, cell) in self.heads.iter().skip(1).zip(cells) {
            let class = match cell {
                Cell::Number(_) => "num",
                Cell::Why(_) => "why",
                Cell::Name(_) => "name",
                _ => "",
            };
            self.html
                .wrap("<td role=\"cell\" class=\"", class, "\" data-of=\"")
                .text(head)
                .raw("\"><span>");
            match cell {
                Cell::Text(text) | Cell::Number(text) => {
                    self.html.text(text);
                }
                Cell::Name(text) | Cell::Why(text) => {
                    self.html.text(text);
                }
                Cell::Badge(class, word) => badge(self.html, class, word),
                Cell::Ago(Some(at)) => ago(self.html, *at, self.now),
                Cell::For(Some(at)) => lasting(self.html, *at, self.now),
                Cell::Ago(None) | Cell::For(None) => {
                    self.html.raw("\u{2013}");
                }
            }
            self.html.raw("</span></td>");
        }
        self.html.raw("</tr>");
    }

    fn finish(self, more: usize) {
        self.html.raw("</tbody></table>");
        if more > 0 {
            self.html.wrap("<p class=\"more\">and ", more, " more</p>");
        }
    }
}

fn badge(html: &mut Html, class: &'static str, word: &str) {
    html.wrap("<span class=\"badge ", class, "\">")
        .wrap("", word, "</span>");
}

fn waiting(html: &mut Html, facts: &Facts) {
    section(html, "waiting", "What waits, and why");
    let waiting = &facts.waiting;
    if waiting.nodes.total + waiting.services.total == 0 {
        html.raw("<div class=\"card\"><p class=\"none\">");
        html.raw(if facts.leadership.leads {
            "Nothing: every Node and Service is done."
        } else {
            "The leader knows."
        });
        html.raw("</p></div>");
        return;
    }
    objects(
        html,
        "Nodes",
        &["Node", "Waits", "Controller", "What for"],
        &waiting.nodes,
        facts.at,
    );
    objects(
        html,
        "Services",
        &["Service", "Waits", "Controller", "What for"],
        &waiting.services,
        facts.at,
    );
}

fn objects(
    html: &mut Html,
    kind: &'static str,
    heads: &'static [&'static str],
    objects: &Listed<WaitingObject>,
    now: Moment,
) {
    if objects.total == 0 {
        return;
    }
    html.raw("<div class=\"card flush\">");
    let mut table = Table::new(html, kind, heads, now);
    for object in &objects.shown {
        let cells = [
            Cell::For(object.since),
            Cell::Text(&object.controller),
            Cell::Why(&object.why),
        ];
        table.row(&object.name, Some(&object.explain), &cells);
    }
    table.finish(objects.more());
    html.raw("</div>");
}

fn controllers(html: &mut Html, facts: &Facts) {
    section(html, "controllers", "Controllers");
    html.raw("<div class=\"card flush\">");
    let heads = &[
        "Controller",
        "State",
        "Ready",
        "In work",
        "Paused",
        "Oldest",
        "Last done",
    ];
    let mut table = Table::new(html, "Queues", heads, facts.at);
    for controller in &facts.controllers {
        let (class, word) = state_of(controller);
        let cells = [
            Cell::Badge(class, word),
            Cell::Number(&controller.ready),
            Cell::Number(&controller.in_work),
            Cell::Number(&controller.later),
            Cell::For(controller.oldest_since),
            Cell::Ago(controller.last_done),
        ];
        table.row(controller.name, None, &cells);
    }
    table.finish(0);
    for controller in &facts.controllers {
        if let Some(why) = &controller.why {
            html.wrap("<p class=\"more\">", controller.name, " is off: ")
                .text(why)
                .raw(".</p>");
        }
        for trouble in &controller.troubles {
            html.wrap("<p class=\"more\">", controller.name, ": ")
                .text(&trouble.what);
            html.wrap(". Next try at ", trouble.next.clock(), ".</p>");
        }
    }
    html.raw("</div>");
}

fn state_of(controller: &ControllerFacts) -> (&'static str, &'static str) {
    match controller.state {
        ControllerState::Running if controller.troubles.is_empty() => ("well", "running"),
        ControllerState::Running => ("bad", "held up"),
        ControllerState::StandingBy => ("calm", "standing by"),
        ControllerState::Off => ("off", "off"),
        ControllerState::Hanging => ("bad", "hangs"),
    }
}

fn providers(html: &mut Html, facts: &Facts) {
    section(html, "providers", "Providers");
    for provider in &facts.providers {
        provider_card(html, provider, facts.at);
    }
}

fn provider_card(html: &mut Html, provider: &ProviderFacts, now: Moment) {
    html.wrap("<article class=\"card\"><h3>", &provider.name, "</h3><dl>");
    html.wrap("<dt>Runs</dt><dd>", &provider.provider, " ")
        .text(&provider.version)
        .raw(" since ");
    since_when(html, provider.since, now);
    html.wrap(
        "</dd><dt>Contract</dt><dd>cloudwit:provider ",
        &provider.contract,
        "</dd>",
    );
    html.wrap(
        "<dt>Component</dt><dd><code>sha256:",
        &provider.component_digest,
        "</code></dd>",
    );
    html.wrap("<dt>Offers</dt><dd>", provider.abilities.join(", "), "</dd>");
    html.wrap(
        "<dt>Provider ids</dt><dd>",
        provider.provider_id_prefixes.join(", "),
        "</dd>",
    );
    html.raw("<dt>May reach</dt><dd>");
    list(html, &provider.granted, "nothing: no HTTP destination is granted");
    html.raw("</dd>");
    if !provider.lacking.is_empty() {
        html.raw("<dt>Would like</dt><dd>");
        list(html, &provider.lacking, "");
        html.raw("</dd>");
    }
    html.raw("<dt>Last swap</dt><dd>");
    swap(html, provider.last_swap.as_ref(), now);
    html.raw("</dd><dt>Last fault</dt><dd>");
    fault(html, provider.last_fault.as_ref(), now);
    html.raw("</dd></dl></article>");
}

fn list(html: &mut Html, lines: &[String], none: &'static str) {
    if lines.is_empty() {
        html.wrap("<span class=\"dim\">", none, "</span>");
        return;
    }
    html.raw("<ul>");
    for line in lines {
        html.wrap("<li><code>", line, "</code></li>");
    }
    html.raw("</ul>");
}

fn swap(html: &mut Html, swap: Option<&SwapFacts>, now: Moment) {
    let Some(swap) = swap else {
        html.raw("<span class=\"dim\">none since the start</span>");
        return;
    };
    badge(
        html,
        if swap.refused { "warn" } else { "well" },
        if swap.refused { "refused" } else { swap.result },
    );
    html.raw(" ");
    ago(html, swap.at, now);
    if swap.refused {
        html.wrap(", at the step \u{201c}", swap.result, "\u{201d}");
    }
    html.wrap("<p>", &swap.message, "</p>");
}

fn fault(html: &mut Html, fault: Option<&FaultFacts>, now: Moment) {
    let Some(fault) = fault else {
        html.raw("<span class=\"dim\">none</span>");
        return;
    };
    badge(html, "warn", fault.kind);
    html.raw(" ");
    ago(html, fault.at, now);
    html.wrap("<p>", &fault.message, "</p>");
    if !fault.output.is_empty() {
        html.wrap(
            "<details open><summary>Its last lines</summary><pre tabindex=\"0\">",
            &fault.output,
            "</pre></details>",
        );
    }
}

fn hosts(html: &mut Html, facts: &Facts) {
    section(html, "hosts", "API hosts");
    if facts.api_hosts.is_empty() {
        html.raw("<div class=\"card\"><p class=\"none\">No request was made yet.</p></div>");
        return;
    }
    html.raw("<div class=\"card flush\">");
    let heads = &["Host", "Provider", "State", "Left now", "Allowed", "Waiting"];
    let mut table = Table::new(html, "Budgets of requests", heads, facts.at);
    for host in &facts.api_hosts {
        let pause = host.paused_until.map(|until| format!("pause until {}", until.clock()));
        let state = pause
            .as_deref()
            .map_or(Cell::Badge("well", "open"), |pause| Cell::Badge("warn", pause));
        let (left, allowed) = budget(host);
        let cells = [
            Cell::Text(&host.provider),
            state,
            Cell::Number(&left),
            Cell::Text(&allowed),
            Cell::Number(&host.waiting),
        ];
        table.row(&host.host, None, &cells);
    }
    table.finish(0);
    html.raw("</div>");
}

fn budget(host: &ApiHost) -> (String, String) {
    match (host.left, host.per_second, host.burst) {
        (Some(left), Some(per_second), Some(burst)) => {
            (left.to_string(), format!("{per_second:.3} a second, {burst} at once"))
        }
        _ => ("\u{2013}".into(), "unlimited".into()),
    }
}

fn deletion(html: &mut Html, facts: &Facts) {
    section(html, "deletion", "Deletion brake");
    if facts.deletion.is_empty() {
        html.raw("<div class=\"card\"><p class=\"none\">No Node is deleted by this process");
        html.raw(if facts.leadership.leads {
            ".</p></div>"
        } else {
            ": it does not lead.</p></div>"
        });
    }
    for deletion in &facts.deletion {
        brake(html, deletion, facts.at);
    }
}

fn brake(html: &mut Html, deletion: &Deletion, now: Moment) {
    html.wrap("<div class=\"card\"><h3>", &deletion.provider, " ");
    let policy = match (deletion.braked_since, deletion.policy) {
        (Some(_), _) => ("bad", "engaged"),
        (None, "off") => ("off", "deletion is switched off"),
        (None, "taint") => ("calm", "Nodes are tainted, not deleted"),
        (None, _) => ("well", "released"),
    };
    badge(html, policy.0, policy.1);
    html.raw("</h3><p>");
    if let Some(since) = deletion.braked_since {
        html.raw("Since ");
        since_when(html, since, now);
        html.raw(" no Node is deleted. ");
    }
    html.text(count(deletion.candidates.total, "Node seems", "Nodes seem"))
        .raw(" to be gone; ");
    html.text(count(deletion.deleted, "was", "were"))
        .raw(" deleted within the last ");
    html.text(span(deletion.window_seconds));
    html.wrap(", of ", deletion.allowed, " that may go in that time.</p>");
    if deletion.candidates.total > 0 {
        candidates(html, &deletion.candidates, now);
    }
    html.raw("</div>");
}

fn candidates(html: &mut Html, candidates: &Listed<CandidateFacts>, now: Moment) {
    let heads = &["Node", "Machine", "Gone", "Answers", "Next"];
    let mut table = Table::new(html, "Nodes whose machine seems to be gone", heads, now);
    for candidate in &candidates.shown {
        let cells = [
            Cell::Name(&candidate.provider_id),
            Cell::For(Some(candidate.since)),
            Cell::Number(&candidate.answers),
            if candidate.held {
                Cell::Badge("bad", "held by the brake")
            } else {
                Cell::Badge("calm", "is being confirmed")
            },
        ];
        table.row(
            &candidate.node,
            Some(&format!("/explain/node/{}", candidate.node)),
            &cells,
        );
    }
    table.finish(candidates.more());
}

fn leadership(html: &mut Html, facts: &Facts) {
    section(html, "leadership", "Leadership");
    html.raw("<div class=\"card\"><p>This process, ");
    html.wrap("<code>", &facts.process.identity, "</code>, ");
    html.raw(match (facts.leadership.elects, facts.leadership.leads) {
        (false, _) => "works alone: leader election is off.</p>",
        (true, true) => "leads.</p>",
        (true, false) => "does not lead; it takes over when the leader goes.</p>",
    });
    for lease in &facts.leadership.leases {
        of_lease(html, lease, facts.at);
    }
    html.raw("</div>");
}

fn of_lease(html: &mut Html, lease: &LeaseFacts, now: Moment) {
    html.wrap("<dl><dt>Lease</dt><dd>", &lease.lease, "</dd><dt>Held by</dt><dd>");
    match &lease.holder {
        Some(holder) if lease.leads => html.wrap("<code>", holder, "</code> (this process)"),
        Some(holder) => html.wrap("<code>", holder, "</code>"),
        None if lease.seen => html.raw("nobody"),
        None => html.raw("not known yet"),
    };
    for (name, moment) in [("Since", lease.since), ("Last sign of life", lease.renewed)] {
        if let Some(moment) = moment {
            html.wrap("</dd><dt>", name, "</dt><dd>");
            since_when(html, moment, now);
        }
    }
    html.wrap(
        "</dd><dt>Changed hands</dt><dd>",
        count(lease.transitions.unsigned_abs() as usize, "time", "times"),
        "</dd></dl>",
    );
}

/// `4 m 12 s ago`, with the moment itself for who points at it and for programs.
fn ago(html: &mut Html, at: Moment, now: Moment) {
    moment(html, at);
    html.text(span(now.seconds_since(at))).raw(" ago</time>");
}

/// `4 m 12 s`, the same way.
fn lasting(html: &mut Html, at: Moment, now: Moment) {
    moment(html, at);
    html.text(span(now.seconds_since(at))).raw("</time>");
}

/// `2026-01-01 00:00:00 UTC (4 m 12 s)`.
fn since_when(html: &mut Html, at: Moment, now: Moment) {
    moment(html, at);
    html.text(at.clock())
        .raw("</time> (")
        .text(span(now.seconds_since(at)))
        .raw(")");
}

fn moment(html: &mut Html, at: Moment) {
    html.wrap("<time datetime=\"", at.text(), "\" title=\"")
        .text(at.clock())
        .raw("\">");
}

/// Days from two on, else as `cloudwit explain` says it.
fn span(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    if seconds >= 2 * DAY {
        format!("{} d", seconds / DAY)
    } else {
        cloudwit_controllers::explain::span(std::time::Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests;
