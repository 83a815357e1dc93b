//! Facts of the status page and of `/status.json`.
//!
//! ```text
//!   status_source (collects) --> Facts --> status_verdict (pure) --> Status --> status_page (HTML) or JSON
//! ```
//!
//! There are no secrets in here: texts of providers have been redacted where they came in. They are still untrusted.

use jiff::{SignedDuration, Timestamp, Unit};
use serde::{Serialize, Serializer};

mod controllers;
mod totals;
mod volumes;

pub use controllers::{ControllerFacts, ControllerState, ControllerTrouble, Waiting, WaitingGroup, WaitingObject};
pub use totals::{NodeTotals, RouteTotals, Search, ServiceTotals, Totals};
pub use volumes::{DriverFacts, VolumeFailure, VolumeOperation};

use crate::status::causes::CauseFacts;
use crate::status::verdict::{self, Verdict};

/// So many objects of a list are shown; the others are counted.
pub const SHOWN: usize = 50;

/// Everything there is to see.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    api_version: &'static str,
    kind: &'static str,
    /// Is all well, and if not, what is to be done?
    pub verdict: Verdict,
    /// What that is concluded from.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Status {
    /// Judges the facts.
    pub fn of(facts: Facts) -> Self {
        Self {
            api_version: "cloudwit.dev/v1alpha1",
            kind: "CloudwitStatus",
            verdict: verdict::of(&facts),
            facts,
        }
    }
}

/// What is so at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// That moment.
    pub at: Moment,
    /// This process.
    pub process: Process,
    /// Who works.
    pub leadership: Leading,
    /// With which clouds.
    pub providers: Vec<ProviderFacts>,
    /// Their request budgets.
    pub api_hosts: Vec<ApiHost>,
    /// Which Nodes seem to be gone, for each provider.
    pub deletion: Vec<Deletion>,
    /// The controllers.
    pub controllers: Vec<ControllerFacts>,
    /// How much there is of what the controllers work on.
    pub totals: Totals,
    /// Why things fail, each cause once.
    pub causes: Vec<CauseFacts>,
    /// What is not done.
    pub waiting: Waiting,
    /// Volumes, by CSI driver.
    pub volumes: Vec<DriverFacts>,
    /// What a search has found; none without one.
    pub search: Option<Search>,
    /// Health checks that are not well.
    pub checks: Vec<FailedCheck>,
}

/// A point in time; whole seconds in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// How many seconds lie between an earlier moment and this one; 0 for a later one.
    pub fn seconds_since(self, earlier: Self) -> u64 {
        let span: SignedDuration = self.0.duration_since(earlier.0);
        u64::try_from(span.as_secs()).unwrap_or(0)
    }

    fn rounded(self) -> Timestamp {
        self.0.round(Unit::Second).unwrap_or(self.0)
    }

    /// As in RFC 3339, in UTC.
    pub fn text(self) -> String {
        self.rounded().to_string()
    }

    /// As people write it: `2026-01-01 00:00:00 UTC`.
    pub fn clock(self) -> String {
        self.text().replace('T', " ").replace('Z', " UTC")
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.rounded())
    }
}

/// A list of which the beginning is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed<T> {
    /// How many there are.
    pub total: usize,
    /// The first of them.
    pub shown: Vec<T>,
}

impl<T> Listed<T> {
    /// How many are not shown.
    pub fn more(&self) -> usize {
        self.total - self.shown.len()
    }
}

impl<T> From<Vec<T>> for Listed<T> {
    fn from(mut all: Vec<T>) -> Self {
        let total = all.len();
        all.truncate(SHOWN);
        Self { total, shown: all }
    }
}

/// This process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    /// Cloudwit's version.
    pub version: String,
    /// Its name in leader election.
    pub identity: String,
    /// When it was started.
    pub started: Moment,
    /// The cluster's name, `--cluster-name`.
    pub cluster: String,
}

/// Who works.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leading {
    /// Whether replicas elect a leader.
    pub elects: bool,
    /// Whether this process works.
    pub leads: bool,
    /// The Leases that are competed for, the main one first.
    pub leases: Vec<LeaseFacts>,
}

