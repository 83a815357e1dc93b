//! The configurations in `deploy/examples` that people start from: Cloudwit accepts each, the provider accepts its own part, and the grants are
//! all that the provider would like.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cloudwit_host::{Grants, HostOptions, ProviderSettings};
use cloudwit_suite::hosting::{Hosting, settings};
use cloudwit_suite::root;
use cloudwit_test_support::programs;
use cloudwit_test_support::programs::guests;
use serde_json::Value;
use tempfile::TempDir;
use xtask::guests::{packed, packed_limit, packed_size};

/// Each has a folder with one provider in its `cloudwit.yaml`.
const CLOUDS: [&str; 13] = [
    "alibaba",
    "aws",
    "azure",
    "baidu",
    "cloudstack",
    "gce",
    "mesos",
    "openstack",
    "ovirt",
    "photon",
    "rackspace",
    "rancher",
    "vsphere",
];

/// A copy of an example with the component beside it, and files where the example names some.
struct Example {
    folder: TempDir,
    component: PathBuf,
}

impl Example {
    fn of(cloud: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let built = guests::provider(cloud);
        let example = fs::read_to_string(root().join("deploy/examples").join(cloud).join("cloudwit.yaml")).unwrap();
        let is_packed = example.contains(&format!("component: {cloud}.wasm.zst"));
        let component = folder
            .path()
            .join(cloud)
            .with_extension(if is_packed { "wasm.zst" } else { "wasm" });
        match is_packed {
            true => fs::write(&component, packed(&built).unwrap()).unwrap(),
            false => drop(fs::copy(&built, &component).unwrap()),
        }
        let authority = rcgen::generate_simple_self_signed(vec!["authority".to_owned()]).unwrap();
        fs::write(folder.path().join("vcenter-ca.pem"), authority.cert.pem()).unwrap();
        for entry in fs::read_dir(root().join("deploy/examples").join(cloud)).unwrap() {
            let file = entry.unwrap().path();
            let text = fs::read_to_string(&file).unwrap();
            // Secrets are only named; files that are read have to be there.
            let authority = folder.path().join("vcenter-ca.pem");
            let text = text.replace("/etc/cloudwit/vcenter-ca.pem", authority.to_str().unwrap());
            let text = text.replace("/etc/cloudwit/nsx-ca.pem", authority.to_str().unwrap());
            fs::write(folder.path().join(file.file_name().unwrap()), text).unwrap();
        }
        Self { folder, component }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Its one provider.
    fn provider(&self) -> Value {
        let text = fs::read_to_string(self.file("cloudwit.yaml")).unwrap();
        let configuration: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(configuration["providers"].as_array().unwrap().len(), 1);
        configuration["providers"][0].clone()
    }

    /// Those of its provider, and of the file for `--provider-settings` if it has one; all secrets are there.
    fn grants(&self) -> Vec<Grants> {
        fs::write(self.file("secret"), "a secret").unwrap();
        let mut found = vec![self.provider()["grants"].clone()];
        if let Ok(text) = fs::read_to_string(self.file("settings.yaml")) {
            let settings: Value = serde_saphyr::from_str(&text).unwrap();
            found.push(settings["grants"].clone());
        }
        let read = |mut grants: Value| {
            for secret in grants["secrets"].as_array_mut().unwrap() {
                secret["file"] = self.file("secret").into();
            }
            serde_json::from_value(grants).unwrap()
        };
        found.into_iter().map(read).collect()
    }

    fn cloud_config(&self) -> String {
        self.file(self.provider()["cloudConfigFile"].as_str().unwrap())
    }
}

fn cloudwit(words: &[&str]) -> String {
    // Nothing on this machine or in its environment may lead to a cluster.
    let output = Command::new(programs::cloudwit())
        .args(words)
        .env("KUBECONFIG", "/nowhere")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "cloudwit {words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn each_example_is_accepted_by_cloudwit_and_by_its_provider() {
    for cloud in CLOUDS {
        let example = Example::of(cloud);
        let file = example.file("cloudwit.yaml");
        let told = cloudwit(&["config", "check", &file]);
        assert!(
            told.contains("nothing is wrong.") && told.contains(&format!("Provider {cloud}\n")),
            "{told}"
        );
        // The provider checks its own part in the sandbox.
        let installed = cloudwit(&["install", "--config", &file, "--existing-secret=cloudwit-secrets"]);
        assert!(
            installed.contains(&format!("{cloud}.wasm")),
            "the component is not among what is installed"
        );
        let help = fs::read_to_string(&file).unwrap();
        assert!(
            help.starts_with("# yaml-language-server: $schema="),
            "editors help with {file}"
        );
    }
}

#[tokio::test]
async fn each_example_grants_all_that_its_provider_would_like() {
    for cloud in CLOUDS {
        let example = tokio::task::spawn_blocking(|| Example::of(cloud)).await.unwrap();
        let with = |grants| ProviderSettings {
            name: cloud.to_owned(),
            config_text: fs::read_to_string(example.cloud_config()).unwrap(),
            grants,
            ..settings()
        };
        let hosting = Hosting::new(HostOptions::default());
        let load = |grants| hosting.load_file(&example.component, with(grants));
        for grants in example.grants() {
            let lacking = load(grants).await.unwrap().missing_grants();
            assert!(lacking.is_empty(), "{cloud}: {lacking:?}");
        }
        let all = load(Grants::default()).await.unwrap().missing_grants();
        assert!(all.len() > 1, "{cloud} would like no hosts and secrets: {all:?}");
    }
}

#[test]
fn inspect_reports_size_and_grants_of_each_provider() {
    for cloud in CLOUDS {
        let example = Example::of(cloud);
        let component = example.component.to_str().unwrap();
        let inspect = ["inspect", component, "--cloud-config", &example.cloud_config()];
        let told = cloudwit(&inspect);
        let size = fs::metadata(guests::provider(cloud)).unwrap().len();
        for part in [
            &format!("size          {size} bytes, "),
            "ConfigMap     fits",
            "\ngrants:\n  http:\n",
            "  secrets:\n",
        ] {
            assert!(told.contains(part), "{part:?} is missing in:\n{told}");
        }
        let size = packed_size(&guests::provider(cloud)).unwrap();
        assert!(size <= packed_limit(cloud), "{cloud}.wasm.zst has {size} bytes");
        // Pasted into the settings, they are what the provider gets.
        let (_, pasted) = told.split_once("\ngrants:\n").unwrap();
        let settings = format!("grants:\n{pasted}");
        let pasted: Value = serde_saphyr::from_str(&settings).unwrap();
        let grants: Grants = serde_json::from_value(pasted["grants"].clone()).unwrap();
        assert_eq!(grants.validate(), Ok(()), "{settings}");
    }
}

#[test]
fn every_example_is_one_that_is_tried() {
    let named = |entry: &Path| entry.file_name().unwrap().to_string_lossy().into_owned();
    let folders = fs::read_dir(root().join("deploy/examples")).unwrap();
    let mut found: Vec<String> = folders.map(|entry| named(&entry.unwrap().path())).collect();
    found.sort();
    // Those of `sim` are read by the tests of the configuration file.
    assert_eq!(
        found,
        [
            "alibaba",
            "aws",
            "azure",
            "baidu",
            "cloudstack",
            "gce",
            "mesos",
            "openstack",
            "ovirt",
            "photon",
            "rackspace",
            "rancher",
            "several-clouds",
            "sim",
            "vsphere"
        ]
    );
}
