//! Documents as clouds send them, and as they should not.

use super::*;
use crate::types::FailureKind;

fn read(text: &str) -> Element {
    Element::parse(text).unwrap()
}

fn refused(text: &str) -> String {
    match Element::parse(text) {
        Err(Failure {
            kind: FailureKind::Unavailable,
            message: text,
            ..
        }) => text,
        other => panic!("{text:?}: {other:?}"),
    }
}

const SOAP: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- > --><s:Envelope xmlns:s=\"urn:s\">\n <s:Body>\n  <r:Ref \
    XMLSchema-instance:type=\"ArrayOf&lt;X&gt;\" n='1'>vm-&#55;<![CDATA[<&]]>&#x2603;</r:Ref\n><e/>\n </s:Body>\n</s:Envelope>\n<?end?>\n";

#[test]
fn a_document_is_a_tree_by_local_names() {
    let envelope = read(SOAP);
    assert_eq!(envelope.name, "Envelope");
    let reference = envelope.at(&["Body", "Ref"]).unwrap();
    assert_eq!(reference.own_text(), "vm-7<&\u{2603}");
    assert_eq!(
        (reference.attribute("type"), reference.attribute("n")),
        (Some("ArrayOf<X>"), Some("1"))
    );
    assert_eq!(
        envelope.attribute("s"),
        None,
        "declarations of namespaces are no attributes"
    );
    let body = envelope.child("Body").unwrap();
    assert_eq!((body.text("e"), body.text("f"), body.own_text()), (Some(""), None, ""));
    assert_eq!(body.elements().count(), 2);
}

#[test]
fn a_document_cut_at_any_byte_is_refused() {
    let end = SOAP.find("\n<?end?>").unwrap();
    for cut in (0..end).filter(|cut| SOAP.is_char_boundary(*cut)) {
        refused(&SOAP[..cut]);
    }
    assert_eq!(read(&SOAP[..end]), read(SOAP));
}

/// `val` of vSphere's property collector.
#[test]
fn an_attribute_without_prefix_is_found_before_one_with() {
    for text in [
        "<val xsi:type='ManagedObjectReference' type='HostSystem'>host-1</val>",
        "<val type='HostSystem' XMLSchema-instance:type='ManagedObjectReference'>host-1</val>",
    ] {
        assert_eq!(Element::parse(text).unwrap().attribute("type"), Some("HostSystem"));
    }
    let only = Element::parse("<val xsi:type='xsd:string'/>").unwrap();
    assert_eq!(only.attribute("type"), Some("xsd:string"));
}

#[test]
fn mistake_is_reported_with_its_line() {
    assert!(refused("<a>\n <b><c>1</d></b>\n</a>").starts_with("the answer is no whole XML: line 2: "));
    assert!(refused("").ends_with("line 1: it ends in the middle"));
    assert!(refused("<a/><b/>").ends_with("line 1: a second outermost element"));
}

#[test]
fn what_is_no_xml_is_refused() {
    for text in [
        "ok",
        "{\"a\": 1}",
        "<![CDATA[a]]><a/>",
        "<a/>b",
        "</a>",
        "<a></ a>",
        "<r:a></a>",
        "<a b/>",
        "<a b=c/>",
    ] {
        refused(text);
    }
    for text in ["<!DOCTYPE html><html></html>", "<!doctype html>"] {
        assert!(refused(text).contains("is this a web page?"), "{text}");
    }
}

#[test]
fn entities_are_those_that_need_no_declaration() {
    let text = "<a b='&quot;&apos;'>&lt;&gt;&amp;amp;&#x10FFFF;&#9;.&#xa;</a>";
    assert_eq!(read(text).own_text(), "<>&amp;\u{10ffff}\t.");
    assert_eq!(read(text).attribute("b"), Some("\"'"));
    for wrong in [
        "&nbsp;",
        "&",
        "& ",
        "&lt",
        "&;",
        "&#;",
        "&#x;",
        "&#0;",
        "&#xD800;",
        "&#x110000;",
        "&#+65;",
        "&#x-1;",
        "&#99999999999;",
    ] {
        for document in [format!("<a>{wrong}</a>"), format!("<a b='{wrong}'/>")] {
            refused(&document);
        }
    }
}

#[test]
fn entities_of_ones_own_cannot_blow_a_document_up() {
    let laughs = "<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;\">]><lolz>&lol2;</lolz>";
    assert!(refused(laughs).contains("a document type"));
}

