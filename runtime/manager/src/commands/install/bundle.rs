//! What `install` brings into the cluster: the configuration and all files it names.
//!
//! | of a provider | goes to | is called there |
//! | ------------- | ------- | --------------- |
//! | component | ConfigMap `cloudwit-providers`; not where it is in a registry | as here |
//! | cloud config, authorities of grants and registries, client certificates, keys of signatures | ConfigMap `cloudwit-config`, beside `cloudwit.yaml` | `PROVIDER-FILE` |
//! | secrets, keys of client certificates, credentials of registries | Secret `cloudwit-secrets` | `PROVIDER-SECRET`, `PROVIDER-FILE`, `PROVIDER-registry.json` |

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cloudwit_host::has_private_key;
use serde_json::{Map, Value, json};

use crate::commands::install::command::InstallArgs;
use crate::config::file::{self, Common};
use crate::config::yaml;
use crate::providers::component::Component;
use crate::providers::swap::Source;
use crate::registry::access::PinnedComponent;

/// Where the Secret is mounted.
const SECRETS: &str = "/etc/cloudwit/secrets";

/// What is wrong with a file whose name in the cluster another one has.
const NAMED_TWICE: &str =
    "another file of this provider has the same name in the cluster; give one of the two a name of its own";

/// Files for the cluster by name. Not `Debug`, since secrets are among them.
#[derive(Default)]
pub struct Bundle {
    /// The configuration, as the Pod reads it.
    pub configuration: Value,
    /// What stands beside it.
    pub beside: BTreeMap<String, String>,
    /// The components.
    pub components: BTreeMap<String, Vec<u8>>,
    /// The secrets.
    pub secrets: BTreeMap<String, Vec<u8>>,
    /// What each provider is loaded from on this machine.
    pub sources: Vec<Source>,
}

impl Bundle {
    /// Reads the configuration of these flags and every file that it names, or finds all that is wrong with them.
    pub fn read(args: &InstallArgs) -> Result<Self, Vec<String>> {
        let (file, text) = configuration(args)?;
        let cidrs: Vec<String> = args
            .cluster_cidr
            .split(',')
            .map(|cidr| cidr.trim().to_owned())
            .collect();
        let common = Common {
            provider_dir: file.parent().unwrap_or(Path::new("")),
            cluster_name: &args.cluster_name,
            cluster_cidrs: &cidrs,
        };
        let configured = file::parse(&file, &text, common)?;
        let configuration = yaml::read(&text).map_err(|error| vec![format!("{}: {error}", file.display())])?;
        let mut collector = Collector {
            bundle: Self {
                configuration,
                ..Self::default()
            },
            existing_secret: args.existing_secret.is_some(),
            mistakes: Vec::new(),
        };
        for (at, source) in configured.providers.iter().enumerate() {
            collector.provider(at, source);
        }
        let Collector {
            mut bundle, mistakes, ..
        } = collector;
        bundle.sources = configured.providers;
        if mistakes.is_empty() { Ok(bundle) } else { Err(mistakes) }
    }
}

/// The configuration's text, and the file that relative paths in it begin beside.
fn configuration(args: &InstallArgs) -> Result<(PathBuf, String), Vec<String>> {
    if let Some(file) = &args.config {
        return match fs::read_to_string(file) {
            Ok(text) => Ok((file.clone(), text)),
            Err(error) => Err(vec![format!(
                "--config={}: cannot be read as text: {error}",
                file.display()
            )]),
        };
    }
    let mut provider = Map::new();
    if let Some(file) = &args.provider_settings {
        let unusable = |error: &dyn std::fmt::Display| vec![format!("--provider-settings={}: {error}", file.display())];
        let text = fs::read_to_string(file).map_err(|error| unusable(&error))?;
        if !text.trim().is_empty() {
            provider = yaml::read(&text).map_err(|error| unusable(&error))?;
        }
    }
    provider.insert("name".into(), json!(args.cloud_provider));
    provider.insert("component".into(), json!(args.component));
    if let Some(file) = &args.cloud_config {
        provider.insert("cloudConfigFile".into(), json!(file));
    }
    let configuration = json!({
        "apiVersion": "cloudwit.dev/v1alpha1",
        "kind": "CloudwitConfiguration",
        "providers": [provider],
    });
    // Paths of flags begin where the command was started; the name shows in messages about what the flags say.
    Ok((PathBuf::from("(flags)"), format!("{configuration:#}")))
}

struct Collector {
    bundle: Bundle,
    existing_secret: bool,
    mistakes: Vec<String>,
}

impl Collector {
    /// Takes the files of one provider in, and puts the paths of the Pod into its entry.
    fn provider(&mut self, at: usize, source: &Source) {
        let name = &source.settings.name;
        match &source.component {
            Component::File(file) => {
                if let Some(component) = self.component(file) {
                    self.entry(at)["component"] = json!(component);
                }
            }
            Component::Pinned(pinned) => self.registry_files(at, name, pinned),
        }
        if self.entry(at).get("cloudConfigFile").is_some() {
            // The text was read with the configuration, in whose list of files it comes last.
            let file = source.files.last().cloned().unwrap_or_default();
            let key = key(name, &file);
            self.bundle
                .beside
                .insert(key.clone(), source.settings.config_text.clone());
            self.entry(at)["cloudConfigFile"] = json!(key);
        }
        self.files_of_tls(at, source);
        self.secrets(at, source);
    }