/// One Lease.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseFacts {
    /// Namespace and name.
    pub lease: String,
    /// Whether this process works under it.
    pub leads: bool,
    /// Whether this process has read it.
    pub seen: bool,
    /// Who holds it; none without a holder.
    pub holder: Option<String>,
    /// Since when, by the holder's clock.
    pub since: Option<Moment>,
    /// The holder's last sign of life, by its clock.
    pub renewed: Option<Moment>,
    /// How often it has changed hands.
    pub transitions: i32,
}

/// One provider as it runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderFacts {
    /// The operator's name for it.
    pub name: String,
    /// Its own name.
    pub provider: String,
    /// Its own version.
    pub version: String,
    /// The version of the contract that is spoken with it.
    pub contract: String,
    /// SHA-256 of the component.
    pub component_digest: String,
    /// The interfaces it offers.
    pub abilities: Vec<&'static str>,
    /// Prefixes of its provider ids.
    pub provider_id_prefixes: Vec<String>,
    /// Where it may send requests.
    pub granted: Vec<String>,
    /// What it would like to be granted and is not.
    pub lacking: Vec<String>,
    /// Since when it runs with this component and these settings.
    pub since: Moment,
    /// What came of the last change of its files; none since the start.
    pub last_swap: Option<SwapFacts>,
    /// The last call in which it misbehaved.
    pub last_fault: Option<FaultFacts>,
}

/// What came of a change of a provider's files.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SwapFacts {
    /// When that was known.
    pub at: Moment,
    /// How far it came: `swapped`, `unchanged`, or the step that refused it.
    pub result: &'static str,
    /// Whether the last good one continues although the files say something else.
    pub refused: bool,
    /// What runs now, or why not.
    pub message: String,
    /// How long it took.
    pub took_seconds: f64,
}

/// A call in which a provider misbehaved.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultFacts {
    /// When.
    pub at: Moment,
    /// What it did: `trap`, `deadline`, `memory`, `bad_answer`, `not_exported`, `host`.
    pub kind: &'static str,
    /// In words, with its name and version.
    pub message: String,
    /// The last lines it wrote in that call.
    pub output: String,
}

/// The budget of requests for one API host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiHost {
    /// The provider that talks to it.
    pub provider: String,
    /// Scheme, name and port.
    pub host: String,
    /// Requests in a second; none without a limit.
    pub per_second: Option<f64>,
    /// Requests at once after a rest.
    pub burst: Option<u32>,
    /// Requests at once now.
    pub left: Option<u32>,
    /// Until when the cloud set a pause.
    pub paused_until: Option<Moment>,
    /// Requests that wait for their turn.
    pub waiting: usize,
    /// Requests that were sent since the start.
    pub requests: u64,
    /// Of these, those without an answer, and those answered with 401, 403, 408, 429 or 5xx.
    pub errors: u64,
    /// Errors since the last success.
    pub errors_in_a_row: u64,
    /// When it last answered as it should.
    pub last_success: Option<Moment>,
    /// When it last did not, and how.
    pub last_error: Option<HostError>,
}

/// An error of an API host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostError {
    /// When.
    pub at: Moment,
    /// The status, or why there was no answer: `503`, `timeout`, `connection`, `dns`, `tls`, `protocol`, `refused`.
    pub what: String,
}

/// Which Nodes of one provider seem to be gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// The provider.
    pub provider: String,
    /// What happens to Nodes that are gone: `delete`, `taint` or `off`.
    pub policy: &'static str,
    /// Since when the brake has been engaged; none while it is released.
    pub braked_since: Option<Moment>,
    /// Nodes deleted within the window.
    pub deleted: usize,
    /// The window.
    pub window_seconds: u64,
    /// So many Nodes may go within the window.
    pub allowed: usize,
    /// Nodes whose machine seems to be gone.
    pub candidates: Listed<CandidateFacts>,
}

/// A Node whose machine seems to be gone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateFacts {
    /// Its name.
    pub node: String,
    /// The machine's id.
    pub provider_id: String,
    /// Since when the cloud has said so.
    pub since: Moment,
    /// How often it has.
    pub answers: u32,
    /// Whether the brake holds it.
    pub held: bool,
}

/// A health check that is not well.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}
