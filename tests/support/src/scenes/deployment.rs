//! Cloudwit with one provider as an operator would run it: its files, its flags, its process, and the simulated cloud's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::programs::child::Child;
use crate::programs::port;

/// What the simulated cloud takes as bearer token.
pub const TOKEN: &str = "sandbox-token";

/// The Pod range of the cluster; Nodes get parts of it.
pub const CLUSTER_CIDR: &str = "10.244.0.0/16";

/// Marks in the cloud what belongs to the cluster.
pub const CLUSTER_NAME: &str = "sandbox";

/// How long a program may take to start.
const START: Duration = Duration::from_secs(180);

/// A folder with all files, and where the programs are.
#[derive(Debug, Clone)]
pub struct Deployment {
    folder: PathBuf,
    programs: PathBuf,
    provider: String,
    bare: bool,
}

/// What Cloudwit is told about a cloud.
#[derive(Debug, Clone)]
pub struct CloudFiles {
    /// The content of `--cloud-config`.
    pub config: String,
    /// The content of `--provider-settings`: grants and limits.
    pub settings: String,
}

impl Deployment {
    /// Makes `folder` anew, with the provider in it as `providers/sim.wasm`. `programs` is a folder of cargo's, such as
    /// `target/debug`.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn new(folder: &Path, programs: &Path, provider: &Path) -> Result<Self> {
        Self::of("sim", folder, programs, provider)
    }

    /// The same for the provider of this name, whose component is `providers/NAME.wasm` then.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of(name: &str, folder: &Path, programs: &Path, component: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        let providers = folder.join("providers");
        fs::create_dir_all(&providers).with_context(|| format!("making {}", providers.display()))?;
        fs::copy(component, providers.join(name).with_extension("wasm"))
            .with_context(|| format!("copying {} to {}", component.display(), providers.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            programs: programs.to_owned(),
            provider: name.to_owned(),
            bare: false,
        })
    }

    /// For a component that takes no configuration and needs no grants.
    #[must_use]
    pub fn bare(self) -> Self {
        Self { bare: true, ..self }
    }

    /// With programs from another folder.
    #[must_use]
    pub fn programs_in(self, programs: &Path) -> Self {
        Self {
            programs: programs.to_owned(),
            ..self
        }
    }

    /// The folder with all files and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts the simulated cloud; gives its URL too.
    ///
    /// # Errors
    ///
    /// When it does not start; with the end of its log.
    pub fn start_cloud(&self) -> Result<(Child, String)> {
        let cloud = self.start("cloudwit-sim-cloud", &[format!("--token={TOKEN}")])?;
        let port = cloud.said("PORT=", START)?;
        cloud.said("READY", START)?;
        Ok((cloud, format!("http://127.0.0.1:{port}")))
    }

    /// Writes the configuration and starts Cloudwit on this cluster and this simulated cloud, with further flags. Gives the URL of its
    /// metrics and health pages too.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or the program cannot be started.
    pub fn start_cloudwit(&self, kubeconfig: &Path, cloud: &str, flags: &[&str]) -> Result<(Child, String)> {
        self.start_on(kubeconfig, &self.sim_files(cloud)?, flags)
    }

    /// What Cloudwit is told about the simulated cloud at this URL.
    ///
    /// # Errors
    ///
    /// When the token cannot be written.
    pub fn sim_files(&self, cloud: &str) -> Result<CloudFiles> {
        let port = cloud.rsplit(':').next().unwrap_or_default();
        let token = self.write("token", TOKEN)?;
        Ok(CloudFiles {
            config: json!({ "endpoint": cloud }).to_string(),
            settings: settings(port, &token),
        })
    }

    /// The same on another cloud. Secrets that the settings name are files of the caller's ([`write`](Self::write)).
    ///
    /// # Errors
    ///
    /// As [`start_cloudwit`](Self::start_cloudwit).
    pub fn start_on(&self, kubeconfig: &Path, files: &CloudFiles, flags: &[&str]) -> Result<(Child, String)> {
        let config = self.write("cloud-config", &files.config)?;
        let settings = self.write("settings.yaml", &files.settings)?;
        let admin = port::address()?;
        let mut arguments = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--cluster-cidr={CLUSTER_CIDR}"),
            format!("--admin-address={admin}"),
        ];
        // A configuration file says all about the provider.
        let has_file = flags.iter().any(|flag| flag.starts_with("--config="));
        if !has_file {
            arguments.push(format!("--cloud-provider={}", self.provider));
            arguments.push(format!("--provider-dir={}", self.folder.join("providers").display()));
        }
        arguments.extend(unless_given(
            flags,
            [
                format!("--cache-dir={}", self.folder.join("cache").display()),
                "--secure-port=0".to_owned(),
                format!("--cluster-name={CLUSTER_NAME}"),
                // One process alone starts at once, and a killed one leaves no Lease that the next has to wait for.
                "--leader-elect=false".to_owned(),
            ],
        ));
        if !self.bare && !has_file {
            arguments.push(format!("--cloud-config={}", config.display()));
            arguments.push(format!("--provider-settings={}", settings.display()));
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Ok((self.start("cloudwit", &arguments)?, format!("http://{admin}")))
    }

    fn start(&self, name: &str, arguments: &[String]) -> Result<Child> {
        Child::start(
            &self.programs.join(name),
            arguments,
            &self.folder.join(name).with_extension("log"),
        )
    }

    /// Writes a configuration file in which Services of these classes are the provider's: the value of `--config` for [`start_on`](Self::start_on) with the
    /// same files.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_config(&self, files: &CloudFiles, classes: &[&str]) -> Result<PathBuf> {
        let name = &self.provider;
        let component = self.folder.join("providers").join(name).with_extension("wasm");
        let settings: String = files.settings.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!(
            "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: {name}\n    component: {}\n    cloudConfigFile: {}\n\
             {settings}routing:\n  default: {name}\n  services: [{{provider: {name}, classes: {classes:?}}}]\n",
            component.display(),
            self.folder.join("cloud-config").display()
        );
        self.write("cloudwit.yaml", &text)
    }

    /// Writes a file into the folder, such as a secret that the settings name.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.join(name);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }
}

/// Those of `defaults` whose flags are not among `flags`, which may each be given once.
pub(crate) fn unless_given<const N: usize>(flags: &[&str], defaults: [String; N]) -> impl Iterator<Item = String> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let given: Vec<String> = flags.iter().map(|flag| name(flag)).collect();
    defaults
        .into_iter()
        .filter(move |default| !given.contains(&name(default)))
}

/// The grants that `sim` needs: its API on loopback, and the token for it.
pub fn settings(port: &str, token: &Path) -> String {
    format!(
        "grants:\n  http:\n    \
         - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, DELETE], allowLoopback: true}}\n  \
         secrets:\n    - {{name: token, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n",
        token.display()
    )
}
