//! Labels with the layers of the network that an instance hangs on, for workloads that want short ways.
//!
//! Only some types of instances have them, and only some regions report them. Upstream's rules (`topology.go`): what is not supported is
//! cached for a day; a failure counts only for the types that surely have layers, for they would be without labels forever.
//! Other than upstream, many instances are requested in one call, and answers are kept.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;
use regex_lite::Regex;

use crate::Aws;
use crate::api::error::AwsError;
use crate::api::reading::{text, texts};
use crate::instances::machine::Machine;

/// The types that surely have layers (upstream's `defaultSupportedTopologyInstanceTypePattern`).
pub const REQUIRED_TYPES: &str = r"^(hpc|trn|p)[0-9]+[a-z]*(-[a-z0-9]+)?(\.[0-9a-z]*)$";

/// How the labels begin; the layer's number follows, from 1 (upstream's `well_known_labels.go`).
const LAYER: &str = "topology.k8s.aws/network-node-layer-";

/// The most ids in one call of `DescribeInstanceTopology`.
const MOST_IDS: usize = 100;

/// How long an answer and what is not supported are cached (upstream's `instanceTopologyManagerCacheTimeout`).
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long no request is made for types that need no answer, after AWS failed to give one.
const PAUSE: Duration = Duration::from_secs(10 * 60);

/// What need not be requested.
const UNSUPPORTED: &str = "topology-unsupported";
const PAUSED: &str = "topology-paused";

/// What is known not to be supported: types, ids, and [`REGION`].
struct Unsupported(Vec<String>);

/// The key of the whole region.
const REGION: &str = "*";

impl Unsupported {
    fn has(&self, what: &str) -> bool {
        self.0.iter().any(|known| known == what)
    }

    fn add(&mut self, what: &str) {
        if !self.has(what) {
            self.0.push(what.to_owned());
        }
    }

    fn covers(&self, machine: &Machine) -> bool {
        self.has(REGION) || self.has(&machine.kind) || self.has(&machine.id)
    }
}

/// Labels by instance, or why they are not known though they must be.
type Answers<'a> = BTreeMap<&'a str, Result<Vec<Pair>, AwsError>>;

impl Aws {
    /// The labels of these machines; those that have none are left out.
    pub(crate) fn topology<'a>(&self, machines: &[&'a Machine]) -> Answers<'a> {
        let state = self.context.state();
        let kept = state.get::<Vec<String>>(UNSUPPORTED).map(|stored| stored.value);
        let mut unsupported = Unsupported(kept.unwrap_or_default());
        let mut answers = Answers::new();
        let (mut required, mut others): (Vec<&'a Machine>, Vec<&'a Machine>) = (Vec::new(), Vec::new());
        for &machine in machines {
            if machine.kind.is_empty() || unsupported.covers(machine) {
                continue;
            }
            if let Some(layers) = state.get::<Vec<String>>(&kept_key(&machine.id)) {
                answers.insert(&machine.id, Ok(labels(&layers.value)));
                continue;
            }
            let list = if is_required(&machine.kind) {
                &mut required
            } else {
                &mut others
            };
            list.push(machine);
        }
        if state.get::<String>(PAUSED).is_some() {
            others.clear();
        }
        let before = unsupported.0.len();
        for page in required.chunks(MOST_IDS).chain(others.chunks(MOST_IDS)) {
            if !self.ask_for_topology(page, &mut unsupported, &mut answers) {
                break;
            }
        }
        if before != unsupported.0.len() {
            state.put(UNSUPPORTED, &unsupported.0, Keep::at_most(DAY));
        }
        answers
    }

    /// Requests one page of machines, which are all of types that need an answer, or all of types that do not. Returns whether to continue.
    fn ask_for_topology<'a>(
        &self,
        page: &[&'a Machine],
        unsupported: &mut Unsupported,
        answers: &mut Answers<'a>,
    ) -> bool {
        // An earlier page may have shown it.
        let page: Vec<&'a Machine> = page
            .iter()
            .copied()
            .filter(|machine| !unsupported.covers(machine))
            .collect();
        if page.is_empty() {
            return !unsupported.has(REGION);
        }
        let call = self.api.ec2("DescribeInstanceTopology");
        let call = call.list("InstanceId", page.iter().map(|machine| &machine.id));
        let found = match call.pages(&["instanceSet"], |item| Ok(read(item))) {
            Ok(found) => found,
            Err(error) => return self.topology_failed(error, &page, unsupported, answers),
        };
        for machine in &page {
            let layers = found.iter().find(|(id, _)| *id == machine.id).map(|(_, layers)| layers);
            match layers {
                Some(layers) => {
                    self.context
                        .state()
                        .put(&kept_key(&machine.id), layers, Keep::at_most(DAY));
                    answers.insert(&machine.id, Ok(labels(layers)));
                }
                // It may be about to end; its type has layers all the same.
                None if is_required(&machine.kind) => unsupported.add(&machine.id),
                None => unsupported.add(&machine.kind),
            }
        }
        true
    }

    fn topology_failed<'a>(
        &self,
        error: AwsError,
        page: &[&'a Machine],
        unsupported: &mut Unsupported,
        answers: &mut Answers<'a>,
    ) -> bool {
        if error.is(&["UnsupportedOperation", "UnauthorizedOperation"]) {
            info!(
                code = error.code,
                "no labels of the network's layers; asked again in a day"
            );
            unsupported.add(REGION);
            return false;
        }
        if page.iter().any(|machine| is_required(&machine.kind)) {
            for machine in page {
                answers.insert(&machine.id, Err(error.clone()));
            }
            return true;
        }
        info!(
            "no labels of the network's layers for now: {}",
            Failure::from(error).message()
        );
        self.context.state().put(PAUSED, "", Keep::at_most(PAUSE));
        false
    }
}

fn read(item: &Element) -> (String, Vec<String>) {
    (text(item, "instanceId"), texts(item, &["networkNodeSet", "item"]))
}

fn labels(layers: &[String]) -> Vec<Pair> {
    let label = |(index, layer): (usize, &String)| Pair::new(format!("{LAYER}{}", (index + 1)), layer.clone());
    layers.iter().enumerate().map(label).collect()
}

fn kept_key(id: &str) -> String {
    format!("topology/{id}")
}

/// Whether a type of instance surely has layers.
fn is_required(kind: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(REQUIRED_TYPES).ok());
    PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(kind))
}

#[cfg(test)]
mod tests;
