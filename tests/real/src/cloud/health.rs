//! Health checks of a load balancer's members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::cloud::request;

/// Time between two checks of a member, and how long one may take. Clouds take some seconds; tests shall not.
const PERIOD: Duration = Duration::from_millis(500);

/// How many checks in a row decide that a member is healthy, or is not.
const THRESHOLD: u32 = 2;

/// What kube-proxy and Services with `externalTrafficPolicy: Local` answer.
const PATH: &str = "/healthz";

/// The checks that run. One for each address and port, however many load balancers need it.
#[derive(Default)]
pub struct Health(BTreeMap<String, Check>);

struct Check {
    healthy: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Check {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Health {
    /// From now on checks these members (`IP:PORT`) and no others. One that is new counts as unhealthy at first.
    pub fn follow(&mut self, members: &BTreeSet<String>) {
        self.0.retain(|member, _| members.contains(member));
        for member in members {
            self.0.entry(member.clone()).or_insert_with(|| Check::start(member));
        }
    }

    /// Whether a member is healthy.
    pub fn is_healthy(&self, member: &str) -> bool {
        self.0
            .get(member)
            .is_some_and(|check| check.healthy.load(Ordering::Relaxed))
    }
}

impl Check {
    fn start(member: &str) -> Self {
        let healthy = Arc::new(AtomicBool::new(false));
        let (shared, member) = (Arc::clone(&healthy), member.to_owned());
        let task = tokio::spawn(async move {
            let mut counted = 0;
            loop {
                let good = request::get(&member, PATH, PERIOD).await.is_ok();
                if good == shared.load(Ordering::Relaxed) {
                    counted = 0;
                } else {
                    counted += 1;
                }
                if counted >= THRESHOLD {
                    shared.store(good, Ordering::Relaxed);
                    counted = 0;
                }
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { healthy, task }
    }
}
