//! Leader election on a Lease: carries out `plan`, moves the deadline of [`Term`].
//!
//! The deadline counts from *before* the request that renewed: whoever waits for the Lease cannot have seen that renewal earlier, so
//! between our deadline and the first moment another one may take over there is always at least lease duration - renew deadline.
//! Requests have a client of their own, with its own user agent, timeout and budget.

use std::time::Duration;

use cloudwit_controllers::Term;
use cloudwit_controllers::leadership::Clock;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::election::board::LeaseBoard;
use crate::election::metrics::LeaseMetrics;
use crate::election::plan::{self, ObservedLease, Step, Timing};
use crate::election::watch::{Change, LeaseWatch};

/// Attempts to acquire are up to 120 % of the retry period later (`leaderelection.go:JitterFactor`), so that replicas do not meet.
const JITTER: f64 = 1.2;

/// `source.component` of the Events, as upstream's.
const COMPONENT: &str = "cloud-controller-manager";

/// The Lease to compete for, and how.
pub struct LeaseSettings {
    /// Name of the Lease.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Who we are; unique to this process.
    pub identity: String,
    /// When to do what.
    pub timing: Timing,
}

/// One candidate for one Lease.
pub struct Candidate {
    settings: LeaseSettings,
    leases: Api<Lease>,
    events: Api<Event>,
    clock: Clock,
    term: Term,
    metrics: LeaseMetrics,
    /// Shows to people what was seen.
    board: LeaseBoard,
    seen: Option<ObservedLease>,
    /// Until then we lead; none before.
    until: Option<Duration>,
    told: Option<String>,
}

/// How an attempt ended that was no failure.
enum Attempt {
    /// The Lease is ours, as of the moment before the request.
    Ours(Duration),
    /// Another one holds it.
    Theirs(String),
    /// Another one holds it that we thought to be ours.
    Lost(String),
}

