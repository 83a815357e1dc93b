//! Upstream's controllers in Cloudwit's place, and Cloudwit in theirs, as the guide tells, under traffic.

use std::time::Instant;

use anyhow::{Result, bail};
use cloudwit_sim_cloud::Operation;
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};

use super::{Checks, POLICIES};
use crate::checks::workload;
use crate::cloud::client::now;
use crate::manager::chart::Chart;
use crate::manager::pods::{NAMESPACE, Pods, is_ready};
use crate::manager::upstream::{self, Upstream};

/// Who takes over from whom.
pub struct Takeover {
    /// What stands in the place of the Pods that `cloudwit install` made.
    pub upstream: Upstream,
    /// Cloudwit once more.
    pub chart: Chart,
}

/// The Service that is made while upstream's controllers lead.
const OTHERS: &str = "made-by-upstream";

/// The one that is made afterwards.
const OURS: &str = "made-by-cloudwit";

/// Requests that change something in the cloud.
const CHANGES: [Operation; 5] = [
    Operation::CreateLoadBalancer,
    Operation::UpdateLoadBalancer,
    Operation::UpdateTargets,
    Operation::DeleteLoadBalancer,
    Operation::ChangeRoutes,
];

impl Checks<'_> {
    /// To upstream's controllers and back again; what they made is neither changed nor lost.
    pub(super) async fn cloudwit_takes_over_from_upstream(&self, pods: &Pods, takeover: &Takeover) -> Result<()> {
        let Takeover { upstream, chart } = takeover;
        let from = now();
        pods.remove()?;
        let gone = async || Ok(pods.list().await?.is_empty().then_some(()));
        self.narrator.until("no Pod of Cloudwit is left", gone).await?;
        self.narrator.say("Cloudwit is removed as the guide describes");
        upstream.install()?;
        let theirs = self.upstream_leads(pods).await?;
        let address = self.gets_an_address(OTHERS).await?;
        self.narrator.say(&format!(
            "upstream's controllers lead in its place: Service {OTHERS} has the address {address}"
        ));
        chart.install()?;
        let waits = async || Ok(pods.list().await?.iter().any(is_ready).then_some(()));
        self.narrator
            .until("a replica of Cloudwit waits for the Lease", waits)
            .await?;
        if pods.holder().await?.as_ref() != Some(&theirs) {
            bail!("the Lease has changed hands while upstream's controllers held it");
        }
        self.narrator
            .say("Cloudwit is installed by its Helm chart beside them, and a replica waits for the Lease");
        let before = self.balancers().await?;
        self.cloud.reset_counters().await?;
        let started = Instant::now();
        upstream.remove()?;
        let leads = async || {
            let holder = pods.holder().await?;
            Ok(holder.filter(|holder| !holder.is_empty() && *holder != theirs))
        };
        self.narrator.until("Cloudwit holds the Lease", leads).await?;
        self.narrator.say(&format!(
            "upstream's controllers are deleted; Cloudwit leads {:.1} s later",
            started.elapsed().as_secs_f64()
        ));
        // Queued behind all Services that were there before.
        let address = self.gets_an_address(OURS).await?;
        self.all_ready(pods).await?;
        self.only_created_one().await?;
        self.narrator.say(&format!(
            "Cloudwit takes over what upstream's controllers made without a change in the cloud; a new Service has the address {address}"
        ));
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        for name in [OTHERS, OURS] {
            services.delete(name, &DeleteParams::default()).await?;
            let look = async || Ok(services.get_opt(name).await?.is_none().then_some(()));
            self.narrator.until(&format!("Service {name} is deleted"), look).await?;
        }
        let after = self.balancers().await?;
        let expected: Vec<&(String, String)> = before.iter().filter(|(name, _)| name != OTHERS).collect();
        if after.len() != POLICIES.len() || after.iter().collect::<Vec<_>>() != expected {
            bail!("the cloud had the load balancers {before:?} and has {after:?}");
        }
        self.nothing_lost(
            "while upstream's controllers and Cloudwit took each other's place",
            from,
        )
        .await
    }

    /// Waits until they are ready and hold the Lease. Gives whom it names.
    async fn upstream_leads(&self, pods: &Pods) -> Result<String> {
        let theirs: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let list = ListParams::default().labels(upstream::LABEL);
        let before = pods.holder().await?;
        self.narrator
            .until("upstream's controllers lead", async || {
                let ready = theirs.list(&list).await?.items.iter().any(is_ready);
                let holder = pods.holder().await?.filter(|holder| !holder.is_empty());
                Ok(holder.filter(|holder| ready && before.as_ref() != Some(holder)))
            })
            .await
    }

    async fn gets_an_address(&self, name: &str) -> Result<String> {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        services
            .create(&PostParams::default(), &workload::service(name, "Cluster")?)
            .await?;
        let look = async || Ok(address(&services.get(name).await?));
        let what = format!("Service {name} has an address");
        self.narrator.until(&what, look).await
    }

    /// The load balancers by their Service's name, with their ids in the cloud.
    async fn balancers(&self) -> Result<Vec<(String, String)>> {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        let state = self.cloud.state().await?;
        let all = services.list(&ListParams::default()).await?;
        let mut found: Vec<(String, String)> = Vec::new();
        for balancer in state.load_balancers {
            let of = |service: &&Service| {
                let shown = address(service);
                shown.is_some() && shown == balancer.address
            };
            let service = all.iter().find(of).map(ResourceExt::name_any);
            found.push((service.unwrap_or_default(), balancer.id));
        }
        found.sort();
        Ok(found)
    }

    /// Checks that since the last reset of the counters one load balancer was made and nothing else changed.
    async fn only_created_one(&self) -> Result<()> {
        let counters = self.cloud.counters().await?;
        let count = |operation: &Operation| counters.operations.get(operation).map_or(0, |count| count.requests);
        let changes: Vec<(Operation, u64)> = CHANGES
            .into_iter()
            .map(|operation| (operation, count(&operation)))
            .filter(|(_, count)| *count > 0)
            .collect();
        if changes != [(Operation::CreateLoadBalancer, 1)] {
            bail!("Cloudwit was to make one load balancer and change nothing else, but sent {changes:?}");
        }
        Ok(())
    }
}
