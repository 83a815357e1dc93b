//! `cloudwit explain`: what one Node or Service waits for, since when, and why.
//!
//! The sentences come from the controllers' [`Report`](crate::report::snapshot::Report)s.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use serde::Serialize;

use crate::kube::cache::Cache;
use crate::kube::node::Node;
use crate::queue::{KeyPlace, KeyState};
use crate::report::snapshot::{Report, Reports};

/// What one controller says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// Which; empty when it is read off the object alone.
    pub controller: &'static str,
    /// Whole sentences.
    pub text: String,
}

/// The answer about one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `Node NAME` or `Service NAMESPACE/NAME`.
    pub object: String,
    /// One statement for each controller that has something to say.
    pub statements: Vec<Statement>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.statements.is_empty() {
            return writeln!(
                f,
                "{}: no controller of this process has anything to do with it.",
                self.object
            );
        }
        for Statement { controller, text } in &self.statements {
            write!(f, "{} {text}", self.object)?;
            match *controller {
                "" => writeln!(f)?,
                name => writeln!(f, " [{name}]")?,
            }
        }
        Ok(())
    }
}

/// Answers questions about objects; clones share it.
#[derive(Clone)]
pub struct Explain {
    pub(super) nodes: Arc<Cache<Node>>,
    pub(super) services: Arc<Cache<Service>>,
    reports: Reports,
}

impl fmt::Debug for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explain").finish_non_exhaustive()
    }
}

impl Explain {
    /// Over these caches and reports.
    pub fn new(nodes: Arc<Cache<Node>>, services: Arc<Cache<Service>>, reports: Reports) -> Self {
        Self {
            nodes,
            services,
            reports,
        }
    }

    /// Whether this process can explain: its caches are full, and a controller works. Not so while it starts, and not in a
    /// replica that does not lead.
    pub fn is_ready(&self) -> bool {
        !self.reports.is_empty() && self.nodes.is_synced() && self.services.is_synced()
    }

    /// All about a Node; None when the cache has none of that name.
    pub fn node(&self, name: &str) -> Option<Explanation> {
        let node = self.nodes.get(name)?;
        Some(Explanation {
            object: format!("Node {name}"),
            statements: self.statements(|report| report.explain_node(&node)),
        })
    }

    /// All about a Service; None when the cache has none of that name and no controller still has work for it.
    pub fn service(&self, namespace: &str, name: &str) -> Option<Explanation> {
        let key = format!("{namespace}/{name}");
        let service = self.services.get(&key);
        let statements = self.statements(|report| report.explain_service(&key, service.as_deref()));
        (service.is_some() || !statements.is_empty()).then(|| Explanation {
            object: format!("Service {key}"),
            statements,
        })
    }

    fn statements(&self, text: impl Fn(&dyn Report) -> Option<String>) -> Vec<Statement> {
        let said = self.reports.of_each(text).into_iter();
        said.map(|(controller, text)| Statement {
            controller: controller.name(),
            text,
        })
        .collect()
    }
}

/// A time span as people say it: `42 s`, `3 m 10 s`, `2 h 5 m`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes, rest) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} m"),
        (0, minutes, seconds) => format!("{minutes} m {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} m"),
    }
}

/// How often something was tried in vain, in brackets; nothing for never.
pub fn times(tries: u32) -> String {
    match tries {
        0 => String::new(),
        1 => " (1 try)".into(),
        tries => format!(" ({tries} tries)"),
    }
}

/// When work on a key continues.
pub fn next_try(state: Option<KeyState>) -> String {
    match state.map(|state| state.place) {
        Some(KeyPlace::Waiting(pause)) => format!("Next try in {}.", span(pause)),
        Some(KeyPlace::Running) => "It is being worked on right now.".into(),
        Some(KeyPlace::Ready) => "It is worked on as soon as a worker is free.".into(),
        None => "It is tried again when it changes.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Controller;
    use crate::report::testing::FakeReport;

    #[test]
    fn time_spans_are_short() {
        let said = [0, 59, 60, 190, 3600, 7500].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(said, ["0 s", "59 s", "1 m", "3 m 10 s", "1 h", "2 h 5 m"]);
    }

    #[test]
    fn each_controller_explains_and_unknown_objects_are_unknown() {
        let (nodes, services) = (Arc::<Cache<Node>>::default(), Arc::<Cache<Service>>::default());
        nodes.fill(vec![crate::testing::node("a", "True", &[])]);
        let reports = Reports::default();
        let explain = Explain::new(nodes, services.clone(), reports.clone());
        assert_eq!(explain.node("b"), None);
        let silent = explain.node("a").unwrap().to_string();
        assert_eq!(
            silent,
            "Node a: no controller of this process has anything to do with it.\n"
        );
        services.fill(Vec::new());
        assert!(!explain.is_ready(), "no controller works yet");
        reports.add(Arc::new(FakeReport {
            about_nodes: Some("is initialised.".into()),
            ..FakeReport::of(Controller::CloudNode)
        }));
        assert!(explain.is_ready());
        reports.add(Arc::new(FakeReport::of(Controller::CloudNodeLifecycle)));
        assert_eq!(
            explain.node("a").unwrap().to_string(),
            "Node a is initialised. [cloud-node-controller]\n"
        );
        assert_eq!(explain.service("default", "web"), None);
        reports.add(Arc::new(FakeReport {
            about_gone: Some(("default/web", "is gone (default/web).".into())),
            ..FakeReport::of(Controller::ServiceLb)
        }));
        let gone = explain.service("default", "web").unwrap().to_string();
        assert_eq!(
            gone,
            "Service default/web is gone (default/web). [service-lb-controller]\n"
        );
    }
}
