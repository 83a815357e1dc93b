//! The page as text. How it looks is seen in a browser by `tests/suite/tests/status_page.rs`.

use super::*;
use crate::status::facts::{CandidateFacts, ControllerFacts, Facts, FaultFacts, SHOWN, SwapFacts, WaitingObject};
use crate::status::verdict::tests::{at, controller, facts, lease};

const HOSTILE: &str = "</td><script>alert('x')</script>\"onload=\"y";

fn shown(facts: Facts) -> String {
    page(&Status::of(facts), "abc", true)
}

fn waiting_node(name: &str) -> WaitingObject {
    WaitingObject {
        name: name.into(),
        controller: "cloud-node-controller",
        since: Some(at(3000)),
        failed: true,
        why: "waits to be initialised.".into(),
        explain: format!("/explain/node/{name}"),
    }
}

#[test]
fn whatever_strangers_say_is_text() {
    let mut facts = facts();
    let provider = &mut facts.providers[0];
    for text in [
        &mut provider.name,
        &mut provider.provider,
        &mut provider.version,
        &mut provider.component_digest,
    ] {
        *text = HOSTILE.into();
    }
    provider.provider_id_prefixes = vec![HOSTILE.into()];
    provider.granted = vec![HOSTILE.into()];
    provider.lacking = vec![HOSTILE.into()];
    provider.last_swap = Some(SwapFacts {
        at: at(1),
        result: "check",
        refused: true,
        message: HOSTILE.into(),
        took_seconds: 0.0,
    });
    provider.last_fault = Some(FaultFacts {
        at: at(3599),
        kind: "trap",
        message: HOSTILE.into(),
        output: HOSTILE.into(),
    });
    facts.process.identity = HOSTILE.into();
    facts.leadership.leases = vec![lease(HOSTILE, false)];
    facts.api_hosts[0].host = HOSTILE.into();
    facts.waiting.nodes = vec![WaitingObject {
        why: HOSTILE.into(),
        explain: HOSTILE.into(),
        ..waiting_node(HOSTILE)
    }]
    .into();
    facts.deletion[0].candidates = vec![CandidateFacts {
        node: HOSTILE.into(),
        provider_id: HOSTILE.into(),
        since: at(1),
        answers: 2,
        held: true,
    }]
    .into();
    facts.controllers = vec![ControllerFacts {
        why: Some(HOSTILE.into()),
        ..controller()
    }];
    let page = shown(facts);
    assert!(!page.contains("<script") && !page.contains("\"onload"), "{page}");
    assert!(page.matches("&lt;script&gt;").count() >= 20, "{page}");
}

#[test]
fn the_first_line_says_whether_all_is_well_in_words() {
    let page = shown(facts());
    assert!(page.contains("<title>All well. \u{2013} Cloudwit</title>"), "{page}");
    let first = page.find("<h1").unwrap();
    assert!(page[first..].starts_with("<h1 id=\"verdict\"><span aria-hidden=\"true\">\u{2713} </span>All well.</h1>"));
    assert!(page.find("<table").unwrap() > first);
}

#[test]
fn what_cannot_be_seen_is_shown() {
    let mut facts = facts();
    facts.providers[0].name = "a\u{202e}b\0c\r\nd\u{2069}\u{1b}[2J".into();
    let page = shown(facts);
    assert!(
        page.contains("<h3>a\u{fffd}b\u{fffd}c\u{fffd}\nd\u{fffd}\u{fffd}[2J</h3>"),
        "{page}"
    );
}

#[test]
fn long_lists_are_cut_and_counted() {
    let mut facts = facts();
    let nodes: Vec<WaitingObject> = (0..SHOWN + 7)
        .map(|number| waiting_node(&format!("node-{number}")))
        .collect();
    facts.waiting.nodes = nodes.into();
    let page = shown(facts);
    assert_eq!(page.matches("href=\"/explain/node/node-").count(), SHOWN);
    assert!(page.contains("<p class=\"more\">and 7 more</p>"), "{page}");
}

#[test]
fn nothing_comes_from_elsewhere_and_only_our_style_is_allowed() {
    let page = shown(facts());
    assert!(
        !page.contains("<script") && !page.contains("src=") && !page.contains("style="),
        "{page}"
    );
    assert_eq!(page.matches("<style nonce=\"abc\">").count(), 1);
    assert!(policy("abc").starts_with("default-src 'none'; style-src 'nonce-abc';"));
    assert!(!policy("abc").contains("unsafe"));
}

#[test]
fn who_reads_slowly_can_hold_the_page_still() {
    let status = Status::of(facts());
    assert!(page(&status, "abc", true).contains("http-equiv=\"refresh\" content=\"10\""));
    let still = page(&status, "abc", false);
    assert!(!still.contains("http-equiv=\"refresh\"") && still.contains("let it renew itself"));
}

#[test]
fn every_column_has_a_head_and_every_cell_says_of_what_it_is() {
    let mut facts = facts();
    facts.waiting.nodes = vec![waiting_node("a")].into();
    let page = shown(facts);
    for table in page.split("<table").skip(1) {
        let table = &table[..table.find("</table>").unwrap()];
        let heads = table.matches("scope=\"col\"").count();
        let rows = table.matches("scope=\"row\"").count();
        assert_eq!(table.matches("<td").count(), rows * (heads - 1), "{table}");
        assert_eq!(table.matches("data-of=\"").count(), table.matches("<td").count());
        assert!(table.contains("<caption>"));
    }
}
