//! Flags `--leader-elect*`, and the life of a candidate from start to release.
//!
//! ```text
//!   Candidates::new --Leadership--> controllers, clients, provider host     before anything runs
//!   Candidates::run --> acquire the main Lease --> then the one of the migration --> keep both --> a loss ends the process
//!   Candidacy::resign --> no new writes --> wait for those under way --> release, so that a successor starts at once
//! ```
//!
//! What is guaranteed, and what is not: `docs/guide/high-availability.md`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use cloudwit_controllers::{Cluster, Controller, Leadership, Term};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::api::server::ApiServer;
use crate::election::board::LeaseBoard;
use crate::election::clock;
use crate::election::lease::{Candidate, LeaseSettings};
use crate::election::metrics::ElectionMetrics;
use crate::election::migration::{Migration, Placement};
use crate::election::plan::Timing;
use crate::flags::values::duration::GoDuration;

/// A renew deadline has to be longer than this many retry periods (`leaderelection.go:NewLeaderElector`).
const ATTEMPTS_BEFORE_DEADLINE: f64 = 1.2;

/// A leader that has not renewed for this much longer than the lease duration is unhealthy (`app/controllermanager.go`).
const UNHEALTHY_AFTER: Duration = Duration::from_secs(20);

/// Flags about leader election.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct LeaderElectionArgs {
    /// Work only while holding a Lease, so that of several replicas one works and the others wait.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = crate::flags::values::go::boolean)]
    pub leader_elect: bool,

    /// How long until the Lease of a leader that does not renew expires. Longer than --leader-elect-renew-deadline.
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub leader_elect_lease_duration: GoDuration,

    /// How long a leader continues without having renewed its Lease. Longer than 1.2 times --leader-elect-retry-period.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub leader_elect_renew_deadline: GoDuration,

    /// Pause between two attempts to get or to renew the Lease.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    pub leader_elect_retry_period: GoDuration,

    /// Kind of the lock; only leases exists.
    #[arg(long, value_name = "KIND", default_value = "leases")]
    pub leader_elect_resource_lock: String,

    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub leader_elect_resource_name: String,

    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_resource_namespace: String,

    /// Lead the controllers of --leader-migration-config under a Lease of their own, while they move from another manager to this one.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = crate::flags::values::go::boolean)]
    pub enable_leader_migration: bool,

    /// Which controllers move, as a LeaderMigrationConfiguration; without it routes, services and cloud-node-lifecycle.
    #[arg(long, value_name = "FILE")]
    pub leader_migration_config: Option<PathBuf>,
}

/// An election by the flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    timing: Timing,
    name: String,
    namespace: String,
    migration: Option<Migration>,
}

impl Election {
    /// Which controllers are led apart, if any.
    pub fn migration(&self) -> Option<&Migration> {
        self.migration.as_ref()
    }
}

