//! The calling server: its identity by the metadata service.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::wire::Fields as _;
use crate::config::{Config, given};
use crate::{OpenStack, PROVIDER_ID_PREFIX};

/// Where it is on every server.
const METADATA: &str = "http://169.254.169.254";

/// The facts. This version has all that is read, as upstream has it (`pkg/util/metadata`).
const FACTS: &str = "/openstack/latest/meta_data.json";

/// It is near: a server without one does not answer at all.
const PATIENCE: Duration = Duration::from_secs(5);

impl Location for OpenStack {
    fn locate(config: Config, context: Context, _: &str) -> Result<MachineLocation, Failure> {
        let url = given(&config.global.metadata_url).unwrap_or(METADATA);
        let http = context.http().base(url).timeout(PATIENCE);
        let answer = http
            .get(FACTS)
            .send()
            .map_err(|failure| failure.context("asking the metadata service"))?;
        let facts: Value = answer.json()?;
        let fact = |name: &str| {
            let text = facts.text_or_empty(name);
            match text.is_empty() {
                true => Err(Failure::other(format!("the metadata service does not tell {name}"))),
                false => Ok(text),
            }
        };
        // By its name, as servers are found for Nodes without a provider id.
        let name = fact("name")?;
        let region = given(&config.global.region);
        let in_id = region
            .filter(|_| config.global.regional_provider_id)
            .unwrap_or_default();
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{in_id}/{}", fact("uuid")?));
        instance.zone = Some(facts.text_or_empty("availability_zone")).filter(|zone| !zone.is_empty());
        instance.region = region.map(str::to_owned);
        Ok(MachineLocation::new(name, instance))
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::json;

    use super::*;

    const URL: &str = "http://169.254.169.254/openstack/latest/meta_data.json";

    fn host(more: &str) -> FakeHost {
        let host = FakeHost::new();
        host.config(format!(
            "[Global]\nauth-url = https://keystone.test/v3\napplication-credential-id = a\nregion = RegionOne\n{more}"
        ));
        host.grants("http://169.254.169.254", &["GET"]);
        host
    }

    #[test]
    fn server_is_located_without_a_password() {
        for (more, id) in [
            ("", "openstack:///u-1"),
            ("regional-provider-id = true\n", "openstack://RegionOne/u-1"),
        ] {
            let host = host(more);
            host.expect("GET", URL).answers(
                200,
                json!({"uuid": "u-1", "name": "node-1", "hostname": "node-1.novalocal", "availability_zone": "nova", "project_id": "p"}),
            );
            let found = host.locate::<OpenStack>("node-1.novalocal").unwrap();
            assert_eq!(
                (found.node.as_str(), found.instance.provider_id.as_str()),
                ("node-1", id)
            );
            assert_eq!(
                (found.instance.zone.as_deref(), found.instance.region.as_deref()),
                (Some("nova"), Some("RegionOne"))
            );
        }
    }

    #[test]
    fn facts_that_lack_are_named() {
        let host = host("");
        host.expect("GET", URL).answers(200, json!({"name": "node-1"}));
        let failure = host.locate::<OpenStack>("node-1").unwrap_err();
        assert!(failure.message().contains("uuid"), "{failure:?}");
    }
}
