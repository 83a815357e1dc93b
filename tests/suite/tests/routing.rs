//! Two clouds in one process: the real `cloudwit` with a configuration file, the component `sim` twice, two simulated clouds, on the real
//! API server. Machines of the same id and name exist in both clouds, so that nothing is right by chance.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use cloudwit_sim_cloud::{Fault, FaultKind, Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::{ApiServer, NodeBuilder, ServiceBuilder, eventually, programs};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use cloudwit_suite::common::harness::{Alone, alone};

/// Each process compiles the component anew.
const LONG: Duration = Duration::from_secs(300);
const NOTE: &str = "cloudwit.dev/load-balancer-provider";
const PROVIDER: &str = "cloudwit.dev/provider";

/// Two clouds and a process that runs on both.
struct Two {
    alone: Alone,
    north: SimCloud,
    south: SimCloud,
    folder: tempfile::TempDir,
    component: PathBuf,
    /// `limits.wallTime` of both.
    wall_time: &'static str,
}

impl Two {
    async fn new() -> Self {
        let component = tokio::task::spawn_blocking(|| cloudwit_test_support::programs::guests::provider("sim"));
        let start = || SimCloud::start(SimCloudOptions::default());
        Self {
            alone: alone().await,
            north: start().await.unwrap(),
            south: start().await.unwrap(),
            folder: tempfile::tempdir().unwrap(),
            component: component.await.unwrap(),
            wall_time: "5s",
        }
    }

    fn provider(&self, name: &str, cloud: &SimCloud) -> String {
        let (port, token) = (cloud.address().port(), self.folder.path().join(format!("{name}.token")));
        std::fs::write(&token, cloud.token()).unwrap();
        format!(
            "  - name: {name}
    component: {component}
    cloudConfig: '{{\"endpoint\": \"{url}\", \"providerIdScheme\": \"{name}\"}}'
    grants:
      http: [{{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, DELETE], allowLoopback: true}}]
      secrets: [{{name: token, file: {name}.token, hosts: ['127.0.0.1:{port}'], uses: [placeholder]}}]
    limits: {{wallTime: {wall_time}}}
",
            component = self.component.display(),
            url = cloud.url(),
            wall_time = self.wall_time,
        )
    }

    /// Starts the process; north is the default.
    async fn start(&self, flags: &[&str]) -> Child {
        let text = format!(
            "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n{}{}\
             routing:\n  default: north\n  services: [{{provider: south, classes: [example.com/south]}}]\n",
            self.provider("north", &self.north),
            self.provider("south", &self.south)
        );
        let file = self.folder.path().join("cloudwit.yaml");
        std::fs::write(&file, text).unwrap();
        let kubeconfig = ApiServer::shared().await.kubeconfig().to_owned();
        let mut arguments = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", file.display()),
            format!("--cache-dir={}", self.folder.path().join("cache").display()),
            "--cluster-cidr=10.244.0.0/16".to_owned(),
            "--leader-elect=false".to_owned(),
            "--admin-address=127.0.0.1:0".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let log = self.log();
        tokio::task::spawn_blocking(move || Child::start(&programs::cloudwit(), &arguments, &log).unwrap())
            .await
            .unwrap()
    }

    fn log(&self) -> PathBuf {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/routing-logs");
        std::fs::create_dir_all(&target).unwrap();
        target.join(format!("{}.log", self.north.address().port()))
    }

    async fn node(&self, node: NodeBuilder) {
        self.alone
            .nodes()
            .create(&PostParams::default(), &node.build())
            .await
            .unwrap();
    }

    /// Waits until the Node has been initialised; its provider id.
    async fn initialised(&self, name: &str) -> String {
        eventually(LONG, &format!("{name} is initialised"), || async {
            let node = self.alone.nodes().get(name).await?;
            ensure!(!is_uninitialised(&node), "still tainted");
            Ok(node.spec.unwrap_or_default().provider_id.unwrap_or_default())
        })
        .await
    }

    /// Waits until the Service has an address, and looks up whose it is.
    async fn served_by(&self, name: &str, owner: &str) {
        eventually(LONG, &format!("{name} is served by {owner}"), || async {
            let service = self.alone.services().get(name).await?;
            let address = address(&service);
            ensure!(address.is_some(), "no address");
            ensure!(
                service.annotations().get(NOTE).map(String::as_str) == Some(owner),
                "noted: {:?}",
                service.annotations()
            );
            let cloud = if owner == "north" { &self.north } else { &self.south };
            let own: Vec<_> = cloud
                .load_balancers()
                .into_iter()
                .filter(|one| one.spec.owner == service.uid())
                .collect();
            ensure!(own.len() == 1 && own[0].address == address, "in the cloud: {own:?}");
            Ok(())
        })
        .await;
    }

    fn balancers(&self) -> (usize, usize) {
        (self.north.load_balancers().len(), self.south.load_balancers().len())
    }
}

