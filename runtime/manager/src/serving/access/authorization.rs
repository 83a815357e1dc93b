//! Authorization: always allowed paths, `system:masters`, SubjectAccessReview.

use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReviewSpec};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::flags::groups::delegation::AuthorizationArgs;
use crate::flags::values::go::entries;
use crate::serving::access::metrics::AccessMetrics;
use crate::serving::access::review_cache::ReviewCache;
use crate::serving::access::review_gate::ReviewGate;
use crate::serving::access::reviews::Reviewer;
use crate::serving::access::user::User;

/// Members may do everything, in every cluster.
const MASTERS: &str = "system:masters";

/// More of the API server's reason is not kept.
const REASON_BYTES: usize = 500;

/// The result of a review that was not sent.
const BUSY: &str = "too many anonymous requests";

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Allowed,
    /// No, with the API server's reason, if it gave one.
    Denied(String),
    /// Nothing says yes, with the API server's reason, if it gave one.
    NoOpinion(String),
    /// No reviewer was reachable.
    Unknown(String),
    /// Too many unknown requests came; later this one may be allowed.
    Busy,
}

impl Verdict {
    /// As upstream's metrics call it.
    fn label(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied(_) => "denied",
            Self::NoOpinion(_) => "no-opinion",
            Self::Unknown(_) | Self::Busy => "error",
        }
    }
}

/// Decides who may read what.
pub struct Authorizer {
    args: AuthorizationArgs,
    open: OpenPaths,
    reviewer: Option<Reviewer>,
    answers: ReviewCache<Verdict>,
    gate: ReviewGate,
    metrics: AccessMetrics,
}

impl Authorizer {
    /// With this way to the API server.
    pub fn new(args: &AuthorizationArgs, reviewer: Option<Reviewer>, metrics: AccessMetrics) -> Self {
        if reviewer.is_none() {
            tracing::warn!(
                "no API server for SubjectAccessReviews of /metrics: only --authorization-always-allow-paths are served; give --authorization-kubeconfig, or run in a Pod"
            );
        }
        Self {
            open: OpenPaths::of(&entries(&args.authorization_always_allow_paths)),
            args: args.clone(),
            reviewer,
            answers: ReviewCache::default(),
            gate: ReviewGate::default(),
            metrics,
        }
    }

    /// Whether the user may do this with this path.
    pub async fn allows(&self, user: &User, verb: &str, path: &str) -> Verdict {
        let since = Instant::now();
        let verdict = self.decide(user, verb, path).await;
        self.metrics.authorized(verdict.label(), since);
        verdict
    }

    async fn decide(&self, user: &User, verb: &str, path: &str) -> Verdict {
        if user.groups.iter().any(|group| group == MASTERS) || self.open.have(path) {
            return Verdict::Allowed;
        }
        let Some(reviewer) = self.reviewer.clone() else {
            return Verdict::NoOpinion(String::new());
        };
        let spec = spec(user, verb, path);
        let digest = match serde_json::to_vec(&spec) {
            Ok(question) => Sha256::digest(question).into(),
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        let (yes, no) = (
            self.args.authorization_webhook_cache_authorized_ttl.0,
            self.args.authorization_webhook_cache_unauthorized_ttl.0,
        );
        let (gate, anonymous) = (self.gate.clone(), user.is_anonymous());
        let ask = async move {
            // Each path is a review of its own, and paths can be made up.
            let _turn = match anonymous {
                true => Some(gate.enter(&digest).ok_or(BUSY)?),
                false => None,
            };
            let status = reviewer.access(spec).await?;
            let mut reason = status.reason.unwrap_or_default();
            reason.truncate(reason.floor_char_boundary(REASON_BYTES));
            Ok(match (status.denied, status.allowed) {
                (Some(true), _) => (Verdict::Denied(reason), no),
                (_, true) => (Verdict::Allowed, yes),
                (_, false) => (Verdict::NoOpinion(reason), no),
            })
        };
        let answer = self.answers.ask(digest, ask).await;
        answer.unwrap_or_else(|why| match &*why {
            BUSY => Verdict::Busy,
            why => Verdict::Unknown(why.to_owned()),
        })
    }
}

fn spec(user: &User, verb: &str, path: &str) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: Some(user.name.clone()),
        uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.clone()).filter(|extra| !extra.is_empty()),
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some(verb.to_owned()),
        }),
        ..SubjectAccessReviewSpec::default()
    }
}

/// `--authorization-always-allow-paths`: whole paths, and beginnings that were written with a star. As upstream reads them
/// (`apiserver pkg/authorization/path`): one slash at the start does not count, and nothing is made simpler, so `/healthz/../metrics`
/// is no other path than it says.
struct OpenPaths {
    whole: Vec<String>,
    beginnings: Vec<String>,
}

impl OpenPaths {
    fn of(entries: &[String]) -> Self {
        let entries = entries.iter().map(|entry| without_slash(entry));
        let (beginnings, whole): (Vec<&str>, Vec<&str>) = entries.partition(|entry| entry.ends_with('*'));
        let beginnings = beginnings.iter().filter_map(|entry| entry.strip_suffix('*'));
        Self {
            whole: whole.into_iter().map(str::to_owned).collect(),
            beginnings: beginnings.map(str::to_owned).collect(),
        }
    }

    fn have(&self, path: &str) -> bool {
        let path = without_slash(path);
        self.whole.iter().any(|whole| whole == path)
            || self
                .beginnings
                .iter()
                .any(|beginning| path.starts_with(beginning.as_str()))
    }
}

fn without_slash(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests;
