//! Where a machine is: its cluster is the zone and its data centre the region, unless the operator configures another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use serde::{Deserialize, Serialize};

use crate::Ovirt;
use crate::machine::{Link, Machine};

/// How long names of clusters are cached. They change when one is renamed.
const KEPT: Keep = Keep::at_most(Duration::from_secs(600));

/// Zone and region of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Value of the label.
    pub zone: Option<String>,
    /// Likewise.
    pub region: Option<String>,
}

/// Clusters by id.
type Clusters = BTreeMap<String, Place>;

#[derive(Deserialize)]
struct ClusterList {
    #[serde(default)]
    cluster: Vec<Cluster>,
}

#[derive(Deserialize)]
struct Cluster {
    id: String,
    name: String,
    #[serde(default)]
    data_center: Link,
}

#[derive(Deserialize)]
struct CenterList {
    #[serde(default)]
    data_center: Vec<Link>,
}

impl Ovirt {
    /// Where each of these machines is, in their order: a zone that is missing or guessed would stay in the Node's labels.
    ///
    /// # Errors
    /// The engine's error.
    pub fn places(&self, machines: &[&Machine]) -> Result<Vec<Result<Place, Failure>>, Failure> {
        if !self.config.zones.enabled() {
            return Ok(vec![Ok(Place::default()); machines.len()]);
        }
        let state = self.context.state();
        let wait = Duration::from_secs(5);
        let mut clusters = state.get_or_make("clusters", KEPT, wait, || self.clusters())?;
        let known = |clusters: &Clusters| {
            machines
                .iter()
                .all(|machine| clusters.contains_key(&machine.cluster.id))
        };
        if !known(&clusters) {
            clusters = self.clusters()?;
            state.put("clusters", &clusters, KEPT);
        }
        Ok(machines.iter().map(|machine| self.place(machine, &clusters)).collect())
    }

    /// `unavailable` for a cluster that the engine does not return whole, `invalid` for labels of two zones.
    fn place(&self, machine: &Machine, clusters: &Clusters) -> Result<Place, Failure> {
        let zones = &self.config.zones;
        let Machine { name, id, cluster, .. } = machine;
        let Some(Place { zone, region }) = clusters.get(&cluster.id).cloned() else {
            return Err(Failure::unavailable(format!(
                "the engine does not tell the cluster {} of the virtual machine {name} ({id}), or its data centre",
                cluster.id
            )));
        };
        let labels = machine.affinity_labels.affinity_label.iter();
        let labelled = labels.filter_map(|label| label.name.strip_prefix(zones.label_prefix()?).and_then(value));
        let labelled: BTreeSet<String> = labelled.collect();
        if labelled.len() > 1 {
            let labelled: Vec<String> = labelled.into_iter().collect();
            return Err(Failure::invalid(format!(
                "the virtual machine {name} ({id}) has affinity labels of several zones: {}; remove all but one",
                labelled.join(", ")
            )));
        }
        Ok(Place {
            zone: labelled.into_iter().next().or(zone),
            region: zones.region().and_then(value).or(region),
        })
    }

    /// Clusters without those whose data centre is needed and not returned.
    fn clusters(&self) -> Result<Clusters, Failure> {
        let clusters: ClusterList = self.api.get("/clusters", &[])?;
        let centers: CenterList = self.api.get("/datacenters", &[])?;
        let center = |id: &str| centers.data_center.iter().find(|center| center.id == id);
        let named = clusters.cluster.into_iter().filter_map(|cluster| {
            let zone = value(&cluster.name);
            // A cluster need not be in a data centre.
            let is_needless = cluster.data_center.id.is_empty() || self.config.zones.region().is_some();
            let region = match center(&cluster.data_center.id) {
                Some(center) => value(&center.name),
                None if is_needless => None,
                None => return None,
            };
            Some((cluster.id, Place { zone, region }))
        });
        Ok(named.collect())
    }
}

/// As a label has it; none where nothing is left.
fn value(name: &str) -> Option<String> {
    Some(label_value(name)).filter(|value| !value.is_empty())
}
