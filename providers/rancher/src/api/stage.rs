//! In which state a resource is, and what can be done with it: each is a state machine, and an action is there where `actions` has it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// State, transition and actions of a resource.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Stage {
    /// `active`, `removing` and so on.
    pub state: String,
    /// `yes` while it goes from one state to another, `error` when that fails; else `no`.
    pub transitioning: Option<String>,
    /// Why it fails, or how far it is.
    pub transitioning_message: Option<String>,
    actions: BTreeMap<String, IgnoredAny>,
}

impl Stage {
    /// Whether it is gone. Lists leave such resources out in a while.
    pub fn is_gone(&self) -> bool {
        matches!(self.state.as_str(), "removed" | "purging" | "purged")
    }

    /// Whether it goes, or is gone.
    pub fn is_leaving(&self) -> bool {
        self.state == "removing" || self.is_gone()
    }

    /// Whether this can be done with it now.
    pub fn allows(&self, action: &str) -> bool {
        self.actions.contains_key(action)
    }

    /// Whether it is in transition to a state in which changes are possible.
    pub fn is_unsettled(&self) -> bool {
        const STATES: [&str; 4] = ["requested", "registering", "updating-inactive", "deactivating"];
        STATES.contains(&self.state.as_str())
    }

    /// Why it does not get on; none where it does.
    pub fn error(&self) -> Option<&str> {
        let failed = self.transitioning.as_deref() == Some("error");
        failed.then(|| self.transitioning_message.as_deref().unwrap_or("it says no reason"))
    }

    /// The state with its message, for messages.
    pub fn text(&self) -> String {
        match self.transitioning_message.as_deref().filter(|text| !text.is_empty()) {
            Some(message) => format!("{}: {message}", self.state),
            None => self.state.clone(),
        }
    }
}
