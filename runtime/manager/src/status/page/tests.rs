//! The page as text. How it looks is seen in a browser by `tests/suite/tests/status_page.rs`.

use cloudwit_controllers::report::cause::CauseKind;

use super::*;
use crate::status::causes::CauseFacts;
use crate::status::facts::{
    CandidateFacts, ControllerFacts, DriverFacts, Facts, FaultFacts, SHOWN, Search, SwapFacts, VolumeFailure,
    VolumeOperation, WaitingObject,
};
use crate::status::frame::policy;
use crate::status::verdict::tests::{at, controller, facts, lease};

const HOSTILE: &str = "</td><script>alert('x')</script>\"onload=\"y";

fn shown(facts: Facts) -> String {
    page(&Status::of(facts), "abc", true)
}

fn waiting_node(name: &str) -> WaitingObject {
    WaitingObject {
        name: name.into(),
        controller: "cloud-node-controller",
        provider: "east".into(),
        since: Some(at(3000)),
        failed: true,
        cause: None,
        reason: None,
        why: "waits to be initialised.".into(),
        explain: format!("/explain/node/{name}"),
    }
}

#[test]
fn foreign_input_is_rendered_as_text() {
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
    let affected = Affected {
        kind: "Node",
        name: HOSTILE.into(),
        explain: Some(HOSTILE.into()),
    };
    facts.causes = vec![CauseFacts {
        provider: HOSTILE.into(),
        kind: CauseKind::Denied,
        message: HOSTILE.into(),
        other_messages: 0,
        since: None,
        tasks: Vec::new(),
        counts: [("cloud-node-controller", 1)].into(),
        objects: vec![affected.clone()].into(),
    }];
    facts.search = Some(Search {
        query: HOSTILE.into(),
        found: vec![affected].into(),
    });
    facts.process.cluster = HOSTILE.into();
    facts.volumes = vec![DriverFacts {
        driver: HOSTILE.into(),
        provider: HOSTILE.into(),
        operations: vec![VolumeOperation {
            work: HOSTILE.into(),
            since: at(1),
            waits_for: Some(HOSTILE.into()),
            next: None,
            waiting: 1,
        }]
        .into(),
        failed: vec![VolumeFailure {
            work: HOSTILE.into(),
            at: at(1),
            error: HOSTILE.into(),
            times: 2,
        }]
        .into(),
    }];
    let page = shown(facts);
    assert!(!page.contains("<script") && !page.contains("\"onload"), "{page}");
    assert!(page.matches("&lt;script&gt;").count() >= 35, "{page}");
}

#[test]
fn first_line_reports_whether_all_is_healthy_in_words() {
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
fn same_answer_about_many_objects_is_shown_once() {
    let mut facts = facts();
    let node = |name: &str, reason: &str| WaitingObject {
        reason: Some(reason.into()),
        why: format!("waits to be initialised. Last answer of provider east: {reason}."),
        ..waiting_node(name)
    };
    facts.waiting.nodes = vec![
        node("a", "unavailable: 503 about a"),
        node("b", "unavailable: 504 about b"),
        node("c", "denied: wrong key"),
        waiting_node("d"),
        waiting_node("e"),
    ]
    .into();
    let page = shown(facts);
    assert_eq!(page.matches("the same as a").count(), 1, "{page}");
    assert!(page.contains("503 about a") && !page.contains("504 about b") && page.contains("wrong key"));
    assert_eq!(
        page.matches("waits to be initialised.<").count(),
        2,
        "without a reason each tells its own"
    );
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
}

#[test]
fn who_reads_slowly_can_hold_the_page_still() {
    let status = Status::of(facts());
    assert!(page(&status, "abc", true).contains("http-equiv=\"refresh\" content=\"10\""));
    let still = page(&status, "abc", false);
    assert!(!still.contains("http-equiv=\"refresh\"") && still.contains("let it renew itself"));
}

#[test]
fn columns_have_heads_and_cells_have_labels() {
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

#[test]
fn an_outage_is_one_entry_with_some_names_and_a_number() {
    let mut facts = facts();
    let node = |number| Affected {
        kind: "Node",
        name: format!("node-{number}"),
        explain: Some(format!("/explain/node/node-{number}")),
    };
    facts.causes = vec![CauseFacts {
        provider: "east".into(),
        kind: CauseKind::Unavailable,
        message: "unavailable: 503".into(),
        other_messages: 0,
        since: Some(at(3000)),
        tasks: Vec::new(),
        counts: [("cloud-node-controller", 13)].into(),
        objects: (0..13).map(node).collect::<Vec<_>>().into(),
    }];
    let page = shown(facts);
    assert!(
        page.contains(
            "<h1 id=\"verdict\"><span aria-hidden=\"true\">\u{2715} </span>The cloud of provider east does not"
        ),
        "{page}"
    );
    assert!(page.contains("<span class=\"badge bad\">critical</span>"), "{page}");
    assert!(page.contains("Behind it: 13 Nodes wait to be initialised. <a href=\"/explain/node/node-0\">node-0</a>, "));
    assert!(page.contains("node-5</a> and 7 more."), "{page}");
}

#[test]
fn each_column_of_the_queues_has_its_word() {
    let page = shown(facts());
    for head in ["Next", "In work", "Later", "Oldest", "Last done"] {
        assert!(page.contains(&format!("scope=\"col\">{head}</th>")), "{head}");
        assert!(page.contains(&format!("<dt>{head}</dt>")), "{head}");
    }
}

#[test]
fn a_search_shows_what_it_has_found_and_the_way_back() {
    let mut facts = facts();
    facts.search = Some(Search {
        query: "web".into(),
        found: Vec::new().into(),
    });
    let page = shown(facts);
    assert!(
        page.contains("No Node or Service of that name.") && page.contains("Nothing of that name."),
        "{page}"
    );
    assert!(page.contains("<a href=\"/\">Show all again</a>") && page.contains("value=\"web\""));
}
