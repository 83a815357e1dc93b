//! The real process on a real API server, with Nodes and Services as people make them.

use std::collections::BTreeSet;

use cloudwit_test_support::clouds::moto::Moto;
use cloudwit_test_support::files::aws::aws_files;
use cloudwit_test_support::scenes::installation::{Installation, Warning};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::stand::{PREFIX, Stand, refusal};

/// The process and what it stands on; the process ends first.
struct Site {
    installation: Installation,
    stand: Stand,
}

impl Site {
    async fn start(name: &str) -> Self {
        let mut installation = Installation::new("aws").await.unwrap();
        let stand = Stand::new(name).await;
        let key = Moto::shared().await.administrator().clone();
        let files = aws_files(&stand.cluster, &stand.gate.url(), &key, &installation.deployment).unwrap();
        let flags = [
            "--controllers=service-lb-controller",
            "--service-drift-period=1s",
            "--service-drift-per-minute=600",
        ];
        installation.start(&files, &flags).unwrap();
        for machine in &stand.machines {
            let node = NodeBuilder::new(&machine.private_dns)
                .provider_id(&machine.provider_id())
                .initialised();
            node.create(&installation.client).await.unwrap();
        }
        Self { installation, stand }
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.installation.client.clone())
    }

    /// The names in a Service's status.
    async fn ingress(&self, name: &str) -> Vec<String> {
        let status = self.services().get(name).await.unwrap().status;
        let ingress = status.and_then(|status| status.load_balancer?.ingress);
        let ingress = ingress.into_iter().flatten();
        ingress.filter_map(|one| one.hostname).collect()
    }

    /// Waits until the Service has an address, and gives all.
    async fn addresses(&self, name: &str) -> Vec<String> {
        self.installation
            .settled("the Service has an address", || async {
                match self.ingress(name).await.is_empty() {
                    false => Ok(()),
                    true => Err(format!("{name} has none")),
                }
            })
            .await;
        self.ingress(name).await
    }

    async fn annotate(&self, name: &str, key: &str, value: Option<&str>) {
        let change = json!({ "metadata": { "annotations": { format!("{PREFIX}{key}"): value } } });
        let (services, change) = (self.services(), Patch::Merge(change));
        services.patch(name, &PatchParams::default(), &change).await.unwrap();
    }

    /// Deletes these Services and waits until they are gone.
    async fn delete(&self, names: &[&str]) {
        for name in names {
            self.services().delete(name, &DeleteParams::default()).await.unwrap();
        }
        self.installation
            .settled("the Services are gone", || async {
                let left = self.services().list(&ListParams::default()).await.unwrap();
                let left: Vec<String> = left.iter().map(ResourceExt::name_any).collect();
                if left == ["kubernetes"] {
                    Ok(())
                } else {
                    Err(format!("{left:?}"))
                }
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_get_keep_and_lose_balancers_with_all_parts() {
    let site = Site::start("process").await;
    for (name, kind) in [("web", "classic"), ("fast", "nlb")] {
        let service = ServiceBuilder::new(name).annotation(&format!("{PREFIX}type"), kind);
        service.create(&site.installation.client).await.unwrap();
    }
    let addresses = [site.addresses("web").await, site.addresses("fast").await];
    let made = [
        site.services().get("web").await.unwrap(),
        site.services().get("fast").await.unwrap(),
    ];
    let balancers = made.each_ref().map(|service| {
        let mut model = crate::stand::service(&service.name_any(), "");
        model.uid = service.uid().unwrap();
        model
    });
    assert!(
        addresses[0][0].starts_with(&crate::stand::name(&balancers[0])),
        "{addresses:?}"
    );

    // Deleted by hand, it comes back.
    let arn = site.stand.network(&balancers[1]).await.unwrap()["LoadBalancerArn"].clone();
    site.stand
        .ask("elbv2", "delete_load_balancer", json!({ "LoadBalancerArn": arn }))
        .await;
    let name = crate::stand::name(&balancers[0]);
    site.stand
        .ask("elb", "delete_load_balancer", json!({ "LoadBalancerName": name }))
        .await;
    site.installation
        .settled("both are there again", || async {
            // Instances are what it gets last.
            let instances = site.stand.classic(&balancers[0]).await;
            let instances = instances.and_then(|found| found["Instances"].as_array().map(Vec::len));
            let there = (instances, site.stand.network(&balancers[1]).await.is_some());
            if there == (Some(2), true) {
                Ok(())
            } else {
                Err(format!("{there:?}"))
            }
        })
        .await;

    // A mistake is told and leaves what is there.
    let before = site.stand.classic(&balancers[0]).await;
    site.annotate("web", "connection-idle-timeout", Some("soon")).await;
    let parts = ["connection-idle-timeout is \"soon\"", "1 to 4000"];
    site.installation.warned("web", "SyncLoadBalancerFailed", &parts).await;
    assert_eq!(site.stand.classic(&balancers[0]).await, before);

    site.delete(&["web", "fast"]).await;
    site.stand.nothing_left(&[&balancers[0], &balancers[1]]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_nodes_with_the_labels_of_the_annotation_are_targets() {
    let site = Site::start("node-labels").await;
    let chosen = &site.stand.machines[1];
    let label = Patch::Merge(json!({ "metadata": { "labels": { "pool": "web", "team": "blue" } } }));
    let nodes = site.installation.nodes();
    nodes
        .patch(&chosen.private_dns, &PatchParams::default(), &label)
        .await
        .unwrap();
    let service = ServiceBuilder::new("web").annotation(&format!("{PREFIX}target-node-labels"), "pool=web,team=");
    service.create(&site.installation.client).await.unwrap();
    site.addresses("web").await;
    let mut model = crate::stand::service("web", "");
    model.uid = site.services().get("web").await.unwrap().uid().unwrap();
    let targets = async || site.stand.classic(&model).await.unwrap()["Instances"].clone();
    // The first call about the Service may come before the process has seen the label.
    site.installation
        .settled("the Node with the labels is the target", || async {
            match targets().await {
                found if found == json!([{ "InstanceId": chosen.id }]) => Ok(()),
                other => Err(other.to_string()),
            }
        })
        .await;
    site.annotate("web", "target-node-labels", None).await;
    site.installation
        .settled("without it all Nodes are targets", || async {
            match targets().await.as_array().unwrap().len() {
                2 => Ok(()),
                other => Err(other.to_string()),
            }
        })
        .await;
    site.delete(&["web"]).await;
    site.stand.nothing_left(&[&model]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistake_and_quota_emit_one_event_each_until_fixed() {
    let site = Site::start("quota-told").await;
    let quota = site
        .stand
        .fail("CreateLoadBalancer", refusal(400, "TooManyLoadBalancers"));
    let before = site.stand.groups().await;
    let service = ServiceBuilder::new("web")
        .annotation(&format!("{PREFIX}type"), "nlb")
        .annotation(&format!("{PREFIX}internal"), "true")
        .annotation(&format!("{PREFIX}healthcheck-interval"), "often");
    service.create(&site.installation.client).await.unwrap();
    let mistake = ["healthcheck-interval is \"often\""];
    let mistake = site
        .installation
        .warned("web", "SyncLoadBalancerFailed", &mistake)
        .await;
    assert_eq!(site.stand.groups().await, before, "nothing is half made");
    assert_eq!(site.stand.target_groups().await.len(), 0, "nothing is half made");
    assert_eq!(quota.met(), 0);

    site.annotate("web", "healthcheck-interval", Some("10")).await;
    let told = site
        .installation
        .warned("web", "SyncLoadBalancerFailed", &["TooManyLoadBalancers"])
        .await;
    site.installation
        .settled("it was tried again and again", || async {
            if quota.met() >= 3 {
                Ok(())
            } else {
                Err(format!("{} times", quota.met()))
            }
        })
        .await;
    let texts = |warnings: Vec<_>| -> BTreeSet<String> {
        let text = |warning: Warning| warning.message;
        assert_eq!(
            warnings.len(),
            2,
            "attempts are counted in the Event that is there: {warnings:?}"
        );
        warnings.into_iter().map(text).collect()
    };
    assert_eq!(
        texts(site.installation.warnings("web").await),
        BTreeSet::from([mistake.message, told.message])
    );

    site.stand.gate.open();
    site.addresses("web").await;
    let mut model = crate::stand::service("web", "");
    model.uid = site.services().get("web").await.unwrap().uid().unwrap();
    site.delete(&["web"]).await;
    site.stand.nothing_left(&[&model]).await;
}
