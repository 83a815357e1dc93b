use std::collections::BTreeMap;
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, CapacityQuery, Detachment, ExpandedVolume, NewAttachment, NewSnapshot, NewVolume, Page,
    SizeRange, Snapshot, Topology, Volume, VolumeDriver,
};
use cloudwit_model::{Answer, Evidence, FaultKind, Presence, VolumeAbilities, VolumeSecrets};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::*;
use crate::kube::cache::Cache;
use crate::options::Options;
use crate::sync::lock;
use crate::testing::{FakeCloud, context_on, fault, node};

/// Machines with room for so many volumes.
struct FakeVolumes {
    room: Mutex<u32>,
    /// A call about one of these faults.
    faulty: HashSet<String>,
    /// The cloud fails on these.
    denied: Mutex<HashSet<String>>,
    /// How many Nodes each call was about.
    calls: Mutex<Vec<usize>>,
}

impl FakeVolumes {
    fn new(faulty: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            room: Mutex::new(39),
            faulty: faulty.iter().map(|name| (*name).to_owned()).collect(),
            denied: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    fn machine(&self, node: &NodeRef) -> Result<VolumeNode, Failure> {
        if lock(&self.denied).contains(&node.name) {
            return Err(Failure::Unavailable("not now".into()));
        }
        Ok(VolumeNode {
            id: format!("machine-{}", node.name),
            topology: Topology([("zone".to_owned(), "a".to_owned())].into()),
            max_volumes: Some(*lock(&self.room)),
        })
    }
}

fn never<T>() -> Answer<'static, T> {
    Box::pin(async { Err(Failure::Other("not asked by the node controller".into()).into()) })
}

impl VolumeCloud for FakeVolumes {
    fn volume_abilities(&self) -> VolumeAbilities {
        VolumeAbilities::default()
    }

    fn volume_driver(&self) -> Answer<'_, VolumeDriver> {
        let driver = VolumeDriver {
            name: "the.provider's.own".into(),
            topology_keys: Vec::new(),
            size_step: 1,
            smallest: 1,
            largest: 1,
            usual: 1,
            features: Vec::new(),
            batch: 40,
        };
        Box::pin(async { Ok(driver) })
    }

    fn volume_nodes<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Each<VolumeNode>> {
        lock(&self.calls).push(nodes.len());
        if nodes.iter().any(|node| self.faulty.contains(&node.name)) {
            return Box::pin(async { Err(fault(FaultKind::Trap)) });
        }
        let answers = nodes.iter().map(|node| self.machine(node)).collect();
        Box::pin(async { Ok(answers) })
    }

    fn get_volumes<'a>(&'a self, _: &'a [String]) -> Answer<'a, Each<Option<Volume>>> {
        never()
    }

    fn create_volume<'a>(&'a self, _: &'a NewVolume, _: Option<&'a str>, _: &'a VolumeSecrets) -> Answer<'a, Volume> {
        never()
    }

    fn delete_volume<'a>(&'a self, _: &'a str, _: Option<&'a str>, _: &'a VolumeSecrets) -> Answer<'a, ()> {
        never()
    }

    fn attach_volumes<'a>(&'a self, _: &'a [NewAttachment], _: &'a VolumeSecrets) -> Answer<'a, Each<AttachedVolume>> {
        never()
    }

    fn detach_volumes<'a>(&'a self, _: &'a [Detachment], _: &'a VolumeSecrets) -> Answer<'a, Each<()>> {
        never()
    }

    fn expand_volume<'a>(
        &'a self,
        _: &'a str,
        _: SizeRange,
        _: Option<&'a str>,
        _: &'a VolumeSecrets,
    ) -> Answer<'a, ExpandedVolume> {
        never()
    }

    fn list_volumes<'a>(&'a self, _: Option<&'a str>, _: u32) -> Answer<'a, Page<Volume>> {
        never()
    }

    fn modify_volume<'a>(
        &'a self,
        _: &'a str,
        _: &'a BTreeMap<String, String>,
        _: Option<&'a str>,
        _: &'a VolumeSecrets,
    ) -> Answer<'a, ()> {
        never()
    }

    fn volume_capacity<'a>(&'a self, _: &'a CapacityQuery) -> Answer<'a, Capacity> {
        never()
    }

    fn create_snapshot<'a>(
        &'a self,
        _: &'a NewSnapshot,
        _: Option<&'a str>,
        _: &'a VolumeSecrets,
    ) -> Answer<'a, Snapshot> {
        never()
    }

    fn delete_snapshot<'a>(&'a self, _: &'a str, _: Option<&'a str>, _: &'a VolumeSecrets) -> Answer<'a, ()> {
        never()
    }

    fn get_snapshots<'a>(&'a self, _: &'a [String], _: &'a VolumeSecrets) -> Answer<'a, Each<Option<Snapshot>>> {
        never()
    }

    fn list_snapshots<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Option<&'a str>,
        _: u32,
        _: &'a VolumeSecrets,
    ) -> Answer<'a, Page<Snapshot>> {
        never()
    }
}

/// The loop at work, on an API server that keeps annotations.
struct Story {
    volumes: Arc<FakeVolumes>,
    cloud: Arc<FakeCloud>,
    nodes: Arc<Cache<Node>>,
    /// Node and value of each annotation that was written.
    written: Arc<Mutex<Vec<(String, String)>>>,
}

