//! Load balancers on Rancher 1.x from their first state to the last: made, changed, taken over, half made, deleted without a trace.

use cloudwit_test_support::files::small_clouds::own_client_with;
use cloudwit_test_support::scenes::rig::{CLEANUP_FINALIZER, address};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{ALL, Scene};

const BALANCER: &str = "loadBalancerService";
const EXTERNAL: &str = "externalService";

/// The name of a Service's load balancer.
fn name_of(service: &Service) -> String {
    let uid = service.uid().unwrap().replace('-', "");
    format!("lb-a{}", &uid[..31])
}

fn node_port(service: &Service) -> i32 {
    service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0]
        .node_port
        .unwrap()
}

/// So many Nodes are behind it.
fn behind(balancer: &Value) -> usize {
    balancer["lbConfig"]["portRules"].as_array().map_or(0, Vec::len)
}

impl Scene {
    /// Two Nodes, and Cloudwit, on a Rancher that takes its time.
    async fn with_nodes() -> Self {
        let mut scene = Self::new("rancher").await;
        scene.does("operations_take", json!({ "seconds": 0.2 })).await;
        scene.joins("one").await;
        scene.joins("two").await;
        scene.start(&[ALL]).await;
        scene.initialised("one").await;
        scene.initialised("two").await;
        scene
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    async fn shown_address(&self, service: &str) -> Option<String> {
        address(&self.services().get_opt(service).await.unwrap()?)
    }

    async fn address(&self, service: &str) -> String {
        self.settled("the Service has an address", || async {
            self.shown_address(service).await.map(drop).ok_or("none".to_owned())
        })
        .await;
        self.shown_address(service).await.unwrap()
    }

    async fn patch(&self, service: &str, patch: Value) {
        let (how, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.services().patch(service, &how, &patch).await.unwrap();
    }

    async fn has(&self, kind: &str) -> Vec<Value> {
        self.cloud.resources(json!({ "kind": kind })).await.unwrap()
    }

    /// Those of the Services `a`, `b` and `c` that have no address.
    async fn without_address(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        for name in ["a", "b", "c"] {
            if self.shown_address(name).await.is_none() {
                found.push(name);
            }
        }
        found
    }

    /// Waits until what is there of a kind is as wished.
    async fn comes(&self, what: &str, kind: &str, wished: impl Fn(&[Value]) -> bool) {
        self.settled(what, || async {
            let all = self.has(kind).await;
            if wished(&all) { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }

    async fn writes(&self) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        calls.iter().filter(|call| call.method != "GET").count()
    }

    async fn is_gone(&self, service: &str) {
        self.services().delete(service, &DeleteParams::default()).await.unwrap();
        self.settled("the Service is gone", || async {
            match self.services().get_opt(service).await.unwrap() {
                None => Ok(()),
                Some(_) => Err("it is there".into()),
            }
        })
        .await;
    }

    /// Deletes it; nothing but the stack is left in the cloud, and nothing was called that the README does not list.
    async fn leaves_nothing(&self, service: &str) {
        self.is_gone(service).await;
        assert_eq!(self.has(BALANCER).await, Vec::<Value>::new());
        self.comes("external services go", EXTERNAL, <[Value]>::is_empty).await;
        assert_eq!(self.has("stack").await.len(), 1);
        let readme = include_str!("../../../../providers/rancher/README.md");
        for call in self.cloud.calls().await.unwrap() {
            let known = readme.contains(&format!("`{}`", call.name)) || call.agent == "cattle";
            assert!(known && call.status != 599, "{call:?}");
        }
    }

    async fn asks(&self, method: &str, path: &str, body: Value) -> Value {
        let request = json!({ "method": method, "path": path, "body": body });
        self.does("request", request).await
    }

    /// As upstream's controller made it, with a finalizer and an address in the Service; the load balancer's id.
    async fn left_balancer(&self, service: &Service, ips: &[(&str, &str)]) -> (String, String) {
        let stack = json!({ "name": "kubernetes-loadbalancers", "externalId": "kubernetes-loadbalancers://" });
        let stack = self.asks("POST", "stacks", stack).await["id"].clone();
        let launch = json!({ "ports": ["80:80/tcp"], "imageUuid": "docker:rancher/lb-service-haproxy:v0.9.14" });
        let made = json!({ "name": name_of(service), "stackId": stack, "launchConfig": launch, "lbConfig": {} });
        let id = self.asks("POST", "loadbalancerservices", made).await["id"].clone();
        let id = id.as_str().unwrap().to_owned();
        let (mut rules, mut links) = (Vec::new(), Vec::new());
        for (node, ip) in ips {
            let made = json!({ "name": node, "externalIpAddresses": [ip], "stackId": stack });
            let external = self.asks("POST", "externalservices", made).await["id"].clone();
            let activate = format!("externalservices/{}/activate", external.as_str().unwrap());
            self.asks("POST", &activate, json!({})).await;
            links.push(json!({ "serviceId": external }));
            rules.push(
                json!({ "sourcePort": 80, "targetPort": node_port(service), "serviceId": external, "protocol": "tcp" }),
            );
        }
        let own = format!("loadbalancerservices/{id}");
        self.asks(
            "POST",
            &format!("{own}/setservicelinks"),
            json!({ "serviceLinks": links }),
        )
        .await;
        self.asks("PUT", &own, json!({ "lbConfig": { "portRules": rules } }))
            .await;
        self.asks("POST", &format!("{own}/activate"), json!({})).await;
        let points = self.has(BALANCER).await[0]["publicEndpoints"].clone();
        let ip = points[0]["ipAddress"].as_str().unwrap().to_owned();
        let (name, how) = (service.name_any(), PatchParams::default());
        self.patch(&name, json!({ "metadata": { "finalizers": [CLEANUP_FINALIZER] } }))
            .await;
        let status = Patch::Merge(json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ip }] } } }));
        self.services().patch_status(&name, &how, &status).await.unwrap();
        (id, ip)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rancher_balancer_lives_changes_and_goes() {
    let scene = Scene::with_nodes().await;
    let web = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    assert_eq!(scene.address("web").await, "10.6.0.1");
    // As Rancher's own client reads it.
    let shown = own_client_with(&scene.cloud, "rancher.judge", &["shown"])
        .await
        .unwrap();
    let port = node_port(&web);
    let rules = json!([[80, port, "one", ["10.6.0.1"]], [80, port, "two", ["10.6.0.2"]]]);
    assert_eq!(shown, json!({ name_of(&web): [["80:80/tcp"], rules, "active"] }));

    // A change that changes nothing in the cloud: reads only.
    scene.cloud.forget_calls().await.unwrap();
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene.has_calls("it is looked at", "GET /externalservices", 1).await;
    assert_eq!(scene.writes().await, 0);

    let three = scene.joins("three").await;
    scene
        .comes("three are behind it", BALANCER, |all| behind(&all[0]) == 3)
        .await;
    scene.does("delete", json!({ "id": three })).await;
    scene.falls_silent("three").await;
    scene
        .comes("two are behind it", BALANCER, |all| behind(&all[0]) == 2)
        .await;
    scene
        .comes("the third one's external service goes", EXTERNAL, |all| all.len() == 2)
        .await;

    let id = scene.has(BALANCER).await[0]["id"].clone();
    let ports =
        json!([{ "name": "a", "port": 443, "protocol": "TCP" }, { "name": "b", "port": 80, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    let other =
        |all: &[Value]| all.len() == 1 && all[0]["id"] != id && behind(&all[0]) == 4 && all[0]["state"] == "active";
    scene.comes("another one with both ports", BALANCER, other).await;
    assert_eq!(scene.has(EXTERNAL).await.len(), 2, "these stay");
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_services_of_upstream_stay_as_they_are() {
    let mut scene = Scene::new("rancher").await;
    let one = scene.left_behind("one", "rancher://{}").await;
    scene.left_behind("two", "rancher://{}").await;
    let service = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ips = [("one", "10.6.0.1"), ("two", "10.6.0.2")];
    let (id, ip) = scene.left_balancer(&service, &ips).await;
    scene.cloud.forget_calls().await.unwrap();
    scene.start(&[ALL, "--node-status-update-frequency=1s"]).await;
    scene.has_calls("it is ensured", "GET /externalservices", 1).await;
    scene
        .is_asked("addresses of Nodes are looked at", "GET /hosts", 4)
        .await;
    let before = scene.calls("GET /externalservices").await;
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene
        .has_calls("it is ensured again", "GET /externalservices", before + 1)
        .await;
    assert_eq!(scene.writes().await, 0);
    let balancers = scene.has(BALANCER).await;
    assert_eq!((balancers.len(), balancers[0]["id"].as_str()), (1, Some(id.as_str())));
    assert_eq!(scene.shown_address("web").await, Some(ip));
    // What upstream made is marked when it is dropped, and goes.
    scene.does("delete", json!({ "id": one })).await;
    scene.falls_silent("one").await;
    scene
        .comes("one external service is left", EXTERNAL, |all| all.len() == 1)
        .await;
    assert_eq!(behind(&scene.has(BALANCER).await[0]), 1);
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_lost_answers_refusals_and_a_crash_are_got_over() {
    let mut scene = Scene::with_nodes().await;
    let udp = ServiceBuilder::new("udp").spec(|spec| spec.ports.as_mut().unwrap()[0].protocol = Some("UDP".into()));
    udp.create(&scene.client).await.unwrap();
    scene
        .warned("udp", "SyncLoadBalancerFailed", &["no load balancers for UDP"])
        .await;
    scene.is_gone("udp").await;
    let busy = json!({ "type": "error", "status": 409, "code": "Conflict", "message": "Conflict" });
    let faults = json!([
        // The cloud does it, and the answer is lost.
        { "method": "POST", "path": "/stacks", "obey": true, "status": 0 },
        { "method": "POST", "path": "/externalservices$", "obey": true, "status": 0 },
        { "method": "POST", "path": "/loadbalancerservices$", "obey": true, "status": 502, "value": "<html>bad gateway</html>" },
        { "method": "POST", "path": "loadbalancerservices.*activate", "status": 409, "value": busy },
    ]);
    scene.cloud.faults(faults).await.unwrap();
    ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let ip = scene.address("web").await;
    for (kind, count) in [("stack", 1), (EXTERNAL, 2), (BALANCER, 1)] {
        assert_eq!(scene.has(kind).await.len(), count, "{kind}: nothing is made twice");
    }

    // The process dies while Rancher works, and another one continues. It takes long enough to be seen on a busy machine.
    scene.does("operations_take", json!({ "seconds": 20.0 })).await;
    let ports = json!([{ "name": "a", "port": 8080, "protocol": "TCP" }]);
    scene.patch("web", json!({ "spec": { "ports": ports } })).await;
    scene
        .comes("it is being removed", BALANCER, |all| {
            all.iter().any(|one| one["state"] == "removing")
        })
        .await;
    scene.kill().unwrap();
    scene.does("operations_take", json!({ "seconds": 0.1 })).await;
    scene.start(&[ALL]).await;
    let anew = |all: &[Value]| {
        all.len() == 1 && all[0]["launchConfig"]["ports"] == json!(["8080:8080/tcp"]) && all[0]["state"] == "active"
    };
    scene.comes("it is made anew", BALANCER, anew).await;
    assert_eq!(scene.address("web").await, ip);

    // Deleted by somebody else: it comes back.
    let external = scene.has(EXTERNAL).await[0]["id"].clone();
    scene
        .asks(
            "DELETE",
            &format!("externalservices/{}", external.as_str().unwrap()),
            json!({}),
        )
        .await;
    let own = scene.has(BALANCER).await[0]["id"].clone();
    scene
        .asks(
            "DELETE",
            &format!("loadbalancerservices/{}", own.as_str().unwrap()),
            json!({}),
        )
        .await;
    scene
        .patch(
            "web",
            json!({ "metadata": { "annotations": { "example.com/touched": "1" } } }),
        )
        .await;
    scene
        .comes("both are behind it again", BALANCER, |all| {
            all.len() == 1 && behind(&all[0]) == 2
        })
        .await;
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rancher_balancers_share_external_services_and_ports_of_hosts() {
    let scene = Scene::with_nodes().await;
    // Two hosts have port 80 twice.
    for name in ["a", "b", "c"] {
        ServiceBuilder::new(name).create(&scene.client).await.unwrap();
    }
    let failing = |all: &[Value]| all.len() == 3 && all.iter().filter(|one| one["state"] == "active").count() == 2;
    scene.comes("two have a host", BALANCER, failing).await;
    scene
        .settled("two have an address", || async {
            let waiting = scene.without_address().await;
            if waiting.len() == 1 {
                Ok(())
            } else {
                Err(format!("{waiting:?}"))
            }
        })
        .await;
    let waiting = scene.without_address().await[0];
    scene
        .warned(waiting, "SyncLoadBalancerFailed", &["Scheduling failed", "80/tcp"])
        .await;
    assert_eq!(
        scene.has(EXTERNAL).await.len(),
        2,
        "one for each Node, not for each Service"
    );
    let other = if waiting == "a" { "b" } else { "a" };
    scene.is_gone(other).await;
    scene.address(waiting).await;
    assert_eq!(scene.has(EXTERNAL).await.len(), 2, "the others use them");
    let rest: Vec<&str> = ["a", "b", "c"].into_iter().filter(|name| *name != other).collect();
    scene.is_gone(rest[0]).await;
    scene.leaves_nothing(rest[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_comes_behind_several_rancher_balancers() {
    let scene = Scene::with_nodes().await;
    scene.does("operations_take", json!({ "seconds": 0 })).await;
    for number in 0..5 {
        let port = 8000 + number;
        let service =
            ServiceBuilder::new(&format!("web-{number}")).spec(move |spec| spec.ports.as_mut().unwrap()[0].port = port);
        service.create(&scene.client).await.unwrap();
    }
    for number in 0..5 {
        scene.address(&format!("web-{number}")).await;
    }
    scene.cloud.forget_calls().await.unwrap();
    NodeBuilder::new("three").create(&scene.client).await.unwrap();
    scene.does("add_machine", json!({ "name": "three" })).await;
    let all_have = |all: &[Value]| all.len() == 5 && all.iter().all(|one| behind(one) == 3);
    scene.comes("it is behind all", BALANCER, all_have).await;
    assert_eq!(scene.calls("PUT /loadbalancerservices/{id}").await, 5);
    let calls = scene.cloud.calls().await.unwrap();
    let made = calls.iter().filter(|call| call.name == "POST /externalservices");
    assert_eq!(made.count(), 1);
    println!("5 Services: {} calls for a Node", scene.calls("").await);
}
