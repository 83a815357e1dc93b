//! Documents as clouds send them, and as they should not.

use super::*;

fn read(text: &str) -> Element {
    Element::parse(text).unwrap()
}

fn refused(text: &str) -> String {
    match Element::parse(text) {
        Err(Failure::Unavailable(text)) => text,
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
fn a_document_cut_at_any_byte_is_refused_as_cut() {
    let end = SOAP.find("\n<?end?>").unwrap();
    for cut in (0..end).filter(|cut| SOAP.is_char_boundary(*cut)) {
        let failure = refused(&SOAP[..cut]);
        assert!(
            failure.contains("it ends in the middle") || failure.contains("an entity"),
            "{cut}: {failure}"
        );
    }
    assert_eq!(read(&SOAP[..end]), read(SOAP));
}
