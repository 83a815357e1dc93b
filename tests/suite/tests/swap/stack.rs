//! Cloudwit as a process with its files in mounts as in a Pod, a real API server, and the simulated cloud.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudwit_sim_cloud::{NewMachine, SimCloud};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::settings;
use cloudwit_test_support::scenes::site::Site;
use cloudwit_test_support::{NodeBuilder, eventually};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use crate::mount::Mount;

/// Long enough for a compile on a busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// Everything that runs.
pub struct Stack {
    pub site: Site,
    pub components: Mount,
    pub config: Mount,
    pub secret: Mount,
    pub cloudwit: Child,
    pub component: Vec<u8>,
    admin: String,
    nodes: AtomicUsize,
}

/// Look-ups of Nodes come every second, so that there are calls all the time.
const FLAGS: [&str; 3] = [
    "--node-monitor-period=1s",
    "--node-status-update-frequency=1s",
    "--route-reconciliation-period=1s",
];

impl Stack {
    /// Starts all of it; the first token is `token-0`.
    pub async fn start() -> Self {
        let mut site = Site::new().await.unwrap();
        site.deployment = site.deployment.bare();
        site.cloud.set_tokens(["token-0"]);
        let at = |mount: &str| site.deployment.folder().join(mount);
        let component = fs::read(at("providers/sim.wasm")).unwrap();
        fs::remove_dir_all(at("providers")).unwrap();
        let components = Mount::new(&at("providers"), &[("sim.wasm", &component)]);
        let secret = Mount::new(&at("secret"), &[("token", b"token-0")]);
        let config = Mount::new(&at("config"), &[]);
        let (sim, yaml) = configuration(&site.cloud, &secret);
        config.write(&[("sim.json", sim.as_bytes()), ("settings.yaml", yaml.as_bytes())]);
        let mut flags = FLAGS.map(str::to_owned).to_vec();
        flags.push(format!("--cloud-config={}", config.path("sim.json").display()));
        flags.push(format!(
            "--provider-settings={}",
            config.path("settings.yaml").display()
        ));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (cloudwit, admin) = site.start(&flags).unwrap();
        let stack = Self {
            site,
            components,
            config,
            secret,
            cloudwit,
            component,
            admin,
            nodes: AtomicUsize::new(0),
        };
        eventually(SOON, "the look after the start found nothing new", || async {
            stack.swaps("unchanged").await == Some(1)
        })
        .await;
        stack
    }

    /// The files of the configuration, as they were at the start: to be changed.
    pub fn configuration(&self) -> (String, String) {
        configuration(&self.site.cloud, &self.secret)
    }

    /// Writes both files of the configuration.
    pub fn configure(&self, sim: &str, settings: &str) {
        self.config
            .write(&[("sim.json", sim.as_bytes()), ("settings.yaml", settings.as_bytes())]);
    }

    /// All metrics, as they are scraped.
    pub async fn metrics(&self) -> String {
        let answer = reqwest::get(format!("{}/metrics", self.admin)).await;
        match answer {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// How many swaps had that result; none when the metrics cannot be had.
    pub async fn swaps(&self, result: &str) -> Option<u64> {
        let metrics = self.metrics().await;
        if metrics.is_empty() {
            return None;
        }
        let start = format!("cloudwit_provider_swaps_total{{provider=\"sim\",result=\"{result}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&start));
        Some(count.map_or(0, |count| count.parse().unwrap()))
    }

    /// Waits until so many swaps had that result.
    pub async fn until_swaps(&self, result: &str, count: u64) {
        eventually(SOON, &format!("{count} swaps are {result}"), || async {
            match self.swaps(result).await {
                Some(found) if found >= count => Ok(()),
                found => Err(format!("{found:?}; {}", self.cloudwit.log_end())),
            }
        })
        .await;
    }

    /// A new machine and its Node, initialised: the provider works.
    pub async fn initialises_a_node(&self) {
        let name = format!("node-{}", self.nodes.fetch_add(1, Ordering::Relaxed));
        self.site.cloud.add_machines([NewMachine::named(&name)]);
        let client = self.site.server.client();
        NodeBuilder::new(&name).create(&client).await.unwrap();
        let nodes: Api<Node> = Api::all(client);
        eventually(SOON, "the Node is initialised", || async {
            nodes.get(&name).await.is_ok_and(|node| !is_uninitialised(&node))
        })
        .await;
    }

    /// The messages of all Events with this reason.
    pub async fn events(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.site.server.client(), "kube-system");
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let about = |event: &Event| event.involved_object.kind.as_deref() == Some("Lease");
        let events = events
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason) && about(event));
        events.filter_map(|event| event.message).collect()
    }

    /// Waits for an Event with this reason whose message contains this.
    pub async fn until_event(&self, reason: &str, part: &str) {
        eventually(SOON, "there is an Event", || async {
            let messages = self.events(reason).await;
            if messages.iter().any(|message| message.contains(part)) {
                return Ok(());
            }
            Err(format!("no {part:?} in {messages:?}"))
        })
        .await;
    }
}

fn configuration(cloud: &SimCloud, secret: &Mount) -> (String, String) {
    let port = cloud.address().port().to_string();
    let sim = json!({ "endpoint": cloud.url() }).to_string();
    (sim, settings(&port, &secret.path("token")))
}

/// The same component with other bytes: one custom section more, which says which variant it is.
pub fn variant(component: &[u8], number: u8) -> Vec<u8> {
    let section = [0, 9, 7, b'v', b'a', b'r', b'i', b'a', b'n', b't', number];
    [component, &section].concat()
}