impl LeaderElectionArgs {
    /// The election, none when it is off, or everything that is wrong with the flags. Upstream panics for wrong durations.
    pub fn election(&self) -> Result<Option<Election>, Vec<String>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let mut mistakes = self.wrong_durations();
        if self.leader_elect_resource_lock != "leases" {
            mistakes.push(format!(
                "--leader-elect-resource-lock={}: resourceLock value must be \"leases\"",
                self.leader_elect_resource_lock
            ));
        }
        for (flag, value) in [
            ("--leader-elect-resource-name", &self.leader_elect_resource_name),
            (
                "--leader-elect-resource-namespace",
                &self.leader_elect_resource_namespace,
            ),
        ] {
            if value.is_empty() {
                mistakes.push(format!(
                    "{flag}= is empty; leave it away, or give the same value to all replicas"
                ));
            }
        }
        let migration = match (&self.leader_migration_config, self.enable_leader_migration) {
            (_, false) => None,
            (None, true) => Some(Migration::default()),
            (Some(file), true) => Migration::read(file).map_err(|wrong| mistakes.extend(wrong)).ok(),
        };
        if let Some(migration) = &migration
            && migration.lease == self.leader_elect_resource_name
        {
            mistakes.push(format!(
                "--leader-migration-config: leaderName {:?} is the name of the main Lease too; give another one",
                migration.lease
            ));
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Some(Election {
            timing: Timing {
                lease_duration: self.leader_elect_lease_duration.0,
                renew_deadline: self.leader_elect_renew_deadline.0,
                retry_period: self.leader_elect_retry_period.0,
            },
            name: self.leader_elect_resource_name.clone(),
            namespace: self.leader_elect_resource_namespace.clone(),
            migration,
        }))
    }

    fn wrong_durations(&self) -> Vec<String> {
        let (lease, deadline, retry) = (
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        );
        let mut mistakes = Vec::new();
        if lease.0 <= deadline.0 {
            mistakes.push(format!(
                "--leader-elect-lease-duration={lease} has to be longer than --leader-elect-renew-deadline={deadline}"
            ));
        }
        if deadline.0 <= retry.0.mul_f64(ATTEMPTS_BEFORE_DEADLINE) {
            mistakes.push(format!(
                "--leader-elect-renew-deadline={deadline} has to be longer than {ATTEMPTS_BEFORE_DEADLINE} times \
                 --leader-elect-retry-period={retry}"
            ));
        }
        if retry.0.is_zero() {
            mistakes.push("--leader-elect-retry-period=0s has to be longer than 0".into());
        }
        mistakes
    }
}

/// The Leases that this process competes for.
pub struct Candidates {
    identity: String,
    election: Option<Election>,
    main: (Option<Term>, Leadership),
    migrated: Option<(Term, Leadership)>,
}

impl Candidates {
    /// Candidates that do nothing yet. Without an election the process leads from now on.
    pub fn new(identity: String, election: Option<Election>) -> Self {
        let elected = || Leadership::elected(clock::since_boot());
        let main = match election {
            None => (None, Leadership::always()),
            Some(_) => {
                let (term, leadership) = elected();
                (Some(term), leadership)
            }
        };
        let migration = election.as_ref().and_then(|election| election.migration.as_ref());
        Self {
            migrated: migration.map(|_| elected()),
            identity,
            election,
            main,
        }
    }

    /// Whether this process works.
    pub fn leadership(&self) -> &Leadership {
        &self.main.1
    }

    /// Under whom a controller works; none when it is another manager's.
    pub fn leadership_of(&self, controller: Controller) -> Option<&Leadership> {
        let migration = self.election.as_ref().and_then(|election| election.migration.as_ref());
        match migration.map_or(Placement::Main, |migration| migration.place(controller)) {
            Placement::Main => Some(&self.main.1),
            Placement::Migrated => self.migrated.as_ref().map(|(_, leadership)| leadership),
            Placement::Elsewhere => None,
        }
    }

    /// The cluster, led by these.
    pub fn lead(&self, cluster: Cluster) -> Cluster {
        let cluster = cluster.led_by(self.main.1.clone());
        Controller::ALL
            .into_iter()
            .filter_map(|controller| Some((controller, self.leadership_of(controller)?.clone())))
            .fold(cluster, |cluster, (controller, leadership)| {
                cluster.controller_led_by(controller, leadership)
            })
    }