#[test]
fn cdata_is_taken_as_it_is() {
    assert_eq!(read("<a>1<![CDATA[<b>&amp;]]]]>2</a>").own_text(), "1<b>&amp;]]2");
    refused("<a><![CDATA[x]]");
}

#[test]
fn depth_is_bounded_and_no_document_overflows_the_stack() {
    let nested = |depth: usize| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert_eq!(read(&nested(100)).name, "a");
    assert!(refused(&nested(101)).contains("deeper elements than any answer has"));
    assert!(refused(&"<a>".repeat(1_000_000)).contains("deeper elements"));
}

#[test]
fn indentation_is_no_text_but_text_beside_elements_is() {
    let element = read("<a>\n  <b> x y </b>\n</a>");
    assert_eq!((element.own_text(), element.text("b")), ("", Some("x y")));
    assert_eq!(read("<a>before <b/> after</a>").own_text(), "before  after");
}

#[test]
fn ways_lead_by_the_first_child_of_each_name() {
    let element = read("<a><b><c>1</c></b><b><c>2</c><d/></b></a>");
    assert_eq!(element.at(&["b", "c"]).map(Element::own_text), Some("1"));
    assert_eq!(element.at(&["b", "d"]), None);
    assert_eq!(element.at(&[]), Some(&element));
    let all: Vec<_> = element.children("b").filter_map(|b| b.text("c")).collect();
    assert_eq!(all, ["1", "2"]);
}

/// Every text of a few bytes from what matters in XML, and a document with each byte replaced: an answer or a refusal, never a panic.
#[test]
fn no_text_makes_it_panic() {
    const PIECES: [&str; 16] = [
        "<", ">", "/", "a", ":", "=", "'", "\"", "&", ";", "!", "-", "[", "]", "?", "\u{e9}",
    ];
    for n in 0..PIECES.len().pow(4) {
        let text: String = (0..4).map(|digit| PIECES[n >> (4 * digit) & 15]).collect();
        for document in [
            text.clone(),
            format!("<a{text}"),
            format!("<a>{text}</a>"),
            format!("<a b='{text}'>"),
        ] {
            let _ = Element::parse(&document);
        }
    }
    for at in (0..SOAP.len()).filter(|at| SOAP.is_char_boundary(*at) && SOAP.is_char_boundary(at + 1)) {
        for piece in PIECES {
            let _ = Element::parse(&format!("{}{piece}{}", &SOAP[..at], &SOAP[at + 1..]));
        }
    }
}

#[test]
fn what_is_escaped_is_read_back() {
    for text in ["", "a", "<a b='c'>&amp;\"]]>", "\r\n.", "\u{2603}"] {
        let document = format!("<a b='{0}'>{0}</a>", escape(text));
        assert_eq!(read(&document).attribute("b"), Some(text), "{document}");
        assert_eq!(read(&document).own_text(), text.trim_ascii(), "{document}");
    }
}

#[test]
fn an_answer_in_xml_names_its_request_when_it_is_cut() {
    let host = crate::testing::FakeHost::new();
    let get = |body: &[u8]| {
        let answer = crate::testing::FakeAnswer::bytes(200, &[], body);
        host.expect("GET", "https://cloud.test/x").gives(answer);
        host.context()
            .http()
            .get("https://cloud.test/x")
            .send()
            .and_then(|response| response.xml())
    };
    assert_eq!(get(b"<a/>").map(|element| element.name), Ok("a".into()));
    let cut = get(b"<a>").unwrap_err();
    assert_eq!(
        cut,
        Failure::unavailable("GET https://cloud.test/x: the answer is no whole XML: line 1: it ends in the middle")
    );
    // Cut within a letter of several bytes, as a broken connection does.
    assert!(matches!(
        get(b"<a>\xe2\x98"),
        Err(Failure {
            kind: FailureKind::Unavailable,
            ..
        })
    ));
}

#[test]
fn all_elements_that_a_way_leads_to_are_found() {
    let element = read("<a><b><c>1</c><c>2</c><d/></b><x><c>3</c></x><b/><b><c>4</c></b></a>");
    let texts = |names: &[&str]| {
        element
            .all(names)
            .map(|found| found.own_text().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&["b", "c"]), ["1", "2", "4"]);
    assert_eq!((texts(&["b"]).len(), texts(&[]).len(), texts(&["c"]).len()), (3, 1, 0));
}
