//! Kubernetes' CSI sidecars and its controller of snapshots, beside Cloudwit: each a process with a log, started again when it ends, as kubelet does.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cloudwit_test_support::programs::child::Child;

use super::DRIVER;
use crate::hub::kubectl::Kubectl;

/// Where they are.
#[derive(Debug, Clone, clap::Args)]
pub struct SidecarFiles {
    /// csi-provisioner.
    #[arg(long, value_name = "FILE")]
    pub provisioner: PathBuf,
    /// csi-attacher.
    #[arg(long, value_name = "FILE")]
    pub attacher: PathBuf,
    /// csi-resizer.
    #[arg(long, value_name = "FILE")]
    pub resizer: PathBuf,
    /// csi-snapshotter.
    #[arg(long, value_name = "FILE")]
    pub snapshotter: PathBuf,
    /// snapshot-controller, of which a cluster has one.
    #[arg(long, value_name = "FILE")]
    pub snapshot_controller: PathBuf,
    /// The CustomResourceDefinitions of snapshots.
    #[arg(long, value_name = "FOLDER")]
    pub snapshot_definitions: PathBuf,
}

/// What runs. It ends when this is dropped.
pub struct Sidecars(Vec<Sidecar>);

struct Sidecar {
    program: PathBuf,
    flags: Vec<String>,
    log: PathBuf,
    process: Child,
}

impl Sidecars {
    /// Starts the controller of snapshots, with the rights of an administrator, and the API server learns what they are.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or the API server does not take the definitions.
    pub fn start_controller(files: &SidecarFiles, folder: &Path, kubeconfig: &Path, kubectl: &Kubectl) -> Result<Self> {
        define_snapshots(files, kubectl)?;
        let name = "snapshot-controller";
        let log = folder.join(name).with_extension("log");
        let controller = Sidecar::start(&files.snapshot_controller, common(kubeconfig).to_vec(), log)?;
        Ok(Self(vec![controller]))
    }

    /// The same with the sidecars, on the socket that Cloudwit makes in the folder `sockets`.
    ///
    /// # Errors
    ///
    /// As [`start_controller`](Self::start_controller).
    pub fn start(
        files: &SidecarFiles,
        sockets: &Path,
        folder: &Path,
        kubeconfig: &Path,
        kubectl: &Kubectl,
    ) -> Result<Self> {
        let mut all = Self::start_controller(files, folder, kubeconfig, kubectl)?;
        let socket = sockets.join(format!("{DRIVER}.sock"));
        for (program, name, own) in [
            (&files.provisioner, "csi-provisioner", Some("--extra-create-metadata")),
            (&files.attacher, "csi-attacher", None),
            (&files.resizer, "csi-resizer", None),
            (&files.snapshotter, "csi-snapshotter", None),
        ] {
            let mut flags = common(kubeconfig).to_vec();
            flags.push(format!("--csi-address={}", socket.display()));
            flags.extend(own.map(str::to_owned));
            let log = folder.join(name).with_extension("log");
            all.0.push(Sidecar::start(program, flags, log)?);
        }
        Ok(all)
    }

    /// Starts those again that have ended, such as for the loss of their connection.
    ///
    /// # Errors
    ///
    /// When one cannot be started.
    pub fn tend(&mut self) -> Result<()> {
        for one in self.0.iter_mut().filter(|one| !one.process.runs()) {
            one.process = Child::start(&one.program, &one.flags, &one.log)?;
        }
        Ok(())
    }
}

impl Sidecar {
    fn start(program: &Path, flags: Vec<String>, log: PathBuf) -> Result<Self> {
        Ok(Self {
            process: Child::start(program, &flags, &log)?,
            program: program.to_owned(),
            flags,
            log,
        })
    }
}

/// Flags that all of them have.
fn common(kubeconfig: &Path) -> [String; 3] {
    [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--leader-election=false".to_owned(),
        "--v=4".to_owned(),
    ]
}

/// The API server learns what snapshots are.
fn define_snapshots(files: &SidecarFiles, kubectl: &Kubectl) -> Result<()> {
    let folder = &files.snapshot_definitions;
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let file = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("snapshot.storage.k8s.io_") {
            kubectl.run(&["apply", "-f", &file.display().to_string()])?;
        }
    }
    Ok(())
}