    /// Takes in whom the grants trust, and the client certificates that they present.
    fn files_of_tls(&mut self, at: usize, source: &Source) {
        let name = &source.settings.name;
        for (number, grant) in source.settings.grants.http.iter().enumerate() {
            for (field, file) in [("ca", &grant.ca), ("clientCertificate", &grant.client_certificate)] {
                let Some(file) = file else { continue };
                if let Some(key) = self.text_beside(at, &format!("grants.http[{number}].{field}"), name, file) {
                    self.entry(at)["grants"]["http"][number][field] = json!(key);
                }
            }
            let Some(file) = &grant.client_key else { continue };
            let path = format!("grants.http[{number}].clientKey");
            if let Some(in_pod) = self.secret_file(at, &path, key(name, file), file) {
                self.entry(at)["grants"]["http"][number]["clientKey"] = json!(in_pod);
            }
        }
    }

    /// Takes in what a component in a registry is pulled and checked by.
    fn registry_files(&mut self, at: usize, name: &str, pinned: &PinnedComponent) {
        if let Some(ca) = &pinned.access.ca
            && let Some(key) = self.text_beside(at, "registry.ca", name, ca)
        {
            self.entry(at)["registry"]["ca"] = json!(key);
        }
        for (number, file) in pinned.keys.iter().enumerate() {
            if let Some(key) = self.text_beside(at, &format!("verify.keys[{number}]"), name, file) {
                self.entry(at)["verify"]["keys"][number] = json!(key);
            }
        }
        let Some(file) = &pinned.access.docker_config else {
            return;
        };
        let key = key(name, Path::new("registry.json"));
        if let Some(in_pod) = self.secret_file(at, "registry.dockerConfig", key, file) {
            self.entry(at)["registry"]["dockerConfig"] = json!(in_pod);
        }
    }

    /// Takes a text in that stands beside the configuration; its name there.
    fn text_beside(&mut self, at: usize, path: &str, name: &str, file: &Path) -> Option<String> {
        let key = key(name, file);
        let why = match fs::read_to_string(file) {
            Ok(text) if has_private_key(text.as_bytes()) => {
                "it contains a private key, and a ConfigMap is no place for one; leave only certificates there".into()
            }
            Ok(text) if self.bundle.beside.get(&key).is_some_and(|other| *other != text) => NAMED_TWICE.into(),
            Ok(text) => {
                self.bundle.beside.insert(key.clone(), text);
                return Some(key);
            }
            Err(error) => error.to_string(),
        };
        self.wrong(at, path, file, &why);
        None
    }

    /// Takes a secret in that is called so in the cluster; its path in the Pod. None where it is there already.
    fn secret_file(&mut self, at: usize, path: &str, key: String, file: &Path) -> Option<String> {
        let in_pod = format!("{SECRETS}/{key}");
        let why = if self.existing_secret {
            if file.parent() == Some(Path::new(SECRETS)) {
                return None;
            }
            format!("with --existing-secret it is {SECRETS}/KEY")
        } else {
            match fs::read(file) {
                Ok(content) if content.is_empty() => "it is empty".into(),
                Ok(content) if self.bundle.secrets.get(&key).is_some_and(|other| *other != content) => {
                    NAMED_TWICE.into()
                }
                Ok(content) => {
                    self.bundle.secrets.insert(key, content);
                    return Some(in_pod);
                }
                Err(error) => error.to_string(),
            }
        };
        self.wrong(at, path, file, &why);
        None
    }

    fn secrets(&mut self, at: usize, source: &Source) {
        let secrets = source.settings.grants.secrets.iter().enumerate();
        // Those of volumes are in Secrets that classes name.
        for (number, grant) in secrets.filter(|(_, grant)| grant.volume_key().is_none()) {
            let path = format!("grants.secrets[{number}].file");
            let key = key(&source.settings.name, Path::new(&grant.name));
            if let Some(in_pod) = self.secret_file(at, &path, key, &grant.file) {
                self.entry(at)["grants"]["secrets"][number]["file"] = json!(in_pod);
            }
        }
    }

    /// Takes a component in; its name in the cluster.
    fn component(&mut self, file: &Path) -> Option<String> {
        let name = file.file_name()?.to_string_lossy().into_owned();
        if name != key_of(&name) {
            let what = "a key of a ConfigMap has letters, digits, '-', '_' and '.' only; give the file such a name";
            self.mistakes.push(format!("{}: {what}", file.display()));
            return None;
        }
        let content = match fs::read(file) {
            Ok(content) => content,
            Err(error) => {
                self.mistakes
                    .push(format!("{}: cannot be read: {error}", file.display()));
                return None;
            }
        };
        if self.bundle.components.get(&name).is_some_and(|other| *other != content) {
            let what =
                "there is another component of this name in another folder; give one of the two a name of its own";
            self.mistakes.push(format!("{}: {what}", file.display()));
            return None;
        }
        self.bundle.components.insert(name.clone(), content);
        Some(name)
    }

    fn entry(&mut self, at: usize) -> &mut Value {
        &mut self.bundle.configuration["providers"][at]
    }

    fn wrong(&mut self, at: usize, path: &str, file: &Path, why: &dyn std::fmt::Display) {
        let file = file.display();
        self.mistakes
            .push(format!("providers[{at}].{path}: {file} cannot be used: {why}"));
    }
}

/// The key of a provider's file in a ConfigMap or Secret.
fn key(provider: &str, file: &Path) -> String {
    key_of(&format!(
        "{provider}-{}",
        file.file_name().unwrap_or_default().to_string_lossy()
    ))
}

/// What ConfigMaps and Secrets take as a key: letters, digits, `-`, `_` and `.`.
fn key_of(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    name.chars()
        .map(|letter| if fits(letter) { letter } else { '-' })
        .collect()
}
