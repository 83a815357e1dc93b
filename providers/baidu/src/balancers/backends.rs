//! Machines behind a load balancer: which of them, and the calls for that. Pure.

use serde_json::{Value, json};

use crate::api::Call;
use crate::config::Product::Blb;

/// What Baidu's own controller gives each machine.
const WEIGHT: u32 = 100;

/// What differs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub add: Vec<String>,
    pub remove: Vec<String>,
}

impl Differences {
    /// From the observed ones to the desired ones, at most so many. Observed ones stay as far as possible: connections count more than order.
    pub fn new(wanted: &[String], there: &[String], most: usize) -> Self {
        let (mut stay, mut remove): (Vec<&String>, Vec<&String>) = there.iter().partition(|id| wanted.contains(id));
        stay.sort_unstable();
        remove.extend(stay.split_off(stay.len().min(most)));
        let free = most - stay.len();
        let missing = wanted.iter().filter(|id| !there.contains(id));
        Self {
            add: missing.take(free).cloned().collect(),
            remove: remove.into_iter().cloned().collect(),
        }
    }

    /// The calls: the new ones come before the old ones go.
    pub fn calls(&self, blb: &str) -> Vec<Call> {
        let path = format!("/v1/blb/{blb}/backendserver");
        let mut calls = Vec::new();
        if !self.add.is_empty() {
            let servers: Vec<Value> = self
                .add
                .iter()
                .map(|id| json!({ "instanceId": id, "weight": WEIGHT }))
                .collect();
            calls.push(Call::new(Blb, "POST", path.clone()).json(json!({ "backendServerList": servers })));
        }
        if !self.remove.is_empty() {
            calls.push(Call::new(Blb, "PUT", path).json(json!({ "backendServerList": self.remove })));
        }
        calls
    }
}

/// The list.
pub fn list(blb: &str) -> Call {
    Call::get(Blb, format!("/v1/blb/{blb}/backendserver"))
}
