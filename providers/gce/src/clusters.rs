//! Clusters of Google Kubernetes Engine in the project.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use crate::Gce;
use crate::config::given;
use crate::place::Place;

/// Where Kubernetes Engine is, unless `container-api-endpoint` is set.
const API: &str = "https://container.googleapis.com";

/// Fields that are requested.
const FIELDS: &str = "clusters(name,location,endpoint),missingZones";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct List {
    clusters: Vec<Cluster>,
    missing_zones: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cluster {
    name: String,
    location: String,
    /// An IP address, once there is one.
    endpoint: String,
}

impl Clusters for Gce {
    fn clusters(&self) -> Result<Vec<KnownCluster>, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let api = given(&self.config.global.container_api_endpoint).unwrap_or(API);
        let url = format!(
            "{}/v1/projects/{}/locations/-/clusters",
            api.trim_end_matches('/'),
            place.project
        );
        let list: List = self.api.get_of_platform(&url, &[("fields", FIELDS)])?.json()?;
        if !list.missing_zones.is_empty() {
            warn!(
                "Kubernetes Engine leaves these zones out, and the list is not complete: {}",
                list.missing_zones.join(" ")
            );
        }
        Ok(named(list.clusters))
    }
}

/// A name is unique in its zone or region only: where several have it, the place goes before it.
fn named(clusters: Vec<Cluster>) -> Vec<KnownCluster> {
    let mut named = BTreeMap::<String, usize>::new();
    for cluster in &clusters {
        *named.entry(cluster.name.clone()).or_default() += 1;
    }
    let known = |cluster: Cluster| {
        let name = match named.get(&cluster.name) {
            Some(2..) => format!("{}/{}", cluster.location, cluster.name),
            _ => cluster.name,
        };
        KnownCluster::new(name).host(Some(cluster.endpoint))
    };
    clusters.into_iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::serde_json::json;
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    fn host() -> FakeHost {
        let host = FakeHost::new();
        host.config(r#"{"global": {"project-id": "p", "local-zone": "us-central1-a", "network-name": "n", "token-url": "nil", "container-api-endpoint": "https://gke.test/"}}"#);
        host.grants("https://gke.test", &["GET"]);
        host
    }

    const LIST: &str = "https://gke.test/v1/projects/p/locations/-/clusters?fields=clusters%28name%2Clocation%2Cendpoint%29%2CmissingZones";

    #[test]
    fn clusters_of_all_places_are_listed_and_equal_names_told_apart() {
        let host = host();
        host.expect("GET", LIST).answers(
            200,
            json!({"clusters": [
                {"name": "prod", "location": "us-central1", "endpoint": "203.0.113.7"},
                {"name": "dev", "location": "us-central1-a", "endpoint": "203.0.113.8"},
                {"name": "dev", "location": "europe-west1", "endpoint": ""},
            ], "missingZones": ["europe-west1-b"]}),
        );
        let clusters = host.provider::<Gce>().clusters().unwrap();
        let shown: Vec<_> = clusters
            .iter()
            .map(|one| (one.name.as_str(), one.host.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("prod", Some("203.0.113.7")),
                ("us-central1-a/dev", Some("203.0.113.8")),
                ("europe-west1/dev", None)
            ]
        );
        assert!(host.logs().iter().any(|line| line.message.contains("not complete")));
    }

    #[test]
    fn refusal_is_the_clouds_own() {
        let host = host();
        let refused = json!({"error": {"code": 403, "message": "Kubernetes Engine API has not been used", "status": "PERMISSION_DENIED"}});
        host.expect("GET", LIST).answers(403, refused);
        let failure = host.provider::<Gce>().clusters().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        assert!(failure.message().contains("has not been used"), "{failure:?}");
    }
}
