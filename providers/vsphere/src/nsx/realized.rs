//! What became of an intent: NSX takes what is requested at once, and does it later.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::api::Nsx;
use super::object::{items, text};

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Realized {
    /// Nothing is known yet.
    Waiting,
    /// It is done.
    Done,
    /// It failed; why.
    Failed(String),
}

/// The attribute with the address of an allocation.
const ADDRESS: &str = "allocation_ip";

impl Realized {
    /// Of the intent with this path.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn look(nsx: &Nsx<'_>, path: &str) -> Result<Self, Failure> {
        match nsx.realized(path) {
            Ok(found) => Ok(Self::of(&found)),
            // Nothing was begun yet.
            Err(failure) if failure.is_not_found() => Ok(Self::Waiting),
            Err(failure) => Err(failure),
        }
    }

    fn of(found: &Value) -> Self {
        let mut is_done = false;
        for entity in items(found, "results") {
            match text(entity, "state") {
                "ERROR" => return Self::Failed(why(entity)),
                // One place is enough, as for upstream: standby edges come later.
                "REALIZED" => is_done = true,
                _ => {}
            }
        }
        if is_done { Self::Done } else { Self::Waiting }
    }
}

/// The address of an allocation, or how far it is.
///
/// # Errors
/// The error of NSX.
pub fn address(nsx: &Nsx<'_>, path: &str) -> Result<Result<String, Realized>, Failure> {
    let found = match nsx.realized(path) {
        Err(failure) if failure.is_not_found() => return Ok(Err(Realized::Waiting)),
        found => found?,
    };
    let mut attributes = items(&found, "results").flat_map(|entity| items(entity, "extended_attributes"));
    let known = attributes.find(|attribute| text(attribute, "key") == ADDRESS);
    let value = known.and_then(|attribute| items(attribute, "values").next()?.as_str());
    Ok(match value.filter(|value| !value.is_empty()) {
        Some(address) => Ok(address.into()),
        None => Err(match Realized::of(&found) {
            Realized::Done => Realized::Waiting,
            other => other,
        }),
    })
}

/// Why a realization failed, in the words of its alarms.
fn why(entity: &Value) -> String {
    let alarms = items(entity, "alarms").map(|alarm| text(alarm, "message"));
    let own = ["runtime_error", "publish_status_error"].map(|field| text(entity, field));
    let said: Vec<&str> = alarms.chain(own).filter(|text| !text.is_empty()).take(3).collect();
    match said.is_empty() {
        true => "NSX tells no reason".into(),
        false => said.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn failed_entity_counts_for_all_else_one_realized_suffices() {
        let of = |states: &[&str]| {
            let entities: Vec<Value> = states.iter().map(|state| json!({ "state": state })).collect();
            Realized::of(&json!({ "results": entities }))
        };
        assert_eq!(of(&[]), Realized::Waiting);
        assert_eq!(of(&["REALIZED", "REALIZED"]), Realized::Done);
        assert_eq!(of(&["UNAVAILABLE", "REALIZED"]), Realized::Done);
        assert_eq!(of(&["UNREALIZED"]), Realized::Waiting);
        assert_eq!(
            of(&["REALIZED", "ERROR"]),
            Realized::Failed("NSX tells no reason".into())
        );
    }

    #[test]
    fn reasons_are_those_of_alarms() {
        let failed = json!({ "state": "ERROR", "alarms": [{ "message": "no room" }], "runtime_error": "edge down" });
        assert_eq!(why(&failed), "no room; edge down");
    }
}
