//! File of `--config`: providers, grants, limits, routing.
//!
//! ```text
//!   text -> `tree` (lines) -> `check` (unknown keys, wrong kinds) -> the types here -> what only the whole shows -> Configured
//! ```
//!
//! All mistakes are told at once, each with its line. Nothing but the files that are named is read, and those of secrets not even that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cloudwit_controllers::ServiceRules;
use cloudwit_host::{Grants, Limits, ProviderSettings};
use serde::Deserialize;

use crate::config::check;
use crate::config::tree::{Tree, Value};
use crate::config::yaml;
use crate::providers::swap::Source;

/// What the file says, as it is written; keys and meanings are in `keys`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    providers: Vec<ProviderEntry>,
    guest_memory_bytes: Option<u64>,
    #[serde(default)]
    routing: RoutingEntry,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ProviderEntry {
    name: String,
    component: String,
    cloud_config: Option<String>,
    cloud_config_file: Option<PathBuf>,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    grants: Grants,
    #[serde(default)]
    limits: Limits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct RoutingEntry {
    default: Option<String>,
    nodes: Vec<NodeRule>,
    services: Vec<ServiceRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NodeRule {
    provider: String,
    #[serde(rename = "providerIDPrefixes")]
    prefixes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ServiceRule {
    provider: String,
    #[serde(default)]
    classes: Vec<String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Which of several providers looks after what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// Name of the provider of what names no other.
    pub default: String,
    /// Prefixes that stand in place of those that a provider says, by its name.
    pub prefixes: BTreeMap<String, Vec<String>>,
    /// Which Services are whose.
    pub services: ServiceRules,
}

/// Providers and routing, from flags or from a file.
#[derive(Debug, Default)]
pub struct Configured {
    /// In the file's order.
    pub providers: Vec<Source>,
    /// Memory of all calls together, in bytes; none for the host's default.
    pub guest_memory_bytes: Option<u64>,
    /// How work is shared out.
    pub routing: Routing,
}

/// What the flags say for all providers.
#[derive(Debug, Clone, Copy)]
pub struct Common<'a> {
    /// `--provider-dir`.
    pub provider_dir: &'a Path,
    /// `--cluster-name`.
    pub cluster_name: &'a str,
    /// `--cluster-cidr`.
    pub cluster_cidrs: &'a [String],
}

/// Reads the file, or finds all that is wrong with it.
pub fn read(file: &Path, common: Common<'_>) -> Result<Configured, Vec<String>> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| vec![format!("--config={}: cannot be read as text: {error}", file.display())])?;
    parse(file, &text, common)
}

/// The same for a text. `file` is what messages call it and where relative paths begin.
pub fn parse(file: &Path, text: &str, common: Common<'_>) -> Result<Configured, Vec<String>> {
    let shown = file.display().to_string();
    let tree = Tree::parse(text).map_err(|error| vec![format!("{shown}: {error}")])?;
    let mut mistakes = check::mistakes(&shown, &tree);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let read: File = yaml::read(text).map_err(|error| vec![format!("{shown}: {error}")])?;
    let mut reader = Reader {
        file,
        tree: &tree,
        common,
        mistakes: Vec::new(),
    };
    let configured = reader.configured(read);
    mistakes.append(&mut reader.mistakes);
    if mistakes.is_empty() {
        Ok(configured)
    } else {
        Err(mistakes)
    }
}

struct Reader<'a> {
    file: &'a Path,
    tree: &'a Tree,
    common: Common<'a>,
    mistakes: Vec<String>,
}

impl Reader<'_> {
    /// A mistake at this path, with the line of its nearest part that is written.
    fn wrong(&mut self, path: &str, what: impl std::fmt::Display) {
        let line = line_of(self.tree, path);
        self.mistakes
            .push(format!("{}:{line}: {path}: {what}", self.file.display()));
    }

    fn configured(&mut self, read: File) -> Configured {
        let names: Vec<String> = read.providers.iter().map(|entry| entry.name.clone()).collect();
        if names.is_empty() {
            self.wrong("providers", "is empty; name at least one provider");
        }
        let mut seen = BTreeSet::new();
        for (at, name) in names.iter().enumerate() {
            let path = format!("providers[{at}].name");
            if !is_name(name) {
                self.wrong(
                    &path,
                    format!("{name:?} is no name; use at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"),
                );
            }
            if !seen.insert(name) {
                self.wrong(
                    &path,
                    format!("{name:?} is the name of another provider already; names have to differ"),
                );
            }
        }
        let needed: u64 = read.providers.iter().map(|entry| entry.limits.memory_bytes).sum();
        if let Some(total) = read.guest_memory_bytes.filter(|total| *total < needed) {
            let what = format!(
                "{total} is too little: one call of each provider may need {needed} together, by limits.memoryBytes"
            );
            self.wrong("guestMemoryBytes", what);
        }
        let guest_memory_bytes = read.guest_memory_bytes;
        let routing = self.routing(read.routing, &names);
        let entries = read.providers.into_iter().enumerate();
        let providers = entries.filter_map(|(at, entry)| self.provider(at, entry)).collect();
        Configured {
            providers,
            guest_memory_bytes,
            routing,
        }
    }

    fn provider(&mut self, at: usize, mut entry: ProviderEntry) -> Option<Source> {
        let path = format!("providers[{at}]");
        let component = self.component(&format!("{path}.component"), &entry.component);
        let mut files = vec![self.file.to_owned()];
        let config_text = match (entry.cloud_config.take(), entry.cloud_config_file.take()) {
            (Some(_), Some(_)) => {
                self.wrong(
                    &format!("{path}.cloudConfigFile"),
                    "stands beside cloudConfig; write one of them",
                );
                return None;
            }
            (Some(text), None) => text,
            (None, Some(named)) => {
                let named = self.beside(&named);
                let text = std::fs::read_to_string(&named);
                files.push(named.clone());
                text.unwrap_or_else(|error| {
                    let what = format!("{:?} cannot be read as text: {error}", named.display().to_string());
                    self.wrong(&format!("{path}.cloudConfigFile"), what);
                    String::new()
                })
            }
            (None, None) => String::new(),
        };
        if let Err(wrong) = entry.grants.validate() {
            for problem in wrong {
                let at = format!("{path}.grants.{}", problem.path);
                let text = problem.to_string();
                self.wrong(&at, text.strip_prefix(&format!("{}: ", problem.path)).unwrap_or(&text));
            }
        }
        for grant in &mut entry.grants.http {
            grant.ca = grant.ca.take().map(|ca| self.beside(&ca));
        }
        for grant in &mut entry.grants.secrets {
            grant.file = self.beside(&grant.file);
        }
        let settings = ProviderSettings {
            name: entry.name,
            config_text,
            values: entry.values.into_iter().collect(),
            cluster_name: self.common.cluster_name.to_owned(),
            cluster_cidrs: self.common.cluster_cidrs.to_vec(),
            grants: entry.grants,
            limits: entry.limits,
        };
        Some(Source {
            component: component?,
            config_origin: format!("{}: {path}", self.file.display()),
            settings,
            files,
        })
    }

    fn component(&mut self, path: &str, written: &str) -> Option<PathBuf> {
        if written.starts_with("oci://") {
            let what = format!(
                "{written:?}: components are not fetched from registries; put the file beside this one, or let an image volume or an init \
                 container bring it"
            );
            self.wrong(path, what);
            return None;
        }
        let beside = self.beside(Path::new(written));
        let in_dir = Some(self.common.provider_dir.join(written)).filter(|_| !written.contains('/'));
        let found = [Some(beside.clone()), in_dir.clone()]
            .into_iter()
            .flatten()
            .find(|file| file.is_file());
        if found.is_none() {
            let where_else = in_dir
                .map(|file| format!(" nor {}", file.display()))
                .unwrap_or_default();
            self.wrong(path, format!("there is no file {}{where_else}", beside.display()));
        }
        found
    }

    /// Relative paths begin at the file's folder, wherever the process was started.
    fn beside(&self, path: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    fn routing(&mut self, entry: RoutingEntry, names: &[String]) -> Routing {
        let mut routing = Routing::default();
        match (entry.default, names) {
            (Some(name), _) => {
                self.known("routing.default", &name, names);
                routing.default = name;
            }
            (None, [only]) => routing.default.clone_from(only),
            (None, []) => {}
            (None, _) => self.wrong(
                "routing.default",
                format!(
                    "is missing; with several providers one has to get what names no other: {}",
                    names.join(", ")
                ),
            ),
        }
        for (at, rule) in entry.nodes.into_iter().enumerate() {
            let path = format!("routing.nodes[{at}]");
            self.known(&format!("{path}.provider"), &rule.provider, names);
            if rule.prefixes.is_empty() || rule.prefixes.iter().any(String::is_empty) {
                let at = format!("{path}.providerIDPrefixes");
                self.wrong(
                    &at,
                    "is empty, which fits every Node; write how the ids begin, such as openstack://north/",
                );
            }
            routing.prefixes.entry(rule.provider).or_default().extend(rule.prefixes);
        }
        for (at, rule) in entry.services.into_iter().enumerate() {
            self.service_rule(&format!("routing.services[{at}]"), rule, names, &mut routing.services);
        }
        routing
    }

    fn service_rule(&mut self, path: &str, rule: ServiceRule, names: &[String], rules: &mut ServiceRules) {
        self.known(&format!("{path}.provider"), &rule.provider, names);
        if rule.classes.is_empty() && rule.annotations.is_empty() {
            self.wrong(path, "names neither classes nor annotations, so it fits no Service");
        }
        for class in rule.classes {
            if let Some(other) = rules.classes.insert(class.clone(), rule.provider.clone()) {
                let what = format!("the class {class:?} is provider {other:?}'s already");
                self.wrong(&format!("{path}.classes"), what);
            }
        }
        for (key, value) in rule.annotations {
            let annotation = (key.clone(), value.clone());
            if let Some(other) = rules.annotations.insert(annotation, rule.provider.clone()) {
                let what = format!("the annotation {key}={value} is provider {other:?}'s already");
                self.wrong(&format!("{path}.annotations"), what);
            }
        }
    }

    fn known(&mut self, path: &str, name: &str, names: &[String]) {
        if !names.iter().any(|known| known == name) {
            self.wrong(
                path,
                format!("there is no provider {name:?}; known: {}", names.join(", ")),
            );
        }
    }
}

/// A DNS name without upper case: it is a metric label, an annotation's value, and stands before a colon in the ids of routes.
fn is_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().all(|byte| inner(byte) || byte == b'-' || byte == b'.')
        && name.bytes().next().is_some_and(inner)
        && name.bytes().last().is_some_and(inner)
}

/// The line of a path such as `providers[1].grants.http[0].host`, or of its nearest parent that is there.
fn line_of(tree: &Tree, path: &str) -> u64 {
    let (mut at, mut line) = (tree, tree.line);
    for part in path.split('.') {
        let (name, indexes) = part.split_once('[').unwrap_or((part, ""));
        let Value::Map(entries) = &at.value else { break };
        let Some((_, key_line, value)) = entries.iter().find(|(key, ..)| key == name) else {
            break;
        };
        (at, line) = (value, *key_line);
        let index = indexes.strip_suffix(']').and_then(|index| index.parse::<usize>().ok());
        if let (Some(index), Value::List(items)) = (index, &at.value)
            && let Some(item) = items.get(index)
        {
            (at, line) = (item, item.line);
        }
    }
    line
}

#[cfg(test)]
mod tests;
