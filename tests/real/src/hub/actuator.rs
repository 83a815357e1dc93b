//! Makes what the simulated cloud says so: a machine that runs has namespaces and a kubelet, a route is one of the hub's kernel, a load balancer
//! forwards packets there, a disk is a device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{Machine, MachineState};
use rustix::process::{Pid, Signal, kill_process};

use crate::cloud::balancers::Balancers;
use crate::cloud::{Cloud, State};
use crate::hub::Options;
use crate::hub::pki::Pki;
use crate::hub::{files, network};
use crate::outside::control_groups::Group;
use crate::process::child_of;
use crate::volumes::{Disks, sysfs};

/// How often the cloud is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// How often processes are looked at that are to come or to go, and for how long.
const SOON: (Duration, u32) = (Duration::from_millis(20), 500);

/// Who kube-proxy is in the cluster; Kubernetes has its rights ready.
const PROXY: &str = "system:kube-proxy";

/// The machines, routes and load balancers that there are.
pub struct Actuator {
    cloud: Cloud,
    folder: PathBuf,
    parts: PathBuf,
    kubernetes: PathBuf,
    images: Images,
    pki: Pki,
    /// Of the whole cluster.
    group: Group,
    machines: BTreeMap<String, Running>,
    /// Destination and address of the machine.
    routes: BTreeMap<String, String>,
    balancers: Balancers,
    disks: Disks,
    /// The program of Cloudwit, whose node service of volumes each machine runs.
    cloudwit: Option<PathBuf>,
}

/// What containerd is given.
#[derive(Debug, Default)]
pub struct Images {
    /// Before kubelet starts.
    pub first: Vec<PathBuf>,
    /// Afterwards, so that large ones do not keep a machine waiting.
    pub later: Vec<PathBuf>,
}

/// A machine that runs. It ends when its standard input closes.
struct Running {
    name: String,
    address: String,
    process: Child,
    group: Group,
}

impl Actuator {
    /// None of them yet.
    pub fn new(
        cloud: Cloud,
        folder: &Path,
        options: &Options,
        images: Images,
        pki: Pki,
        cloudwit: Option<PathBuf>,
    ) -> Result<Self> {
        pki.client("kube-proxy", PROXY, "system:node-proxier")?;
        Ok(Self {
            cloud,
            folder: folder.to_owned(),
            parts: options.parts.clone(),
            kubernetes: options.kubernetes.clone(),
            images,
            pki,
            // The hub is in a group beside those of the machines.
            group: Group::own()?.parent().clusters()?,
            machines: BTreeMap::new(),
            routes: BTreeMap::new(),
            balancers: Balancers::new(&options.parts),
            disks: Disks::new(folder)?,
            cloudwit,
        })
    }

    /// Follows the cloud; returns when something cannot be done, or a machine has ended by itself.
    pub async fn follow(&mut self) -> Result<()> {
        loop {
            let state = self.cloud.state().await?;
            self.machines(&state).await?;
            self.routes(&state)?;
            self.balancers.follow(&state)?;
            let running = self
                .machines
                .iter()
                .map(|(id, machine)| (id.clone(), machine.name.clone()));
            self.disks.follow(&state, &running.collect())?;
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
        let number = network::number(&address)
            .with_context(|| format!("machine {name}: {address} is not of the cloud's network"))?;
        let folder = self.folder.join(&name);
        let devices = sysfs(&self.folder, &name).join("block");
        std::fs::create_dir_all(&devices).with_context(|| format!("making {}", devices.display()))?;
        let group = self.group.child(&name);
        group.create()?;
        let kubelet = format!("kubelet-{name}");
        self.pki
            .client(&kubelet, &format!("system:node:{name}"), "system:nodes")?;
        files::named_kubeconfig(&folder, &self.pki, &kubelet, "kubelet")?;
        files::named_kubeconfig(&folder, &self.pki, "kube-proxy", "proxy")?;
        files::kubelet(&folder, &self.pki)?;
        files::containerd(&folder, &self.parts)?;
        let log = File::create(folder.join("machine.log")).context("making the log of a machine")?;
        let mut process = group
            .command("unshare")?
            .args([
                "--mount",
                "--pid",
                "--net",
                "--ipc",
                "--uts",
                "--cgroup",
                "--fork",
                "--kill-child",
            ])
            .arg(std::env::current_exe().context("looking for our own program")?)
            .args(["machine", "--name", &name, "--address", &address])
            .arg("--folder")
            .arg(&folder)
            .arg("--parts")
            .arg(&self.parts)
            .arg("--kubernetes")
            .arg(&self.kubernetes)
            .args(
                self.cloudwit
                    .iter()
                    .flat_map(|program| [OsStr::new("--cloudwit"), program.as_os_str()]),
            )
            .args(
                self.images
                    .first
                    .iter()
                    .flat_map(|image| [OsStr::new("--image"), image.as_os_str()]),
            )
            .args(
                self.images
                    .later
                    .iter()
                    .flat_map(|image| [OsStr::new("--later-image"), image.as_os_str()]),
            )
            .stdin(Stdio::piped())
            .stdout(log.try_clone().context("opening a log twice")?)
            .stderr(log)
            .spawn()
            .context("starting a machine")?;
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
        let input = process.stdin.as_mut().context("a machine has no standard input")?;
        writeln!(input, "go").context("telling a machine that its network is there")?;
        Ok(Running {
            name,
            address,
            process,
            group,
        })
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
    let Running {
        name,
        mut process,
        group,
        ..
    } = machine;
    // It has not been waited for, so its number is still its own.
    let first = child_of(process.id()).and_then(|first| Pid::from_raw(first.try_into().ok()?));
    if let Some(first) = first {
        // It may have ended since.
        let _ = kill_process(first, Signal::KILL);
    }
    drop(process.stdin.take());
    process.wait().with_context(|| format!("waiting for machine {name}"))?;
    for _ in 0..SOON.1 {
        if group.remove().is_empty() {
            return Ok(());
        }
        tokio::time::sleep(SOON.0).await;
    }
    bail!("the control groups of machine {name} are still in use: processes of its Pods have not ended")
}