impl Story {
    fn start(volumes: Arc<FakeVolumes>, nodes: Vec<Node>) -> Self {
        let cloud = FakeCloud::new(Ok(Presence::Absent(Evidence::ById)));
        let written = Arc::<Mutex<Vec<(String, String)>>>::default();
        let (context, _, _) = context_on(keeping_annotations(written.clone()), cloud.clone(), Options::default());
        let served = NodeVolumes {
            driver: "csi.test".into(),
            cloud: volumes.clone(),
        };
        let story = Self {
            volumes,
            cloud,
            nodes: context.nodes.clone(),
            written,
        };
        tokio::spawn(async move { VolumeNodes::new(&context, served).run().await });
        story.nodes.fill(nodes);
        story
    }

    /// The names of the Nodes written in this time.
    async fn written_within(&self, seconds: u64) -> Vec<String> {
        lock(&self.written).clear();
        sleep(Duration::from_secs(seconds)).await;
        let mut names: Vec<String> = lock(&self.written).iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    fn calls(&self) -> Vec<usize> {
        std::mem::take(&mut *lock(&self.volumes.calls))
    }
}

fn keeping_annotations(written: Arc<Mutex<Vec<(String, String)>>>) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let written = written.clone();
        async move {
            let name = request.uri().path().split('/').nth(4).unwrap_or_default().to_owned();
            let body = request.into_body().collect_bytes().await?;
            let patch: Value = serde_json::from_slice(&body).unwrap();
            let value = patch["metadata"]["annotations"][NODE_ANNOTATION].as_str().unwrap();
            lock(&written).push((name.clone(), value.to_owned()));
            let node = serde_json::json!({
                "metadata": {
                    "name": name, "uid": patch["metadata"]["uid"], "resourceVersion": "1000", "annotations": { NODE_ANNOTATION: value },
                },
                "spec": { "providerID": format!("sim://{name}") },
            });
            Ok::<_, kube::Error>(Response::new(Body::from(node.to_string().into_bytes())))
        }
    });
    Client::new(server, "default")
}

fn nodes(count: usize) -> Vec<Node> {
    (0..count)
        .map(|number| node(&format!("n{number}"), "True", &[]))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn machines_are_reported_once_and_again_on_change() {
    let story = Story::start(FakeVolumes::new(&[]), nodes(100));
    assert_eq!(story.written_within(1).await.len(), 100);
    let calls = story.calls();
    assert_eq!(
        (calls.iter().sum::<usize>(), calls.len()),
        (100, 3),
        "{calls:?}: at most 40 at once"
    );
    let value = story.nodes.get("n1").unwrap();
    let value = annotation(&value, NODE_ANNOTATION).unwrap();
    assert_eq!(
        value,
        r#"{"driver":"csi.test","nodeID":"machine-n1","topology":{"zone":"a"},"maxVolumes":39}"#
    );

    assert_eq!(story.written_within(900).await, [""; 0], "nothing changed");
    assert_eq!(story.calls().len(), 9, "three calls in each of three refreshes");
    *lock(&story.volumes.room) = 27;
    assert_eq!(
        story.written_within(300).await.len(),
        100,
        "a machine's limit may change"
    );
}

#[tokio::test(start_paused = true)]
async fn annotation_removed_outside_comes_back_at_once() {
    let story = Story::start(FakeVolumes::new(&[]), nodes(2));
    assert_eq!(story.written_within(1).await, ["n0", "n1"]);
    let mut bare = nodes(2);
    for node in &mut bare {
        node.metadata.resource_version = Some("2000".into());
    }
    bare[1].metadata.annotations = story.nodes.get("n1").unwrap().metadata.annotations.clone();
    story.nodes.fill(bare);
    assert_eq!(story.written_within(1).await, ["n0"]);
}

#[tokio::test(start_paused = true)]
async fn new_node_is_looked_up_when_it_is_initialised() {
    let mut new = node("new", "False", &[UNINITIALIZED]);
    new.spec.get_or_insert_default().provider_id = None;
    let mut foreign = node("foreign", "True", &[]);
    foreign.spec.get_or_insert_default().provider_id = Some("aws:///eu/i-1".into());
    let story = Story::start(FakeVolumes::new(&[]), vec![new, foreign.clone()]);
    assert_eq!(story.written_within(1000).await, [""; 0]);
    assert_eq!(story.calls(), [0; 0], "neither is asked about");
    let mut initialised = node("new", "True", &[]);
    initialised.metadata.resource_version = Some("2".into());
    story.nodes.fill(vec![initialised, foreign]);
    assert_eq!(story.written_within(1).await, ["new"]);
}

#[tokio::test(start_paused = true)]
async fn machine_on_which_the_provider_faults_costs_no_other() {
    let story = Story::start(FakeVolumes::new(&["n7"]), nodes(40));
    let written = story.written_within(1).await;
    assert_eq!((written.len(), written.contains(&"n7".to_owned())), (39, false));
    // Afterwards it is alone, and backs off.
    let of_many = story.calls().into_iter().filter(|nodes| *nodes > 1);
    let of_many: Vec<usize> = of_many.collect();
    assert!(of_many.len() <= 10, "{of_many:?}: halves, and not one by one");
}

#[tokio::test(start_paused = true)]
async fn undecided_machine_is_requested_again() {
    let volumes = FakeVolumes::new(&[]);
    lock(&volumes.denied).insert("n1".into());
    let story = Story::start(volumes, nodes(2));
    assert_eq!(story.written_within(10).await, ["n0"]);
    lock(&story.volumes.denied).clear();
    *lock(&story.cloud.digest) = "a swap".into();
    assert_eq!(story.written_within(60).await, ["n1"]);
}
