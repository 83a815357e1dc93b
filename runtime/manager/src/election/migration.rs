//! `--enable-leader-migration`: hands controllers over between two managers.
//!
//! The file and its rules are upstream's (`controller-manager pkg/leadermigration`, `spec/flags-and-process.md`, section 6). One thing is
//! better: upstream's default list still has the old names of two controllers, which match nothing; here a controller is meant
//! by any name it ever had.

use std::path::Path;

use cloudwit_controllers::Controller;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::yaml;

/// How we are called in the file.
const COMPONENT: &str = "cloud-controller-manager";

/// The Lease of the default configuration.
const DEFAULT_LEASE: &str = "cloud-provider-extraction-migration";

/// The versions of the file: only the older two have a `resourceLock`.
const V1: &str = "controllermanager.config.k8s.io/v1";
const OLDER: [&str; 2] = [
    "controllermanager.config.k8s.io/v1beta1",
    "controllermanager.config.k8s.io/v1alpha1",
];

/// Which controllers are led apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Name of the Lease of the migrated controllers.
    pub lease: String,
    entries: Vec<Entry>,
}

/// Under which Lease a controller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Under the Lease of the process.
    Main,
    /// Under the Lease of the migration.
    Migrated,
    /// Nowhere: another manager has it.
    Elsewhere,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Entry {
    name: String,
    component: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    leader_name: String,
    resource_lock: Option<String>,
    controller_leaders: Vec<Entry>,
}

impl Default for Migration {
    /// What upstream does without a file.
    fn default() -> Self {
        let names = [
            "route-controller",
            "service-controller",
            "cloud-node-lifecycle-controller",
        ];
        Self {
            lease: DEFAULT_LEASE.into(),
            entries: names
                .map(|name| Entry {
                    name: name.into(),
                    component: "*".into(),
                })
                .into(),
        }
    }
}

impl Migration {
    /// As `/configz` shows it.
    pub fn configz(&self) -> Value {
        json!({ "leaderName": self.lease, "resourceLock": "leases", "controllerLeaders": self.entries })
    }

    /// What `/configz` shows where there is no migration.
    pub fn none() -> Value {
        json!({ "leaderName": "", "resourceLock": "", "controllerLeaders": null })
    }

    /// The migration of this file, or everything that is wrong with it.
    pub fn read(file: &Path) -> Result<Self, Vec<String>> {
        let flag = format!("--leader-migration-config={}", file.display());
        let text =
            std::fs::read_to_string(file).map_err(|error| vec![format!("{flag}: cannot be read as text: {error}")])?;
        Self::parse(&text).map_err(|mistakes| mistakes.iter().map(|mistake| format!("{flag}: {mistake}")).collect())
    }

    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let file: File = yaml::read(text).map_err(|error| vec![error])?;
        let mut mistakes = Vec::new();
        if file.kind != "LeaderMigrationConfiguration" {
            mistakes.push(format!(
                "kind: {:?}; it has to be LeaderMigrationConfiguration",
                file.kind
            ));
        }
        let older = OLDER.contains(&file.api_version.as_str());
        if !older && file.api_version != V1 {
            mistakes.push(format!(
                "apiVersion: {:?}; it has to be {V1}, {} or {}",
                file.api_version, OLDER[0], OLDER[1]
            ));
        }
        match file.resource_lock.as_deref() {
            Some(lock) if !older => {
                mistakes.push(format!("resourceLock: {lock:?}; {V1} has no such field, leave it away"))
            }
            Some("leases" | "") | None => {}
            Some(lock) => mistakes.push(format!(
                "resourceLock: {lock:?}; only \"leases\" exists, other locks were taken out of Kubernetes in 1.24"
            )),
        }
        if file.leader_name.is_empty() {
            mistakes.push("leaderName is missing; give the name of the Lease that both managers use".into());
        }
        for (at, entry) in file.controller_leaders.iter().enumerate() {
            for (field, value) in [("name", &entry.name), ("component", &entry.component)] {
                if value.is_empty() {
                    mistakes.push(format!("controllerLeaders[{at}].{field} is missing"));
                }
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Ok(Self {
            lease: file.leader_name,
            entries: file.controller_leaders,
        })
    }

    /// Where a controller runs. The first entry that names it decides.
    pub fn place(&self, controller: Controller) -> Placement {
        let names = names(controller);
        match self.entries.iter().find(|entry| names.contains(&entry.name.as_str())) {
            None => Placement::Main,
            Some(entry) if ["*", COMPONENT].contains(&entry.component.as_str()) => Placement::Migrated,
            Some(_) => Placement::Elsewhere,
        }
    }
}

/// Every name of a controller: today's, the short one, and the one it had in kube-controller-manager before.
fn names(controller: Controller) -> [&'static str; 3] {
    let former = match controller {
        Controller::CloudNode | Controller::CloudNodeLifecycle => controller.name(),
        Controller::ServiceLb => "service-controller",
        Controller::NodeRoute => "route-controller",
        // Never was in kube-controller-manager.
        Controller::Tagging => controller.name(),
    };
    [controller.name(), controller.alias(), former]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: &str, rest: &str) -> String {
        format!("apiVersion: controllermanager.config.k8s.io/{version}\nkind: LeaderMigrationConfiguration\n{rest}")
    }

    fn places(migration: &Migration) -> [Placement; 4] {
        use Controller::{CloudNode, CloudNodeLifecycle, NodeRoute, ServiceLb};
        [CloudNode, CloudNodeLifecycle, ServiceLb, NodeRoute].map(|controller| migration.place(controller))
    }

    #[test]
    fn default_protects_three_moved_controllers_by_old_names() {
        use Placement::{Main, Migrated};
        assert_eq!(places(&Migration::default()), [Main, Migrated, Migrated, Migrated]);
    }

    #[test]
    fn controller_matches_any_of_its_names() {
        for name in ["service-lb-controller", "service", "service-controller"] {
            let text = file(
                "v1",
                &format!(
                    "leaderName: moving\ncontrollerLeaders:\n- {{name: {name}, component: kube-controller-manager}}\n\
                     - {{name: route, component: cloud-controller-manager}}\n- {{name: endpoint-controller, component: '*'}}"
                ),
            );
            let migration = Migration::parse(&text).unwrap();
            use Placement::{Elsewhere, Main, Migrated};
            assert_eq!(places(&migration), [Main, Main, Elsewhere, Migrated], "{name}");
            assert_eq!(migration.lease, "moving");
        }
    }

    #[test]
    fn all_versions_are_read_and_only_the_older_ones_have_a_lock() {
        let rest = "leaderName: moving\nresourceLock: leases\ncontrollerLeaders: []\n";
        assert!(Migration::parse(&file("v1alpha1", rest)).is_ok());
        assert!(Migration::parse(&file("v1beta1", rest)).is_ok());
        assert_eq!(
            Migration::parse(&file("v1", rest)).unwrap_err(),
            ["resourceLock: \"leases\"; controllermanager.config.k8s.io/v1 has no such field, leave it away"]
        );
        let endpoints = Migration::parse(&file("v1beta1", &rest.replace("leases", "endpoints"))).unwrap_err();
        assert!(endpoints[0].contains("only \"leases\" exists"), "{endpoints:?}");
    }

    #[test]
    fn mistakes_and_unknown_keys_are_reported_together() {
        let mistakes = Migration::parse("kind: X\napiVersion: v1\ncontrollerLeaders:\n- {name: a}\n").unwrap_err();
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
        let unknown = Migration::parse(&file("v1", "leaderName: x\nleader: y\n")).unwrap_err();
        assert!(unknown[0].contains("leader"), "{unknown:?}");
    }
}
