//! How texts are taken out of AWS's answers: in a few functions, because each place that did it for itself would carry the code again.
use cloudwit_guest_sdk::xml::Element;

/// The text of a child; empty when there is none.
pub(crate) fn text(element: &Element, name: &str) -> String {
    element.text(name).unwrap_or_default().to_owned()
}

/// The text that this way of names leads to; empty when there is none.
pub(crate) fn text_at(element: &Element, names: &[&str]) -> String {
    element.at(names).map(Element::own_text).unwrap_or_default().to_owned()
}

/// The texts that are not empty of all elements that this way of names leads to.
pub(crate) fn texts(element: &Element, names: &[&str]) -> Vec<String> {
    let mut texts = Vec::new();
    for found in element.all(names) {
        if !found.own_text().is_empty() {
            texts.push(found.own_text().to_owned());
        }
    }
    texts
}