fn address(service: &Service) -> Option<String> {
    let status = service.status.as_ref()?.load_balancer.as_ref()?;
    status.ingress.as_ref()?.first()?.ip.clone()
}

#[tokio::test]
async fn objects_belong_to_their_cloud_and_moved_service_is_cleaned() {
    let two = Two::new().await;
    for cloud in [&two.north, &two.south] {
        cloud.add_numbered_machines("vm", 2);
    }
    let ids: Vec<String> = two.south.machines().into_iter().map(|machine| machine.id).collect();
    two.node(NodeBuilder::new("vm-0").pod_cidr("10.244.0.0/24")).await;
    two.node(
        NodeBuilder::new("vm-1")
            .label(PROVIDER, "south")
            .pod_cidr("10.244.1.0/24"),
    )
    .await;
    two.node(NodeBuilder::new("by-id").provider_id(&format!("south://{}", ids[0])))
        .await;
    two.node(NodeBuilder::new("foreign").provider_id("elsewhere://1")).await;
    let create = |service: ServiceBuilder| async { service.create(&two.alone.client).await.unwrap() };
    create(ServiceBuilder::new("plain")).await;
    create(ServiceBuilder::new("annotated").annotation(PROVIDER, "south")).await;
    create(ServiceBuilder::new("classed").spec(|spec| spec.load_balancer_class = Some("example.com/south".into())))
        .await;
    create(ServiceBuilder::new("others").spec(|spec| spec.load_balancer_class = Some("example.com/other".into())))
        .await;
    let process = two.start(&[]).await;

    assert!(two.initialised("vm-0").await.starts_with("north://"));
    assert_eq!(two.initialised("vm-1").await, format!("south://{}", ids[1]));
    assert_eq!(two.initialised("by-id").await, format!("south://{}", ids[0]));
    two.served_by("plain", "north").await;
    two.served_by("annotated", "south").await;
    two.served_by("classed", "south").await;
    eventually(LONG, "each cloud has the routes of its Nodes", || async {
        let nodes = |cloud: &SimCloud| {
            cloud
                .routes()
                .into_iter()
                .map(|route| route.spec.node)
                .collect::<Vec<_>>()
        };
        let routes = (nodes(&two.north), nodes(&two.south));
        ensure!(routes == (vec!["vm-0".into()], vec!["vm-1".into()]), "{routes:?}");
        Ok(())
    })
    .await;
    eventually(LONG, "load balancers have the Nodes of their cloud", || async {
        let count = |cloud: &SimCloud| cloud.load_balancers().iter().map(|one| one.spec.targets.len()).max();
        let counts = (count(&two.north), count(&two.south));
        ensure!(counts == (Some(1), Some(2)), "{counts:?}");
        Ok(())
    })
    .await;

    // Moved by annotation, and back by a process that knows nothing of it.
    let move_to =
        |owner: serde_json::Value| Patch::Merge(json!({ "metadata": { "annotations": { PROVIDER: owner } } }));
    let services = two.alone.services();
    services
        .patch("plain", &PatchParams::default(), &move_to("south".into()))
        .await
        .unwrap();
    two.served_by("plain", "south").await;
    assert_eq!(two.balancers(), (0, 3));
    drop(process);
    services
        .patch("plain", &PatchParams::default(), &move_to(json!(null)))
        .await
        .unwrap();
    // The type change takes the class away, while nobody looks.
    let cluster_ip = Patch::Merge(json!({ "spec": { "type": "ClusterIP", "loadBalancerClass": null } }));
    services
        .patch("classed", &PatchParams::default(), &cluster_ip)
        .await
        .unwrap();
    let _process = two.start(&[]).await;
    two.served_by("plain", "north").await;
    eventually(LONG, "nothing is left of the Service that changed its type", || async {
        let service = services.get("classed").await?;
        ensure!(
            service.finalizers().is_empty() && !service.annotations().contains_key(NOTE),
            "{service:?}"
        );
        ensure!(two.balancers() == (1, 1), "{:?}", two.balancers());
        Ok(())
    })
    .await;

    let others = services.get("others").await.unwrap();
    assert!(
        others.finalizers().is_empty() && others.annotations().is_empty(),
        "another class is another's"
    );
    assert!(is_uninitialised(&two.alone.nodes().get("foreign").await.unwrap()));
}

