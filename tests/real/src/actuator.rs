//! Makes what the simulated cloud says so: a machine that runs has namespaces and a kubelet, a route is one of the hub's kernel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{Machine, MachineState};

use crate::cloud::{Cloud, State};
use crate::pki::Pki;
use crate::process::child_of;
use crate::{control_groups, files, network};

/// How often the cloud is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often processes are looked at that are to come or to go, and for how long.
const SOON: (Duration, u32) = (Duration::from_millis(20), 500);

/// The machines and routes that there are.
pub struct Actuator {
    cloud: Cloud,
    folder: PathBuf,
    parts: PathBuf,
    kubernetes: PathBuf,
    pki: Pki,
    machines: BTreeMap<String, Running>,
    /// Destination and address of the machine.
    routes: BTreeMap<String, String>,
}

/// A machine that runs. Its standard input is its leash.
struct Running {
    name: String,
    address: String,
    process: Child,
}

impl Actuator {
    /// None of them yet.
    pub fn new(cloud: Cloud, folder: &Path, parts: &Path, kubernetes: &Path, pki: Pki) -> Self {
        Self {
            cloud,
            folder: folder.to_owned(),
            parts: parts.to_owned(),
            kubernetes: kubernetes.to_owned(),
            pki,
            machines: BTreeMap::new(),
            routes: BTreeMap::new(),
        }
    }

    /// Follows the cloud; returns when something cannot be done, or a machine has ended by itself.
    pub async fn follow(&mut self) -> Result<()> {
        loop {
            let state = self.cloud.state().await?;
            self.machines(&state).await?;
            self.routes(&state)?;
            for Running { name, process, .. } in self.machines.values_mut() {
                if let Some(status) = process.try_wait().context("looking after a machine")? {
                    bail!(
                        "machine {name} has ended by itself ({status}); its logs are in {}",
                        self.folder.join(&*name).display()
                    );
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends all machines.
    pub async fn end(&mut self) -> Result<()> {
        while let Some((_, machine)) = self.machines.pop_first() {
            end(machine).await?;
        }
        Ok(())
    }

    async fn machines(&mut self, state: &State) -> Result<()> {
        let runs = |id: &str| {
            let mut running = state.machines.iter().filter(|one| one.state == MachineState::Running);
            running.any(|machine| machine.id == id)
        };
        let over: Vec<String> = self.machines.keys().filter(|id| !runs(id)).cloned().collect();
        for id in over {
            if let Some(machine) = self.machines.remove(&id) {
                end(machine).await?;
            }
        }
        for machine in state.machines.iter().filter(|machine| runs(&machine.id)) {
            if !self.machines.contains_key(&machine.id) {
                let running = self.start(machine).await?;
                self.machines.insert(machine.id.clone(), running);
            }
        }
        Ok(())
    }

    async fn start(&self, machine: &Machine) -> Result<Running> {
        let name = machine.name.clone();
        let address = machine.addresses.first().map(|address| address.ip.clone());
        let address = address.with_context(|| format!("machine {name} has no address"))?;
        let number = address.rsplit('.').next().and_then(|last| last.parse::<u8>().ok());
        let number = number.and_then(|last| last.checked_sub(10));
        let number = number.with_context(|| format!("machine {name}: {address} is not of the cloud's network"))?;
        let folder = self.folder.join(&name);
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        control_groups::create(&name)?;
        self.pki.client(
            &format!("kubelet-{name}"),
            &format!("system:node:{name}"),
            "system:nodes",
        )?;
        for (file, client) in [("kubelet", format!("kubelet-{name}")), ("proxy", "admin".to_owned())] {
            let made = files::kubeconfig(&folder, &self.pki, &client)?;
            std::fs::rename(&made, folder.join(file).with_extension("kubeconfig")).context("naming a kubeconfig")?;
        }
        files::kubelet(&folder, &name, &self.pki)?;
        files::containerd(&folder, &self.parts)?;
        let log = File::create(folder.join("machine.log")).context("making the log of a machine")?;
        let mut process = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"])
            .arg(std::env::current_exe().context("looking for our own program")?)
            .args(["machine", "--name", &name, "--address", &address])
            .arg("--folder")
            .arg(&folder)
            .arg("--parts")
            .arg(&self.parts)
            .arg("--kubernetes")
            .arg(&self.kubernetes)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().context("opening a log twice")?)
            .stderr(log)
            .spawn()
            .context("starting unshare")?;
        let mut looks = 0;
        let first = loop {
            // The namespaces are there before the child is.
            if let Some(first) = child_of(process.id()) {
                break first;
            }
            looks += 1;
            if looks > SOON.1 || process.try_wait().context("looking after a machine")?.is_some() {
                bail!(
                    "machine {name} did not start; see {}",
                    folder.join("machine.log").display()
                );
            }
            tokio::time::sleep(SOON.0).await;
        };
        network::attach(number, first)?;
        let leash = process.stdin.as_mut().context("a machine has no standard input")?;
        writeln!(leash, "go").context("telling a machine that its network is there")?;
        Ok(Running { name, address, process })
    }

    fn routes(&mut self, state: &State) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for route in state.routes.iter().filter(|route| !route.blackhole) {
            if let Some(machine) = self.machines.get(&route.spec.machine) {
                wanted.insert(route.spec.destination.clone(), machine.address.clone());
            }
        }
        for destination in self.routes.keys().filter(|known| !wanted.contains_key(*known)) {
            network::remove_route(destination)?;
        }
        for (destination, via) in &wanted {
            if self.routes.get(destination) != Some(via) {
                network::add_route(destination, via)?;
            }
        }
        self.routes = wanted;
        Ok(())
    }
}

/// Ends a machine as losing its power does, and removes its control groups.
async fn end(machine: Running) -> Result<()> {
    let Running { name, mut process, .. } = machine;
    if let Some(first) = child_of(process.id()) {
        // It may have ended since.
        let _ = crate::process::call(&format!("kill -KILL {first}"));
    }
    drop(process.stdin.take());
    process.wait().with_context(|| format!("waiting for machine {name}"))?;
    for _ in 0..SOON.1 {
        if control_groups::remove(Some(&name))?.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(SOON.0).await;
    }
    bail!("the control groups of machine {name} are still in use: processes of its Pods have not ended")
}
