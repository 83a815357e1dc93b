//! Where a machine is: its cluster is the zone and its data centre the region, unless the operator says otherwise.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use serde::{Deserialize, Serialize};

use crate::Ovirt;
use crate::machine::{Link, Machine};

/// How long names of clusters are believed. They change when somebody renames one.
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
    /// Where each of these machines is, in their order.
    ///
    /// # Errors
    /// What the engine says.
    pub fn places(&self, machines: &[&Machine]) -> Result<Vec<Place>, Failure> {
        if !self.config.zones.enabled() {
            return Ok(vec![Place::default(); machines.len()]);
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

    fn place(&self, machine: &Machine, clusters: &Clusters) -> Place {
        let zones = &self.config.zones;
        let Place { zone, region } = clusters.get(&machine.cluster.id).cloned().unwrap_or_default();
        let labels = machine.affinity_labels.affinity_label.iter();
        let mut labelled = labels.filter_map(|label| label.name.strip_prefix(zones.label_prefix()?).and_then(value));
        Place {
            zone: labelled.next().or(zone),
            region: zones.region().and_then(value).or(region),
        }
    }

    fn clusters(&self) -> Result<Clusters, Failure> {
        let clusters: ClusterList = self.api.get("/clusters", &[])?;
        let centers: CenterList = self.api.get("/datacenters", &[])?;
        let center = |id: &str| centers.data_center.iter().find(|center| center.id == id);
        let named = clusters.cluster.into_iter().map(|cluster| {
            let region = center(&cluster.data_center.id).and_then(|center| value(&center.name));
            let zone = value(&cluster.name);
            (cluster.id, Place { zone, region })
        });
        Ok(named.collect())
    }
}

/// As a label has it; none where nothing is left.
fn value(name: &str) -> Option<String> {
    Some(label_value(name)).filter(|value| !value.is_empty())
}
