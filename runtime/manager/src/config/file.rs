//! File of `--config`: providers, grants, limits, routing.
//!
//! ```text
//!   text -> `document` (lines; unknown keys and wrong kinds, by the schema of `entries`) -> what only the whole shows -> Configured
//! ```
//!
//! All mistakes are reported at once, each with its line. Nothing but the files that are named is read, and those of secrets not even that.

pub(crate) mod entries;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cloudwit_controllers::ServiceRules;
use cloudwit_host::ProviderSettings;

use crate::config::document::Document;
use crate::config::file::entries::{File, ProviderEntry, RoutingEntry, ServiceRule};
use crate::providers::component::Component;
use crate::providers::csi;
use crate::providers::swap::Source;
use crate::registry::access::PinnedComponent;
use crate::registry::reference::{self, Reference};

/// Which of several providers looks after what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routing {
    /// Name of the provider of what names no other.
    pub default: String,
    /// Prefixes that stand in place of those that a provider says, by its name.
    pub prefixes: BTreeMap<String, Vec<String>>,
    /// Assignment of Services to providers.
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
    let (read, document) = Document::read::<File>(file.display().to_string(), text)?;
    let mut reader = Reader {
        file,
        document: &document,
        common,
        mistakes: Vec::new(),
    };
    let configured = reader.configured(read);
    if reader.mistakes.is_empty() {
        Ok(configured)
    } else {
        Err(reader.mistakes)
    }
}

struct Reader<'a> {
    file: &'a Path,
    document: &'a Document,
    common: Common<'a>,
    mistakes: Vec<String>,
}

impl Reader<'_> {
    fn wrong(&mut self, path: &str, what: impl std::fmt::Display) {
        self.mistakes.push(self.document.mistake(path, what));
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
                    format!("{name:?} is not a valid name; use at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"),
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
        let component = self.component(&path, &mut entry);
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
        self.mistakes
            .extend(self.document.grants(&format!("{path}.grants"), &entry.grants));
        for grant in &mut entry.grants.http {
            for file in [&mut grant.ca, &mut grant.client_certificate, &mut grant.client_key] {
                *file = file.take().map(|file| self.beside(&file));
            }
        }
        for grant in entry
            .grants
            .secrets
            .iter_mut()
            .filter(|grant| grant.volume_key().is_none())
        {
            grant.file = self.beside(&grant.file);
        }
        if let Some(wrong) = entry.csi_driver_name.as_deref().and_then(csi::wrong_name) {
            self.wrong(&format!("{path}.csiDriverName"), wrong);
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
            csi_driver_name: entry.csi_driver_name,
            files,
        })
    }

    fn component(&mut self, path: &str, entry: &mut ProviderEntry) -> Option<Component> {
        let written = entry.component.as_str();
        if written.starts_with(reference::SCHEME) {
            return self
                .pinned(path, entry)
                .map(|pinned| Component::Pinned(Box::new(pinned)));
        }
        for (key, there) in [
            ("registry", entry.registry.is_some()),
            ("verify", entry.verify.is_some()),
        ] {
            if there {
                self.wrong(
                    &format!("{path}.{key}"),
                    "is for components of registries (oci://...), and component is a file",
                );
            }
        }
        let path = &format!("{path}.component");
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
        found.map(Component::File)
    }

    /// A component in a registry, with the paths as they are from here.
    fn pinned(&mut self, path: &str, entry: &mut ProviderEntry) -> Option<PinnedComponent> {
        let mut access = entry.registry.take().unwrap_or_default();
        for file in [&mut access.ca, &mut access.docker_config].into_iter().flatten() {
            *file = self.beside(file);
        }
        let keys = match entry.verify.take() {
            Some(verify) if verify.keys.is_empty() => {
                self.wrong(
                    &format!("{path}.verify.keys"),
                    "is empty; name the file of a public key, or leave verify out",
                );
                Vec::new()
            }
            Some(verify) => verify.keys.iter().map(|file| self.beside(file)).collect(),
            None => Vec::new(),
        };
        let path = format!("{path}.component");
        let reference = match Reference::parse(&entry.component) {
            Ok(reference) => reference,
            Err(error) => {
                self.wrong(&path, error);
                return None;
            }
        };
        if reference.digest.is_none() {
            let what = format!(
                "{reference} has no digest, so it could be another component tomorrow; `cloudwit provider pin {reference}` prints the line with it"
            );
            self.wrong(&path, what);
            return None;
        }
        Some(PinnedComponent {
            reference,
            access,
            keys,
            limit: entry.limits.component_bytes,
        })
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

#[cfg(test)]
mod tests;
