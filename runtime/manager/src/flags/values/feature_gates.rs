//! `--feature-gates`: upstream's gates, and their effect here.

use crate::flags::values::go::entries;

/// Switches for what is new.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Feature gates")]
pub struct FeatureArgs {
    /// NAME=true or NAME=false, joined by commas. Known are upstream's gates of its cloud-controller-manager; what they switch on
    /// is always on here, or does not exist.
    #[arg(long, value_name = "NAME=BOOL", value_delimiter = ',')]
    pub feature_gates: Vec<String>,
}

/// Upstream's gates, and what holds here whatever their value (`spec/flags-and-process.md` 9).
const GATES: [(&str, &str); 6] = [
    (
        "CloudControllerManagerWatchBasedRoutesReconciliation",
        "routes follow the watch of Nodes, and are compared with the cloud on a period as well",
    ),
    (
        "CloudControllerManagerWebhook",
        "--webhooks alone says which webhooks are served",
    ),
    (
        "ControllerManagerReleaseLeaderElectionLockOnExit",
        "the Lease is released on a clean exit",
    ),
    ("WatchList", "lists are streamed where the API server can"),
    ("WatchListClient", "lists are streamed where the API server can"),
    ("ContextualLogging", "log lines carry their context"),
];

impl FeatureArgs {
    /// A message for each entry that is no gate or has no value.
    pub fn mistakes(&self) -> Vec<String> {
        let known = GATES.map(|(name, _)| name).join(", ");
        entries(&self.feature_gates)
            .iter()
            .filter_map(|entry| match entry.split_once('=') {
                None => Some(format!("--feature-gates: {entry:?} has no value; write {entry}=true")),
                Some((name, _)) if !GATES.iter().any(|(gate, _)| *gate == name) => Some(format!(
                    "--feature-gates: unrecognized feature gate {name:?}; known: {known}"
                )),
                Some((name, value)) => crate::flags::values::go::boolean(value)
                    .err()
                    .map(|wrong| format!("--feature-gates: {name}: {wrong}")),
            })
            .collect()
    }

    /// Behaviour that differs from a gate's setting, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let named = entries(&self.feature_gates);
        GATES
            .iter()
            .filter(|(gate, _)| named.iter().any(|entry| entry.starts_with(&format!("{gate}="))))
            .map(|(gate, holds)| format!("--feature-gates: {gate} changes nothing here: {holds}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> FeatureArgs {
        FeatureArgs {
            feature_gates: list.split(',').map(str::to_owned).collect(),
        }
    }

    #[test]
    fn every_gate_that_is_not_known_is_named() {
        let wrong = of("Nope=true,WatchList=maybe,Bare,CloudControllerManagerWebhook=false").mistakes();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(
            wrong[0].contains("unrecognized feature gate \"Nope\"; known: CloudControllerManager"),
            "{wrong:?}"
        );
        assert!(wrong[1].contains("WatchList: \"maybe\" is neither"), "{wrong:?}");
        assert!(wrong[2].contains("write Bare=true"), "{wrong:?}");
    }

    #[test]
    fn known_gate_reports_what_holds() {
        let notes = of("ControllerManagerReleaseLeaderElectionLockOnExit=true").notes();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with("the Lease is released on a clean exit"), "{notes:?}");
        assert!(of("").notes().is_empty());
    }
}
