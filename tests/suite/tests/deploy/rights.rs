//! Rights as RBAC grants them, one verb on one resource each, and the requests that use them, from the API server's audit log.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;

/// One verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Empty for the core group.
    pub group: String,
    /// With its subresource: `nodes/status`.
    pub resource: String,
    pub verb: String,
    /// Only on the object of this name; on all when empty.
    pub name: String,
    /// Granted by the Role in kube-system, and so only there.
    pub in_role: bool,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.name.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", self.name)
        }
    }
}

/// All that these rules grant.
pub fn granted(rules: &[PolicyRule], in_role: bool) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    let all = [String::new()];
    for rule in rules {
        assert!(rule.non_resource_urls.is_none(), "{rule:?}");
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    for name in rule.resource_names.as_deref().unwrap_or(&all) {
                        rights.insert(Right {
                            group: group.clone(),
                            resource: resource.clone(),
                            verb: verb.clone(),
                            name: name.clone(),
                            in_role,
                        });
                    }
                }
            }
        }
    }
    rights
}

/// Rules that grant exactly these.
pub fn rules<'a>(rights: impl IntoIterator<Item = &'a Right>) -> Vec<PolicyRule> {
    let rule = |right: &Right| PolicyRule {
        api_groups: Some(vec![right.group.clone()]),
        resources: Some(vec![right.resource.clone()]),
        verbs: vec![right.verb.clone()],
        resource_names: Some(vec![right.name.clone()]).filter(|_| !right.name.is_empty()),
        non_resource_urls: None,
    };
    rights.into_iter().map(rule).collect()
}

/// A request for an object, and what the API server thought of it.
#[derive(Debug, Clone)]
pub struct Request {
    group: String,
    resource: String,
    verb: String,
    name: String,
    namespace: String,
    pub allowed: bool,
}

impl Request {
    /// Whether this right is what allows it, or would.
    pub fn needs(&self, right: &Right) -> bool {
        self.group == right.group
            && self.resource == right.resource
            && self.verb == right.verb
            && (right.name.is_empty() || right.name == self.name)
            && (!right.in_role || self.namespace == "kube-system")
    }
}

#[derive(Deserialize)]
struct Record {
    stage: String,
    verb: String,
    user: User,
    #[serde(rename = "objectRef")]
    object: Option<Object>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Object {
    api_group: String,
    resource: String,
    subresource: String,
    name: String,
    namespace: String,
}

/// The requests of a user in these lines of an audit log.
fn requests(log: &str, user: &str) -> Vec<Request> {
    let records = log.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let of_user = records.filter(|record| record.user.username == user);
    // The decision is there once it is made, so not in the first stage of a request; and one of the later ones is enough.
    of_user
        .filter(|record| record.stage == "ResponseComplete" || record.stage == "ResponseStarted")
        .filter_map(|record| {
            let allowed = record.annotations.get("authorization.k8s.io/decision")? == "allow";
            let object = record.object?;
            let resource = match object.subresource.as_str() {
                "" => object.resource,
                part => format!("{}/{part}", object.resource),
            };
            Some(Request {
                group: object.api_group,
                resource,
                verb: record.verb,
                name: object.name,
                namespace: object.namespace,
                allowed,
            })
        })
        .collect()
}

/// An audit log from here on.
pub struct Since<'a> {
    log: &'a Path,
    at: u64,
}

impl<'a> Since<'a> {
    /// From now on.
    pub fn now(log: &'a Path) -> Self {
        let at = std::fs::metadata(log).map_or(0, |metadata| metadata.len());
        Self { log, at }
    }

    /// What a user has asked for since.
    pub fn requests(&self, user: &str) -> Vec<Request> {
        let mut text = Vec::new();
        let mut file = File::open(self.log).unwrap();
        file.seek(SeekFrom::Start(self.at)).unwrap();
        file.read_to_end(&mut text).unwrap();
        requests(&String::from_utf8_lossy(&text), user)
    }
}