#[tokio::test]
async fn hung_or_empty_cloud_affects_only_its_own_objects() {
    let two = Two::new().await;
    for cloud in [&two.north, &two.south] {
        // Not named like any id: machines are deleted by either.
        cloud.add_numbered_machines("machine", 4);
    }
    let machines = [two.north.machines(), two.south.machines()];
    let id = |cloud: usize, at: usize| {
        let name = ["north", "south"][cloud];
        format!("{name}://{}", machines[cloud][at].id)
    };
    // Both have the same ids, so an answer of the wrong cloud would be taken for the right one's.
    assert_eq!(machines[0][0].id, machines[1][0].id);
    for at in 0..2 {
        let dead = |cloud: usize, name: &str| {
            NodeBuilder::new(&format!("{name}-{at}"))
                .provider_id(&id(cloud, at))
                .initialised()
                .ready(Some(false))
        };
        two.node(dead(0, "n")).await;
        two.node(dead(1, "s")).await;
    }
    two.north
        .delete_machines(machines[0].iter().map(|machine| machine.id.clone()));
    two.south.set_faults([Fault::new(FaultKind::Hang)]);
    let quick = [
        "--node-monitor-period=200ms",
        "--node-deletion-confirm-after=1s",
        "--node-deletion-grace-period=0s",
        "--node-deletion-max-percent=100",
    ];
    let _process = two.start(&quick).await;
    let names = || async {
        let nodes = two.alone.nodes().list(&Default::default()).await?;
        Ok::<_, anyhow::Error>(nodes.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>())
    };
    eventually(LONG, "north's Nodes go although south hangs", || async {
        let names = names().await?;
        ensure!(names == ["s-0", "s-1"], "{names:?}");
        Ok(())
    })
    .await;
    // New work in north goes on too.
    two.north.add_numbered_machines("late", 1);
    two.node(NodeBuilder::new("late-0")).await;
    ServiceBuilder::new("web").create(&two.alone.client).await.unwrap();
    assert!(two.initialised("late-0").await.starts_with("north://"));
    two.served_by("web", "north").await;

    // Now south answers, and north knows none of these ids: south's word alone counts for its Nodes.
    two.south.set_faults([]);
    two.south.delete_machines([machines[1][0].id.clone()]);
    eventually(LONG, "the one of south whose machine is gone goes", || async {
        let names = names().await?;
        ensure!(names == ["late-0", "s-1"], "{names:?}");
        Ok(())
    })
    .await;
    let asked = two.south.counters();
    eventually(LONG, "south was asked many times more", || async {
        let more = two.south.counters().total() - asked.total();
        ensure!(more > 20, "{more}");
        Ok(())
    })
    .await;
    assert_eq!(names().await.unwrap(), ["late-0", "s-1"]);
}

