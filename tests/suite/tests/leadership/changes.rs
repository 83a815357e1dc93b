//! Changes of the leader: it is killed, told to end, stopped, cut off from the API server; a successor takes over and nothing is
//! written by two.

use std::time::{Duration, Instant};

use cloudwit_test_support::gate::{Point, Stop};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::rig::ingress;
use cloudwit_test_support::{ServiceBuilder, eventually};
use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};

use crate::audit::{requests, writers_in_turn, writes};
use crate::replicas::{QUICK, Replica, SOON, Stage, ended, identity};

/// As in `QUICK`.
const LEASE: Duration = Duration::from_secs(15);

/// What a busy machine may add to the quickest of many.
const SLACK: Duration = Duration::from_secs(5);

/// How often the leader is killed.
const KILLS: usize = 20;

/// Which of the replicas leads, once one does.
async fn leader(stage: &Stage, replicas: &[Option<Replica>; 2]) -> usize {
    eventually(SOON, "one of the replicas leads", || async {
        let holder = stage.holder().await;
        let leads = |replica: &Option<Replica>| {
            let identity = replica.as_ref().and_then(|replica| identity(&replica.process));
            identity.is_some_and(|identity| identity == holder)
        };
        replicas
            .iter()
            .position(leads)
            .ok_or(format!("{holder:?} holds the Lease"))
    })
    .await
}

