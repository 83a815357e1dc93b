//! Kubernetes' sidecars as processes, and what a test does beside them in the API server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cloudwit_test_support::eventually;
use cloudwit_test_support::programs::child::Child;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use xtask::kubernetes::sidecars::Sidecars;

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// Some of the programs; one that has lost its connection ends itself and is started again, as kubelet does.
pub struct Running {
    folder: PathBuf,
    common: Vec<String>,
    processes: Vec<Process>,
}

struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    child: Child,
}

impl Running {
    /// None yet, for a cluster; their logs go into `folder`.
    pub fn none(folder: &Path, kubeconfig: &Path) -> Self {
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let common = [&kubeconfig, "--leader-election=false", "--v=4"];
        Self {
            folder: folder.to_owned(),
            common: common.map(str::to_owned).to_vec(),
            processes: Vec::new(),
        }
    }

    /// Those of these names, out of `provisioner`, `attacher` and `resizer`, on a driver's socket.
    pub fn start(names: &[&str], programs: &Sidecars, folder: &Path, socket: &Path, kubeconfig: &Path) -> Self {
        let mut running = Self::none(folder, kubeconfig);
        for name in names {
            let (program, more) = match *name {
                "provisioner" => (&programs.provisioner, &["--extra-create-metadata"][..]),
                "attacher" => (&programs.attacher, &[][..]),
                _ => (&programs.resizer, &[][..]),
            };
            let address = format!("--csi-address={}", socket.display());
            running.add(name, program, more.iter().copied().chain([address.as_str()]));
        }
        running
    }

    /// One more, with flags beside those that all of them have.
    pub fn add<'a>(&mut self, name: &str, program: &Path, flags: impl IntoIterator<Item = &'a str>) {
        let mut arguments = self.common.clone();
        arguments.extend(flags.into_iter().map(str::to_owned));
        let log = self.folder.join(name).with_extension("log");
        self.processes.push(Process {
            child: Child::start(program, &arguments, &log).unwrap(),
            program: program.to_owned(),
            arguments,
            log,
        });
    }

    /// Starts those again that have ended.
    fn tend(&mut self) {
        for one in self.processes.iter_mut().filter(|one| !one.child.runs()) {
            one.child = Child::start(&one.program, &one.arguments, &one.log).unwrap();
        }
    }

    /// The ends of their logs.
    pub fn logs(&self) -> String {
        let ends = self.processes.iter().map(|one| one.child.log_end());
        ends.collect::<Vec<_>>().join("\n")
    }
}

/// Creates an object.
pub async fn make<K>(api: &Api<K>, object: Value)
where
    K: Resource + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Changes an object, or its status.
pub async fn merge<K>(api: &Api<K>, name: &str, subresource: Option<&str>, patch: Value)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let patched = match subresource {
        Some(_) => api.patch_status(name, &params, &patch).await,
        None => api.patch(name, &params, &patch).await,
    };
    patched.unwrap();
}

/// Waits while the sidecars are tended.
pub async fn until<T, Fut: Future<Output = Option<T>>>(
    sidecars: &mut Running,
    what: &str,
    look: impl FnMut() -> Fut,
) -> T {
    until_within(SOON, sidecars, what, look).await
}

/// The same for what takes longer.
pub async fn until_within<T, Fut: Future<Output = Option<T>>>(
    limit: Duration,
    sidecars: &mut Running,
    what: &str,
    mut look: impl FnMut() -> Fut,
) -> T {
    eventually(limit, what, || {
        sidecars.tend();
        let (found, logs) = (look(), sidecars.logs());
        async move { found.await.ok_or(logs) }
    })
    .await
}