    /// Begins to compete, on the runtime that this is called on.
    pub async fn run(self, server: &ApiServer, registry: &mut Registry) -> anyhow::Result<Candidacy> {
        let stop = CancellationToken::new();
        let mut candidacy = Candidacy {
            tasks: JoinSet::new(),
            stop,
            terms: vec![self.main.1.clone()],
            boards: Vec::new(),
            lease_duration: Duration::ZERO,
        };
        let (Some(election), Some(term)) = (self.election, self.main.0) else {
            return Ok(candidacy);
        };
        candidacy.lease_duration = election.timing.lease_duration;
        let metrics = ElectionMetrics::new(registry);
        let client = server
            .client("leader-election")
            .await
            .context("no client for the election")?;
        let candidate = |name: String, term, board: LeaseBoard| {
            let metrics = metrics.of(&name);
            let settings = LeaseSettings {
                name,
                namespace: election.namespace.clone(),
                identity: self.identity.clone(),
                timing: election.timing,
            };
            Candidate::new(settings, client.clone(), clock::since_boot(), term, metrics, board)
        };
        let board = LeaseBoard::new(&election.namespace, &election.name, self.main.1.clone());
        candidacy.boards.push(board.clone());
        candidacy.enter(candidate(election.name.clone(), term, board), None);
        if let (Some(migration), Some((term, leadership))) = (&election.migration, self.migrated) {
            // Only who leads the process competes for the migrated controllers, as upstream does it.
            let board = LeaseBoard::new(&election.namespace, &migration.lease, leadership.clone());
            candidacy.boards.push(board.clone());
            candidacy.enter(candidate(migration.lease.clone(), term, board), Some(self.main.1));
            candidacy.terms.push(leadership);
        }
        Ok(candidacy)
    }
}

/// The candidates at work.
pub struct Candidacy {
    tasks: JoinSet<Option<String>>,
    stop: CancellationToken,
    terms: Vec<Leadership>,
    boards: Vec<LeaseBoard>,
    lease_duration: Duration,
}

impl Candidacy {
    /// The Leases that are competed for, the main one first; none without an election.
    pub fn boards(&self) -> Vec<LeaseBoard> {
        self.boards.clone()
    }

    fn enter(&mut self, mut candidate: Candidate, after: Option<Leadership>) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let life = async {
                if let Some(first) = after {
                    first.begun().await;
                }
                candidate.acquire().await;
                candidate.keep().await
            };
            let lost = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                why = life => Some(why),
            };
            if lost.is_none() {
                candidate.release().await;
            }
            lost
        });
    }

    /// Waits until a Lease is lost; answers how. Without an election it waits for ever.
    pub async fn lost(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Ok(Some(why))) => anyhow::anyhow!("leaderelection lost: {why}"),
            Some(Ok(None)) => anyhow::anyhow!("leaderelection ended"),
            Some(Err(error)) => anyhow::anyhow!("leaderelection crashed: {error}"),
            None => std::future::pending().await,
        }
    }

    /// Fails when this process leads by its own state but has not renewed for long.
    pub fn health(&self) -> LeadershipHealth {
        LeadershipHealth {
            terms: self.terms.clone(),
            limit: self.lease_duration + UNHEALTHY_AFTER,
        }
    }

    /// Begins no more writes and waits for those under way, at most so long. Answers whether all have ended.
    pub async fn resign(&self, limit: Duration) -> bool {
        info!("draining writes in flight");
        let mut all_ended = true;
        for term in &self.terms {
            all_ended &= term.resign(limit).await;
        }
        all_ended
    }

    /// Releases the Leases, unless a write was cut off: then a successor has to wait for as long as the Lease lasts, since what was cut
    /// off may still continue in the API server or the cloud.
    pub async fn release(mut self, all_ended: bool) {
        if !all_ended {
            warn!("write in flight cancelled; lease left to expire");
            return;
        }
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// The health check `leaderElection`; clones share it.
#[derive(Clone)]
pub struct LeadershipHealth {
    terms: Vec<Leadership>,
    limit: Duration,
}

impl LeadershipHealth {
    /// Whether this process leads, for any of its controllers.
    pub fn leads(&self) -> bool {
        self.terms.iter().any(Leadership::is_leading)
    }

    /// Fails when this process leads but has not renewed for the lease duration and 20 s. Replicas that wait are healthy.
    ///
    /// # Errors
    ///
    /// A sentence that says for how long.
    pub fn check(&self) -> Result<(), String> {
        let overdue = self.terms.iter().filter_map(Leadership::overdue).max();
        match overdue.filter(|overdue| *overdue > self.limit) {
            None => Ok(()),
            Some(overdue) => Err(format!(
                "the Lease was not renewed for {} s beyond its deadline, yet the process still runs",
                overdue.as_secs()
            )),
        }
    }
}

#[cfg(test)]
mod tests;
