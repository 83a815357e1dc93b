//! The real process on a real API server, with Nodes and Services as people make them.

use cloudwit_test_support::aws_files::aws_files;
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::Deployment;
use cloudwit_test_support::moto::Moto;
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder, eventually, guests, programs};
use k8s_openapi::api::core::v1::{Event, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::stand::{PREFIX, Stand};
use cloudwit_test_support::rig::SOON;

/// The process and what it stands on.
struct Site {
    stand: Stand,
    client: Client,
    process: Child,
    _server: ApiServer,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn start(name: &str) -> Self {
        let stand = Stand::new(name).await;
        let (program, component) = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("aws")))
            .await
            .unwrap();
        let server = ApiServer::start().await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment =
            Deployment::of("aws", &folder.path().join("run"), program.parent().unwrap(), &component).unwrap();
        let key = Moto::shared().await.administrator().clone();
        let files = aws_files(&stand.cluster, &stand.gate.url(), &key, &deployment).unwrap();
        let flags = [
            "--controllers=service-lb-controller",
            "--service-drift-period=1s",
            "--service-drift-per-minute=600",
        ];
        let (process, _) = deployment.start_on(server.kubeconfig(), &files, &flags).unwrap();
        let client = server.client();
        for machine in &stand.machines {
            let node = NodeBuilder::new(&machine.private_dns)
                .provider_id(&machine.provider_id())
                .initialised();
            node.create(&client).await.unwrap();
        }
        Self {
            stand,
            client,
            process,
            _server: server,
            _folder: folder,
        }
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// Waits until the Service has this many addresses, and gives them.
    async fn addresses(&self, name: &str) -> Vec<String> {
        eventually(SOON, &format!("{name} has an address"), || async {
            let service = self.services().get(name).await.unwrap();
            let ingress = service
                .status
                .and_then(|status| status.load_balancer?.ingress)
                .unwrap_or_default();
            let names: Vec<String> = ingress.into_iter().filter_map(|one| one.hostname).collect();
            (!names.is_empty())
                .then_some(names)
                .ok_or_else(|| self.process.log_end())
        })
        .await
    }

    /// Waits until an Event about the Service says all this.
    async fn told(&self, name: &str, parts: &[&str]) {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        eventually(SOON, &format!("an Event about {name} says {parts:?}"), || async {
            let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
            let all = events.list(&about).await.unwrap();
            let texts: Vec<String> = all.into_iter().filter_map(|event| event.message).collect();
            match texts.iter().any(|text| parts.iter().all(|part| text.contains(part))) {
                true => Ok(()),
                false => Err(format!("{texts:?}\n{}", self.process.log_end())),
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_get_their_load_balancers_keep_them_and_lose_them_with_everything_that_belongs_to_them() {
    let site = Site::start("process").await;
    for (name, kind) in [("web", "classic"), ("fast", "nlb")] {
        let service = ServiceBuilder::new(name).annotation(&format!("{PREFIX}type"), kind);
        service.create(&site.client).await.unwrap();
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
    eventually(SOON, "both are there again", || async {
        let both =
            site.stand.classic(&balancers[0]).await.is_some() && site.stand.network(&balancers[1]).await.is_some();
        both.then_some(()).ok_or_else(|| site.process.log_end())
    })
    .await;

    // A mistake is told and leaves what is there.
    let before = site.stand.classic(&balancers[0]).await;
    let wrong =
        Patch::Merge(json!({ "metadata": { "annotations": { format!("{PREFIX}connection-idle-timeout"): "soon" } } }));
    site.services()
        .patch("web", &PatchParams::default(), &wrong)
        .await
        .unwrap();
    site.told("web", &["connection-idle-timeout is \"soon\"", "1 to 4000"])
        .await;
    assert_eq!(site.stand.classic(&balancers[0]).await, before);

    for name in ["web", "fast"] {
        site.services().delete(name, &DeleteParams::default()).await.unwrap();
    }
    eventually(SOON, "both Services are gone", || async {
        let left: Vec<String> = site
            .services()
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        (left == ["kubernetes"])
            .then_some(())
            .ok_or_else(|| format!("{left:?}\n{}", site.process.log_end()))
    })
    .await;
    site.stand.nothing_left(&[&balancers[0], &balancers[1]]).await;
}
