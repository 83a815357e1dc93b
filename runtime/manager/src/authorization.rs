//! May this user read this page: always allowed paths, `system:masters`, then the API server by SubjectAccessReview.

use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReviewSpec};

use crate::authentication::User;
use crate::delegation_args::AuthorizationArgs;
use crate::go_values::entries;
use crate::reviews::{Remembered, Reviewer};

/// Members may do everything, in every cluster.
const MASTERS: &str = "system:masters";

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Allowed,
    /// No, with the API server's reason, if it gave one.
    Forbidden(String),
    /// Nobody could be asked.
    Unknown(String),
}

/// Decides who may read what.
pub struct Authorizer {
    args: AuthorizationArgs,
    open: Vec<String>,
    reviewer: Option<Reviewer>,
    answers: Remembered<(User, String, String), Verdict>,
}

impl Authorizer {
    /// With the way to the API server of these flags.
    pub async fn new(args: &AuthorizationArgs) -> anyhow::Result<Self> {
        let reviewer = Reviewer::new("--authorization-kubeconfig", args.authorization_kubeconfig.as_deref()).await?;
        if reviewer.is_none() {
            tracing::warn!(
                "nobody can be asked who may read /metrics: only --authorization-always-allow-paths are served; give --authorization-kubeconfig, or run in a Pod"
            );
        }
        Ok(Self::over(args, reviewer))
    }

    fn over(args: &AuthorizationArgs, reviewer: Option<Reviewer>) -> Self {
        Self {
            open: entries(&args.authorization_always_allow_paths),
            args: args.clone(),
            reviewer,
            answers: Remembered::default(),
        }
    }

    /// Whether the user may do this with this path.
    pub async fn allows(&self, user: &User, verb: &str, path: &str) -> Verdict {
        if user.groups.iter().any(|group| group == MASTERS) || self.is_open(path) {
            return Verdict::Allowed;
        }
        let Some(reviewer) = &self.reviewer else {
            return Verdict::Forbidden(String::new());
        };
        let question = (user.clone(), verb.to_owned(), path.to_owned());
        if let Some(answer) = self.answers.get(&question) {
            return answer;
        }
        let status = match reviewer.access(spec(user, verb, path)).await {
            Ok(status) => status,
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        let (answer, hold) = if status.allowed && status.denied != Some(true) {
            (Verdict::Allowed, self.args.authorization_webhook_cache_authorized_ttl)
        } else {
            let reason = status.reason.unwrap_or_default();
            (
                Verdict::Forbidden(reason),
                self.args.authorization_webhook_cache_unauthorized_ttl,
            )
        };
        self.answers.put(question, answer.clone(), hold.0);
        answer
    }

    fn is_open(&self, path: &str) -> bool {
        self.open.iter().any(|open| match open.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == open || path.strip_prefix('/') == Some(open),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    async fn verdict(flag: &str, groups: &[&str], path: &str) -> Verdict {
        let args = Args::parse_from(["cloudwit", flag]).authorization;
        let user = User {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..User::anonymous()
        };
        Authorizer::over(&args, None).allows(&user, "get", path).await
    }

    #[tokio::test]
    async fn open_paths_are_for_everybody_and_all_others_for_nobody_while_nobody_can_be_asked() {
        for (flag, groups, path, allowed) in [
            ("-v=0", &[][..], "/healthz", true),
            ("-v=0", &[], "/healthz/ping", false),
            ("-v=0", &[], "/metrics", false),
            ("-v=0", &["system:masters"], "/metrics", true),
            (
                "--authorization-always-allow-paths=/metrics*",
                &[],
                "/metrics/slis",
                true,
            ),
            ("--authorization-always-allow-paths=/metrics*", &[], "/healthz", false),
            ("--authorization-always-allow-paths=", &[], "/healthz", false),
        ] {
            assert_eq!(
                verdict(flag, groups, path).await == Verdict::Allowed,
                allowed,
                "{flag} {groups:?} {path}"
            );
        }
    }
}
