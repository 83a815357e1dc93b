//! Kubernetes' sidecars as processes, and what a test does beside them in the API server.

use std::path::Path;
use std::time::Duration;

use cloudwit_test_support::child::Child;
use cloudwit_test_support::eventually;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use xtask::sidecars::Sidecars;

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Some of the programs; one that has lost its connection ends itself and is started again, as kubelet does.
pub struct Running<'a> {
    programs: &'a Sidecars,
    folder: &'a Path,
    socket: &'a Path,
    processes: Vec<(&'static str, Child)>,
}

impl<'a> Running<'a> {
    /// Those of these names, out of `provisioner`, `attacher` and `resizer`.
    pub fn start(
        names: &[&'static str],
        programs: &'a Sidecars,
        folder: &'a Path,
        socket: &'a Path,
        kubeconfig: &Path,
    ) -> Self {
        let mut running = Self {
            programs,
            folder,
            socket,
            processes: Vec::new(),
        };
        running.processes = names
            .iter()
            .map(|name| (*name, running.one(name, kubeconfig)))
            .collect();
        running
    }

    fn one(&self, name: &str, kubeconfig: &Path) -> Child {
        let (program, more) = match name {
            "provisioner" => (&self.programs.provisioner, &["--extra-create-metadata"][..]),
            "attacher" => (&self.programs.attacher, &[][..]),
            _ => (&self.programs.resizer, &[][..]),
        };
        let mut arguments = vec![
            format!("--csi-address={}", self.socket.display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-election=false".to_owned(),
            "--v=4".to_owned(),
        ];
        arguments.extend(more.iter().map(|flag| (*flag).to_owned()));
        Child::start(program, &arguments, &self.folder.join(format!("{name}.log"))).unwrap()
    }

    /// Starts those again that have ended.
    fn tend(&mut self, kubeconfig: &Path) {
        for at in 0..self.processes.len() {
            let name = self.processes[at].0;
            if !self.processes[at].1.runs() {
                self.processes[at].1 = self.one(name, kubeconfig);
            }
        }
    }

    /// The ends of their logs.
    pub fn logs(&self) -> String {
        self.processes
            .iter()
            .map(|(_, process)| process.log_end())
            .collect::<Vec<_>>()
            .join("\n")
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
    sidecars: &mut Running<'_>,
    kubeconfig: &Path,
    what: &str,
    mut look: impl FnMut() -> Fut,
) -> T {
    eventually(SOON, what, || {
        sidecars.tend(kubeconfig);
        let (found, logs) = (look(), sidecars.logs());
        async move { found.await.ok_or(logs) }
    })
    .await
}