/// The ways of ending a process, without order.
fn is_killed(round: usize) -> bool {
    [true, false, false, true, true, false, true, false][round % 8]
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_killed_twenty_times_never_gives_two_writers() {
    let stage = Stage::new().await;
    let mut replicas = [Some(stage.start(0, &QUICK).await), Some(stage.start(1, &QUICK).await)];
    let mut cloud_changes: Vec<Vec<Instant>> = Vec::new();
    let mut led = Vec::new();
    // After a kill, and after a release.
    let mut quickest = [Duration::MAX; 2];
    for round in 0..KILLS {
        let at = leader(&stage, &replicas).await;
        stage.work_is_done().await;
        let service = ServiceBuilder::new(&format!("round-{round}"));
        service.create(&stage.client).await.unwrap();
        // So that there is always something under way when the leader dies.
        for _ in 0..5 {
            stage.join_node().await;
        }
        let mut dying = replicas[at].take().unwrap();
        let process = &mut dying.process;
        let name = identity(process).unwrap();
        let died = Instant::now();
        process.signal(if is_killed(round) { "KILL" } else { "TERM" }).unwrap();
        let status = ended(process).await;
        assert_eq!(status.success(), !is_killed(round), "{status}: {}", process.log_end());
        let log = std::fs::read_to_string(process.log()).unwrap();
        let released = log.contains("released lease");
        assert!(!(released && is_killed(round)), "round {round}: {log}");
        let successor = leader(&stage, &replicas).await;
        assert_ne!(successor, at);
        let took = died.elapsed();
        println!("round {round}: killed {}, successor after {took:?}", is_killed(round));
        let one = &mut quickest[usize::from(released)];
        *one = took.min(*one);
        led.push(name);
        cloud_changes.push(dying.to_cloud.changes());
        replicas[at] = Some(stage.start(at, &QUICK).await);
    }
    let [killed, released] = quickest;
    assert!(killed < LEASE + SLACK, "the Lease has long ended after {killed:?}");
    assert!(released < LEASE, "what was released is not waited for: {released:?}");
    stage.work_is_done().await;
    eventually(SOON, "all Nodes are initialised", || async {
        let waiting = stage.waiting_nodes().await;
        if waiting.is_empty() {
            Ok(())
        } else {
            Err(format!("{waiting:?}"))
        }
    })
    .await;
    let writes = writes(&stage.server.audit_log());
    let writers = writers_in_turn(&writes);
    assert_eq!(writers[..KILLS], led, "those that led wrote, in turn, and nobody else");
    assert!(cloud_changes.iter().filter(|changes| !changes.is_empty()).count() > KILLS / 2);
    let mut last = None;
    for changes in cloud_changes.iter().filter(|changes| !changes.is_empty()) {
        assert!(
            last.is_none_or(|last| last < changes[0]),
            "two have changed the cloud at the same time"
        );
        last = changes.last().copied();
    }
    println!("{} writes by {} processes", writes.len(), writers.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_stale_leader_writes_nothing_and_exits_1() {
    let stage = Stage::new().await;
    let mut first = stage.start(0, &QUICK).await;
    let alone = [Some(first), None];
    leader(&stage, &alone).await;
    first = alone.into_iter().flatten().next().unwrap();
    stage.work_is_done().await;
    // A call to the cloud and a write to the cluster are under way when it is stopped: both wait for their answers.
    let to_cloud = first.to_cloud.stop_at(Point::before(Method::GET, "/v1/load-balancers"));
    let to_api = first.to_api.stop_at(Point::after(Method::PATCH, "/nodes/"));
    ServiceBuilder::new("web").create(&stage.client).await.unwrap();
    stage.join_node().await;
    to_cloud.reached().await;
    to_api.reached().await;
    for _ in 0..20 {
        stage.join_node().await;
    }
    first.process.signal("STOP").unwrap();
    let second = stage.start(1, &QUICK).await;
    let mut both = [Some(first), Some(second)];
    eventually(SOON, "the successor leads", || async {
        let holder = stage.holder().await;
        let second = both[1].as_ref().and_then(|replica| identity(&replica.process));
        if second.as_ref() == Some(&holder) {
            Ok(())
        } else {
            Err(format!("{holder} leads"))
        }
    })
    .await;
    stage.work_is_done().await;
    let before = writes(&stage.server.audit_log()).len();
    let first = both[0].as_mut().unwrap();
    let changes = first.to_cloud.changes().len();
    first.process.signal("CONT").unwrap();
    let status = ended(&mut first.process).await;
    assert_eq!(status.code(), Some(1), "{}", first.process.log_end());
    let log = std::fs::read_to_string(first.process.log()).unwrap();
    assert!(log.contains("leaderelection lost"), "{log}");
    assert_eq!(first.to_cloud.changes().len(), changes, "it has changed the cloud");
    let stopped = identity(&first.process).unwrap();
    let after = writes(&stage.server.audit_log());
    assert!(
        after[before..].iter().all(|write| write.identity != stopped),
        "it wrote"
    );
    assert_eq!(writers_in_turn(&after).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_replica_calls_no_cloud_and_fills_its_caches() {
    let stage = Stage::new().await;
    let first = [Some(stage.start(0, &QUICK).await), None];
    leader(&stage, &first).await;
    let mut to_cloud = Vec::new();
    let second = stage
        .start_after(1, &QUICK, |_, cloud| {
            let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
            to_cloud.extend(methods.map(|method| cloud.stop_at(Point::before(method, "/"))));
        })
        .await;
    eventually(SOON, "it waits", || async {
        identity(&second.process).ok_or("it does not")
    })
    .await;
    let name = identity(&second.process).unwrap();
    let watched = |resource: &str| {
        let seen = requests(&stage.server.audit_log());
        let of = seen
            .iter()
            .filter(|seen| seen.identity == name && seen.resource == resource);
        of.filter(|seen| seen.verb == "watch").count()
    };
    eventually(SOON, "it watches", || async {
        watched("nodes") > 0 && watched("services") > 0
    })
    .await;
    stage.work_is_done().await;
    let (nodes, services) = (watched("nodes"), watched("services"));
    assert_eq!(to_cloud.iter().map(Stop::count).sum::<usize>(), 0, "it asked the cloud");
    second.to_cloud.open();
    for replica in first.into_iter().flatten() {
        replica.process.kill().unwrap();
    }
    stage.work_is_done().await;
    assert_eq!(
        (watched("nodes"), watched("services")),
        (nodes, services),
        "it watches anew"
    );
    assert_eq!(writers_in_turn(&writes(&stage.server.audit_log())).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_replica_watches_renewals_without_requests() {
    let stage = Stage::new().await;
    let first = stage.start(0, &QUICK).await;
    let mut alone = [Some(first), None];
    leader(&stage, &alone).await;
    let second = stage.start(1, &QUICK).await;
    let seen_of = |process: &Child, verb: &str| {
        let name = identity(process).unwrap_or_default();
        let seen = requests(&stage.server.audit_log());
        let of = seen
            .iter()
            .filter(|seen| seen.identity == name && seen.resource == "leases" && seen.verb == verb);
        of.count()
    };
    eventually(SOON, "it watches the Lease", || async {
        Some(()).filter(|()| seen_of(&second.process, "watch") > 0).ok_or("no")
    })
    .await;
    let leading = &mut alone[0].as_mut().unwrap().process;
    let (renewed, asked) = (seen_of(leading, "update"), seen_of(&second.process, "get"));
    eventually(SOON, "the leader has renewed ten times more", || async {
        let more = seen_of(leading, "update") - renewed;
        Some(()).filter(|()| more >= 10).ok_or(more)
    })
    .await;
    // One look may have been on its way when the watch began.
    assert!(seen_of(&second.process, "get") <= asked + 1, "it asks all the same");
    leading.signal("TERM").unwrap();
    ended(leading).await;
    stage.work_is_done().await;
    assert_eq!(stage.holder().await, identity(&second.process).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_an_api_server_ends_with_1_at_its_deadline() {
    let stage = Stage::new().await;
    let (mut process, to_cloud, _) = stage.start_directly(&QUICK).await;
    stage.work_is_done().await;
    stage.server.stop().await.unwrap();
    let status = ended(&mut process).await;
    assert_eq!(status.code(), Some(1), "{}", process.log_end());
    let log = std::fs::read_to_string(process.log()).unwrap();
    assert!(
        log.contains("leaderelection lost: it could not be renewed in time"),
        "{log}"
    );
    drop(to_cloud);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_finds_another_holder_ends_at_once() {
    let stage = Stage::new().await;
    let (mut process, _to_cloud, _) = stage.start_directly(&QUICK).await;
    stage.work_is_done().await;
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), "kube-system");
    let taken = serde_json::json!({ "spec": { "holderIdentity": "somebody" } });
    leases
        .patch(
            "cloud-controller-manager",
            &PatchParams::default(),
            &Patch::Merge(taken),
        )
        .await
        .unwrap();
    assert_eq!(ended(&mut process).await.code(), Some(1));
    let log = std::fs::read_to_string(process.log()).unwrap();
    assert!(log.contains("somebody holds it now"), "{log}");
    assert_eq!(stage.holder().await, "somebody", "it takes nothing back");
}

/// A process that has no worker left for the others would show nothing.
const STEPS: [&str; 3] = [
    "--concurrent-service-syncs=16",
    "--service-drift-period=0",
    "--controllers=service-lb-controller",
];

#[tokio::test(flavor = "multi_thread")]
async fn leader_change_at_any_step_leaves_nothing_in_cloud() {
    let stage = Stage::new().await;
    let flags: Vec<&str> = QUICK.into_iter().chain(STEPS).collect();
    let mut services = Vec::new();
    for step in ["finalizer", "search", "create", "created", "status"] {
        services.push(ServiceBuilder::new(step).create(&stage.client).await.unwrap());
    }
    let status = |step: &str| format!("/services/{step}/status");
    let uid = |step: &str| {
        let named = services
            .iter()
            .find(|service| service.metadata.name.as_deref() == Some(step));
        named.unwrap().metadata.uid.clone().unwrap()
    };
    let mut stops = Vec::new();
    let first = stage
        .start_after(0, &flags, |to_api, to_cloud| {
            let making = "/v1/load-balancers";
            stops.push(to_api.stop_at(Point::after(Method::PATCH, status("finalizer"))));
            stops.push(to_cloud.stop_at(Point::before(Method::GET, format!("owner={}", uid("search")))));
            stops.push(to_cloud.stop_at(Point::before(Method::POST, making).with(uid("create"))));
            stops.push(to_cloud.stop_at(Point::after(Method::POST, making).with(uid("created"))));
            stops.push(to_api.stop_at(Point::before(Method::PATCH, status("status")).with(r#""ingress":[{"#)));
        })
        .await;
    for stop in &stops {
        stop.reached().await;
    }
    let second = stage.start(1, &flags).await;
    first.process.kill().unwrap();
    eventually(SOON, "the successor has made each load balancer once", || async {
        let owners: Vec<_> = stage
            .cloud
            .load_balancers()
            .into_iter()
            .filter_map(|one| one.spec.owner)
            .collect();
        for service in stage
            .services()
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?
        {
            let own = owners
                .iter()
                .filter(|owner| service.metadata.uid.as_ref() == Some(owner))
                .count();
            if service.name_any() != "kubernetes" && (own != 1 || ingress(&service).is_empty()) {
                return Err(format!(
                    "{} has {own} load balancers and {:?}",
                    service.name_any(),
                    ingress(&service)
                ));
            }
        }
        Ok(())
    })
    .await;

    let balancer = |step: &str| {
        let owner = Some(uid(step));
        let found = stage
            .cloud
            .load_balancers()
            .into_iter()
            .find(|one| one.spec.owner == owner);
        format!("/v1/load-balancers/{}", found.unwrap().id)
    };
    let release = |step: &str| (Method::PATCH, status(step), "$deleteFromPrimitiveList");
    let (method, target, text) = release("create");
    let before_release = Point::before(method, target).with(text);
    let (method, target, text) = release("created");
    let after_release = Point::after(method, target).with(text);
    let stops = [
        second
            .to_cloud
            .stop_at(Point::before(Method::DELETE, balancer("finalizer"))),
        second
            .to_cloud
            .stop_at(Point::after(Method::DELETE, balancer("search"))),
        second.to_api.stop_at(before_release),
        second.to_api.stop_at(after_release),
    ];
    for service in &services {
        let name = service.name_any();
        stage.services().delete(&name, &DeleteParams::default()).await.unwrap();
    }
    for stop in &stops {
        stop.reached().await;
    }
    let _third = stage.start(0, &flags).await;
    second.process.kill().unwrap();
    eventually(SOON, "neither a load balancer nor a Service is left", || async {
        let left = stage
            .services()
            .list(&ListParams::default())
            .await
            .map_err(|error| error.to_string())?;
        let names: Vec<String> = left
            .iter()
            .map(ResourceExt::name_any)
            .filter(|name| name != "kubernetes")
            .collect();
        match (stage.cloud.load_balancers().len(), names.len()) {
            (0, 0) => Ok(()),
            (balancers, _) => Err(format!("{balancers} load balancers and {names:?}")),
        }
    })
    .await;
    assert_eq!(writers_in_turn(&writes(&stage.server.audit_log())).len(), 3);
}