/// A call that hangs is held for longer than the test waits, so the time limit of calls does not come to the others' help.
#[tokio::test]
async fn services_of_a_cloud_that_hangs_leave_a_worker_to_the_others() {
    let two = Two {
        wall_time: "1h",
        ..Two::new().await
    };
    let hang = |operation| Fault::new(FaultKind::Hang).on(operation);
    two.south
        .set_faults([Operation::ListLoadBalancers, Operation::CreateLoadBalancer].map(hang));
    for at in 0..5 {
        let service = ServiceBuilder::new(&format!("stuck-{at}")).annotation(PROVIDER, "south");
        service.create(&two.alone.client).await.unwrap();
    }
    let _process = two.start(&["--concurrent-service-syncs=3"]).await;
    let hanging = || two.south.counters().in_flight;
    eventually(LONG, "south hangs with all workers it can have", || async {
        ensure!(hanging() == 3, "{}", hanging());
        Ok(())
    })
    .await;
    for at in 0..5 {
        ServiceBuilder::new(&format!("web-{at}"))
            .create(&two.alone.client)
            .await
            .unwrap();
    }
    for at in 0..5 {
        two.served_by(&format!("web-{at}"), "north").await;
    }
    // A request without an answer is given up after half a minute, and its Service is tried again.
    eventually(LONG, "south has workers of its own and no more", || async {
        ensure!(hanging() == 3, "{}", hanging());
        Ok(())
    })
    .await;
    assert_eq!(two.balancers().1, 0);
}

#[tokio::test]
async fn routes_of_one_cloud_continue_while_another_cannot_list() {
    let two = Two::new().await;
    for cloud in [&two.north, &two.south] {
        cloud.add_numbered_machines("vm", 2);
    }
    two.south.set_faults([Fault::status(503).on(Operation::ListRoutes)]);
    two.node(NodeBuilder::new("vm-0").pod_cidr("10.244.0.0/24")).await;
    let south = NodeBuilder::new("vm-1").label(PROVIDER, "south");
    two.node(south.pod_cidr("10.244.1.0/24")).await;
    let _process = two.start(&["--route-reconciliation-period=1s"]).await;
    let nodes = |cloud: &SimCloud| -> Vec<String> { cloud.routes().into_iter().map(|route| route.spec.node).collect() };
    let unreachable = |name: &'static str| {
        let nodes = two.alone.nodes();
        async move {
            let status = nodes.get(name).await.unwrap().status.unwrap_or_default();
            let mut conditions = status.conditions.unwrap_or_default().into_iter();
            conditions
                .find(|one| one.type_ == "NetworkUnavailable")
                .map(|one| one.status)
        }
    };
    eventually(LONG, "north's Node has its route and may get Pods", || async {
        ensure!(nodes(&two.north) == ["vm-0"], "{:?}", nodes(&two.north));
        ensure!(unreachable("vm-0").await.as_deref() == Some("False"));
        Ok(())
    })
    .await;
    two.initialised("vm-1").await;
    let lists = || two.south.counters().requests(Operation::ListRoutes);
    eventually(LONG, "south is asked again, with growing pauses", || async {
        ensure!(lists() >= 3, "{}", lists());
        Ok(())
    })
    .await;
    assert_eq!(unreachable("vm-1").await, None, "what its routes are is not known");
    assert!(nodes(&two.south).is_empty());
    two.south.set_faults([]);
    eventually(LONG, "south's Node has its route too", || async {
        ensure!(nodes(&two.south) == ["vm-1"], "{:?}", nodes(&two.south));
        ensure!(unreachable("vm-1").await.as_deref() == Some("False"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn file_with_mistakes_starts_nothing_and_reports_them_all() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("cloudwit.yaml");
    std::fs::write(
        &file,
        "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - {name: a, component: a.wasm, grant: {}}\n",
    )?;
    let program = tokio::task::spawn_blocking(programs::cloudwit).await?;
    let output = tokio::process::Command::new(program)
        .args([
            format!("--config={}", file.display()),
            "--cloud-provider=sim".to_owned(),
        ])
        .output()
        .await?;
    let text = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "mistakes in the configuration, nothing was started",
        "--cloud-provider and --config=",
        "cloudwit.yaml:4: providers[0].grant: unknown key, did you mean grants?",
    ] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    Ok(())
}