impl Candidate {
    /// A candidate that does nothing yet.
    pub fn new(
        settings: LeaseSettings,
        client: Client,
        clock: Clock,
        term: Term,
        metrics: LeaseMetrics,
        board: LeaseBoard,
    ) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), &settings.namespace),
            events: Api::namespaced(client, &settings.namespace),
            settings,
            clock,
            term,
            metrics,
            board,
            seen: None,
            until: None,
            told: None,
        }
    }

    /// Tries until the Lease is ours.
    pub async fn acquire(&mut self) {
        let LeaseSettings {
            name,
            namespace,
            timing,
            ..
        } = &self.settings;
        let mut watch = LeaseWatch::new(self.leases.clone(), name, timing.retry_period);
        info!(lease = %format!("{namespace}/{name}"), identity = self.settings.identity, "waiting to acquire lease");
        loop {
            let jitter = 1.0 + JITTER * rand::random::<f64>();
            let pause = self.settings.timing.retry_period.mul_f64(jitter);
            match self.attempt().await {
                Ok(Attempt::Ours(sent)) => return self.begin(sent).await,
                Ok(Attempt::Theirs(holder) | Attempt::Lost(holder)) => {
                    self.tell_holder(holder);
                    self.wait(pause, &mut watch).await;
                }
                Err(error) => {
                    warn!(%error, "failed to acquire lease; retrying");
                    sleep(pause).await;
                }
            }
        }
    }

    /// Waits until the Lease is free, as far as is known: not longer than `pause` without a watch.
    async fn wait(&mut self, pause: Duration, watch: &mut LeaseWatch) {
        let look = Instant::now() + pause;
        while let (Step::Wait { holder, rest }, Some(seen)) = (self.next(self.seen.as_ref()), &self.seen) {
            let version = seen.lease.metadata.resource_version.clone().unwrap_or_default();
            self.tell_holder(holder);
            let free = Instant::now() + rest;
            let until = if watch.is_open() { free } else { free.min(look) };
            let change = select! {
                change = watch.next(&version) => change,
                () = sleep_until(until) => return,
            };
            match change {
                Change::Now(lease) => {
                    self.board.see(Some(&lease));
                    self.seen = Some(ObservedLease::look(self.seen.take(), *lease, (self.clock)()));
                }
                Change::Gone => self.seen = None,
                Change::Watch => {}
            }
        }
    }

    /// Renews the Lease until that fails; answers why.
    pub async fn keep(&mut self) -> String {
        loop {
            sleep(self.settings.timing.retry_period).await;
            let why = loop {
                let rest = self.until.and_then(|until| until.checked_sub((self.clock)()));
                let Some(rest) = rest else {
                    break Some("it could not be renewed in time".to_owned());
                };
                match timeout(rest, self.attempt()).await {
                    Ok(Ok(Attempt::Ours(sent))) => {
                        self.lead_from(sent);
                        break None;
                    }
                    Ok(Ok(Attempt::Lost(holder) | Attempt::Theirs(holder))) if holder.is_empty() => {
                        break Some("it was released by another process".to_owned());
                    }
                    Ok(Ok(Attempt::Lost(holder) | Attempt::Theirs(holder))) => {
                        break Some(format!("{holder} holds it now"));
                    }
                    Ok(Err(error)) => warn!(%error, "failed to renew lease; retrying"),
                    Err(_) => {}
                }
                sleep(rest.min(self.settings.timing.retry_period)).await;
            };
            if let Some(why) = why {
                self.end();
                return why;
            }
        }
    }

    /// Lets go of the Lease if it is ours, so that another one can take it at once. To be called when nothing is written any more.
    pub async fn release(mut self) {
        let led = self.until.is_some();
        self.end();
        if led {
            self.event("stopped leading").await;
        }
        let limit = self.settings.timing.request_limit();
        match timeout(limit, self.try_release()).await {
            Ok(Ok(true)) => info!("released lease"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(%error, "failed to release lease; a successor waits until it expires"),
            Err(_) => warn!("timed out releasing lease; a successor waits until it expires"),
        }
    }

    async fn try_release(&self) -> Result<bool, kube::Error> {
        // Read anew, since an attempt that was broken off may have acquired the Lease unnoticed.
        let Some(lease) = self.leases.get_opt(&self.settings.name).await? else {
            return Ok(false);
        };
        let Some(spec) = plan::released(&lease, &self.settings.identity, Timestamp::now()) else {
            return Ok(false);
        };
        self.replace(&lease, spec).await.map(|_| true)
    }

    /// One read and one write at most; two when the cached Lease was stale.
    async fn attempt(&mut self) -> Result<Attempt, kube::Error> {
        let leading = self.until.is_some();
        if leading && let Some(seen) = &self.seen {
            // As client-go: who leads does not look first.
            match self.carry_out(self.next(Some(seen))).await {
                Ok(attempt) => return Ok(attempt),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => self.metrics.slow_path(),
                Err(error) => return Err(error),
            }
        }
        let limit = self.settings.timing.request_limit();
        let found = within(limit, self.leases.get_opt(&self.settings.name)).await?;
        let now = (self.clock)();
        self.board.see(found.as_ref());
        self.seen = found.map(|lease| ObservedLease::look(self.seen.take(), lease, now));
        let next = self.next(self.seen.as_ref());
        self.carry_out(next).await
    }

    fn next(&self, seen: Option<&ObservedLease>) -> Step {
        let LeaseSettings { identity, timing, .. } = &self.settings;
        plan::step(
            seen,
            identity,
            *timing,
            self.until.is_some(),
            (self.clock)(),
            Timestamp::now(),
        )
    }

    async fn carry_out(&mut self, step: Step) -> Result<Attempt, kube::Error> {
        let limit = self.settings.timing.request_limit();
        let sent = (self.clock)();
        let lease = match (step, &self.seen) {
            (Step::Wait { holder, .. }, _) => return Ok(Attempt::Theirs(holder)),
            (Step::Lost { holder }, _) => return Ok(Attempt::Lost(holder)),
            (Step::Replace(spec), Some(seen)) => within(limit, self.replace(&seen.lease, spec)).await?,
            (Step::Create(spec) | Step::Replace(spec), _) => {
                let lease = Lease {
                    metadata: ObjectMeta {
                        name: Some(self.settings.name.clone()),
                        namespace: Some(self.settings.namespace.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(spec),
                };
                within(limit, self.leases.create(&PostParams::default(), &lease)).await?
            }
        };
        self.board.see(Some(&lease));
        self.seen = Some(ObservedLease { lease, since: sent });
        Ok(Attempt::Ours(sent))
    }

    async fn replace(&self, seen: &Lease, spec: LeaseSpec) -> Result<Lease, kube::Error> {
        let lease = plan::replacement(seen, spec);
        self.leases
            .replace(&self.settings.name, &PostParams::default(), &lease)
            .await
    }

    async fn begin(&mut self, sent: Duration) {
        self.lead_from(sent);
        info!(
            identity = self.settings.identity,
            lease = self.settings.name,
            "became leader"
        );
        self.metrics.leading(true);
        self.event("became leader").await;
    }

    fn lead_from(&mut self, sent: Duration) {
        let until = sent + self.settings.timing.renew_deadline;
        self.until = Some(until);
        self.term.renew(until);
    }

    fn end(&mut self) {
        self.until = None;
        self.term.end();
        self.metrics.leading(false);
    }

    fn tell_holder(&mut self, holder: String) {
        if self.told.as_ref() != Some(&holder) {
            info!(holder, lease = self.settings.name, "another replica leads");
            self.told = Some(holder);
        } else {
            debug!(holder, "another replica leads");
        }
    }

    /// An Event on the Lease, for people; a failure is no reason for anything.
    async fn event(&self, what: &str) {
        let LeaseSettings {
            name,
            namespace,
            identity,
            timing,
        } = &self.settings;
        let now = Timestamp::now();
        let uid = self.seen.as_ref().and_then(|seen| seen.lease.metadata.uid.clone());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("coordination.k8s.io/v1".into()),
                kind: Some("Lease".into()),
                name: Some(name.clone()),
                namespace: Some(namespace.clone()),
                uid,
                ..ObjectReference::default()
            },
            type_: Some("Normal".into()),
            reason: Some("LeaderElection".into()),
            message: Some(format!("{identity} {what}")),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource {
                component: Some(COMPONENT.into()),
                host: None,
            }),
            reporting_component: Some(COMPONENT.into()),
            ..Event::default()
        };
        let params = PostParams::default();
        if let Err(error) = within(timing.retry_period, self.events.create(&params, &event)).await {
            debug!(%error, "failed to write Event about leadership");
        }
    }
}

/// The request, or an error after that time.
async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match timeout(limit, request).await {
        Ok(result) => result,
        Err(late) => Err(kube::Error::Service(late.into())),
    }
}
