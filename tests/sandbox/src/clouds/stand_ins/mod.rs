//! Clouds on a stand-in of ours: what is alike for all of them, and what each one says for itself.

pub(crate) mod alibaba;
pub(crate) mod azure;
pub(crate) mod baidu;
pub(crate) mod cloudstack;
pub(crate) mod gce;
pub(crate) mod mesos;
pub(crate) mod ovirt;
pub(crate) mod photon;
pub(crate) mod rancher;

use std::marker::PhantomData;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::{Cloud, Machine, Route};

/// What differs between clouds on stand-ins.
pub trait StandInCloud: Sized {
    /// The name of its provider and of its stand-in.
    const PROVIDER: &'static str;

    /// What it is called.
    const NAME: &'static str;

    /// Seconds that its operations take; the stand-in's own time where there is none.
    const OPERATIONS_TAKE: Option<f64> = None;

    /// What Cloudwit is told about it.
    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles>;

    /// How to look at it by hand, at this URL.
    fn look(url: &str) -> String;

    /// The machine for this Node, as `do_add_machine` takes it.
    fn new_machine(node: &str) -> Value {
        json!({ "name": node })
    }

    /// A machine that was made for this Node, as the stand-in shows it.
    fn machine(node: &str, made: &Value) -> Result<Machine>;

    /// The machine as `do_delete` takes it.
    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "id": machine.id })
    }

    /// Routes to Pods; `None` when Cloudwit makes none there.
    async fn routes(_: &StandIn) -> Result<Option<Vec<Route>>> {
        Ok(None)
    }

    /// For each load balancer, how many machines are behind it; `None` when Cloudwit makes none there.
    async fn balancers(_: &StandIn) -> Result<Option<Vec<usize>>> {
        Ok(None)
    }
}

/// A cloud on its stand-in.
pub struct OnStandIn<C> {
    stand_in: StandIn,
    cloud: PhantomData<C>,
}

impl<C: StandInCloud> Cloud for OnStandIn<C> {
    const PROVIDER: &'static str = C::PROVIDER;
    const NAME: &'static str = C::NAME;

    async fn start(_: &Deployment) -> Result<Self> {
        let stand_in = StandIn::start(C::PROVIDER, &[]).await?;
        if let Some(seconds) = C::OPERATIONS_TAKE {
            stand_in.call("operations_take", json!({ "seconds": seconds })).await?;
        }
        let cloud = PhantomData;
        Ok(Self { stand_in, cloud })
    }

    fn url(&self) -> String {
        self.stand_in.url().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.stand_in.log()
    }

    fn runs(&self) -> bool {
        self.stand_in.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        C::files(&self.stand_in, deployment).await
    }

    fn looks(&self) -> Vec<String> {
        vec![C::look(self.stand_in.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self.stand_in.call("add_machine", C::new_machine(&node)).await?;
        C::machine(&node, &made)
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        self.stand_in
            .call("delete", C::deleted_machine(machine))
            .await
            .map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        C::routes(&self.stand_in).await
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        C::balancers(&self.stand_in).await
    }
}

/// How to look at all resources for which `do_resources` takes this field with this value.
pub fn look_at_resources(url: &str, field: &str, value: &str) -> String {
    format!("curl -d '{}' {url}/test/do/resources", json!({ field: value }))
}

/// The text in this field of what the stand-in shows.
pub fn text(made: &Value, field: &str) -> Result<String> {
    let text = made[field].as_str().map(str::to_owned);
    text.with_context(|| format!("no {field} in {made}"))
}

/// Labels of a Node whose machine has this type, and lies in a zone and a region where the cloud has them.
pub fn labels(instance_type: &str, zone_and_region: Option<(&str, &str)>) -> Vec<(&'static str, String)> {
    let mut labels = vec![("node.kubernetes.io/instance-type", instance_type.to_owned())];
    if let Some((zone, region)) = zone_and_region {
        labels.push(("topology.kubernetes.io/zone", zone.to_owned()));
        labels.push(("topology.kubernetes.io/region", region.to_owned()));
    }
    labels
}

/// A machine with one address, whose firmware reports its id.
pub fn plain_machine(
    node: &str,
    (id, ip): (String, String),
    provider_id: String,
    labels: Vec<(&'static str, String)>,
) -> Machine {
    Machine {
        provider_id,
        system_uuid: id.clone(),
        labels,
        addresses: vec![ip.clone()],
        ip,
        id,
        node: node.to_owned(),
    }
}
