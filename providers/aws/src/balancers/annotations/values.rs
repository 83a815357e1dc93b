//! Values of annotations as upstream reads them: an empty one counts as none.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::prelude::*;

use crate::balancers::annotations::ANNOTATIONS;

/// Most entries of a list that a warning shows.
const SHOWN: usize = 5;

/// The annotation's or the default's text; none when it is empty.
pub(super) fn text(read: &mut Reader<'_>, key: &str) -> Option<String> {
    read.text(key).filter(|text| !text.is_empty()).map(Into::into)
}

/// Whether there is a value: an empty annotation counts as none, as upstream has it.
pub(super) fn written(read: &mut Reader<'_>, key: &str) -> bool {
    text(read, key).is_some()
}

pub(super) fn flag(read: &mut Reader<'_>, key: &str) -> bool {
    written(read, key) && read.boolean(key) == Some(true)
}

pub(super) fn number(read: &mut Reader<'_>, key: &str, from: u16, to: u16) -> Option<u16> {
    match written(read, key) {
        true => read
            .integer(key, from.into()..=to.into())
            .and_then(|number| number.try_into().ok()),
        false => None,
    }
}

pub(super) fn strings(read: &mut Reader<'_>, key: &str) -> Vec<String> {
    read.list(key).unwrap_or_default().into_iter().map(Into::into).collect()
}

/// `key=value,key=value` as upstream's `getKeyValuePropertiesFromAnnotation` reads it: an entry without key does not count, of several `=` only what
/// stands before the second one does, and of equal keys the last.
pub(super) fn tags(read: &mut Reader<'_>, warnings: &mut Vec<String>) -> Vec<Pair> {
    let list = text(read, "additional-resource-tags").unwrap_or_default();
    let (mut tags, mut odd) = (BTreeMap::new(), Vec::new());
    for entry in list.split(',').map(str::trim_ascii).filter(|entry| !entry.is_empty()) {
        let mut parts = entry.split('=').map(str::trim_ascii);
        let (key, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let twice = !key.is_empty() && tags.insert(key, value).is_some();
        if key.is_empty() || twice || parts.next().is_some() {
            odd.push(entry);
        }
    }
    if !odd.is_empty() {
        let key = ANNOTATIONS.key("additional-resource-tags");
        let shown = odd.get(..SHOWN).unwrap_or(&odd).join(", ");
        warnings.push(format!(
            "{key}: of these entries only a part counts or nothing: {shown}"
        ));
    }
    tags.into_iter().map(|(key, value)| Pair::new(key, value)).collect()
}

pub(super) fn pairs(read: &mut Reader<'_>, key: &str) -> Vec<Pair> {
    let pairs = read.map(key).unwrap_or_default();
    pairs.into_iter().map(|(key, value)| Pair::new(key, value)).collect()
}
