//! Where the cluster is: project, zone, region, network. What is not configured is read from the metadata server.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use serde::{Deserialize, Serialize};

use crate::config::{Global, given};
use crate::{links, metadata};

/// Under which name it is kept, and how long a call waits for another one that finds it out.
const KEPT: (&str, Duration) = ("place", Duration::from_secs(20));

/// Where the cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Project of the machines and load balancers.
    pub project: String,
    /// Project of the network, its routes and firewall rules.
    pub network_project: String,
    /// A zone of the cluster.
    pub zone: String,
    /// Its region.
    pub region: String,
    /// `projects/P/global/networks/N`.
    pub network: String,
    /// `projects/P/regions/R/subnetworks/S`.
    pub subnetwork: String,
}

impl Place {
    /// By configuration and metadata server.
    ///
    /// # Errors
    /// The metadata server's error.
    pub fn of(global: &Global, context: Context) -> Result<Self, Failure> {
        if !global.needs_place() {
            return find(global, &|_| Err(Failure::other("nothing is missing")));
        }
        context.state().get_or_make(KEPT.0, Keep::WHILE_LOADED, KEPT.1, || {
            let ask = |path: &str| Ok(metadata::get(global, context, path)?.text().trim_ascii().to_owned());
            find(global, &ask)
        })
    }

    /// The whole path of something in the region: `regional("targetPools", "a1")`.
    pub fn regional(&self, collection: &str, name: &str) -> String {
        format!("projects/{}/regions/{}/{collection}/{name}", self.project, self.region)
    }

    /// The whole path of something in the project, of no region.
    pub fn global(&self, collection: &str, name: &str) -> String {
        format!("projects/{}/global/{collection}/{name}", self.project)
    }

    /// The whole path of something in the network's project: routes, firewall rules.
    pub fn of_network(&self, collection: &str, name: &str) -> String {
        format!("projects/{}/global/{collection}/{name}", self.network_project)
    }

    /// A subnetwork of the network, by name or link.
    pub fn subnetwork_named(&self, name: &str) -> String {
        if name.contains('/') {
            return links::tail(name).into();
        }
        format!(
            "projects/{}/regions/{}/subnetworks/{name}",
            self.network_project, self.region
        )
    }
}

/// `ask` returns the metadata server's value under a path.
fn find(global: &Global, ask: &dyn Fn(&str) -> Result<String, Failure>) -> Result<Place, Failure> {
    let or_ask = |value: &Option<String>, path: &str| match given(value) {
        Some(value) => Ok(value.to_owned()),
        None => ask(path),
    };
    let project = or_ask(&global.project_id, "/project/project-id")?;
    let zone = links::name(&or_ask(&global.local_zone, "/instance/zone")?).to_owned();
    let Some(region) = links::region_of(&zone).map(str::to_owned) else {
        return Err(Failure::invalid(format!(
            "the metadata server gives \"{zone}\" as zone; write local-zone"
        )));
    };
    let network = or_ask(&global.network_name, "/instance/network-interfaces/0/network")?;
    // The metadata server names the network's project by its number, and so would a configured link: it wins over the project of the machines.
    let foreign = links::part(&network, "projects").map(str::to_owned);
    let network_project = given(&global.network_project_id).map(str::to_owned).or_else(|| {
        let configured = given(&global.network_name).is_some();
        foreign.filter(|_| configured)
    });
    let network_project = network_project.unwrap_or_else(|| project.clone());
    let network_name = links::name(&network).to_owned();
    let mut place = Place {
        network: format!("projects/{network_project}/global/networks/{network_name}"),
        project,
        network_project,
        zone,
        region,
        subnetwork: String::new(),
    };
    place.subnetwork = place.subnetwork_named(given(&global.subnetwork_name).unwrap_or(&network_name));
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(json: serde_json::Value) -> Global {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_configured_is_not_requested() {
        let configured = global(serde_json::json!({
            "project-id": "p", "network-project-id": "host", "local-zone": "us-central1-b", "network-name": "net", "subnetwork-name": "sub"
        }));
        let place = find(&configured, &|path| panic!("{path}")).unwrap();
        assert_eq!(place.network, "projects/host/global/networks/net");
        assert_eq!(place.subnetwork, "projects/host/regions/us-central1/subnetworks/sub");
        assert_eq!(
            place.regional("addresses", "a"),
            "projects/p/regions/us-central1/addresses/a"
        );
        assert_eq!(place.of_network("firewalls", "a"), "projects/host/global/firewalls/a");
    }

    #[test]
    fn metadata_server_gives_the_rest() {
        let ask = |path: &str| {
            Ok(match path {
                "/project/project-id" => "p".to_owned(),
                "/instance/zone" => "projects/123/zones/europe-west1-c".to_owned(),
                "/instance/network-interfaces/0/network" => "projects/123/networks/default".to_owned(),
                other => panic!("{other}"),
            })
        };
        let place = find(&Global::default(), &ask).unwrap();
        assert_eq!((&*place.region, &*place.zone), ("europe-west1", "europe-west1-c"));
        assert_eq!(place.network, "projects/p/global/networks/default");
        assert_eq!(place.subnetwork, "projects/p/regions/europe-west1/subnetworks/default");
        let wrong = find(&Global::default(), &|_| Ok("x".into())).unwrap_err();
        assert!(wrong.message().contains("local-zone"), "{wrong:?}");
    }

    #[test]
    fn a_network_by_link_is_in_its_own_project() {
        let link = "https://www.googleapis.com/compute/v1/projects/host/global/networks/net";
        let configured =
            global(serde_json::json!({ "project-id": "p", "local-zone": "us-central1-b", "network-name": link }));
        let place = find(&configured, &|path| panic!("{path}")).unwrap();
        assert_eq!(
            (&*place.network_project, &*place.network),
            ("host", "projects/host/global/networks/net")
        );
    }
}
