//! Watch of a Lease, so that a waiting replica acquires it without polling.
//!
//! Only a help. Where the Lease cannot be watched, for lack of the right or because the API server breaks off, `lease` reads it every
//! retry period, as upstream's election does.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

/// The longest pause between two attempts to watch.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<Lease>, kube::Error>> + Send>>;

/// What became of the Lease.
#[derive(Debug)]
pub enum Change {
    /// It is like this now.
    Now(Box<Lease>),
    /// It is there no more.
    Gone,
    /// The watch began or ended: see [`LeaseWatch::is_open`].
    Watch,
}

/// A watch of one Lease.
pub struct LeaseWatch {
    leases: Api<Lease>,
    name: String,
    events: Option<Events>,
    /// When the next attempt may be made.
    again: Instant,
    /// The pause before the one after a failure.
    shortest: Duration,
    pause: Duration,
    told: bool,
}

impl LeaseWatch {
    /// Of the Lease of that name; after a failure the next attempt is made `pause` later, and then later and later.
    pub fn new(leases: Api<Lease>, name: &str, pause: Duration) -> Self {
        Self {
            leases,
            name: name.to_owned(),
            events: None,
            again: Instant::now(),
            shortest: pause,
            pause,
            told: false,
        }
    }

    /// Whether changes are watched.
    pub fn is_open(&self) -> bool {
        self.events.is_some()
    }

    /// The next change after `version`, the resource version that was seen last. Can be given up at any time.
    pub async fn next(&mut self, version: &str) -> Change {
        let Some(events) = &mut self.events else {
            return self.open(version).await;
        };
        let failure = loop {
            match events.next().await {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                    self.pause = self.shortest;
                    return Change::Now(Box::new(lease));
                }
                Some(Ok(WatchEvent::Deleted(_))) => return Change::Gone,
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Error(status))) => break Some(kube::Error::Api(status)),
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        self.events = None;
        if let Some(error) = failure {
            debug!(%error, lease = self.name, "lease watch interrupted");
        }
        self.later();
        Change::Watch
    }

    /// Waits until an attempt may be made and makes it.
    async fn open(&mut self, version: &str) -> Change {
        sleep_until(self.again).await;
        let params = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        match self.leases.watch(&params, version).await {
            Ok(events) => {
                info!(lease = self.name, "watching lease");
                self.told = false;
                self.events = Some(Box::pin(events));
            }
            Err(error) => {
                self.later();
                self.tell(&error);
            }
        }
        Change::Watch
    }

    fn tell(&mut self, error: &kube::Error) {
        if std::mem::replace(&mut self.told, true) {
            debug!(%error, lease = self.name, "failed to watch lease");
            return;
        }
        warn!(
            %error,
            lease = self.name,
            "failed to watch lease; polling every retry period, so a leader that dies is replaced later; \
             if the right is missing, grant the verb watch on it"
        );
    }

    fn later(&mut self) {
        self.again = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}
